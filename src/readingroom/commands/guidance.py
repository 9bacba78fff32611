"""`readingroom guidance`: read Charity Commission guidance from the shell."""

from typing import TYPE_CHECKING, Any

import click

from readingroom.commands.console import common, say
from readingroom.commands.sample import sample_upstream
from readingroom.core import ids
from readingroom.core.progress import no_progress
from readingroom.core.settings import Settings, load
from readingroom.protocol.sample import marked

if TYPE_CHECKING:  # the base's libraries are loaded when a command runs, not for `--help`
    from readingroom.bases.guidance.models import GuidanceAnswer


@click.group()
def guidance() -> None:
    """Charity Commission guidance, read from GOV.UK (GOVUK_BASE_URL).

    The same pages, limits and errors as the tools give. Each command asks for itself; set REDIS_URL
    to share the cache and the limits with running servers.
    """


@guidance.command()
@click.argument("path")
@common
def get(path: str, data: str | None, as_json: bool) -> None:
    """Print the page at PATH, such as /guidance/charity-reporting, as readable text."""
    page = _ask("get_content_by_path", data, path=path)
    _tell(as_json, page, f"{page.citation}\n\n{page.text}")


@guidance.command()
@click.argument("query")
@click.option("--newest", is_flag=True, help="The latest first, not the best match.")
@common
def search(query: str, newest: bool, data: str | None, as_json: bool) -> None:
    """Print the pages that match QUERY, best first."""
    order = "newest" if newest else "relevance"
    found = _ask("search_guidance", data, query=query, order=order)
    lines = [f"{hit.path or hit.url}\n    {hit.title}" for hit in found.results]
    _tell(as_json, found, "\n".join([*lines, f"{len(lines)} of {found.total}"]))


@guidance.command()
@click.argument("path")
@common
def refresh(path: str, data: str | None, as_json: bool) -> None:
    """Fetch the page at PATH anew, past a shared cache, and say whether it changed."""
    done = _ask("force_refresh", data, path=path)
    changed = {True: ", changed", False: ", as before", None: ""}[done.changed]
    said = f"fetched {done.timestamp}{changed}" if done.refreshed else "GOV.UK failed; kept"
    _tell(as_json, done, f"{done.url}: {said}")


def _ask(tool_name: str, data: str | None, **arguments: Any) -> Any:
    """One call of a tool, with the settings in force, by nobody but the operator."""
    import anyio

    from readingroom.protocol.tool import Call
    from readingroom.server.catalogue import open_bases

    request_id = ids.request_id()
    call = Call(request_id, "operator", no_progress, "operator", request_id)

    async def asked(settings: Settings) -> Any:
        (base,) = open_bases(["guidance"], settings)
        (tool,) = (tool for tool in base.tools if tool.name == tool_name)
        async with base.running():
            answer = await tool.run(tool.ask(arguments), call)
        return _as_sample(answer) if settings.sample else answer

    with sample_upstream(load({"data": data})) as settings:
        return anyio.run(asked, settings)


def _as_sample(answer: Any) -> Any:
    """The answer with its citation and attribution marked."""
    return type(answer).model_validate(marked(answer.model_dump()))


def _tell(as_json: bool, answer: "GuidanceAnswer", text: str) -> None:
    """The answer, never without whose words they are and what they are not."""
    warned = [f"Warning: {warning.message}" for warning in answer.warnings]
    legal = [answer.attribution, answer.disclaimer]
    say(as_json, answer.model_dump(mode="json"), "\n".join([text, "", *warned, *legal]))

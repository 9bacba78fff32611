"""`readingroom guidance`: read Charity Commission guidance from the shell."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from readingroom.bases.guidance import SPEC
from readingroom.bases.guidance.models import GuidanceAnswer
from readingroom.bases.guidance.offline.library import GuidanceLibrary
from readingroom.bases.guidance.offline.sync import synchronize_library
from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.console.completion import complete_with
from readingroom.console.coroutines import run_async
from readingroom.console.layout import make_bold
from readingroom.console.options import (
    add_common_options,
    add_embedding_options,
    explain_interrupt,
    print_progress,
    print_result,
)
from readingroom.console.sample import open_sample_settings
from readingroom.core import clock
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.core.settings import RoomSettings
from readingroom.protocol.sample import mark_sample_citations
from readingroom.protocol.tool import ToolContext

_MAX_NAMED_SKIPPED_PAGES = 20


def _list_page_paths(settings: RoomSettings, typed_arguments: Mapping[str, Any]) -> list[str]:
    guidance_library = GuidanceLibrary(settings.data / "guidance")
    try:
        return (
            sorted(guidance_library.count_passages_by_page())
            if guidance_library.has_database
            else []
        )
    finally:
        guidance_library.close()


@click.group()
def guidance() -> None:
    """Charity Commission guidance, read from GOV.UK (GOVUK_BASE_URL).

    The same pages, limits and errors as the tools give. Each command calls GOV.UK by itself; set
    REDIS_URL to share the cache and the limits with running servers.
    """


@guidance.command()
@click.argument("path", shell_complete=complete_with(_list_page_paths))
@add_common_options
def get(path: str, settings: GuidanceSettings, as_json: bool) -> None:
    """Print the page at PATH, such as /guidance/charity-reporting, as readable text."""
    page_answer = _call_tool("get_content_by_path", settings, path=path)
    _print_answer(as_json, page_answer, f"{page_answer.citation}\n\n{page_answer.text}")


@guidance.command()
@click.argument("query")
@click.option("--newest", is_flag=True, help="The latest first, not the best match.")
@click.option(
    "--mode",
    type=click.Choice(["live", "offline", "auto"]),
    default="live",
    help="Ask GOV.UK, or the offline copy, or the copy where there is one [live].",
)
@add_common_options
def search(query: str, newest: bool, mode: str, settings: GuidanceSettings, as_json: bool) -> None:
    """Print the pages that match QUERY, best first."""
    result_order = "newest" if newest else "relevance"
    search_results = _call_tool(
        "search_guidance", settings, query=query, order=result_order, mode=mode
    )
    hit_lines = [
        f"{make_bold(hit.path or hit.url)}\n    {hit.title}" for hit in search_results.results
    ]
    _print_answer(
        as_json,
        search_results,
        "\n".join([*hit_lines, f"{len(hit_lines)} of {search_results.total}"]),
    )


@guidance.command()
@click.option(
    "--all", "check_all", is_flag=True, help="Ask for every page, not for listed changes."
)
@add_embedding_options
def sync(check_all: bool, settings: GuidanceSettings, as_json: bool) -> None:
    """Bring the offline copy of the Commission's guidance up to date.

    Fetches what has changed, at most RATE_LIMIT_PER_SECOND requests a second. One that was
    interrupted goes on where it stopped. Running servers use the copy at once.
    """
    with (
        explain_interrupt("Pages that were fetched are kept: run the same command again to go on"),
        open_sample_settings(settings, [SPEC]) as chosen_settings,
    ):
        sync_summary = run_async(synchronize_library, chosen_settings, check_all, print_progress)
    summary_lines = [
        f"{sync_summary.fetched} pages fetched, {sync_summary.unchanged} unchanged, "
        f"{sync_summary.removed} removed",
        f"{sync_summary.embedded} passages embedded",
    ]
    if sync_summary.skipped:
        summary_lines.append(
            f"{len(sync_summary.skipped)} pages skipped; the next sync tries them again:"
        )
        summary_lines += [
            f"  {skipped_page.path}: {skipped_page.reason}"
            for skipped_page in sync_summary.skipped[:_MAX_NAMED_SKIPPED_PAGES]
        ]
    if sync_summary.no_vectors:
        summary_lines.append(f"Searched by words alone: {sync_summary.no_vectors}")
    print_result(as_json, asdict(sync_summary), "\n".join(summary_lines))


@guidance.command()
@add_common_options
def status(settings: GuidanceSettings, as_json: bool) -> None:
    """Say what the offline copy holds, and how old it is."""
    library_status = GuidanceLibrary(settings.data / "guidance").read_status()
    if not library_status.pages:
        status_text = "There is no offline copy yet: `readingroom guidance sync` makes it."
    else:
        status_text = (
            f"{library_status.pages} pages ({library_status.withdrawn} withdrawn), "
            f"{library_status.passages} passages, "
            f"{library_status.embedded} embedded, {library_status.pending} pages still to fetch\n"
            f"Last complete sync: {_format_moment(library_status.synced_at)}"
        )
    print_result(as_json, asdict(library_status), status_text)


def _format_moment(unix_seconds: float | None) -> str:
    if unix_seconds is None:
        return "never"
    return clock.from_timestamp(unix_seconds).isoformat(sep=" ", timespec="minutes")


@guidance.command()
@click.argument("path", shell_complete=complete_with(_list_page_paths))
@add_common_options
def refresh(path: str, settings: GuidanceSettings, as_json: bool) -> None:
    """Fetch the page at PATH anew, past a shared cache, and say whether it changed."""
    refresh_answer = _call_tool("force_refresh", settings, path=path)
    change_text = {True: ", changed", False: ", as before", None: ""}[refresh_answer.changed]
    outcome_text = (
        f"fetched {refresh_answer.timestamp}{change_text}"
        if refresh_answer.refreshed
        else "GOV.UK failed; kept"
    )
    _print_answer(as_json, refresh_answer, f"{refresh_answer.url}: {outcome_text}")


def _call_tool(tool_name: str, settings: GuidanceSettings, **arguments: Any) -> Any:
    """Return the answer of one tool, called by the operator with the settings in force."""
    request_id = make_request_id()
    tool_context = ToolContext(request_id, "operator", no_progress, "operator", request_id)

    async def run_tool(settings: GuidanceSettings) -> Any:
        guidance_base = SPEC.open_base(settings)
        (guidance_tool,) = (
            guidance_tool
            for guidance_tool in guidance_base.tools
            if guidance_tool.name == tool_name
        )
        async with guidance_base.lifespan():
            tool_answer = await guidance_tool.run(
                guidance_tool.parse_arguments(arguments), tool_context
            )
        return _mark_sample_answer(tool_answer) if settings.is_sample else tool_answer

    with open_sample_settings(settings, [SPEC]) as chosen_settings:
        return run_async(run_tool, chosen_settings)


def _mark_sample_answer(tool_answer: Any) -> Any:
    """Return the answer with its citation and attribution marked."""
    return type(tool_answer).model_validate(mark_sample_citations(tool_answer.model_dump()))


def _print_answer(as_json: bool, tool_answer: GuidanceAnswer, readable_text: str) -> None:
    """Print the answer, never without its attribution and its disclaimer."""
    warning_lines = [
        f"Warning: {answer_warning.message}" for answer_warning in tool_answer.warnings
    ]
    legal_sentences = [tool_answer.attribution, tool_answer.disclaimer]
    answer_fields = tool_answer.model_dump(mode="json")
    print_result(
        as_json, answer_fields, "\n".join([readable_text, "", *warning_lines, *legal_sentences])
    )

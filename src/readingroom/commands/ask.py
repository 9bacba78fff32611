"""`readingroom ask`: a question over every base, answered with cited passages."""

import shutil
import textwrap
from typing import Any

import anyio
import click

from readingroom.commands.console import asked, common, say
from readingroom.commands.sample import sample_upstream
from readingroom.core.progress import no_progress
from readingroom.core.settings import Settings, load

_WIDEST = 100
_LONGEST = 600  # characters of a passage that are printed


@click.command()
@click.argument("question")
@click.option("--on", "date", metavar="DATE", help="Policy as in force on this day [today].")
@click.option("--application", "application_ref", help="Only documents of this application.")
@click.option(
    "--source", multiple=True, help="Only this base, or this federal source; may be repeated."
)
@click.option("-n", "--limit", default=5, show_default=True, help="How many passages.")
@common
def ask(question: str, data: str | None, as_json: bool, **values: Any) -> None:
    """Search every base for QUESTION and print the passages that answer it, each with its citation.

    \b
      readingroom ask "how many cycle parking spaces for a house?" --on 2024-03-15
      readingroom ask "reserves policy" --source guidance
      readingroom ask "cycle parking" --demo          asks the sample

    Nothing is made up: what is printed stands in a source, and `readingroom ask --json` names the
    id that fetches it.
    """
    with sample_upstream(load({"data": data})) as settings:
        answer = _answer(settings, query=question, **values)
    say(as_json, answer, _page(answer))


def _answer(settings: Settings, **values: Any) -> dict[str, Any]:
    from readingroom.commands.dispatch import dispatch
    from readingroom.federation.commands import Ask
    from readingroom.federation.models import Search
    from readingroom.server.catalogue import ROOM

    search = asked(Search, **values | {"source": list(values["source"]) or None})
    return anyio.run(dispatch, Ask(search=search), settings, no_progress, ROOM)


def _page(answer: dict[str, Any]) -> str:
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    found = [_passage(number, hit, width) for number, hit in enumerate(answer["results"], 1)] or [
        "Nothing here answers that. Try other words, or load more: readingroom --help"
    ]
    notes = [f"({note['base']}: {note['message']})" for note in answer["notes"]]
    return "\n\n".join([*found, *notes])


def _passage(number: int, hit: dict[str, Any], width: int) -> str:
    said = textwrap.shorten(hit["snippet"], _LONGEST, placeholder=" …")
    body = textwrap.fill(said, width, initial_indent="   ", subsequent_indent="   ")
    about = " · ".join(filter(None, [hit["base"], _in_force(hit), hit["id"]]))
    lines = [f"{number}. {hit['citation']['citation_string']}", body, f"   {about}"]
    if not hit["url"].startswith(hit["id"]):
        lines.append(f"   {hit['url']}")
    return "\n".join(lines)


def _in_force(hit: dict[str, Any]) -> str | None:
    days = hit["in_force"]
    if days is None:
        return None
    until = f"to {days['effective_to']}" if days["effective_to"] else "and still"
    return f"in force from {days['effective_from']} {until}"

"""`readingroom ask`: a question over every base, answered with cited passages."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from readingroom.bases import BASES
from readingroom.console.completion import complete_with
from readingroom.console.layout import make_bold, make_faint, wrap_text
from readingroom.console.options import (
    add_common_options,
    build_model,
    print_result,
    run_command,
)
from readingroom.console.sample import open_sample_settings
from readingroom.core.progress import no_progress
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.weights import get_weights_folder
from readingroom.engine.errors import ModelUnavailable
from readingroom.federation.commands import Ask
from readingroom.federation.models import DeskSearch
from readingroom.federation.room import FEDERATION_SPEC, list_empty_base_names
from readingroom.protocol.search import UnreadRevision, make_unread_cautions

_MAX_LINE_WIDTH = 100
_MAX_PASSAGE_CHARS = 600  # of a passage that is printed


def _complete_sources(settings: RoomSettings, typed_arguments: Mapping[str, Any]) -> list[str]:
    return list(BASES)


@click.command()
@click.argument("question")
@click.option("--on", "date", metavar="DATE", help="Policy as in force on this day [today].")
@click.option("--application", "application_ref", help="Only documents of this application.")
@click.option(
    "--source",
    multiple=True,
    shell_complete=complete_with(_complete_sources),
    help="Only this base, or this federal source; may be repeated.",
)
@click.option("-n", "--limit", default=5, show_default=True, help="How many passages.")
@add_common_options
def ask(question: str, settings: RoomSettings, as_json: bool, **search_options: Any) -> None:
    """Search every base for QUESTION and print the passages that answer it, each with its citation.

    \b
      readingroom ask "how many cycle parking spaces for a house?" --on 2024-03-15
      readingroom ask "reserves policy" --source guidance
      readingroom ask "cycle parking" --demo          asks the sample

    Nothing is made up: what is printed stands in a source, and `readingroom ask --json` names the
    id that fetches it. Ends with 1 when nothing here is close to the question.
    """
    search_options["source"] = list(search_options["source"]) or None
    ask_command = Ask(search=build_model(DeskSearch, query=question, **search_options))
    with open_sample_settings(settings, BASES.values()) as chosen_settings:
        search_answer = run_command(ask_command, FEDERATION_SPEC, chosen_settings, no_progress)
    notes_of_this_command = [
        *_describe_empty_bases(search_answer, chosen_settings),
        *_describe_missing_model(search_answer, chosen_settings),
    ]
    print_result(as_json, search_answer, _format_answer(search_answer, notes_of_this_command))
    if not search_answer["results"] or search_answer["confidence"] == "none":
        sys.exit(1)


def _describe_empty_bases(search_answer: dict[str, Any], settings: RoomSettings) -> Iterator[str]:
    if not search_answer["results"] and (empty_base_names := list_empty_base_names(settings)):
        yield f"(There is nothing in {', '.join(empty_base_names)} yet.)"


def _describe_missing_model(search_answer: dict[str, Any], settings: RoomSettings) -> Iterator[str]:
    # A server that answered may have a model where this shell has none.
    if any((hit["parts"] or {}).get("semantic") is not None for hit in search_answer["results"]):
        return
    try:
        get_weights_folder(settings.models_folder, settings.embedding_model_dir)
    except ModelUnavailable as error:
        yield (
            f"(Searched by words alone: {error.message.rstrip('.')}. `readingroom model install` "
            "brings the model.)"
        )


def _format_answer(search_answer: dict[str, Any], notes_of_this_command: Sequence[str] = ()) -> str:
    line_width = min(_MAX_LINE_WIDTH, shutil.get_terminal_size().columns)
    hits = search_answer["results"]
    formatted_hits = [
        _format_hit(hit_number, hit, line_width) for hit_number, hit in enumerate(hits, 1)
    ] or [wrap_text("Nothing here answers that. Try other words, or load more: readingroom --help")]
    if hits and search_answer["confidence"] in ("weak", "none"):
        formatted_hits.insert(0, search_answer["confidence_reason"])
    note_texts = [
        wrap_text(f"({answer_note['base']}: {answer_note['message']})")
        for answer_note in search_answer["notes"]
    ]
    unread_revisions = map(UnreadRevision.model_validate, search_answer.get("unread_revisions", ()))
    note_texts += [
        wrap_text(f"({policy_slug}: {caution_text})")
        for policy_slug, caution_text in make_unread_cautions([*unread_revisions]).items()
    ]
    # What must be repeated with the words, once however many hits demand it.
    attribution_texts = dict.fromkeys(hit["attribution"] for hit in hits if hit.get("attribution"))
    return "\n\n".join(
        [
            *formatted_hits,
            *note_texts,
            *map(wrap_text, (*notes_of_this_command, *attribution_texts)),
        ]
    )


def _format_hit(hit_number: int, hit_fields: dict[str, Any], line_width: int) -> str:
    passage_text = textwrap.shorten(hit_fields["snippet"], _MAX_PASSAGE_CHARS, placeholder=" …")
    wrapped_passage = textwrap.fill(
        passage_text, line_width, initial_indent="   ", subsequent_indent="   "
    )
    detail_line = " · ".join(
        filter(
            None,
            [hit_fields["base"], _format_period_in_force(hit_fields["in_force"]), hit_fields["id"]],
        )
    )
    citation = wrap_text(f"{hit_number}. {hit_fields['citation']['citation_string']}")
    hit_lines = [make_bold(citation), wrapped_passage, make_faint(wrap_text(detail_line, "   "))]
    if not hit_fields["url"].startswith(hit_fields["id"]):
        hit_lines.append(make_faint(f"   {hit_fields['url']}"))
    return "\n".join(hit_lines)


def _format_period_in_force(period_fields: dict[str, Any] | None) -> str | None:
    if period_fields is None:
        return None
    until_text = (
        f"to {period_fields['effective_to']}" if period_fields["effective_to"] else "and still"
    )
    return f"in force from {period_fields['effective_from']} {until_text}"

"""`readingroom eval`: how well searches answer questions whose right answers are known."""

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from readingroom.bases import BASES
from readingroom.console.options import add_common_options, build_model, print_result, run_command
from readingroom.console.sample import apply_sample_settings
from readingroom.core.settings import RoomSettings
from readingroom.federation.commands import Evaluate
from readingroom.federation.evaluation import NONE, EvaluationQuestion
from readingroom.federation.room import ROOM

_SEPARATOR = ";;"
_MAX_MISSES = 20  # that are printed; --json has them all


@click.command("eval")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--source", multiple=True, help="Search only this base; may be repeated.")
@add_common_options
def eval(file: Path, source: tuple[str, ...], settings: RoomSettings, as_json: bool) -> None:
    """Ask every question of FILE, and print how often the right answer came first.

    FILE has a line for each question: the question, a tab, and the id of the right answer, or
    `none` when nothing here answers it. Several right ids are separated by `;;`. An id answers for
    all that begin with it: `policy:NPPF` is right for every passage of that policy.

    \b
      readingroom eval questions.tsv
      readingroom eval questions.tsv --source policy --json

    It asks a running server where there is one, else the data directory.
    """
    questions = read_questions(file)
    command = build_model(Evaluate, questions=questions, source=list(source) or None)
    with apply_sample_settings(settings, BASES.values()) as chosen:
        result = run_command(command, ROOM, chosen)
    print_result(as_json, result, _format(result))


def read_questions(file: Path) -> list[EvaluationQuestion]:
    """Return the questions of a file. Raise `UsageError` for a line that is none."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file.name} is not UTF-8 text: {error.reason}") from error
    questions = [
        _parse_line(line, f"Line {number} of {file.name}")
        for number, line in enumerate(lines, 1)
        if line.strip() and line != "question\tright_id"
    ]
    if not questions:
        raise click.UsageError(f"{file.name} has no questions")
    return questions


def _parse_line(line: str, place: str) -> EvaluationQuestion:
    question, _, right = line.partition("\t")
    ids = [id.strip() for id in right.split(_SEPARATOR) if id.strip()]
    if not question.strip() or not ids or "\t" in right:
        raise click.UsageError(f"{place} needs a question, a tab, and an id or `{NONE}`")
    try:
        return EvaluationQuestion(question=question, right_ids=[] if ids == [NONE] else ids)
    except ValidationError as error:
        raise click.UsageError(f"{place}: {error.errors()[0]['msg']}") from error


def _format(result: dict[str, Any]) -> str:
    rows = [
        (
            "questions",
            f"{result['questions']}, of which {result['unanswerable']} without an answer",
        ),
        ("right answer first", _percent(result["hit_at_1"])),
        ("among the first 3", _percent(result["hit_at_3"])),
        ("among the first 10", _percent(result["hit_at_10"])),
        ("nDCG@10", _figure(result["ndcg_at_10"])),
        ("MRR", _figure(result["mrr"])),
        ("AUROC of the score", _figure(result["confidence_auroc"])),
        ("answerable, called none", _percent(result["called_none"])),
        ("milliseconds, p50 / p95", f"{result['latency_p50_ms']} / {result['latency_p95_ms']}"),
    ]
    lines = [f"{label:24} {value}" for label, value in rows]
    misses = result["misses"][:_MAX_MISSES]
    if misses:
        lines += ["", f"Not first ({len(result['misses'])}):"]
    for miss in misses:
        place = f"at {miss['rank']}" if miss["rank"] else "not found"
        lines += [f"  {miss['question']}", f"    {place}; first: {miss['first_id']}"]
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

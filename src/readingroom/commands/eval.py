"""`readingroom eval`: how well searches answer questions whose right answers are known."""

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from readingroom.bases import BASES
from readingroom.console.options import (
    add_common_options,
    build_model,
    print_result,
    run_command,
)
from readingroom.console.sample import open_sample_settings
from readingroom.core.settings import RoomSettings
from readingroom.federation.commands import Evaluate
from readingroom.federation.evaluation import NO_RIGHT_ANSWER_MARK, EvaluationQuestion
from readingroom.federation.room import FEDERATION_SPEC

_ID_SEPARATOR = ";;"
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
    evaluation_questions = read_evaluation_questions(file)
    evaluate_command = build_model(
        Evaluate, questions=evaluation_questions, source=list(source) or None
    )
    with open_sample_settings(settings, BASES.values()) as chosen_settings:
        evaluation_result = run_command(evaluate_command, FEDERATION_SPEC, chosen_settings)
    print_result(as_json, evaluation_result, _format_evaluation(evaluation_result))


def read_evaluation_questions(questions_file: Path) -> list[EvaluationQuestion]:
    """Return the questions of a file. Raise `UsageError` for a line that is none."""
    try:
        file_lines = questions_file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"{questions_file.name} is not UTF-8 text: {error.reason}"
        ) from error
    evaluation_questions = [
        _parse_question_line(file_line, f"Line {line_number} of {questions_file.name}")
        for line_number, file_line in enumerate(file_lines, 1)
        if file_line.strip() and file_line != "question\tright_id"
    ]
    if not evaluation_questions:
        raise click.UsageError(f"{questions_file.name} has no questions")
    return evaluation_questions


def _parse_question_line(file_line: str, line_label: str) -> EvaluationQuestion:
    question_text, _, right_ids_text = file_line.partition("\t")
    right_ids = [
        right_id.strip() for right_id in right_ids_text.split(_ID_SEPARATOR) if right_id.strip()
    ]
    if not question_text.strip() or not right_ids or "\t" in right_ids_text:
        raise click.UsageError(
            f"{line_label} needs a question, a tab, and an id or `{NO_RIGHT_ANSWER_MARK}`"
        )
    try:
        return EvaluationQuestion(
            question=question_text,
            right_ids=[] if right_ids == [NO_RIGHT_ANSWER_MARK] else right_ids,
        )
    except ValidationError as error:
        raise click.UsageError(f"{line_label}: {error.errors()[0]['msg']}") from error


def _format_evaluation(evaluation_result: dict[str, Any]) -> str:
    labels_and_figures = [
        (
            "questions",
            f"{evaluation_result['questions']}, of which {evaluation_result['unanswerable']} "
            "without an answer",
        ),
        ("right answer first", _format_percent(evaluation_result["hit_at_1"])),
        ("among the first 3", _format_percent(evaluation_result["hit_at_3"])),
        ("among the first 10", _format_percent(evaluation_result["hit_at_10"])),
        ("nDCG@10", _format_decimal(evaluation_result["ndcg_at_10"])),
        ("MRR", _format_decimal(evaluation_result["mrr"])),
        ("AUROC of the score", _format_decimal(evaluation_result["confidence_auroc"])),
        ("answerable, called none", _format_percent(evaluation_result["called_none"])),
        (
            "milliseconds, p50 / p95",
            f"{evaluation_result['latency_p50_ms']} / {evaluation_result['latency_p95_ms']}",
        ),
    ]
    report_lines = [
        f"{figure_label:24} {figure_text}" for figure_label, figure_text in labels_and_figures
    ]
    missed_questions = evaluation_result["misses"][:_MAX_MISSES]
    if missed_questions:
        report_lines += ["", f"Not first ({len(evaluation_result['misses'])}):"]
    for missed_question in missed_questions:
        rank_text = f"at {missed_question['rank']}" if missed_question["rank"] else "not found"
        report_lines += [
            f"  {missed_question['question']}",
            f"    {rank_text}; first: {missed_question['first_id']}",
        ]
    return "\n".join(report_lines)


def _format_percent(share_of_questions: float | None) -> str:
    return "-" if share_of_questions is None else f"{share_of_questions:.1%}"


def _format_decimal(figure_value: float | None) -> str:
    return "-" if figure_value is None else f"{figure_value:.3f}"

"""Measures searches on questions whose right answers are known."""

import math
import time
from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING

from pydantic import Field

from readingroom.federation.models import DeskAnswer, DeskSearch
from readingroom.protocol.tool import Answer, ToolArguments, ToolContext

if TYPE_CHECKING:
    from readingroom.federation.service import FederationService

NO_RIGHT_ANSWER_MARK = "none"
"""What stands for the right answer of a question that nothing here answers."""
_MAX_RESULTS = 10


class EvaluationQuestion(ToolArguments):
    """A question, and the ids that answer it; none of them when nothing here does."""

    question: str = Field(min_length=1, max_length=1000)
    right_ids: list[str] = Field(
        description="Ids of passages, records or documents. An id answers for all that begin with "
        "it: `policy:NPPF` is right for every passage of that policy."
    )


class MissedFirstPlace(Answer):
    """A question whose right answer was not the first result."""

    question: str
    right_ids: list[str]
    rank: int | None = Field(description="Where it came; null when it is not among the first ten.")
    first_id: str | None
    confidence: str


class Evaluation(Answer):
    """How well the searches answered; figures without a question to measure are null."""

    questions: int
    unanswerable: int
    hit_at_1: float | None
    hit_at_3: float | None
    hit_at_10: float | None
    ndcg_at_10: float | None
    mrr: float | None
    confidence_auroc: float | None = Field(
        description="How well the best score tells answerable questions apart; 0.5 is chance."
    )
    called_none: float | None = Field(
        description="The share of answerable questions called `none`."
    )
    latency_p50_ms: float
    latency_p95_ms: float
    misses: list[MissedFirstPlace]


async def evaluate_searches(
    federation_service: "FederationService",
    evaluation_questions: Sequence[EvaluationQuestion],
    source_names: list[str] | None,
    tool_context: ToolContext,
) -> Evaluation:
    """Ask every question and measure the answers."""
    search_answers: list[DeskAnswer] = []
    search_durations_seconds: list[float] = []
    for asked_count, evaluation_question in enumerate(evaluation_questions, 1):
        search_arguments = DeskSearch(
            query=evaluation_question.question, source=source_names, limit=_MAX_RESULTS
        )
        started_at = time.perf_counter()
        search_answers.append(await federation_service.search(search_arguments, tool_context))
        search_durations_seconds.append(time.perf_counter() - started_at)
        await tool_context.report_progress(asked_count, len(evaluation_questions), None)
    questions_and_answers = [*zip(evaluation_questions, search_answers, strict=True)]
    answerable_questions_and_answers = [
        (evaluation_question, search_answer)
        for evaluation_question, search_answer in questions_and_answers
        if evaluation_question.right_ids
    ]
    right_answer_ranks = [
        _find_right_answer_rank(evaluation_question, search_answer)
        for evaluation_question, search_answer in answerable_questions_and_answers
    ]
    return Evaluation(
        questions=len(evaluation_questions),
        unanswerable=len(evaluation_questions) - len(answerable_questions_and_answers),
        hit_at_1=_compute_mean(
            [right_answer_rank == 1 for right_answer_rank in right_answer_ranks]
        ),
        hit_at_3=_compute_mean(
            [
                right_answer_rank is not None and right_answer_rank <= 3
                for right_answer_rank in right_answer_ranks
            ]
        ),
        hit_at_10=_compute_mean(
            [right_answer_rank is not None for right_answer_rank in right_answer_ranks]
        ),
        ndcg_at_10=_compute_mean(
            [
                1 / math.log2(right_answer_rank + 1) if right_answer_rank else 0.0
                for right_answer_rank in right_answer_ranks
            ]
        ),
        mrr=_compute_mean(
            [
                1 / right_answer_rank if right_answer_rank else 0.0
                for right_answer_rank in right_answer_ranks
            ]
        ),
        confidence_auroc=measure_auroc(
            [
                max((hit.score for hit in search_answer.results), default=0.0)
                for search_answer in search_answers
            ],
            [bool(evaluation_question.right_ids) for evaluation_question in evaluation_questions],
        ),
        called_none=_compute_mean(
            [
                search_answer.confidence == "none"
                for _, search_answer in answerable_questions_and_answers
            ]
        ),
        latency_p50_ms=_compute_percentile(search_durations_seconds, 50),
        latency_p95_ms=_compute_percentile(search_durations_seconds, 95),
        misses=[
            _make_missed_first_place(evaluation_question, right_answer_rank, search_answer)
            for (evaluation_question, search_answer), right_answer_rank in zip(
                answerable_questions_and_answers, right_answer_ranks, strict=True
            )
            if right_answer_rank != 1
        ],
    )


def _find_right_answer_rank(
    evaluation_question: EvaluationQuestion, search_answer: DeskAnswer
) -> int | None:
    """Return the place of the first right result, from 1."""
    right_ids = tuple(evaluation_question.right_ids)
    ranks_and_hits = enumerate(search_answer.results, 1)
    return next(
        (
            right_answer_rank
            for right_answer_rank, hit in ranks_and_hits
            if right_ids and any(id.startswith(right_ids) for id in (hit.id, *hit.joined_ids))
        ),
        None,
    )


def _make_missed_first_place(
    evaluation_question: EvaluationQuestion,
    right_answer_rank: int | None,
    search_answer: DeskAnswer,
) -> MissedFirstPlace:
    return MissedFirstPlace(
        question=evaluation_question.question,
        right_ids=evaluation_question.right_ids,
        rank=right_answer_rank,
        first_id=search_answer.results[0].id if search_answer.results else None,
        confidence=search_answer.confidence,
    )


def measure_auroc(hit_scores: Sequence[float], positive_flags: Sequence[bool]) -> float | None:
    """Return how often a positive has the higher score, equal ones counting half.

    None when all are positive, or none is.
    """
    positive_scores = [
        hit_score
        for hit_score, is_positive in zip(hit_scores, positive_flags, strict=True)
        if is_positive
    ]
    negative_scores = [
        hit_score
        for hit_score, is_positive in zip(hit_scores, positive_flags, strict=True)
        if not is_positive
    ]
    if not positive_scores or not negative_scores:
        return None
    won_pair_count = sum(
        (positive_score > negative_score) + 0.5 * (positive_score == negative_score)
        for positive_score in positive_scores
        for negative_score in negative_scores
    )
    return round(won_pair_count / (len(positive_scores) * len(negative_scores)), 4)


def _compute_mean(measurements: Sequence[float]) -> float | None:
    return round(mean(measurements), 4) if measurements else None


def _compute_percentile(search_durations_seconds: Sequence[float], percentile: int) -> float:
    sorted_milliseconds = sorted(
        1000 * duration_seconds for duration_seconds in search_durations_seconds
    )
    return round(
        sorted_milliseconds[
            min(len(sorted_milliseconds) - 1, len(sorted_milliseconds) * percentile // 100)
        ],
        1,
    )

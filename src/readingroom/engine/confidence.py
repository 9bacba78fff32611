"""Says how sure a search is: a score for each passage, and one word for the whole answer.

A score is the probability that the passage answers the question, as it was on the tuning questions:
0.5 means that every other passage with this score did.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from readingroom.core.scores import Confidence
from readingroom.engine.ranking import ComparedPassage

_MIN_STRONG_SCORE, _MIN_FAIR_SCORE = 0.4, 0.2
"""The scores of the best passage from which an answer is called so."""
MIN_CLOSE_SCORE = 0.05
"""The score below which nothing is close to the question.

Half of the 3 % that may be: about 1.5 % of the answerable tuning questions are below it, and three
quarters of the nonsense.
"""
_NEAR_PASSAGE_COUNT = 5
_FARTHER_PASSAGES_SLICE = slice(_NEAR_PASSAGE_COUNT, 2 * _NEAR_PASSAGE_COUNT)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression on the first passages of a question, and how scores fall after them.

    Fitted on the tuning questions of `tests/fixtures`, over the sample and over the shared files.
    `python -m benchmarks.engine.answers` fits those over the sample anew.
    """

    constant: float = -3.03
    cosine_weight: float = 2.6
    near_mean_cosine_weight: float = 2.49
    """For the mean cosine of the first five: what is known is mostly known in several places."""
    missing_words_weight: float = -1.99
    """For the share of the question's words that no passage has."""
    best_coverage_weight: float = 1.04
    """For the share that the best passage has."""
    cosine_gap_weight: float = 4.68
    """For how much nearer the best passage is than the second five."""
    decline_per_fit: float = 8.0
    """How much a passage loses by being less fit than the best."""


DEFAULT_CALIBRATION = Calibration()
# For a question or a passage without a vector: what the words say of the cosine.
_GUESSED_COSINE, _GUESSED_COSINE_PER_COVERAGE = 0.0, 0.6


def score_compared_passages(
    compared_passages: Sequence[ComparedPassage], calibration: Calibration = DEFAULT_CALIBRATION
) -> list[float]:
    """Return the score of each passage; the passages come best first."""
    if not compared_passages:
        return []
    best_passage = compared_passages[0]
    feature_values = measure_passage_features(compared_passages)
    feature_weights = (
        calibration.cosine_weight,
        calibration.near_mean_cosine_weight,
        calibration.missing_words_weight,
        calibration.best_coverage_weight,
        calibration.cosine_gap_weight,
    )
    log_odds_of_best = calibration.constant + sum(
        feature_weight * feature_value
        for feature_weight, feature_value in zip(feature_weights, feature_values, strict=True)
    )
    return [
        to_probability(
            log_odds_of_best
            - calibration.decline_per_fit * (best_passage.fit - compared_passage.fit)
        )
        for compared_passage in compared_passages
    ]


def measure_passage_features(compared_passages: Sequence[ComparedPassage]) -> tuple[float, ...]:
    """Return what tells whether the first of some passages answers the question.

    The cosine of the best, the mean of the first five, the share of the question's words that no
    passage has and that the best has, and how much nearer the best is than the second five.
    """
    best_passage = compared_passages[0]
    cosines = [
        _estimate_cosine(compared_passage)
        for compared_passage in compared_passages[: 2 * _NEAR_PASSAGE_COUNT]
    ]
    first_five_cosines = cosines[:_NEAR_PASSAGE_COUNT]
    second_five_cosines = cosines[_FARTHER_PASSAGES_SLICE]
    gap_to_second_five = (
        cosines[0] - sum(second_five_cosines) / len(second_five_cosines)
        if second_five_cosines
        else 0.0
    )
    return (
        cosines[0],
        sum(first_five_cosines) / len(first_five_cosines),
        1 - best_passage.found_share,
        best_passage.coverage,
        gap_to_second_five,
    )


def make_scores_descend(scores: Iterable[float]) -> list[float]:
    """Return the scores of an order that something else decided, none above the one before it."""
    return list(accumulate(scores, min))


def judge_confidence(scores: Sequence[float], nearest_citation: str = "") -> Confidence:
    """Return the confidence of an answer with these scores; the citation is its best passage's."""
    best_score = max(scores, default=None)
    if best_score is None:
        return Confidence("none", "There was nothing to search, or nothing matched.")
    if best_score >= _MIN_STRONG_SCORE:
        return Confidence("strong", "The first result answers the question closely.")
    if best_score >= _MIN_FAIR_SCORE:
        return Confidence("fair", "The first results are about the question; read before relying.")
    if best_score >= MIN_CLOSE_SCORE:
        return Confidence("weak", "The results only touch the question; they may not answer it.")
    nearest_hint = f"; nearest: {nearest_citation}" if nearest_citation else ""
    return Confidence("none", f"Nothing here is close to the question{nearest_hint}.")


def _estimate_cosine(compared_passage: ComparedPassage) -> float:
    if compared_passage.cosine is not None:
        return compared_passage.cosine
    return _GUESSED_COSINE + _GUESSED_COSINE_PER_COVERAGE * compared_passage.coverage


def to_probability(log_odds: float) -> float:
    """Return the probability with these log-odds."""
    # `exp` overflows from some 709 on.
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0

"""Says how sure a search is: a score for each passage, and one word for the whole answer.

A score is the probability that the passage answers the question, as it was on the tuning questions:
0.5 means that every other passage with this score did.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from readingroom.core.scores import Confidence
from readingroom.engine.ranking import Relevance

_STRONG, _FAIR = 0.33, 0.2
"""The scores of the best passage from which an answer is called so."""
NOTHING_CLOSE = 0.12
"""The score below which nothing is close to the question.

About 3 % of the answerable tuning questions are below it.
"""
_NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression on the first passages of a question, and how scores fall after them.

    Fitted on the tuning questions of `tests/fixtures`, over the sample and over the shared files.
    `python -m benchmarks.engine.answers` fits those over the sample anew.
    """

    constant: float = -2.64
    cosine: float = 1.13
    neighbours: float = 3.12
    """For the mean cosine of the first five: what is known is mostly known in several places."""
    missing: float = -0.91
    """For the share of the question's words that no passage has."""
    decline: float = 8.0
    """How much a passage loses by being less fit than the best."""


CALIBRATION = Calibration()
# For a question or a passage without a vector: what the words say of the cosine.
_GUESSED_COSINE, _GUESSED_BY_COVERAGE = 0.1, 0.5


def score_relevances(
    relevances: Sequence[Relevance], calibration: Calibration = CALIBRATION
) -> list[float]:
    """Return the score of each passage; the passages come best first."""
    if not relevances:
        return []
    best = relevances[0]
    neighbours = [_estimate_cosine(relevance) for relevance in relevances[:_NEIGHBOURS]]
    strength = (
        calibration.constant
        + calibration.cosine * _estimate_cosine(best)
        + calibration.neighbours * sum(neighbours) / len(neighbours)
        + calibration.missing * (1 - best.found)
    )
    return [
        _logistic(strength - calibration.decline * (best.fit - relevance.fit))
        for relevance in relevances
    ]


def judge(scores: Sequence[float], nearest: str = "") -> Confidence:
    """Return the confidence of an answer with these scores; `nearest` names its best passage."""
    best = max(scores, default=None)
    if best is None:
        return Confidence("none", "There was nothing to search, or nothing matched.")
    if best >= _STRONG:
        return Confidence("strong", "The first result answers the question closely.")
    if best >= _FAIR:
        return Confidence("fair", "The first results are about the question; read before relying.")
    if best >= NOTHING_CLOSE:
        return Confidence("weak", "The results only touch the question; they may not answer it.")
    hint = f"; nearest: {nearest}" if nearest else ""
    return Confidence("none", f"Nothing here is close to the question{hint}.")


def _estimate_cosine(relevance: Relevance) -> float:
    if relevance.cosine is not None:
        return relevance.cosine
    return _GUESSED_COSINE + _GUESSED_BY_COVERAGE * relevance.coverage


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0

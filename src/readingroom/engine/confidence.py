"""Says how sure a search is: a score for each passage, and one word for the whole answer.

A score is the probability that the passage answers the question, as it was on the tuning questions:
0.5 means that every other passage with this score did.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from readingroom.core.scores import Confidence
from readingroom.engine.ranking import Relevance

_STRONG, _FAIR, _WEAK = 0.35, 0.15, 0.045
"""The scores of the best passage from which an answer is called so.

Below the last one, about 3 % of the answerable tuning questions are called `none`.
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression on the best passage of a question, and how scores fall after it.

    Fitted on the tuning halves of `field.tsv` and `desk.tsv` in `tests/fixtures/questions`, and on
    the two public sets.
    """

    constant: float = -4.99
    cosine: float = 6.96
    coverage: float = 1.16
    decline: float = 9.24
    """How much a passage loses by being less fit than the best."""


CALIBRATION = Calibration()
# For a question or a passage without a vector: what the words say of the cosine.
_GUESSED_COSINE, _GUESSED_BY_COVERAGE = 0.2, 0.5


def score_relevances(
    relevances: Sequence[Relevance], calibration: Calibration = CALIBRATION
) -> list[float]:
    """Return the score of each passage; the passages come best first."""
    if not relevances:
        return []
    best = relevances[0]
    strength = (
        calibration.constant
        + calibration.cosine * _estimate_cosine(best)
        + calibration.coverage * best.coverage
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
    if best >= _WEAK:
        return Confidence("weak", "The results only touch the question; they may not answer it.")
    hint = f"; nearest: {nearest}" if nearest else ""
    return Confidence("none", f"Nothing here is close to the question{hint}.")


def _estimate_cosine(relevance: Relevance) -> float:
    if relevance.cosine is not None:
        return relevance.cosine
    return _GUESSED_COSINE + _GUESSED_BY_COVERAGE * relevance.coverage


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0

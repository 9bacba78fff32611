"""Reads the first passages of a ranking once more, each together with the question.

A cross-encoder sees both texts at once, so it knows better than two vectors whether one answers the
other. It takes longer too, so only the first few passages are read again. `docs/engine.md` has the
measurements.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from readingroom.engine.confidence import to_probability
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.errors import ModelUnavailable

logger = logging.getLogger(__name__)

MAX_PASSAGES_READ_AGAIN = 9
"""How many passages of one base are read again: each takes longer than embedding it."""


@dataclass(frozen=True, slots=True)
class ReadingWeights:
    """What the cross-encoder's log-odds say of a passage's place and of its score."""

    fit_per_log_odds: float
    """What a unit of them counts, in units of a cosine."""
    decline: float
    """By how many log-odds a new score falls for each unit of fit behind the best."""
    constant: float = 0.0
    own_weight: float = 1.0
    """What the log-odds of the highest score before count in those of the best passage."""
    read_weight: float = 0.0
    """What the best passage's log-odds by the cross-encoder count in them."""

    def judge_best(self, log_odds_before: float, log_odds_read: float) -> float:
        """Return the log-odds that the best passage answers the question."""
        return self.constant + self.own_weight * log_odds_before + self.read_weight * log_odds_read


UNTAUGHT_WEIGHTS = ReadingWeights(fit_per_log_odds=0.04, decline=10.0)
"""For a cross-encoder that does not know whether anything here answers: the highest score stays.

The decline was fitted on 150 tuning questions over plans, which gave 10.6, and 150 at the desk,
which gave 9.6.
"""
TAUGHT_WEIGHTS = ReadingWeights(
    fit_per_log_odds=0.04, decline=24.0, constant=-0.19, own_weight=0.4, read_weight=0.41
)
"""For the packaged one with the project's adapter, which was taught what is no answer too.

Fitted on tuning questions that the adapter was not trained on; `docs/engine.md`, "The adapter".
"""

_postponed_variable: ContextVar[bool] = ContextVar("second_look_is_postponed", default=False)


@contextmanager
def postpone_second_look() -> Iterator[None]:
    """Let the searches that run inside return their first order.

    Who asks several bases reads the best of all their passages again, and not those of each.
    """
    reset_token = _postponed_variable.set(True)
    try:
        yield
    finally:
        _postponed_variable.reset(reset_token)


def is_second_look_postponed() -> bool:
    """Return whether a search leaves its passages in their first order, for the code around it."""
    return _postponed_variable.get()


def rescore_passages(
    query: str,
    scores: Sequence[float],
    first_texts: Sequence[str],
    reranker: Reranker,
    decline: float,
) -> list[float]:
    """Return new scores for passages that come best first, of which the first texts are given.

    How likely the best of them answers the question is known better than before if the
    cross-encoder was taught that; else the highest score stays. `decline` is by how many log-odds
    the given scores fall for each unit of fit. A passage that is not read again is taken to be as
    far from an answer as the worst of those that are, so it stays behind them. Without a model the
    scores stay as they are.
    """
    if not first_texts:
        return list(scores)
    try:
        answer_log_odds = reranker.score_texts(query, first_texts)
    except ModelUnavailable as error:
        logger.warning("the first results are not read again: %s", error.message)
        return list(scores)
    weights = TAUGHT_WEIGHTS if reranker.is_taught else UNTAUGHT_WEIGHTS
    unread_count = len(scores) - len(answer_log_odds)
    read_log_odds = [*answer_log_odds, *[min(answer_log_odds)] * unread_count]
    fits = [
        to_log_odds(score) / decline + weights.fit_per_log_odds * log_odds
        for score, log_odds in zip(scores, read_log_odds, strict=True)
    ]
    best_fit = max(fits)
    log_odds_of_best = weights.judge_best(
        to_log_odds(max(scores)), read_log_odds[fits.index(best_fit)]
    )
    return [to_probability(log_odds_of_best - weights.decline * (best_fit - fit)) for fit in fits]


def to_log_odds(probability: float) -> float:
    """Return the log-odds of a probability, within bounds."""
    # A score of 0 or 1 has no log-odds.
    bounded_probability = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(bounded_probability / (1 - bounded_probability))

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

from readingroom.engine.confidence import to_probability
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.errors import ModelUnavailable

logger = logging.getLogger(__name__)

MAX_READ_AGAIN = 5
"""How many passages are read again: each takes longer than embedding it."""
_FIT_PER_LOG_ODDS = 0.04
"""What a unit of the cross-encoder's log-odds counts, in units of a cosine."""

_DECLINE = 10.0
"""By how many log-odds a new score falls for each unit of fit behind the best.

Fitted on 150 tuning questions over plans, which gave 10.6, and 150 at the desk, which gave 9.6.
"""

_is_postponed: ContextVar[bool] = ContextVar("second_look_is_postponed", default=False)


@contextmanager
def postpone_second_look() -> Iterator[None]:
    """Let the searches that run inside return their first order.

    Who asks several bases reads the best of all their passages again, and not those of each.
    """
    token = _is_postponed.set(True)
    try:
        yield
    finally:
        _is_postponed.reset(token)


def is_second_look_postponed() -> bool:
    """Return whether a search leaves its passages in their first order, for the code around it."""
    return _is_postponed.get()


def rescore_passages(
    query: str,
    scores: Sequence[float],
    first_texts: Sequence[str],
    reranker: Reranker,
    decline: float,
) -> list[float]:
    """Return new scores for passages that come best first, of which the first texts are given.

    The highest score stays what it was: how likely anything here answers the question is known
    already, and which of the passages does is what is found out. `decline` is by how many log-odds
    the given scores fall for each unit of fit. A passage that is not read again is taken to be as
    far from an answer as the worst of those that are, so it stays behind them. Without a model the
    scores stay as they are.
    """
    if len(first_texts) < 2:
        return list(scores)
    try:
        answer_log_odds = reranker.score_texts(query, first_texts)
    except ModelUnavailable as error:
        logger.warning("the first results are not read again: %s", error.message)
        return list(scores)
    unread_count = len(scores) - len(answer_log_odds)
    gains = [*answer_log_odds, *[min(answer_log_odds)] * unread_count]
    fits = [
        _to_log_odds(score) / decline + _FIT_PER_LOG_ODDS * gain
        for score, gain in zip(scores, gains, strict=True)
    ]
    best_fit, best_log_odds = max(fits), _to_log_odds(max(scores))
    return [to_probability(best_log_odds - _DECLINE * (best_fit - fit)) for fit in fits]


def _to_log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(bounded / (1 - bounded))

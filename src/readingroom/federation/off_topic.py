"""Tells questions about other matters than those of the bases: cooking, sport, small talk.

For every question something is nearest. Where a question lies among those that none of the bases
is about, its answer is doubted. `scripts/off_topic.py` learnt where they lie from questions that
belong to no document; what it learnt holds for the vectors of one model.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from readingroom.core.arrays import Vector
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable

OFF_TOPIC_FILE_NAME = "off_topic.txt"
_MAX_DOUBT_LOG_ODDS = 1.5
"""The most log-odds that an answer loses: a text base may be about anything, and a passage that
says what was asked must stay an answer.
"""
_FULL_DOUBT_LOG_ODDS = 3.0


def measure_doubt(question: str, embedder: Embedder) -> float:
    """Return by how many log-odds an answer to a question is less likely; 0 without that model."""
    model_name, regression_constant, weight_vector = _load_off_topic_regression()
    try:
        if embedder.identity.partition("/")[0] != model_name:
            return 0.0
        log_odds = regression_constant + float(embedder.embed(question) @ weight_vector)
    except ModelUnavailable:
        return 0.0
    return _MAX_DOUBT_LOG_ODDS * min(max(log_odds / _FULL_DOUBT_LOG_ODDS, 0.0), 1.0)


@cache
def _load_off_topic_regression() -> tuple[str, float, Vector]:
    """Return the model's name, and the regression's constant and weights."""
    file_lines = files(__package__).joinpath(OFF_TOPIC_FILE_NAME).read_text("utf-8").splitlines()
    model_name, constant_text, *weight_texts = file_lines
    return model_name, float(constant_text), np.array(weight_texts, np.float32)

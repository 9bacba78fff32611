"""Reads the first results once more with a cross-encoder that the operator names."""

import threading
from collections.abc import Sequence
from pathlib import Path

from readingroom.engine.embedding.machine import count_cores
from readingroom.engine.embedding.own_model import OwnModel, load_reranker

MAX_TEXTS = 20
"""How many results are read again: each takes as long as embedding it."""
_MAX_CHARACTERS = 1_024


class Reranker:
    """One cross-encoder, loaded when it is first needed and shared by all threads."""

    def __init__(self, model_folder: Path, threads: int | None = None) -> None:
        self._folder = model_folder
        self._threads = threads
        self._model: OwnModel | None = None
        self._load_lock = threading.Lock()

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the probability that each text answers the query.

        Raise `ModelUnavailable` when the folder holds no cross-encoder.
        """
        with self._load_lock:
            if self._model is None:
                self._model = load_reranker(self._folder, self._threads or count_cores())
        return self._model.compute_scores(query, [text[:_MAX_CHARACTERS] for text in texts])

"""Turns text into vectors with a sentence encoder on onnxruntime: loaded lazily, kept small."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from readingroom.core.arrays import Matrix, Vector, np
from readingroom.core.lru import LRUCache
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.engine.embedding.machine import count_cores, return_free_memory
from readingroom.engine.embedding.own_model import OperatorModel, load_encoder
from readingroom.engine.embedding.processor import (
    MAX_TOKENS,
    ProcessorModel,
    load_processor_model,
)
from readingroom.engine.embedding.weights import get_weights_folder
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.errors import describe_cause

if TYPE_CHECKING:
    from readingroom.engine.embedding.cross_encoder.reranker import Reranker
    from readingroom.engine.embedding.graph import Precision
    from readingroom.engine.embedding.graphics_card import DeviceChoice, GraphicsCardModel

BatchKeyT = TypeVar("BatchKeyT")

MAX_TEXT_CHARS = 1024
"""Longer texts are cut: the model reads 256 tokens, which are rarely so many characters."""
# Six megabytes: queries, and the passages that answer many of them.
_MAX_RECENT_VECTORS = 4096

log = logging.getLogger(__name__)


class Embedder:
    """One model, loaded at the first text and shared by all threads.

    `models_folder` is where graphs are kept; `own_weights_folder` has weights of the operator's
    own, and `own_model_folder` any other encoder as an ONNX file. Vectors of different `identity`
    must never meet in one index. `device` is for many texts at once; a question is always embedded
    on the processor, which has its vector before a card would.
    """

    reranker: "Reranker | None" = None
    """The cross-encoder that reads again what is found by these vectors, where there is one."""

    def __init__(
        self,
        models_folder: Path,
        own_weights_folder: Path | None = None,
        precision: "Precision" = "float32",
        thread_count: int | None = None,
        device: "DeviceChoice" = "cpu",
        own_model_folder: Path | None = None,
    ) -> None:
        self._models_folder = models_folder
        self._own_weights_folder = own_weights_folder
        self._precision: Precision = precision
        self._thread_count = thread_count
        # A model of the operator's own may be of any kind, so it is run as it comes.
        self._device: DeviceChoice = "cpu" if own_model_folder else device
        self._own_model_folder = own_model_folder
        self._graphics_card: GraphicsCardModel | None = None
        self._model: ProcessorModel | OperatorModel | None = None
        self._load_lock = threading.Lock()
        # One ingest at a time; searches pass it by and share the processor with it.
        self._batch_lock = threading.Lock()
        self._recent_vectors: LRUCache[str, Vector] = LRUCache(_MAX_RECENT_VECTORS)

    @property
    def identity(self) -> str:
        """What the vectors depend on: model, weights and precision, in one string."""
        return self._get_model().identity

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._get_model().dimensions

    def load(self) -> None:
        """Load the model now rather than with the first text, for example while a server starts.

        Raise `ModelUnavailable` when there is no model, or none that can be used.
        """
        self._get_model()

    def embed(self, text: str) -> Vector:
        """Return the vector of a text, which is cached and read-only."""
        (vector,) = self.embed_each([text])
        return vector

    def embed_each(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of a few texts, in one run of the model; do not wait for an ingest."""
        shortened_texts = _cut_long_texts(texts)
        vectors_by_text = {
            text: vector
            for text in shortened_texts
            if (vector := self._recent_vectors.get(text)) is not None
        }
        missing_texts = [
            text for text in dict.fromkeys(shortened_texts) if text not in vectors_by_text
        ]
        if missing_texts:
            new_vectors = self._get_model().compute_vectors(missing_texts)
            # Callers share the cached arrays, so nobody may change them.
            new_vectors.setflags(write=False)
            for text, vector in zip(missing_texts, new_vectors, strict=True):
                vectors_by_text[text] = vector
                self._recent_vectors.put(text, vector)
        return [vectors_by_text[text] for text in shortened_texts]

    def embed_batch(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        report_progress: ReportProgressSync = no_progress_sync,
    ) -> Matrix:
        """Return the vectors of many texts, one row each, in their order.

        `report_progress` is told of every batch of so many texts.
        """
        if batch_size < 1:
            raise ValueError(f"a batch has at least one text, not {batch_size}")
        shortened_texts = _cut_long_texts(texts)
        if graphics_card_model := self._find_graphics_card_model():
            with self._batch_lock:
                return graphics_card_model.embed_batch(shortened_texts)
        model = self._get_model()
        vectors = np.empty((len(shortened_texts), model.dimensions), np.float32)
        done_text_count = reported_text_count = 0
        with self._batch_lock:
            for row_numbers, batch_vectors in model.compute_vectors_in_parallel(shortened_texts):
                vectors[row_numbers] = batch_vectors
                done_text_count += len(row_numbers)
                if done_text_count - reported_text_count >= batch_size or done_text_count == len(
                    shortened_texts
                ):
                    report_progress(done_text_count, len(shortened_texts), None)
                    reported_text_count = done_text_count
            # What a long run has freed would else stay with the C library, 100 MB and more of it.
            return_free_memory()
        return vectors

    def embed_stream(
        self, keyed_batches: Iterable[tuple[BatchKeyT, Sequence[str]]]
    ) -> Iterator[tuple[BatchKeyT, Matrix]]:
        """Yield the key of each batch with the vectors of its texts, in order.

        Some batches may be read ahead of the one whose vectors are yielded.
        """
        graphics_card_model = self._find_graphics_card_model()
        if graphics_card_model is None:
            for batch_key, texts in keyed_batches:
                yield batch_key, self.embed_batch(texts)
        else:
            with self._batch_lock:
                yield from graphics_card_model.embed_stream(
                    (batch_key, _cut_long_texts(texts)) for batch_key, texts in keyed_batches
                )

    @property
    def texts_per_batch(self) -> int:
        """How many texts a batch of a stream should have: what a stop may lose."""
        return 1024 if self._find_graphics_card_model() else 256

    def _find_graphics_card_model(self) -> "GraphicsCardModel | None":
        """Return the graphics card to use, if there is one; raise `ModelUnavailable` as it does."""
        if self._device == "cpu" or self._graphics_card is not None:
            return self._graphics_card
        from readingroom.engine.embedding.graphics_card import (
            GraphicsCardModel,
            should_use_graphics_card,
        )

        with self._load_lock:
            if self._graphics_card is None and should_use_graphics_card(self._device):
                if self._precision != "float32":
                    raise ModelUnavailable(
                        f"{self._precision} vectors are made on a processor: choose --device cpu, "
                        "or the precision float32."
                    )
                self._graphics_card = GraphicsCardModel(
                    get_weights_folder(self._models_folder, self._own_weights_folder), MAX_TOKENS
                )
            elif self._graphics_card is None:
                # Remembered, so that a card is looked for once and not for every batch.
                self._device = "cpu"
        return self._graphics_card

    def _get_model(self) -> ProcessorModel | OperatorModel:
        # Checked again inside the lock: another thread may have loaded it meanwhile.
        if self._model is None:
            with self._load_lock:
                if self._model is None:
                    self._model = self._load_model()
        return self._model

    def _load_model(self) -> ProcessorModel | OperatorModel:
        if self._own_model_folder is not None:
            return load_encoder(self._own_model_folder, self._thread_count or count_cores())
        try:
            return load_processor_model(
                get_weights_folder(self._models_folder, self._own_weights_folder),
                self._models_folder,
                self._precision,
                self._thread_count or count_cores(),
            )
        except OSError as error:
            log.error(
                "the embedding model cannot be read, or built in %s: %s", self._models_folder, error
            )
            raise ModelUnavailable(
                f"The embedding model cannot be read or built: {describe_cause(error)}"
            ) from error


def _cut_long_texts(texts: Sequence[str]) -> list[str]:
    if not all(text.strip() for text in texts):
        raise ValueError("a blank text has no meaning to embed")
    long_text_count = sum(len(text) > MAX_TEXT_CHARS for text in texts)
    if long_text_count:
        log.warning(
            "%d of %d texts are embedded by their first %d characters only",
            long_text_count,
            len(texts),
            MAX_TEXT_CHARS,
        )
    return [text[:MAX_TEXT_CHARS] for text in texts]

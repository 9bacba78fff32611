"""The model on the processor: texts of one length in one run, so that nothing is filled up.

A run takes no mask: without one onnxruntime attends in blocks that fit the cache. Short runs are
shared out to as many threads as the session has cores.
"""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.core.arrays import Matrix, NDArray, RowNumbers, np
from readingroom.engine.embedding.session import load_tokenizer, open_session
from readingroom.engine.embedding.tokens import (
    LibraryTokenizer,
    RememberingTokenizer,
    TokenizedTexts,
)
from readingroom.engine.embedding.weights import WeightsFolder
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

if TYPE_CHECKING:
    import onnxruntime

    from readingroom.engine.embedding.graph import Precision


MAX_TOKENS = 256
# Enough for the words of a corpus; some 10 MB in every server that embeds.
_MAX_REMEMBERED_WORDS = 60_000
# Larger runs leave the cache of a core, smaller ones read the weights too often.
_MAX_TOKENS_PER_RUN = 512
_MAX_TEXTS_PER_RUN = 32

# To be raised whenever the same weights give another graph. It is not in graph.py, because that
# imports onnx, which only building a graph needs.
_GRAPH_VERSION = 2

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProcessorModel:
    """The graph in a session of onnxruntime, its tokenizer, and how both are used."""

    identity: str
    session: "onnxruntime.InferenceSession"
    tokenizer: "RememberingTokenizer | LibraryTokenizer"
    thread_count: int
    max_texts_per_run: int
    """How many texts of one length may share a run."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self.session.get_outputs()[0].shape[1])

    def compute_vectors(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of a few texts, one row each, in their order."""
        tokenized = self.tokenizer.encode_texts(texts)
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row_numbers in _group_rows_by_length(tokenized.lengths, self.max_texts_per_run):
            vectors[row_numbers] = self._run_graph(tokenized, row_numbers)
        return vectors

    def compute_in_parallel(self, texts: Sequence[str]) -> Iterator[tuple[RowNumbers, Matrix]]:
        """Yield the vectors of many texts as they come: their row numbers, and a row for each."""
        tokenized = self.tokenizer.encode_texts(texts)
        row_runs = _group_rows_by_length(tokenized.lengths, self.max_texts_per_run)
        with ThreadPoolExecutor(self.thread_count, "embed") as executor:
            try:
                run_matrices = executor.map(lambda rows: self._run_graph(tokenized, rows), row_runs)
                yield from zip(row_runs, run_matrices, strict=True)
            finally:
                # Whoever stops reading does not want the rest computed.
                executor.shutdown(cancel_futures=True)

    def _run_graph(self, tokenized: TokenizedTexts, row_numbers: RowNumbers) -> Matrix:
        """Return the vectors of texts that have equally many tokens."""
        token_numbers = np.arange(tokenized.lengths[row_numbers[0]])
        token_ids = tokenized.ids[tokenized.starts[row_numbers][:, np.newaxis] + token_numbers]
        (vectors,) = self.session.run(None, {"input_ids": token_ids.astype(np.int64)})
        vector_matrix: Matrix = vectors
        return vector_matrix


def _group_rows_by_length(lengths: "NDArray[np.int32]", max_run_texts: int) -> list[RowNumbers]:
    """Return the rows of texts that have equally many tokens, in groups that are one run each."""
    row_order = np.argsort(lengths, kind="stable")
    length_changes = np.flatnonzero(np.diff(lengths[row_order])) + 1
    row_runs = []
    for equal_rows in np.split(row_order, length_changes) if len(row_order) else ():
        texts_per_run = max(
            1, min(max_run_texts, _MAX_TOKENS_PER_RUN // int(lengths[equal_rows[0]]))
        )
        row_runs += [
            equal_rows[first_row : first_row + texts_per_run]
            for first_row in range(0, len(equal_rows), texts_per_run)
        ]
    return row_runs


def load_processor_model(
    weights: WeightsFolder, models_folder: Path, precision: "Precision", thread_count: int
) -> ProcessorModel:
    """Return the model of these weights, building its graph in `models_folder` if it is missing.

    Raise `ModelUnavailable` when the weights are of another kind of model.
    """
    # The published file cuts at 128 tokens and pads to 128, which gives long texts other vectors.
    library_tokenizer = load_tokenizer(weights.folder / "tokenizer.json", MAX_TOKENS)
    tokenizer: RememberingTokenizer | LibraryTokenizer
    try:
        tokenizer = RememberingTokenizer(library_tokenizer, MAX_TOKENS, _MAX_REMEMBERED_WORDS)
    except ValueError:  # weights of the operator's own may have a tokenizer of another kind
        tokenizer = LibraryTokenizer(library_tokenizer)
    return ProcessorModel(
        f"{weights.name}@{weights.digest[:12]}/{precision}",
        # A run is small, so that what is kept of the largest is some 20 MB.
        open_session(
            _find_or_build_encoder(weights, models_folder, precision),
            thread_count,
            keeps_memory=True,
        ),
        tokenizer,
        thread_count,
        # int8 scales the numbers of a whole run by its largest one: a text alone has one vector,
        # beside others it would depend on them.
        1 if precision == "int8" else _MAX_TEXTS_PER_RUN,
    )


def _find_or_build_encoder(
    weights: WeightsFolder, models_folder: Path, precision: "Precision"
) -> Path:
    """Return the path of the encoder's graph."""

    def build_bytes() -> bytes:
        from readingroom.engine.embedding.graph import build_graph

        try:
            return build_graph(weights.folder, precision)
        except (ValueError, KeyError) as error:
            raise ModelUnavailable(
                f"{weights.folder.name} holds no usable model: {error}"
            ) from error

    return find_or_build_graph(
        models_folder, f"{weights.digest[:16]}-{precision}", str(_GRAPH_VERSION), build_bytes
    )


def find_or_build_graph(
    models_folder: Path, model_file_stem: str, graph_version: str, build_bytes: Callable[[], bytes]
) -> Path:
    """Return the path of a model's graph, which is built when it is missing or damaged.

    Its name ends in its own digest, so damage shows, and one rename publishes both. Raise what
    `build_bytes` raises, and `OSError` when the graph cannot be kept.
    """
    graph_file_stem = f"{model_file_stem}-{graph_version}"
    for graph_path in models_folder.glob(f"{graph_file_stem}-*.onnx"):
        if graph_path.stem == f"{graph_file_stem}-{hash_file(graph_path)[:16]}":
            return graph_path
        log.warning("the model's graph %s is damaged and is built again", graph_path.name)
        graph_path.unlink(missing_ok=True)
    graph_path = _write_graph(models_folder, graph_file_stem, build_bytes())
    # What an older version of this program made of the same weights; it would build it again.
    for older_path in models_folder.glob(f"{model_file_stem}-*.onnx"):
        if not older_path.name.startswith(f"{graph_file_stem}-"):
            older_path.unlink(missing_ok=True)
    return graph_path


def _write_graph(models_folder: Path, graph_file_stem: str, graph_bytes: bytes) -> Path:
    models_folder.mkdir(parents=True, exist_ok=True)
    descriptor, partial_path = tempfile.mkstemp(dir=models_folder, prefix=f".{graph_file_stem}-")
    try:
        with os.fdopen(descriptor, "wb") as graph_file:
            graph_file.write(graph_bytes)
            graph_file.flush()
            os.fsync(descriptor)
        # Readable by all: it is no secret, and a container may be built by one user and run by
        # another.
        Path(partial_path).chmod(0o644)
        final_path = models_folder / f"{graph_file_stem}-{hash_file(Path(partial_path))[:16]}.onnx"
        Path(partial_path).replace(final_path)
    except BaseException:
        Path(partial_path).unlink(missing_ok=True)
        raise
    return final_path

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
        tokenized_texts = self.tokenizer.encode_texts(texts)
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row_numbers in _group_rows_by_length(tokenized_texts.lengths, self.max_texts_per_run):
            vectors[row_numbers] = self._run_graph(tokenized_texts, row_numbers)
        return vectors

    def compute_vectors_in_parallel(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[RowNumbers, Matrix]]:
        """Yield the vectors of many texts as they come: their row numbers, and a row for each."""
        tokenized_texts = self.tokenizer.encode_texts(texts)
        row_numbers_of_runs = _group_rows_by_length(tokenized_texts.lengths, self.max_texts_per_run)
        with ThreadPoolExecutor(self.thread_count, "embed") as executor:
            try:
                vectors_of_runs = executor.map(
                    lambda row_numbers: self._run_graph(tokenized_texts, row_numbers),
                    row_numbers_of_runs,
                )
                yield from zip(row_numbers_of_runs, vectors_of_runs, strict=True)
            finally:
                # Whoever stops reading does not want the rest computed.
                executor.shutdown(cancel_futures=True)

    def _run_graph(self, tokenized_texts: TokenizedTexts, row_numbers: RowNumbers) -> Matrix:
        """Return the vectors of texts that have equally many tokens."""
        token_positions = np.arange(tokenized_texts.lengths[row_numbers[0]])
        token_ids = tokenized_texts.ids[
            tokenized_texts.starts[row_numbers][:, np.newaxis] + token_positions
        ]
        (output_array,) = self.session.run(None, {"input_ids": token_ids.astype(np.int64)})
        vector_matrix: Matrix = output_array
        return vector_matrix


def _group_rows_by_length(
    token_counts: "NDArray[np.int32]", max_texts_per_run: int
) -> list[RowNumbers]:
    """Return the rows of texts that have equally many tokens, in groups that are one run each."""
    shortest_first_row_numbers = np.argsort(token_counts, kind="stable")
    length_change_indexes = np.flatnonzero(np.diff(token_counts[shortest_first_row_numbers])) + 1
    row_numbers_of_runs = []
    for equal_length_row_numbers in (
        np.split(shortest_first_row_numbers, length_change_indexes)
        if len(shortest_first_row_numbers)
        else ()
    ):
        texts_per_run = max(
            1,
            min(
                max_texts_per_run,
                _MAX_TOKENS_PER_RUN // int(token_counts[equal_length_row_numbers[0]]),
            ),
        )
        row_numbers_of_runs += [
            equal_length_row_numbers[run_start_index : run_start_index + texts_per_run]
            for run_start_index in range(0, len(equal_length_row_numbers), texts_per_run)
        ]
    return row_numbers_of_runs


def load_processor_model(
    weights_folder: WeightsFolder, models_folder: Path, precision: "Precision", thread_count: int
) -> ProcessorModel:
    """Return the model of these weights, building its graph in `models_folder` if it is missing.

    Raise `ModelUnavailable` when the weights are of another kind of model.
    """
    # The published file cuts at 128 tokens and pads to 128, which gives long texts other vectors.
    library_tokenizer = load_tokenizer(weights_folder.folder / "tokenizer.json", MAX_TOKENS)
    tokenizer: RememberingTokenizer | LibraryTokenizer
    try:
        tokenizer = RememberingTokenizer(library_tokenizer, MAX_TOKENS, _MAX_REMEMBERED_WORDS)
    except ValueError:  # weights of the operator's own may have a tokenizer of another kind
        tokenizer = LibraryTokenizer(library_tokenizer)
    return ProcessorModel(
        f"{weights_folder.name}@{weights_folder.digest[:12]}/{precision}",
        # A run is small, so that what is kept of the largest is some 20 MB.
        open_session(
            _find_or_build_encoder_file(weights_folder, models_folder, precision),
            thread_count,
            keeps_memory=True,
        ),
        tokenizer,
        thread_count,
        # int8 scales the numbers of a whole run by its largest one: a text alone has one vector,
        # beside others it would depend on them.
        1 if precision == "int8" else _MAX_TEXTS_PER_RUN,
    )


def _find_or_build_encoder_file(
    weights_folder: WeightsFolder, models_folder: Path, precision: "Precision"
) -> Path:
    """Return the path of the encoder's graph."""

    def build_graph_bytes() -> bytes:
        from readingroom.engine.embedding.graph import build_graph

        try:
            return build_graph(weights_folder.folder, precision)
        except (ValueError, KeyError) as error:
            raise ModelUnavailable(
                f"{weights_folder.folder.name} holds no usable model: {error}"
            ) from error

    return find_or_build_graph_file(
        models_folder,
        f"{weights_folder.digest[:16]}-{precision}",
        str(_GRAPH_VERSION),
        build_graph_bytes,
    )


def find_or_build_graph_file(
    models_folder: Path,
    model_file_stem: str,
    graph_version: str,
    build_graph_bytes: Callable[[], bytes],
) -> Path:
    """Return the path of a model's graph, which is built when it is missing or damaged.

    Its name ends in its own digest, so damage shows, and one rename publishes both. Raise what
    `build_graph_bytes` raises, and `OSError` when the graph cannot be kept.
    """
    graph_file_stem = f"{model_file_stem}-{graph_version}"
    for graph_path in models_folder.glob(f"{graph_file_stem}-*.onnx"):
        if graph_path.stem == f"{graph_file_stem}-{hash_file(graph_path)[:16]}":
            return graph_path
        log.warning("the model's graph %s is damaged and is built again", graph_path.name)
        graph_path.unlink(missing_ok=True)
    graph_path = _write_graph_file(models_folder, graph_file_stem, build_graph_bytes())
    # What an older version of this program made of the same weights; it would build it again.
    for older_graph_path in models_folder.glob(f"{model_file_stem}-*.onnx"):
        if not older_graph_path.name.startswith(f"{graph_file_stem}-"):
            older_graph_path.unlink(missing_ok=True)
    return graph_path


def _write_graph_file(models_folder: Path, graph_file_stem: str, graph_bytes: bytes) -> Path:
    models_folder.mkdir(parents=True, exist_ok=True)
    file_descriptor, partial_path = tempfile.mkstemp(
        dir=models_folder, prefix=f".{graph_file_stem}-"
    )
    try:
        with os.fdopen(file_descriptor, "wb") as graph_file:
            graph_file.write(graph_bytes)
            graph_file.flush()
            os.fsync(file_descriptor)
        # Readable by all: it is no secret, and a container may be built by one user and run by
        # another.
        Path(partial_path).chmod(0o644)
        final_graph_path = (
            models_folder / f"{graph_file_stem}-{hash_file(Path(partial_path))[:16]}.onnx"
        )
        Path(partial_path).replace(final_graph_path)
    except BaseException:
        Path(partial_path).unlink(missing_ok=True)
        raise
    return final_graph_path

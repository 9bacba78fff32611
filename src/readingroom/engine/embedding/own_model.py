"""Models of the operator's own: an encoder and a cross-encoder as ONNX files in a folder.

The folder has `model.onnx` and `tokenizer.json`, as sentence-transformers and optimum export them.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.core.arrays import Floats, NDArray, np
from readingroom.engine.embedding.session import load_tokenizer, open_session
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

if TYPE_CHECKING:
    import onnxruntime
    from tokenizers import Encoding, Tokenizer

GRAPH_FILE_NAME, TOKENIZER_FILE_NAME = "model.onnx", "tokenizer.json"
_MAX_TOKENS = 512
_TEXTS_PER_BATCH = 8
_ENCODING_READER_BY_INPUT_NAME = {
    "input_ids": attrgetter("ids"),
    "attention_mask": attrgetter("attention_mask"),
    "token_type_ids": attrgetter("type_ids"),
}
"""What a graph may be given of a text; it is given those that it has."""


@dataclass(frozen=True)
class OperatorModel:
    """A graph that reads tokens, its tokenizer, and what tells it from every other model."""

    identity: str
    session: "onnxruntime.InferenceSession"
    tokenizer: "Tokenizer"
    dimensions: int = 0
    parallel_run_count: int = 1
    """How many texts are read at the same time, each by a run of its own."""

    def compute_vectors_in_parallel(
        self, texts: Sequence[str]
    ) -> Iterator[tuple["NDArray[np.intp]", Floats]]:
        """Yield the vectors of many texts as they come: their row numbers, and a row for each."""
        shortest_first_row_numbers = np.argsort([len(text) for text in texts], kind="stable")
        for batch_start_index in range(0, len(shortest_first_row_numbers), _TEXTS_PER_BATCH):
            row_numbers = shortest_first_row_numbers[
                batch_start_index : batch_start_index + _TEXTS_PER_BATCH
            ]
            yield (
                row_numbers,
                self.compute_vectors([texts[row_number] for row_number in row_numbers]),
            )

    def compute_vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector of unit length for each text.

        Where the graph gives a vector for each token, that is their mean. Raise `ModelUnavailable`
        when the graph gives anything else.
        """
        output_arrays = []
        for batch_start_index in range(0, len(texts), _TEXTS_PER_BATCH):
            encodings = self.tokenizer.encode_batch(
                texts[batch_start_index : batch_start_index + _TEXTS_PER_BATCH]
            )
            output_array, token_mask = self._run_graph(encodings)
            if output_array.ndim == 3:
                output_array = (output_array * token_mask[:, :, np.newaxis]).sum(axis=1)
            self._check_output_array(output_array, len(encodings), self.dimensions)
            output_arrays.append(output_array)
        unit_vectors: Floats = np.concatenate(output_arrays).astype(np.float32)
        unit_vectors /= np.maximum(np.linalg.norm(unit_vectors, axis=1, keepdims=True), 1e-12)
        return unit_vectors

    def compute_log_odds(self, query: str, texts: list[str]) -> list[float]:
        """Return the log-odds that each text answers the query, as a cross-encoder sees it.

        Raise `ModelUnavailable` when the graph gives anything but one or two numbers for a text.
        """
        # A run for each text: beside a longer one it would be filled up, and an int8 graph scales
        # all numbers of a run by its largest, so the score would depend on the other texts.
        encoded_pairs = self.tokenizer.encode_batch([(query, text) for text in texts])
        longest_first_text_indexes = sorted(
            range(len(encoded_pairs)), key=lambda text_index: -len(encoded_pairs[text_index].ids)
        )
        with ThreadPoolExecutor(self.parallel_run_count, "rerank") as executor:
            longest_first_log_odds = executor.map(
                lambda text_index: self._compute_log_odds_of_pair(encoded_pairs[text_index]),
                longest_first_text_indexes,
            )
            log_odds_by_text_index = dict(
                zip(longest_first_text_indexes, longest_first_log_odds, strict=True)
            )
        return [log_odds_by_text_index[text_index] for text_index in range(len(texts))]

    def _compute_log_odds_of_pair(self, encoded_pair: "Encoding") -> float:
        output_array, _ = self._run_graph([encoded_pair])
        self._check_output_array(output_array, 1, 2 if output_array.shape[1:] == (2,) else 1)
        # Two outputs are "does not" and "does"; one is how surely it does.
        log_odds = output_array[0, -1] - (output_array[0, 0] if output_array.shape[1] == 2 else 0)
        return float(log_odds)

    def _check_output_array(
        self, output_array: Floats, text_count: int, numbers_per_text: int
    ) -> None:
        """Raise `ModelUnavailable` unless there are finite numbers, as many as should be."""
        expected_width = (
            numbers_per_text or output_array.shape[-1]
        )  # not known until the first text
        if (
            output_array.shape != (text_count, expected_width)
            or not np.isfinite(output_array).all()
        ):
            raise ModelUnavailable(
                f"{self.identity} gives no numbers that can be used (shape {output_array.shape}); "
                "name another folder, or none"
            )

    def _run_graph(self, encodings: "list[Encoding]") -> tuple[Floats, Floats]:
        """Return what the graph makes of texts, and which of their tokens are real."""
        padded_length = max(len(encoding.ids) for encoding in encodings)
        arrays_by_input_name = {}
        for input_name, read_from_encoding in _ENCODING_READER_BY_INPUT_NAME.items():
            arrays_by_input_name[input_name] = np.zeros((len(encodings), padded_length), np.int64)
            for row_number, encoding in enumerate(encodings):
                arrays_by_input_name[input_name][row_number, : len(encoding.ids)] = (
                    read_from_encoding(encoding)
                )
        graph_input_names = {graph_input.name for graph_input in self.session.get_inputs()}
        output_array = self.session.run(
            None,
            {
                input_name: arrays_by_input_name[input_name]
                for input_name in graph_input_names & arrays_by_input_name.keys()
            },
        )[0]
        return output_array, arrays_by_input_name["attention_mask"].astype(np.float32)


def load_encoder(model_folder: Path, thread_count: int) -> OperatorModel:
    """Return the encoder in a folder; raise `ModelUnavailable` when it holds none."""
    setting_name = "READINGROOM_EMBEDDER"
    session, tokenizer = _open_graph_and_tokenizer(model_folder, thread_count, setting_name)
    graph_digest = hash_file(model_folder / GRAPH_FILE_NAME)
    model = OperatorModel(f"{model_folder.name}@{graph_digest[:12]}/onnx", session, tokenizer)
    try:
        dimensions = model.compute_vectors(["probe"]).shape[1]
    except Exception as error:  # whatever the runtime raises for a graph of another kind
        raise ModelUnavailable(
            f"{setting_name} is {model_folder.name}, but its {GRAPH_FILE_NAME} embeds no text: "
            f"{error}"
        ) from error
    return replace(model, dimensions=dimensions)


def load_reranker(
    model_folder: Path, thread_count: int, max_tokens: int, graph_path: Path | None = None
) -> OperatorModel:
    """Return the cross-encoder in a folder, with another graph of it if one is given.

    Raise `ModelUnavailable` when the folder holds none.
    """
    setting_name = "READINGROOM_RERANKER"
    session, tokenizer = _open_graph_and_tokenizer(model_folder, 1, setting_name, graph_path)
    tokenizer.enable_truncation(max_tokens)
    model = OperatorModel(model_folder.name, session, tokenizer, parallel_run_count=thread_count)
    try:
        model.compute_log_odds("probe", ["probe"])
    except Exception as error:  # whatever the runtime raises for a graph of another kind
        raise ModelUnavailable(
            f"{setting_name} is {model_folder.name}, but its {GRAPH_FILE_NAME} compares no texts: "
            f"{error}"
        ) from error
    return model


def _open_graph_and_tokenizer(
    model_folder: Path, threads_per_run: int, setting_name: str, graph_path: Path | None = None
) -> "tuple[onnxruntime.InferenceSession, Tokenizer]":
    """Return the graph and the tokenizer; raise `ModelUnavailable` when they are not there."""
    for file_name in (GRAPH_FILE_NAME, TOKENIZER_FILE_NAME):
        if not (model_folder / file_name).is_file():
            raise ModelUnavailable(
                f"{setting_name} is {model_folder.name}, but it has no {file_name}."
            )
    try:
        tokenizer = load_tokenizer(model_folder / TOKENIZER_FILE_NAME)
        session = open_session(graph_path or model_folder / GRAPH_FILE_NAME, threads_per_run)
    except Exception as error:  # both libraries raise their own kinds for a damaged file
        raise ModelUnavailable(
            f"{setting_name} is {model_folder.name}, but it cannot be read: {error}"
        ) from error
    if tokenizer.truncation is None:
        tokenizer.enable_truncation(_MAX_TOKENS)
    return session, tokenizer

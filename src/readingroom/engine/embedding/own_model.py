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
_READ_BY_INPUT_NAME = {
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

    def compute_in_parallel(
        self, texts: Sequence[str]
    ) -> Iterator[tuple["NDArray[np.intp]", Floats]]:
        """Yield the vectors of many texts as they come: their row numbers, and a row for each."""
        shortest_first = np.argsort([len(text) for text in texts], kind="stable")
        for first_row in range(0, len(shortest_first), _TEXTS_PER_BATCH):
            row_numbers = shortest_first[first_row : first_row + _TEXTS_PER_BATCH]
            yield (
                row_numbers,
                self.compute_vectors([texts[row_number] for row_number in row_numbers]),
            )

    def compute_vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector of unit length for each text.

        Where the graph gives a vector for each token, that is their mean. Raise `ModelUnavailable`
        when the graph gives anything else.
        """
        batch_outputs = []
        for first_row in range(0, len(texts), _TEXTS_PER_BATCH):
            encodings = self.tokenizer.encode_batch(texts[first_row : first_row + _TEXTS_PER_BATCH])
            output, mask = self._run_graph(encodings)
            if output.ndim == 3:
                output = (output * mask[:, :, np.newaxis]).sum(axis=1)
            self._check_output(output, len(encodings), self.dimensions)
            batch_outputs.append(output)
        batch_matrix: Floats = np.concatenate(batch_outputs).astype(np.float32)
        batch_matrix /= np.maximum(np.linalg.norm(batch_matrix, axis=1, keepdims=True), 1e-12)
        return batch_matrix

    def compute_scores(self, query: str, texts: list[str]) -> list[float]:
        """Return the log-odds that each text answers the query, as a cross-encoder sees it.

        Raise `ModelUnavailable` when the graph gives anything but one or two numbers for a text.
        """
        # A run for each text: beside a longer one it would be filled up, and an int8 graph scales
        # all numbers of a run by its largest, so the score would depend on the other texts.
        encoded_pairs = self.tokenizer.encode_batch([(query, text) for text in texts])
        longest_first = sorted(
            range(len(encoded_pairs)), key=lambda text_index: -len(encoded_pairs[text_index].ids)
        )
        with ThreadPoolExecutor(self.parallel_run_count, "rerank") as executor:
            scores = executor.map(
                lambda text_index: self._compute_score(encoded_pairs[text_index]), longest_first
            )
            scores_by_text_index = dict(zip(longest_first, scores, strict=True))
        return [scores_by_text_index[text_index] for text_index in range(len(texts))]

    def _compute_score(self, encoded_pair: "Encoding") -> float:
        output, _ = self._run_graph([encoded_pair])
        self._check_output(output, 1, 2 if output.shape[1:] == (2,) else 1)
        # Two outputs are "does not" and "does"; one is how surely it does.
        log_odds = output[0, -1] - (output[0, 0] if output.shape[1] == 2 else 0)
        return float(log_odds)

    def _check_output(self, output: Floats, text_count: int, numbers_per_text: int) -> None:
        """Raise `ModelUnavailable` unless there are finite numbers, as many as should be."""
        expected_width = numbers_per_text or output.shape[-1]  # not known until the first text
        if output.shape != (text_count, expected_width) or not np.isfinite(output).all():
            raise ModelUnavailable(
                f"{self.identity} gives no numbers that can be used (shape {output.shape}); "
                "name another folder, or none"
            )

    def _run_graph(self, encodings: "list[Encoding]") -> tuple[Floats, Floats]:
        """Return what the graph makes of texts, and which of their tokens are real."""
        padded_length = max(len(encoding.ids) for encoding in encodings)
        arrays = {}
        for input_name, read_input in _READ_BY_INPUT_NAME.items():
            arrays[input_name] = np.zeros((len(encodings), padded_length), np.int64)
            for row, encoding in enumerate(encodings):
                arrays[input_name][row, : len(encoding.ids)] = read_input(encoding)
        wanted_input_names = {graph_input.name for graph_input in self.session.get_inputs()}
        model_output = self.session.run(
            None,
            {input_name: arrays[input_name] for input_name in wanted_input_names & arrays.keys()},
        )[0]
        return model_output, arrays["attention_mask"].astype(np.float32)


def load_encoder(model_folder: Path, thread_count: int) -> OperatorModel:
    """Return the encoder in a folder; raise `ModelUnavailable` when it holds none."""
    setting_name = "READINGROOM_EMBEDDER"
    session, tokenizer = _open_model_files(model_folder, thread_count, setting_name)
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
    session, tokenizer = _open_model_files(model_folder, 1, setting_name, graph_path)
    tokenizer.enable_truncation(max_tokens)
    model = OperatorModel(model_folder.name, session, tokenizer, parallel_run_count=thread_count)
    try:
        model.compute_scores("probe", ["probe"])
    except Exception as error:  # whatever the runtime raises for a graph of another kind
        raise ModelUnavailable(
            f"{setting_name} is {model_folder.name}, but its {GRAPH_FILE_NAME} compares no texts: "
            f"{error}"
        ) from error
    return model


def _open_model_files(
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

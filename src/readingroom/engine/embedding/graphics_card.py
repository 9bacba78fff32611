"""Embedding in bulk on a graphics card, for an embedder that has one."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from readingroom.engine.embedding.bulk import (
    TEXTS_PER_BATCH,
    TokenizingPool,
    embed_stream,
    make_remembering_tokenizer,
)
from readingroom.engine.embedding.weights import WeightsFolder
from readingroom.engine.errors import ModelUnavailable

try:
    import torch

    from readingroom.engine.embedding.packed import PackedEncoder
except ImportError:  # the extra `gpu` is not installed
    torch = None

DeviceChoice = Literal["cpu", "cuda", "auto"]
BatchKeyT = TypeVar("BatchKeyT")


def should_use_graphics_card(device_choice: DeviceChoice) -> bool:
    """Return whether to embed on a graphics card: the one that is asked for, or that is there.

    Raise `ModelUnavailable` when one is asked for and cannot be used.
    """
    if device_choice == "cpu":
        return False
    if torch is not None and torch.cuda.is_available():
        return True
    if device_choice == "auto":
        return False
    if torch is None:
        raise ModelUnavailable(
            "Embedding on a graphics card needs torch: pip install 'readingroom[gpu]'.",
            command="pip install 'readingroom[gpu]'",
        )
    raise ModelUnavailable(
        "torch finds no CUDA device here. Look at `nvidia-smi`, or choose --device cpu."
    )


class GraphicsCardModel:
    """The model on a graphics card.

    Its vectors are so near to those of float32 on a processor that both may lie in one index: of
    1,000 passages the worst cosine was 0.99999 (benchmarks/RESULTS.md).
    """

    def __init__(
        self, weights_folder: WeightsFolder, max_tokens: int, device: str = "cuda"
    ) -> None:
        model_config = json.loads((weights_folder.folder / "config.json").read_text("utf-8"))
        arrays_by_weight_name = load_file(weights_folder.folder / "model.safetensors")
        self._encoder = PackedEncoder(model_config, arrays_by_weight_name, device)
        self._tokenizer_file = weights_folder.folder / "tokenizer.json"
        self._max_tokens = max_tokens
        self._tokenizer = make_remembering_tokenizer(self._tokenizer_file, max_tokens)

    def embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, one row each, in their order."""
        vectors = np.empty((len(texts), self._encoder.dimensions), np.float32)
        for first_row_number in range(0, len(texts), TEXTS_PER_BATCH):
            tokenized_texts = self._tokenizer.encode_texts(
                texts[first_row_number : first_row_number + TEXTS_PER_BATCH]
            )
            vectors[first_row_number : first_row_number + TEXTS_PER_BATCH] = (
                self._encoder.start_encoding(tokenized_texts).wait_for_vectors()
            )
        return vectors

    def embed_stream(
        self,
        keyed_batches: Iterable[tuple[BatchKeyT, Sequence[str]]],
        process_count: int | None = None,
    ) -> Iterator[tuple[BatchKeyT, NDArray[np.float32]]]:
        """Yield the key and the vectors of each batch; other processes work some batches ahead."""
        with TokenizingPool(
            self._tokenizer_file, self._max_tokens, process_count
        ) as tokenizing_pool:
            yield from embed_stream(self._encoder, tokenizing_pool, keyed_batches)

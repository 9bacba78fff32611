"""Embeds a stream of texts: other processes make tokens of them while a device makes vectors."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from readingroom.engine.embedding.tokens import RememberingTokenizer, TokenizedTexts
from readingroom.interrupts import shield_new_processes

if TYPE_CHECKING:
    from readingroom.engine.embedding.packed import PackedEncoder, PendingVectors

BatchKeyT = TypeVar("BatchKeyT")

TEXTS_PER_BATCH = 1024
"""Enough to keep a large card busy; a gigabyte of its memory."""
_MAX_PROCESSES = 8
# Batches that the device has been given; with fewer it would wait for Python between two.
_MAX_PENDING_BATCHES = 4


class TokenizingPool:
    """Processes that cut batches of texts into tokens, some batches ahead."""

    def __init__(
        self, tokenizer_file: Path, max_tokens: int, process_count: int | None = None
    ) -> None:
        self.process_count = process_count or max(1, min(_MAX_PROCESSES, (os.cpu_count() or 2) - 2))
        self._executor = ProcessPoolExecutor(
            self.process_count,
            # Not by fork: a copy of a process that uses a graphics card does not work.
            mp_context=get_context("spawn"),
            initializer=_load_tokenizer_in_process,
            initargs=(tokenizer_file, max_tokens),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Cancelled batches can leave a pool with a dead process waiting for ever, so those that
        # were begun are finished; they take milliseconds.
        self._executor.shutdown()

    def tokenize_batches(self, text_batches: Iterable[Sequence[str]]) -> Iterator[TokenizedTexts]:
        """Yield the tokens of each batch, in order."""
        remaining_text_batches = iter(text_batches)
        pending_tokenized_batches: deque[Future[TokenizedTexts]] = deque()
        for text_batch in islice(remaining_text_batches, 2 * self.process_count):
            pending_tokenized_batches.append(self._submit_batch(text_batch))
        while pending_tokenized_batches:
            tokenized_batch = pending_tokenized_batches.popleft().result()
            for text_batch in islice(remaining_text_batches, 1):
                pending_tokenized_batches.append(self._submit_batch(text_batch))
            yield tokenized_batch

    def _submit_batch(self, text_batch: Sequence[str]) -> Future[TokenizedTexts]:
        with shield_new_processes():
            return self._executor.submit(_tokenize_texts, list(text_batch))


def embed_stream(
    encoder: "PackedEncoder",
    tokenizing_pool: TokenizingPool,
    keyed_batches: Iterable[tuple[BatchKeyT, Sequence[str]]],
) -> Iterator[tuple[BatchKeyT, NDArray[np.float32]]]:
    """Yield the key of each batch with the vectors of its texts, a row each, in order."""
    pending_batch_keys: deque[BatchKeyT] = deque()

    def yield_batch_texts() -> Iterator[Sequence[str]]:
        for batch_key, texts in keyed_batches:
            pending_batch_keys.append(batch_key)
            yield texts

    pending_vectors: deque[PendingVectors] = deque()
    for tokenized_texts in tokenizing_pool.tokenize_batches(yield_batch_texts()):
        pending_vectors.append(encoder.start_encoding(tokenized_texts))
        if len(pending_vectors) > _MAX_PENDING_BATCHES:
            yield pending_batch_keys.popleft(), pending_vectors.popleft().wait_for_vectors()
    while pending_vectors:
        yield pending_batch_keys.popleft(), pending_vectors.popleft().wait_for_vectors()


def make_remembering_tokenizer(tokenizer_file: Path, max_tokens: int) -> RememberingTokenizer:
    """Return the tokenizer of a file, which cuts texts to so many tokens."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    # The published file cuts at 128 tokens and pads to 128, which gives long texts other vectors.
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return RememberingTokenizer(tokenizer, max_tokens)


_tokenizers_of_this_process: list[RememberingTokenizer] = []
"""In a process of the pool: its tokenizer."""


def _load_tokenizer_in_process(tokenizer_file: Path, max_tokens: int) -> None:
    _tokenizers_of_this_process.append(make_remembering_tokenizer(tokenizer_file, max_tokens))


def _tokenize_texts(texts: list[str]) -> TokenizedTexts:
    return _tokenizers_of_this_process[0].encode_texts(texts)

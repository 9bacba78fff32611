"""Chunks, filters and questions that both engines get: the same for every measurement of scale.

Policies of four revisions of 50 chunks, sentences of real texts, vectors around 5,000 centres.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.engine.corpus import make_natural_chunks, make_questions
from readingroom.core.filters import And, Filter, FilterFields, In
from readingroom.storage.chunks import Chunks

FIELDS = FilterFields(exact_match_fields=("source", "revision_id"))
CHUNKS_PER_REVISION, REVISIONS = 50, 4
_CENTRES = 5_000
_VECTORS_PER_BLOCK = 20_000


class KnownVectors:
    """An embedder that has the vectors of the questions already."""

    identity = "benchmark"
    reranker = None

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def embed(self, text: str) -> Any:
        return self.vectors[text]


class MemoryCollection:
    """A collection in memory, for the embedded index: Chroma is read once and not measured."""

    generation = 1
    embedding_identity = "benchmark"

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rows = {chunk_id: row for row, chunk_id in enumerate(chunks.ids)}

    def read_chunks(
        self,
        ids: Sequence[str] | None = None,
        where: Any = None,
        with_vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        if ids is None:
            end = min(len(self._chunks), offset + (limit or len(self._chunks)))
            rows = list(range(offset, end))
        else:
            rows = [self._rows[chunk_id] for chunk_id in ids]
        chunks = self._chunks
        return Chunks(
            [chunks.ids[row] for row in rows],
            [chunks.texts[row] for row in rows],
            [chunks.metadatas[row] for row in rows],
            chunks.vectors[rows] if with_vectors else np.empty((0, 0), np.float32),
        )

    def count_chunks(self) -> int:
        return len(self._chunks)

    def claim_embedding(self, embedding: str) -> None:
        pass


@dataclass
class Corpus:
    """So many chunks, and questions with their vectors."""

    chunks: Chunks
    questions: list[str]
    embedder: KnownVectors = field(default_factory=KnownVectors)

    @property
    def policy_count(self) -> int:
        return len(self.chunks) // (CHUNKS_PER_REVISION * REVISIONS)


def make_corpus(chunk_count: int, question_count: int) -> Corpus:
    """Make it from a seed; a question lies near one of the chunks."""
    corpus = Corpus(_make_chunks(chunk_count), make_questions(question_count))
    generator = np.random.default_rng(7)
    for question in corpus.questions:
        near = corpus.chunks.vectors[generator.integers(0, chunk_count)]
        vector = near + 0.5 / np.sqrt(384) * generator.standard_normal(384, np.float32)
        corpus.embedder.vectors[question] = vector / np.linalg.norm(vector)
    return corpus


def _make_chunks(count: int) -> Chunks:
    generator = np.random.default_rng(1)
    centres = generator.standard_normal((_CENTRES, 384), np.float32)
    chosen = generator.integers(0, len(centres), count)
    vectors = np.empty((count, 384), np.float32)
    for start in range(0, count, _VECTORS_PER_BLOCK):
        block = centres[chosen[start : start + _VECTORS_PER_BLOCK]]
        block = block + 0.75 * generator.standard_normal(block.shape, np.float32)
        vectors[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    metadatas = []
    for number in range(count):
        revision = number // CHUNKS_PER_REVISION
        source = f"P{revision // REVISIONS:05}"
        metadatas.append({"source": source, "revision_id": f"rev_{source}_{revision % REVISIONS}"})
    ids = [f"{one['revision_id']}__{n:07}" for n, one in enumerate(metadatas)]
    return Chunks(ids, list(make_natural_chunks(count)), metadatas, vectors)


def make_filter(policy_count: int, chosen_policies: int, revisions: int, offset: int = 0) -> Filter:
    """The first revisions of so many policies, spread over all."""
    step = max(1, policy_count // chosen_policies)
    numbers = range(offset % step, policy_count, step)
    sources = tuple(f"P{number:05}" for number in numbers)[:chosen_policies]
    names = tuple(f"rev_{source}_{n}" for source in sources for n in range(revisions))
    return And((In("source", sources), In("revision_id", names)))


def find_passing(chunks: Chunks, where: Filter | None) -> Any:
    """The rows that pass one of these filters."""
    if where is None:
        return np.arange(len(chunks))
    names = set(where.sub_filters[1].values)  # type: ignore[union-attr]
    return np.array([n for n, one in enumerate(chunks.metadatas) if one["revision_id"] in names])

"""Measures the shared index beside the embedded one: python -m benchmarks.scale [CHUNKS] [ROUNDS].

Policies of four revisions of 50 chunks, sentences of real texts, vectors around 5,000 centres. Both
engines get the same chunks, questions and filters, and each ranks its own candidates. Processor
time is that of this process and, for PostgreSQL, of the server's processes too; embedding a
question is in neither.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.engine.corpus import load_test_set, make_natural_chunks, make_questions
from benchmarks.engine.quality import score_ndcg
from readingroom.core.filters import And, Filter, FilterFields, In
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.shared_index import SharedIndex
from readingroom.storage.chunks import Chunks
from readingroom.storage.postgres.chunks import PostgresChunkStore, PostgresCollection
from readingroom.storage.postgres.database import PostgresDatabase
from tests.support.postgres import PostgresServer, make_template, running_server
from tests.support.processes import cpu_seconds, descendants

FIELDS = FilterFields(exact_match=("source", "revision_id"))
CHUNKS_PER_REVISION, REVISIONS = 50, 4
_REPEATS = 20
_SERVER_OPTIONS = (
    *("-c", "listen_addresses=", "-c", "shared_buffers=1GB", "-c", "fsync=off", "-c", "jit=off"),
    *("-c", "log_min_messages=fatal", "-c", "max_wal_size=8GB"),
    # Else a part of the work is done by processes that end before they are counted.
    *("-c", "max_parallel_workers_per_gather=0"),
)


class KnownVectors:
    """An embedder that has the vectors of the questions already."""

    identity = "benchmark"

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def embed(self, text: str) -> Any:
        return self.vectors[text]


class MemoryCollection:
    """A collection in memory, for the embedded index: Chroma is read once and not measured."""

    generation = 1
    embedding = "benchmark"

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rows = {chunk_id: row for row, chunk_id in enumerate(chunks.ids)}

    def get(
        self,
        ids: Sequence[str] | None = None,
        where: Any = None,
        vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        rows = [self._rows[one] for one in ids] if ids is not None else None
        if rows is None:
            rows = list(
                range(offset, min(len(self._chunks), offset + (limit or len(self._chunks))))
            )
        chunks = self._chunks
        return Chunks(
            [chunks.ids[row] for row in rows],
            [chunks.texts[row] for row in rows],
            [chunks.metadatas[row] for row in rows],
            chunks.vectors[rows] if vectors else np.empty((0, 0), np.float32),
        )

    def count(self) -> int:
        return len(self._chunks)

    def claim_embedding(self, embedding: str) -> None:
        pass


def make_chunks(count: int) -> Chunks:
    generator = np.random.default_rng(1)
    centres = generator.standard_normal((5_000, 384), np.float32)
    chosen = generator.integers(0, len(centres), count)
    vectors = np.empty((count, 384), np.float32)
    for start in range(0, count, 20_000):
        block = centres[chosen[start : start + 20_000]]
        block = block + 0.75 * generator.standard_normal(block.shape, np.float32)
        vectors[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    metadatas = []
    for number in range(count):
        revision = number // CHUNKS_PER_REVISION
        source = f"P{revision // REVISIONS:05}"
        metadatas.append({"source": source, "revision_id": f"rev_{source}_{revision % REVISIONS}"})
    ids = [f"{one['revision_id']}__{n:07}" for n, one in enumerate(metadatas)]
    return Chunks(ids, list(make_natural_chunks(count)), metadatas, vectors)


def make_filter(chunks: Chunks, policies: int, revisions: int) -> Filter:
    """The first revisions of so many policies, spread over all."""
    every = sorted({str(one["source"]) for one in chunks.metadatas})
    sources = every[:: max(1, len(every) // policies)][:policies]
    names = tuple(f"rev_{source}_{n}" for source in sources for n in range(revisions))
    return And((In("source", tuple(sources)), In("revision_id", names)))


def main(count: int, rounds: int) -> None:
    with running_server(_SERVER_OPTIONS) as server:
        make_template(server)
        database = PostgresDatabase(server.url("room_template"))
        collection = PostgresChunkStore(database).open_collection("policy_docs", FIELDS)
        embedder = KnownVectors()
        shared = SharedIndex(collection, FIELDS, embedder)  # type: ignore[arg-type]
        _compare_words(database)
        chunks = make_chunks(count)
        print(f"{count:,} chunks made", flush=True)
        _load(server, collection, chunks)
        with tempfile.TemporaryDirectory() as folder:
            embedded = EmbeddedIndex(
                MemoryCollection(chunks),
                FIELDS,
                embedder,  # type: ignore[arg-type]
                Path(folder) / "words.db",
            )
            embedded.words()
            embedded.vectors()
            _compare(server, chunks, shared, embedded, embedder, rounds)
        _measure_visibility(server, collection)
        database.close()


def _load(server: PostgresServer, collection: PostgresCollection, chunks: Chunks) -> None:
    before = _read_cpu(server)
    step = CHUNKS_PER_REVISION * REVISIONS
    for start in range(0, len(chunks), step):
        part = slice(start, start + step)
        collection.upsert(
            Chunks(
                chunks.ids[part], chunks.texts[part], chunks.metadatas[part], chunks.vectors[part]
            )
        )
    seconds = _read_cpu(server) - before
    server.execute("VACUUM ANALYZE", "room_template")
    print(
        f"brought in: {len(chunks) / seconds:,.0f} chunks per processor second, one transaction "
        f"for {step}",
        flush=True,
    )


def _compare(
    server: PostgresServer,
    chunks: Chunks,
    shared: SharedIndex,
    embedded: EmbeddedIndex,
    embedder: KnownVectors,
    rounds: int,
) -> None:
    policies = len(chunks) // (CHUNKS_PER_REVISION * REVISIONS)
    filters: dict[str, Filter | None] = {
        "1 %": make_filter(chunks, max(1, policies // 25), 1),
        "10 %": make_filter(chunks, max(1, policies * 2 // 5), 1),
        "25 % (all in force)": make_filter(chunks, policies, 1),
        "50 %": make_filter(chunks, policies, 2),
        "none": None,
    }
    questions = make_questions(rounds)
    generator = np.random.default_rng(7)
    for question in questions:
        near = chunks.vectors[generator.integers(0, len(chunks))]
        vector = near + 0.5 / np.sqrt(384) * generator.standard_normal(384, np.float32)
        embedder.vectors[question] = vector / np.linalg.norm(vector)
    print("| filter | recall@10 pg / embedded (worst) | hybrid CPU ms pg / embedded | ratio |")
    for name, where in filters.items():
        recalls: dict[str, list[float]] = {"pg": [], "embedded": []}
        passing = _find_passing(chunks, where)
        for question in questions:
            vector = embedder.vectors[question]
            distances = ((chunks.vectors[passing] - vector) ** 2).sum(axis=1)
            best = {chunks.ids[passing[row]] for row in np.argsort(distances)[:10]}
            for side, index in (("pg", shared), ("embedded", embedded)):
                hits = index.vectors().search(vector, 10, where)
                recalls[side].append(len(best & {hit.id for hit in hits}) / len(best))
        costs: dict[str, list[float]] = {"pg": [], "embedded": []}
        for question in questions:
            for side, index in (("pg", shared), ("embedded", embedded)):
                costs[side].append(
                    _spend(
                        server, lambda i=index, q=question, w=where: i.search(q, 10, w, "hybrid")
                    )
                )
        told = " / ".join(f"{mean(each):.3f} ({min(each):.1f})" for each in recalls.values())
        sums = {side: 1000 * mean(each) for side, each in costs.items()}
        print(
            f"| {name} | {told} | {sums['pg']:.1f} / {sums['embedded']:.1f} | "
            f"{sums['pg'] / sums['embedded']:.2f} |",
            flush=True,
        )


def _find_passing(chunks: Chunks, where: Filter | None) -> Any:
    if where is None:
        return np.arange(len(chunks))
    names = set(where.parts[1].values)  # type: ignore[union-attr]
    return np.array([n for n, one in enumerate(chunks.metadatas) if one["revision_id"] in names])


def _spend(server: PostgresServer, work: Callable[[], object]) -> float:
    assert server.process is not None
    # Found before: looking for them costs more than a search.
    processes = {server.process.pid, *descendants(server.process.pid)}
    server_before, own_before = _sum_cpu(processes), _read_own_cpu()
    for _ in range(_REPEATS):  # the kernel counts in hundredths of a second
        work()
    own = _read_own_cpu() - own_before
    return (own + _sum_cpu(processes) - server_before) / _REPEATS


def _read_cpu(server: PostgresServer) -> float:
    assert server.process is not None
    return _read_own_cpu() + _sum_cpu({server.process.pid, *descendants(server.process.pid)})


def _read_own_cpu() -> float:
    return time.process_time()


def _sum_cpu(processes: set[int]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(OSError):
            total += cpu_seconds(process)
    return total


def _compare_words(database: PostgresDatabase) -> None:
    for number, name in enumerate(("govuk", "cranfield")):
        test_set = load_test_set(name)
        fields = FilterFields()
        with tempfile.TemporaryDirectory() as folder:
            fts5 = LexicalIndex(Path(folder) / "words.db", {"text": 1.0}, fields)
            fts5.fill((LexicalDocument(i, {"text": t}, {}) for i, t in test_set.texts.items()), 1)
            collection = PostgresChunkStore(database).open_collection(f"quality_{number}", fields)
            shared = SharedIndex(collection, fields, KnownVectors())  # type: ignore[arg-type]
            ids = list(test_set.texts)
            vectors = np.zeros((len(ids), 2), np.float32)
            collection.upsert(Chunks(ids, list(test_set.texts.values()), [{}] * len(ids), vectors))
            scores = {
                side: score_ndcg(
                    test_set,
                    {
                        q: [hit.id for hit in index.search(text, 10)]
                        for q, text in test_set.questions.items()
                    },
                )
                for side, index in (("FTS5", fts5), ("SQL", shared.words()))
            }
            fts5.close()
        print(
            f"{name}: nDCG@10 by words, FTS5 {scores['FTS5']:.4f}, SQL {scores['SQL']:.4f}, "
            f"difference {scores['SQL'] - scores['FTS5']:+.4f}",
            flush=True,
        )


def _measure_visibility(server: PostgresServer, collection: PostgresCollection) -> None:
    """Write on one connection, search on those of another process, each time at once."""
    other = PostgresDatabase(server.url("room_template"))
    reader = SharedIndex(
        PostgresChunkStore(other).open_collection("policy_docs", FIELDS),
        FIELDS,
        KnownVectors(),  # type: ignore[arg-type]
    )
    waits, missed = [], 0
    for number in range(50):
        word, vector = f"zebra{number}", np.random.default_rng(number).standard_normal(384)
        vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        chunk = Chunks(
            [f"new {number}"],
            [f"A {word}."],
            [{"source": "NEW", "revision_id": "new"}],
            vector[None],
        )
        collection.upsert(chunk)
        begun = time.perf_counter()
        by_words = [hit.id for hit in reader.words().search(word, 1)]
        by_meaning = [hit.id for hit in reader.vectors().search(vector, 1)]
        waits.append(time.perf_counter() - begun)
        missed += (by_words, by_meaning) != ([f"new {number}"], [f"new {number}"])
    print(
        f"writes seen by another process: {50 - missed} of 50 in its next search, by words and by "
        f"meaning; both searches {1000 * median(waits[1:]):.1f} ms p50, "
        f"{1000 * sorted(waits[1:])[46]:.1f} p95"
    )
    other.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 50_000, int(sys.argv[2]) if sys.argv[2:] else 20)

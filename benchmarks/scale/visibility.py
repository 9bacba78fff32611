"""When a write is seen by another process: python -m benchmarks.scale.visibility [CHUNKS] [WRITES].

One process writes a revision of 50 chunks at a time. A second one asks again and again, by words
and by meaning, until it finds it; the time runs from the end of the write. The writer asks once
itself. 200,000 chunks take about 3 minutes.
"""

import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import numpy as np

from benchmarks.scale.corpus import CHUNKS_PER_REVISION, make_corpus
from benchmarks.scale.engines import FORK, Engines, fill_engines, measure_cpu, print_progress
from readingroom.engine.shared.index import SharedIndex
from readingroom.storage.chunks import Chunks

_MAX_SECONDS = 0.25
_PATIENCE_SECONDS = 60.0


def main(chunk_count: int, writes: int) -> None:
    corpus = make_corpus(chunk_count, 1)
    print_progress(f"{chunk_count:,} chunks made")
    with fill_engines(corpus, embedded=False) as engines:
        ours, theirs = FORK.Pipe()
        reader = FORK.Process(target=_search_until_found, args=(engines, theirs), daemon=True)
        reader.start()
        assert ours.recv() == "ready"
        print_progress("the other process has its copy of the vectors")
        waits, own_misses, cost = [], 0, 0.0
        writer = engines.open_shared()
        _is_found(writer, *_make_target(writes))  # the writer has a copy too
        for number in range(writes):
            ours.send(number)
            committed_at, is_own_found, seconds = _write(engines, writer, number)
            own_misses += not is_own_found
            cost += seconds
            waits.append(max(0.0, ours.recv() - committed_at))
        ours.send(None)
        reader.join(_PATIENCE_SECONDS)
        writer.collection.database.close()
    p95 = sorted(waits)[int(0.95 * (len(waits) - 1))]
    print(
        f"| a write of {CHUNKS_PER_REVISION} chunks among {chunk_count:,}, seen by another "
        f"process's searches by words and by meaning | p50 {1000 * median(waits):.0f}, p95 "
        f"{1000 * p95:.0f} ms | {'met' if p95 <= _MAX_SECONDS else '**missed**'} (at most 250) |"
    )
    print(
        f"| one's own write in the next search | {writes - own_misses} of {writes} | "
        f"{'met' if not own_misses else '**missed**'} |"
    )
    print(
        f"| bringing in, indexes in place | {writes * CHUNKS_PER_REVISION / cost:,.0f} chunks per "
        "processor second, one transaction for 50 | |"
    )


def _write(engines: Engines, writer: SharedIndex, number: int) -> tuple[float, bool, float]:
    """When it was written, whether the writer finds it at once, and its processor seconds."""
    word, vector = _make_target(number)
    texts = engines.corpus.chunks.texts[number * CHUNKS_PER_REVISION :][:CHUNKS_PER_REVISION]
    ids = [f"new_{number}__{place}" for place in range(len(texts))]
    generator = np.random.default_rng(10_000 + number)
    vectors = generator.standard_normal((len(texts), 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[0] = vector
    metadatas: list[Any] = [{"source": "NEW", "revision_id": f"new_{number}"}] * len(texts)
    chunks = Chunks(ids, [f"{word} {texts[0]}", *texts[1:]], metadatas, vectors)
    own, database = measure_cpu(engines.server, lambda: writer.collection.upsert_chunks(chunks))
    committed_at = time.monotonic()
    return committed_at, _is_found(writer, word, vector), own + database


def _make_target(number: int) -> tuple[str, Any]:
    """A word and a vector that only one revision has."""
    vector = np.random.default_rng(number).standard_normal(384).astype(np.float32)
    return f"zebra{number}quagga", vector / np.linalg.norm(vector)


def _search_until_found(engines: Engines, pipe: Connection) -> None:
    index = engines.open_shared()
    _is_found(index, *_make_target(0))
    pipe.send("ready")
    for number in _receive_numbers(pipe):
        word, vector = _make_target(number)
        end = time.monotonic() + _PATIENCE_SECONDS
        while not _is_found(index, word, vector):
            assert time.monotonic() < end, f"write {number} was never seen"
        pipe.send(time.monotonic())


def _receive_numbers(pipe: Connection) -> Iterator[int]:
    while (number := pipe.recv()) is not None:
        yield number


def _is_found(index: SharedIndex, word: str, vector: Any) -> bool:
    by_words = index.search_words(word, 1)
    by_meaning = index.get_vector_index().search(vector, 1)
    return bool(by_words and by_meaning and by_words[0].id == by_meaning[0].id)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 50_000, int(sys.argv[2]) if sys.argv[2:] else 100)

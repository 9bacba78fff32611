"""Measures questions of words new to a process: python -m benchmarks.scale.new_words [CHUNKS].

Both engines are asked in turns. Before each question the shared index forgets what it has read of
words since it was opened, so every word is new to it but those that it reads in advance. Without
reading in advance and with it, at narrow and broad filters. 200,000 chunks take about 5 minutes.
"""

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.scale.corpus import make_corpus, make_filter
from benchmarks.scale.engines import Engines, fill_engines, measure_cpu, print_progress
from readingroom.core.filters import Filter
from readingroom.core.lru import LRUCache
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.shared import memory_copy
from readingroom.engine.shared.index import SharedIndex
from readingroom.engine.shared.postings import StemPostings

_QUESTION_COUNT = 60


def main(chunk_count: int) -> None:
    corpus = make_corpus(chunk_count, _QUESTION_COUNT)
    print_progress(f"{chunk_count:,} chunks made")
    policies = corpus.policy_count
    filters: dict[str, tuple[Filter | None, float]] = {
        "1 %": (make_filter(policies, max(1, policies // 25), 1), 1.0),
        "25 % (all in force)": (make_filter(policies, policies, 1), 1.1),
        "none": (None, 1.1),
    }
    with fill_engines(corpus) as engines:
        embedded = engines.open_embedded()
        for is_read_in_advance in (False, True):
            shared = engines.open_shared()
            shared.search(corpus.questions[0], 10, None, "hybrid")  # the vectors are read then
            _forget_words(shared, LRUCache(memory_copy._MAX_COPIED_STEMS))
            if is_read_in_advance:
                _read_in_advance(engines, shared)
            print("| read in advance | filter | CPU ms pg / embedded | ratio | known words | |")
            for name, (where, limit) in filters.items():
                told = _compare(engines, shared, embedded, where, limit)
                print(f"| {'yes' if is_read_in_advance else 'no'} | {name} | {told}", flush=True)
            shared.close()
            shared.collection.database.close()
        embedded.close()


def _read_in_advance(engines: Engines, shared: SharedIndex) -> None:
    memory_before = _count_resident_bytes()
    started = time.monotonic()
    own, database = measure_cpu(engines.server, partial(_wait_until_read, shared))
    words = shared._memory_copy._words
    assert words is not None
    postings = words.postings_by_stem.list_values()
    kept_bytes = sum(each._postings.nbytes for each in postings)
    chunk_count = len(engines.corpus.chunks)
    print_progress(
        f"{len(postings):,} stems read in advance in {time.monotonic() - started:.1f} s, "
        f"{own:.2f} s of processor time here and {database:.2f} in the database; "
        f"{kept_bytes / chunk_count:.0f} bytes a chunk, "
        f"{(_count_resident_bytes() - memory_before) / chunk_count:.0f} of the process, "
        f"at most {1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.0f} MB"
    )


def _wait_until_read(shared: SharedIndex) -> None:
    copy = shared._memory_copy
    copy.keep_ready(with_vectors=True)
    while not (copy._words and copy._words.common_words and copy._words.common_words.is_complete):
        time.sleep(0.05)


def _compare(
    engines: Engines,
    shared: SharedIndex,
    embedded: EmbeddedIndex,
    where: Filter | None,
    limit: float,
) -> str:
    """The cost of the questions with new words, and that of asking each once more."""
    words = shared._memory_copy._words
    assert words is not None
    in_advance = words.postings_by_stem
    new, database, again, beside = 0.0, 0.0, 0.0, 0.0
    for index in (shared, embedded):
        index.search(engines.corpus.questions[0], 10, where, "hybrid")  # caches of the filter
    for question in engines.corpus.questions[1:]:
        _forget_words(shared, in_advance)
        ask: list[Callable[[], object]] = [
            partial(index.search, question, 10, where, "hybrid") for index in (shared, embedded)
        ]
        own_seconds, database_seconds = measure_cpu(engines.server, ask[0])
        beside += measure_cpu(None, ask[1])[0]
        new += own_seconds + database_seconds
        database += database_seconds
        again += sum(measure_cpu(engines.server, ask[0]))
        if question == engines.corpus.questions[-1]:
            hits = [[hit.chunk_id for hit in each().hits] for each in ask]  # type: ignore[attr-defined]
            print_progress(
                f"{len(set(hits[0]) & set(hits[1]))} of {len(hits[1])} hits are the same"
            )
    each = 1000 / (len(engines.corpus.questions) - 1)
    return (
        f"{new * each:.1f} ({database * each:.1f} in the database) / {beside * each:.1f} | "
        f"{new / beside:.2f} | {again / beside:.2f} | "
        f"{'met' if new / beside <= limit else '**missed**'} (at most {limit}) |"
    )


def _forget_words(shared: SharedIndex, kept: LRUCache[str, StemPostings]) -> None:
    """Go on with these postings, in a cache that can be thrown away."""
    words = shared._memory_copy._words
    assert words is not None
    shared._word_counts.clear_cache()
    postings: LRUCache[str, StemPostings] = LRUCache(memory_copy._MAX_COPIED_STEMS)
    for stem, stem_postings in kept._entries.items():
        postings.put(stem, stem_postings)
    words.postings_by_stem = postings


def _count_resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 60_000)

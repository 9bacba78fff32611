"""Measures questions of words new to a process: python -m benchmarks.scale.new_words [CHUNKS].

Each engine has a process of its own, begun anew, and they are asked in turns. Before each question
the shared index forgets the words that it has read since it was opened, so all are new to it but
those that it reads in advance: without reading in advance first, then with it. Processor time is
as in `benchmarks.scale`. 60,000 chunks take about 2 minutes, 200,000 about 5.
"""

import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.scale.corpus import Corpus, make_corpus, make_filter
from benchmarks.scale.engines import FORK, Engines, fill_engines, measure_cpu, print_progress
from readingroom.core.filters import Filter
from readingroom.core.lru import LRUCache
from readingroom.engine.index import CollectionIndex
from readingroom.engine.shared import memory_copy
from readingroom.engine.shared.index import SharedIndex
from readingroom.engine.shared.postings import StemPostings

_QUESTION_COUNT = 60


def main(chunk_count: int) -> None:
    corpus = make_corpus(chunk_count, _QUESTION_COUNT)
    print_progress(f"{chunk_count:,} chunks made")
    with fill_engines(corpus) as engines:
        for is_read_in_advance in (False, True):
            print_progress("with common words read in advance" if is_read_in_advance else "without")
            with (
                _start(_answer_on_database, engines, is_read_in_advance) as shared,
                _start(_answer_embedded, engines) as embedded,
            ):
                print("| filter | CPU ms pg / embedded | ratio | the same question again | |")
                for name, limit in (("1 %", 1.0), ("25 % (all in force)", 1.1), ("none", 1.1)):
                    print(f"| {name} | {_compare(corpus, shared, embedded, name, limit)}")
                    sys.stdout.flush()


def _make_filters(corpus: Corpus) -> dict[str, Filter | None]:
    policies = corpus.policy_count
    return {
        "1 %": make_filter(policies, max(1, policies // 25), 1),
        "25 % (all in force)": make_filter(policies, policies, 1),
        "none": None,
    }


@contextmanager
def _start(answer: Any, engines: Engines, *arguments: Any) -> Iterator[Any]:
    """A process that answers, by the connection to it."""
    here, there = FORK.Pipe()
    child = FORK.Process(target=answer, args=(there, engines, *arguments))
    child.start()
    here.recv()  # it is ready
    try:
        yield here
    finally:
        here.send(None)
        child.join()


def _answer_embedded(connection: Any, engines: Engines) -> None:
    index = engines.open_embedded()
    _answer_all(connection, engines, index)
    index.close()


def _answer_on_database(connection: Any, engines: Engines, is_read_in_advance: bool) -> None:
    index = engines.open_shared()
    index.search(engines.corpus.questions[0], 10, None, "hybrid")  # the vectors are read then
    _forget_words(index, LRUCache(memory_copy._MAX_COPIED_STEMS))
    if is_read_in_advance:
        _read_in_advance(engines, index)
    _answer_all(connection, engines, index)
    index.close()
    index.collection.database.close()


def _answer_all(connection: Any, engines: Engines, index: CollectionIndex) -> None:
    """Answer until there is no other question: what it cost at first and again, and what it is."""
    server = engines.server if isinstance(index, SharedIndex) else None
    filters = _make_filters(engines.corpus)
    for where in filters.values():
        index.search(engines.corpus.questions[0], 10, where, "hybrid")  # the filter is not new
    words = index._memory_copy._copied_words if isinstance(index, SharedIndex) else None
    kept = _copy_cache(words.postings_by_stem) if words else None
    connection.send("ready")
    while asked := connection.recv():
        question, name = asked
        if isinstance(index, SharedIndex) and kept is not None:
            _forget_words(index, kept)
        ask = partial(index.search, question, 10, filters[name], "hybrid")
        costs = measure_cpu(server, ask), measure_cpu(server, ask)
        connection.send((*costs, [hit.chunk_id for hit in ask().hits]))


def _compare(corpus: Corpus, shared: Any, embedded: Any, name: str, limit: float) -> str:
    """The cost of the questions with new words, and that of asking each once more."""
    costs: list[list[tuple[float, float]]] = [[], []]
    again_costs: list[list[tuple[float, float]]] = [[], []]
    same_count = hit_count = 0
    for question in corpus.questions[1:]:
        found = []
        for side, connection in enumerate((shared, embedded)):
            connection.send((question, name))
            cost, again_cost, hit_ids = connection.recv()
            costs[side].append(cost)
            again_costs[side].append(again_cost)
            found.append(set(hit_ids))
        same_count, hit_count = same_count + len(found[0] & found[1]), hit_count + len(found[1])
    own_ms, database_ms, embedded_ms, _ = _list_means(costs)
    ratio = (own_ms + database_ms) / embedded_ms
    again = _list_means(again_costs)
    return (
        f"{own_ms + database_ms:.1f} ({database_ms:.1f} in the database) / {embedded_ms:.1f} | "
        f"{ratio:.2f} | {(again[0] + again[1]) / again[2]:.2f} | "
        f"{'met' if ratio <= limit else '**missed**'} (at most {limit}), "
        f"{same_count} of {hit_count} hits the same |"
    )


def _list_means(costs: list[list[tuple[float, float]]]) -> list[float]:
    """Milliseconds of the process and of the database: shared, then embedded."""
    return [1000 * sum(column) / len(each) for each in costs for column in zip(*each, strict=True)]


def _read_in_advance(engines: Engines, shared: SharedIndex) -> None:
    memory_before = _count_resident_bytes()
    started = time.monotonic()
    own, database = measure_cpu(engines.server, partial(_wait_until_read, shared))
    words = shared._memory_copy._copied_words
    assert words is not None
    postings = words.postings_by_stem.list_values()
    kept_bytes = sum(each._postings.nbytes for each in postings)
    chunk_count = len(engines.corpus.chunks)
    print_progress(
        f"{len(postings):,} stems read in advance in {time.monotonic() - started:.1f} s, "
        f"{own:.2f} s of processor time in the process and {database:.2f} in the database; "
        f"{kept_bytes / chunk_count:.0f} bytes a chunk of postings, the process grew by "
        f"{(_count_resident_bytes() - memory_before) / chunk_count:.0f}"
    )


def _wait_until_read(shared: SharedIndex) -> None:
    copy = shared._memory_copy
    copy.keep_ready(with_vectors=True)
    while not (
        copy._copied_words
        and copy._copied_words.common_words
        and copy._copied_words.common_words.is_complete
    ):
        time.sleep(0.05)


def _forget_words(shared: SharedIndex, kept: LRUCache[str, StemPostings]) -> None:
    """Go on with these postings, and with no counts."""
    words = shared._memory_copy._copied_words
    assert words is not None
    shared._word_counts.clear_cache()
    words.postings_by_stem = _copy_cache(kept)


def _copy_cache(kept: LRUCache[str, StemPostings]) -> LRUCache[str, StemPostings]:
    copied: LRUCache[str, StemPostings] = LRUCache(memory_copy._MAX_COPIED_STEMS)
    for stem, stem_postings in kept._entries.items():
        copied.put(stem, stem_postings)
    return copied


def _count_resident_bytes() -> int:
    pages = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 60_000)

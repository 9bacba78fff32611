"""Questions a second: python -m benchmarks.scale.throughput [CHUNKS] [SECONDS].

One process with three threads on the embedded engine, then three and six processes on PostgreSQL,
all on the same cores: three narrow questions (40 policies in force) to a broad one (all in force),
hybrid, the ten best; embedding a question is in none. Each process is asked each question once
before the count begins. 200,000 chunks take about 6 minutes.
"""

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scale.corpus import Corpus, make_corpus, make_filter
from benchmarks.scale.engines import (
    FORK,
    Engines,
    fill_engines,
    list_backends,
    print_progress,
    sum_backend_cpu,
)
from readingroom.core.filters import Filter
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.shared.index import SharedIndex

_QUESTIONS = 60
_THREADS = 3
_NARROW_POLICIES, _NARROW_FILTERS = 40, 20


@dataclass(frozen=True)
class Throughput:
    """What so many processes answered in a while, and what it cost."""

    name: str
    questions: int
    seconds: float
    client_cpu: float
    database_cpu: float

    @property
    def rate(self) -> float:
        return self.questions / self.seconds

    @property
    def client_ms(self) -> float:
        return 1000 * self.client_cpu / self.questions

    @property
    def database_ms(self) -> float:
        return 1000 * self.database_cpu / self.questions


def main(chunk_count: int, seconds: float) -> None:
    corpus = make_corpus(chunk_count, _QUESTIONS)
    print_progress(f"{chunk_count:,} chunks made")
    with fill_engines(corpus) as engines:
        embedded = _run_processes(engines, 1, seconds, is_shared=False)
        one, three, six = (
            _run_processes(engines, processes, seconds, is_shared=True) for processes in (1, 3, 6)
        )
    print(
        "| | questions/s | CPU ms a question: processes + database | database's share | "
        "against embedded | |"
    )
    for result, verdict in (
        (embedded, ""),
        (one, ""),
        (three, _judge(three.rate / embedded.rate, 1.0, "of embedded")),
        (six, _judge(six.rate / three.rate, 0.9, "of three")),
    ):
        share = result.database_cpu / (result.client_cpu + result.database_cpu)
        print(
            f"| {result.name} | {result.rate:.1f} | {result.client_ms:.1f} + "
            f"{result.database_ms:.1f} | {share:.0%} | {result.rate / embedded.rate:.2f} | "
            f"{verdict} |"
        )
    _print_growth(embedded, three)


def _judge(ratio: float, least: float, what: str) -> str:
    return f"{'met' if ratio >= least else '**missed**'}: {ratio:.2f} {what} (at least {least})"


def _print_growth(embedded: Throughput, three: Throughput) -> None:
    """What the same processes answer where the database has cores of its own."""
    cores = len(os.sched_getaffinity(0))
    print(
        f"With the database's share taken off, a process answers {1000 / three.client_ms:.1f} "
        f"questions a second on a core of its own, and a core of the database serves "
        f"{1000 / three.database_ms:.1f}: on {cores} cores beside the database "
        f"{cores * 1000 / three.client_ms:.0f} a second, on {2 * cores} "
        f"{2 * cores * 1000 / three.client_ms:.0f}, against {embedded.rate:.0f} of the embedded "
        f"one, which stays in one process."
    )


def _run_processes(
    engines: Engines, processes: int, seconds: float, *, is_shared: bool
) -> Throughput:
    """Fork the processes, let them begin together, and add up what they answered."""
    # All of them, and this one, which reads the database's counters.
    begin, end = FORK.Barrier(processes + 1), FORK.Barrier(processes + 1)
    results: Any = FORK.Queue()
    target = _answer_on_database if is_shared else _answer_embedded
    children = [
        FORK.Process(target=target, args=(engines, number, seconds, begin, end, results))
        for number in range(processes)
    ]
    for child in children:
        child.start()
    begin.wait()
    backends = list_backends(engines.server)
    database_before, started = sum_backend_cpu(backends), time.monotonic()
    end.wait()
    lasted = time.monotonic() - started
    database_cpu = sum_backend_cpu(backends) - database_before
    totals = [results.get() for _ in children]
    for child in children:
        child.join()
    name = f"{processes} on PostgreSQL" if is_shared else f"1 embedded, {_THREADS} threads"
    throughput = Throughput(
        name,
        sum(questions for questions, _ in totals),
        lasted,
        sum(cpu for _, cpu in totals),
        database_cpu if is_shared else 0.0,
    )
    print_progress(f"{name}: {throughput.rate:.1f} questions a second")
    return throughput


def _answer_on_database(
    engines: Engines, number: int, seconds: float, begin: Any, end: Any, results: Any
) -> None:
    index = engines.open_shared()
    asked = _list_questions(engines.corpus, number)
    _warm(index, asked)
    begin.wait()
    before, count = time.process_time(), _ask_for(index, asked, seconds)
    cpu = time.process_time() - before
    end.wait()
    results.put((count, cpu))
    index.collection.database.close()


def _answer_embedded(
    engines: Engines, number: int, seconds: float, begin: Any, end: Any, results: Any
) -> None:
    index = engines.open_embedded()
    lists = [_list_questions(engines.corpus, thread) for thread in range(_THREADS)]
    for asked in lists:
        _warm(index, asked)
    counts = [0] * _THREADS

    def answer(thread: int) -> None:
        counts[thread] = _ask_for(index, lists[thread], seconds)

    threads = [threading.Thread(target=answer, args=(thread,)) for thread in range(_THREADS)]
    begin.wait()
    before = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu = time.process_time() - before
    end.wait()
    results.put((sum(counts), cpu))
    index.close()


def _list_questions(corpus: Corpus, number: int) -> list[tuple[str, Filter]]:
    """Three narrow ones to a broad one; each process begins at another place."""
    policies = corpus.policy_count
    broad = make_filter(policies, policies, 1)
    narrow = [
        make_filter(policies, min(policies, _NARROW_POLICIES), 1, offset)
        for offset in range(_NARROW_FILTERS)
    ]
    asked = [
        (question, broad if place % 4 == 3 else narrow[place % len(narrow)])
        for place, question in enumerate(corpus.questions)
    ]
    start = number * 7 % len(asked)
    return [*asked[start:], *asked[:start]]


def _warm(index: SharedIndex | EmbeddedIndex, asked: Sequence[tuple[str, Filter]]) -> None:
    """Ask each question once: a process that has run for a while has read the common words."""
    for question, where in asked:
        index.search(question, 10, where, "hybrid")


def _ask_for(
    index: SharedIndex | EmbeddedIndex, asked: Sequence[tuple[str, Filter]], seconds: float
) -> int:
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        question, where = asked[count % len(asked)]
        index.search(question, 10, where, "hybrid")
        count += 1
    return count


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if sys.argv[1:] else 50_000,
        float(sys.argv[2]) if sys.argv[2:] else 30.0,
    )

"""The policy base: crashes, search, memory, ingest."""

from collections.abc import Iterator

from benchmarks.policy import crash, memory, search, second_revision
from benchmarks.policy import ingest as policy_ingest
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield crash.measure(quick)
    yield search.measure(chunks=1_000, rounds=3 if quick else 61)
    yield search.measure(chunks=2_000 if quick else 50_000, rounds=3 if quick else 21)
    yield memory.measure(paragraphs=40 if quick else 400, searches=9 if quick else 60)
    yield second_revision.measure(paragraphs=30 if quick else 300, rounds=1 if quick else 5)
    yield (
        policy_ingest.measure(pages=5, larger_pages=10, rounds=1)
        if quick
        else policy_ingest.measure(pages=100, larger_pages=300, rounds=3)
    )

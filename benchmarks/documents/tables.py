"""The documents base: search, ingest, memory."""

from collections.abc import Iterator

from benchmarks.documents import ingest as documents_ingest
from benchmarks.documents import memory, search
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield search.measure(applications=200 if quick else 2_000, rounds=30 if quick else 300)
    yield documents_ingest.measure(files=4 if quick else 50, pages=5 if quick else 20)
    if not quick:
        yield memory.measure()

"""The server: cold start, and the cost of a call."""

from collections.abc import Iterator

from benchmarks.server import calls, startup
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield startup.measure(rounds=2 if quick else 9)
    yield calls.measure(rounds=2, calls=40) if quick else calls.measure(rounds=15, calls=400)

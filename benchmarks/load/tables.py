"""The server under load of many clients."""

from collections.abc import Iterator

from benchmarks.load import load
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield load.measure(minutes=0.5, clients=8) if quick else load.measure(minutes=10)

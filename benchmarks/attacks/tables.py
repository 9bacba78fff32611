"""The server under attack, with honest clients beside."""

from collections.abc import Iterator

from benchmarks.attacks import fuzz, half_open
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield half_open.measure(seconds=5, clients=10) if quick else half_open.measure()
    yield fuzz.measure(1, 1) if quick else fuzz.measure(2, 2)

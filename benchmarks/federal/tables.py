"""The federal base: official files, searches, lookups, loads."""

from collections.abc import Iterator

from benchmarks.federal import grouping, official, scale
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield from official.measure(rounds=1 if quick else 5)
    yield scale.measure_searches(quick)
    yield scale.measure_lookups(quick)
    yield grouping.measure(quick)
    yield scale.measure_loads(quick)

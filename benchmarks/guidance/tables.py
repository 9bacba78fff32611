"""The guidance base: cost, service levels, faults."""

from collections.abc import Iterator

from benchmarks.guidance import cost, faults, slo
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield cost.measure(rounds=2 if quick else 9, calls=40 if quick else 200)
    yield slo.measure(bursts=2 if quick else 20, live=8 if quick else 100)
    yield faults.measure()

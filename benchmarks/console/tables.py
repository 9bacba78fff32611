"""The console: marks on pages, first byte, paint, the sample, and people beside agents."""

from collections.abc import Iterator

from benchmarks.console import first_byte, load, marks, paint, sample
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield marks.measure(quick)
    yield first_byte.measure(quick)
    yield paint.measure(quick)
    yield sample.measure(quick)
    yield load.measure(1 if quick else 10)

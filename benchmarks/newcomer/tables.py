"""What a newcomer waits for, from clone to first answer."""

from collections.abc import Iterator

from benchmarks.newcomer import newcomer
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield newcomer.measure(quick)

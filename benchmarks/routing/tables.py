"""Whether a model picks the right tool."""

from collections.abc import Iterator

from benchmarks.routing import routing, views
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    yield from routing.tables()
    yield from views.tables()

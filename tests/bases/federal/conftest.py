"""Fixtures of the federal base's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from readingroom.bases.federal.store import FederalPlace, SharedRecords, get_database_path
from tests.support.postgres import PostgresServer, make_database


@pytest.fixture(params=["embedded", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FederalPlace]:
    """An empty federal base on each engine in turn."""
    if request.param == "embedded":
        yield get_database_path(tmp_path / "data")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with make_database(server) as url:
        yield SharedRecords(url)

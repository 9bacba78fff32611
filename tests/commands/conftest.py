"""What several tests of commands begin with."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import PostgresServer, make_database


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A database of its own for each test."""
    with make_database(postgres) as url:
        yield url

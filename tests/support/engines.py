"""Which engine a base under test stands on: its folder alone, or a database beside it.

A test names folders. In the shared engine each folder that a base is opened on gets a database of
its own, and the same one again when the base is opened there again.
"""

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.storage.postgres.database import PostgresDatabase, open_database

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

EMBEDDED, SHARED = "embedded", "postgres"


class _SharedEngine:
    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._urls: dict[Path, str] = {}
        self.databases = ExitStack()

    def find_url(self, folder: Path) -> str:
        # Here: most tests need no PostgreSQL.
        from tests.support.postgres import new_database

        if folder not in self._urls:
            self._urls[folder] = self.databases.enter_context(new_database(self._server))
        return self._urls[folder]


_current: _SharedEngine | None = None


@contextlib.contextmanager
def using_postgres(server: "PostgresServer") -> Iterator[None]:
    """Every base that is opened inside stands on a database."""
    global _current
    _current = _SharedEngine(server)
    try:
        with _current.databases:
            yield
    finally:
        _current = None


def is_shared() -> bool:
    """Whether bases stand on a database now."""
    return _current is not None


def database_url(folder: Path) -> str | None:
    """The database that belongs to a folder; None where bases are embedded."""
    return _current.find_url(folder) if _current is not None else None


def database_of(folder: Path) -> PostgresDatabase | None:
    url = database_url(folder)
    return open_database(url) if url is not None else None

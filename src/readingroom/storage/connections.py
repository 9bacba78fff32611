"""SQLite connections that are lent to whoever reads, and come back."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MOST_KEPT = 8  # with their caches; more are opened for a rush, and closed after it


class Connections:
    """Connections to one file, for any number of threads.

    They belong to no thread: threads come and go with the load, and what each of them had opened
    would stay open behind it.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """`connect` opens one that any thread may use."""
        self._connect = connect
        self._kept: list[sqlite3.Connection] = []

    @contextmanager
    def lent(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else has meanwhile; the one used last, for its cache is warm."""
        try:
            db = self._kept.pop()
        except IndexError:
            db = self._connect()
        try:
            yield db
        finally:
            if len(self._kept) < _MOST_KEPT:
                self._kept.append(db)
            else:
                db.close()

    def close(self) -> None:
        """Close them all; nothing may be lent. They are opened again when they are needed."""
        while self._kept:
            self._kept.pop().close()

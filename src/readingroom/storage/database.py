"""SQLite: how connections are opened, shared between threads, and used in transactions."""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from readingroom.storage.errors import StorageFailed, describe_cause

logger = logging.getLogger(__name__)

_MAX_IDLE = 8  # each with a cache of its own; more are opened for a rush, and closed after it
_NO_PRAGMAS: Mapping[str, str | int] = {}


def connect(
    path: Path | str,
    *,
    timeout: float = 10.0,
    any_thread: bool = False,
    pragmas: Mapping[str, str | int] = _NO_PRAGMAS,
) -> sqlite3.Connection:
    """Open a database in autocommit mode: `transaction` begins and ends every transaction.

    `timeout` is how many seconds a statement waits for another connection's lock. With `any_thread`
    the connection may pass from thread to thread, as long as one at a time uses it.
    """
    db = sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=not any_thread
    )
    for name, value in pragmas.items():
        db.execute(f"PRAGMA {name} = {value}")
    return db


def open_untrusted(path: Path) -> sqlite3.Connection:
    """Open a file that anybody may have made, such as one of a backup, for reading its rows."""
    return connect(path, pragmas={"query_only": "ON", "trusted_schema": "OFF"})


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that is written inside, or nothing of it when an exception leaves."""
    # The write lock at once: a transaction that begins by reading may fail when it first writes.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has rolled everything back already
            db.execute("ROLLBACK")
        raise


@contextmanager
def open_small_database(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """Open a small file for one transaction that is synced to disk when it ends.

    `schema` creates the tables that are missing. Raise `StorageFailed` when the file cannot be
    used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(connect(path, pragmas={"synchronous": "FULL"})) as db:
            db.executescript(schema)
            with transaction(db):
                yield db
    except (OSError, sqlite3.Error) as error:
        logger.error("%s cannot be used: %s", path, error)
        raise StorageFailed(f"{path.name} cannot be used: {describe_cause(error)}") from error


class ConnectionPool:
    """Connections to one file that any number of threads share.

    They belong to no thread: threads come and go with the load, and the connection of a thread that
    has ended would stay open.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """`connect` opens a connection that any thread may use."""
        self._connect = connect
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that nobody else uses meanwhile."""
        try:
            db = self._idle.pop()  # the one used last: its cache is warm
        except IndexError:
            db = self._connect()
        try:
            yield db
        finally:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(db)
            else:
                db.close()

    def close(self) -> None:
        """Close the idle connections; nothing may be lent. They are opened again when needed."""
        while self._idle:
            self._idle.pop().close()

"""SQLite: transactions, and small files that are opened for one change and synced at each."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from readingroom.storage.errors import StorageFailed


@contextmanager
def small_database(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """One transaction on the file; `schema` makes what is not there yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=10)) as db, db:
            db.execute("PRAGMA synchronous = FULL")
            db.executescript(schema)
            yield db
    except (OSError, sqlite3.Error) as error:
        raise StorageFailed(f"{path} cannot be used: {error}") from error


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All that is written in here or nothing of it, on a connection that begins none by itself."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has undone everything already
            db.execute("ROLLBACK")
        raise

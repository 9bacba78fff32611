"""Signed-in browsers: kept on the server, by the digest of what their cookie holds."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from readingroom.core import clock
from readingroom.storage.database import (
    ConnectionPool,
    Database,
    DatabaseError,
    connect,
)
from readingroom.storage.errors import StorageFailed, describe_cause

SESSIONS_FILE = "sessions.db"
MAX_IDLE_SECONDS = 8 * 3600
MAX_AGE_SECONDS = 7 * 24 * 3600
_TOUCH_SECONDS = 60
"""When a session was last used is written at most so often: a page is read more than written."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS browser_sessions (
    digest TEXT PRIMARY KEY,
    key_digest TEXT NOT NULL,
    created_at REAL NOT NULL,
    seen_at REAL NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that signed in."""

    session_id: str
    """256 random bits, which only the browser keeps."""
    key_digest: str
    """The digest of the key that it signed in with, to be looked up again at every request."""


class BrowserSessions:
    """The sessions of one data directory; the file is created with the first."""

    def __init__(self, data_directory: Path, now: Callable[[], float] = clock.unix_seconds) -> None:
        self._path = data_directory / SESSIONS_FILE
        self._now = now
        self._pool = ConnectionPool(self._connect)

    def start(self, key_digest: str) -> BrowserSession:
        """Begin a session for the holder of a key, and forget those that have ended."""
        session_id = secrets.token_urlsafe(32)
        now = self._now()
        try:
            with self._pool.connection() as db, db.transaction():
                db.execute(
                    "DELETE FROM browser_sessions WHERE seen_at < ? OR created_at < ?",
                    (now - MAX_IDLE_SECONDS, now - MAX_AGE_SECONDS),
                )
                db.execute(
                    "INSERT INTO browser_sessions (digest, key_digest, created_at, seen_at) "
                    "VALUES (?, ?, ?, ?)",
                    (_hash_id(session_id), key_digest, now, now),
                )
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error
        return BrowserSession(session_id, key_digest)

    def find(self, session_id: str) -> BrowserSession | None:
        """Return a session that is neither idle for too long nor too old; None otherwise."""
        if not self._path.exists():
            return None
        id_digest, now = _hash_id(session_id), self._now()
        try:
            with self._pool.connection() as db:
                session_row = db.execute(
                    "SELECT key_digest, created_at, seen_at FROM browser_sessions WHERE digest = ?",
                    (id_digest,),
                ).fetchone()
                if session_row is None:
                    return None
                key_digest, created_at, seen_at = session_row
                if now - seen_at > MAX_IDLE_SECONDS or now - created_at > MAX_AGE_SECONDS:
                    return None
                if now - seen_at > _TOUCH_SECONDS:
                    with db.transaction():
                        db.execute(
                            "UPDATE browser_sessions SET seen_at = ? WHERE digest = ?",
                            (now, id_digest),
                        )
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error
        return BrowserSession(session_id, key_digest)

    def end(self, session_id: str) -> None:
        """Forget a session; it does not matter whether there was one."""
        try:
            with self._pool.connection() as db, db.transaction():
                db.execute("DELETE FROM browser_sessions WHERE digest = ?", (_hash_id(session_id),))
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error

    def _connect(self) -> Database:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite creates it, readable for everybody.
        self._path.touch(mode=0o600)
        db = connect(self._path, any_thread=True)
        db.execute(_SCHEMA)
        return db

    def _make_error(self, error: Exception) -> StorageFailed:
        return StorageFailed(
            f"The sessions in {self._path.name} cannot be used: {describe_cause(error)}"
        )


def _hash_id(session_id: str) -> str:
    return hashlib.sha256(session_id.encode()).hexdigest()

"""Signed-in browsers: kept on the server, by the digest of what their cookie holds."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from readingroom.core import clock
from readingroom.storage.database import StateFile, StateTables

SESSIONS_FILE_NAME = "sessions.db"
MAX_IDLE_SECONDS = 8 * 3600
MAX_SESSION_AGE_SECONDS = 7 * 24 * 3600
_SECONDS_BETWEEN_TOUCHES = 60
"""When a session was last used is written at most so often: a page is read more than written."""

_SCHEMA_SQL = """
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
    """The sessions of one data directory, or of all processes on one database."""

    def __init__(
        self,
        data_directory: Path,
        read_clock: Callable[[], float] = clock.read_unix_seconds,
        state_tables: StateTables | None = None,
    ) -> None:
        """Without `state_tables` they are in a file, which is created with the first session."""
        self._state_tables = state_tables or StateFile(
            data_directory / SESSIONS_FILE_NAME, "The sessions", lambda db: db.execute(_SCHEMA_SQL)
        )
        self._get_now_seconds = read_clock

    def start_session(self, key_digest: str) -> BrowserSession:
        """Begin a session for the holder of a key, and forget those that have ended."""
        session_id = secrets.token_urlsafe(32)
        now_seconds = self._get_now_seconds()
        with self._state_tables.begin_writing() as db:
            db.execute(
                "DELETE FROM browser_sessions WHERE seen_at < ? OR created_at < ?",
                (now_seconds - MAX_IDLE_SECONDS, now_seconds - MAX_SESSION_AGE_SECONDS),
            )
            db.execute(
                "INSERT INTO browser_sessions (digest, key_digest, created_at, seen_at) "
                "VALUES (?, ?, ?, ?)",
                (_hash_session_id(session_id), key_digest, now_seconds, now_seconds),
            )
        return BrowserSession(session_id, key_digest)

    def find_session(self, session_id: str) -> BrowserSession | None:
        """Return a session that is neither idle for too long nor too old; None otherwise."""
        if not self._state_tables.has_data():
            return None
        id_digest, now_seconds = _hash_session_id(session_id), self._get_now_seconds()
        with self._state_tables.begin_reading() as db:
            session_row = db.execute(
                "SELECT key_digest, created_at, seen_at FROM browser_sessions WHERE digest = ?",
                (id_digest,),
            ).fetchone()
        if session_row is None:
            return None
        key_digest, created_at, last_seen_at = session_row
        if (
            now_seconds - last_seen_at > MAX_IDLE_SECONDS
            or now_seconds - created_at > MAX_SESSION_AGE_SECONDS
        ):
            return None
        if now_seconds - last_seen_at > _SECONDS_BETWEEN_TOUCHES:
            with self._state_tables.begin_writing() as db:
                db.execute(
                    "UPDATE browser_sessions SET seen_at = ? WHERE digest = ?",
                    (now_seconds, id_digest),
                )
        return BrowserSession(session_id, key_digest)

    def end_session(self, session_id: str) -> None:
        """Forget a session; it does not matter whether there was one."""
        with self._state_tables.begin_writing() as db:
            db.execute(
                "DELETE FROM browser_sessions WHERE digest = ?", (_hash_session_id(session_id),)
            )


def _hash_session_id(session_id: str) -> str:
    # No salt and no slow hash: 256 random bits can be neither guessed nor listed beforehand.
    return hashlib.sha256(session_id.encode()).hexdigest()

"""The day on which each key was last used, for whoever wants to know which keys are still needed.

Kept beside the keys and not among them: writing to their file makes every process read it anew.
"""

import logging
from contextlib import closing
from pathlib import Path

from readingroom.core import clock
from readingroom.storage.database import Database, DatabaseError, connect

logger = logging.getLogger(__name__)

KEY_USES_FILE = "key_uses.db"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS key_uses (
    digest TEXT PRIMARY KEY,
    last_used_on TEXT NOT NULL
) STRICT
"""
_WRITE = """
INSERT INTO key_uses (digest, last_used_on) VALUES (?, ?)
ON CONFLICT (digest) DO UPDATE SET last_used_on = excluded.last_used_on
"""


class KeyUses:
    """The days of one data directory; the file is made when a key is first used."""

    def __init__(self, data: Path) -> None:
        self._path = data / KEY_USES_FILE
        self._noted_days: dict[str, str] = {}

    def note(self, digest: str) -> None:
        """Remember that a key was used today. It is written once a day for each key."""
        today = clock.now().date().isoformat()
        if self._noted_days.get(digest) == today:
            return
        # Before it is written: a directory that cannot be written must not slow every request.
        self._noted_days[digest] = today
        try:
            with closing(self._connect()) as db:
                db.execute(_WRITE, (digest, today))
        except (OSError, DatabaseError) as error:
            logger.warning("The use of a key cannot be noted: %s", error)

    def list_days(self) -> dict[str, str]:
        """Return the day of each key's last use, by the digest of its secret."""
        if not self._path.exists():
            return {}
        try:
            with closing(self._connect()) as db:
                return dict(db.execute("SELECT digest, last_used_on FROM key_uses").fetchall())
        except (OSError, DatabaseError) as error:
            logger.warning("The uses of keys cannot be read: %s", error)
            return {}

    def _connect(self) -> Database:
        self._path.touch(mode=0o600)
        db = connect(self._path)
        db.execute(_SCHEMA)
        return db

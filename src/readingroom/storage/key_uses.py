"""On which days keys were last used: a file beside the keys, made when one is first used."""

import logging
from contextlib import closing, suppress
from pathlib import Path

from readingroom.core import clock
from readingroom.storage.database import Database, DatabaseError, connect

logger = logging.getLogger(__name__)

KEY_USES_FILE_NAME = "key_uses.db"
_USES_SCHEMA_SQL = (
    "CREATE TABLE IF NOT EXISTS key_uses "
    "(digest TEXT PRIMARY KEY, last_used_on TEXT NOT NULL) STRICT"
)
_UPSERT_USE_SQL = "INSERT OR REPLACE INTO key_uses (digest, last_used_on) VALUES (?, ?)"


class KeyUseDays:
    """The day on which each key was last used, in a file that is made when one is first used."""

    def __init__(self, data_directory: Path) -> None:
        self._path = data_directory / KEY_USES_FILE_NAME
        self._noted_day_by_digest: dict[str, str] = {}

    def record_use(self, key_digest: str) -> None:
        """Remember that a key was used today. It is written once a day for each key."""
        today_text = clock.now().date().isoformat()
        if self._noted_day_by_digest.get(key_digest) == today_text:
            return
        # Before it is written: a directory that cannot be written must not slow every request.
        self._noted_day_by_digest[key_digest] = today_text
        try:
            with closing(self._connect()) as db:
                db.execute(_UPSERT_USE_SQL, (key_digest, today_text))
        except (OSError, DatabaseError) as error:
            logger.warning("The use of a key cannot be noted: %s", error)

    def read_days_by_digest(self) -> dict[str, str]:
        """Return the day of each key's last use, by the digest of its secret."""
        if self._path.is_file():
            with suppress(DatabaseError), closing(self._connect()) as db:
                return dict(db.execute("SELECT digest, last_used_on FROM key_uses").fetchall())
        return {}

    def _connect(self) -> Database:
        self._path.touch(mode=0o600)
        db = connect(self._path)
        db.execute(_USES_SCHEMA_SQL)
        return db

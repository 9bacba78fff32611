"""What was begun and may not be finished: an intent is on disk before the work and gone after it.

The work touches several stores and none of them can undo the others. Whatever interrupts it, the
intent is still there at the next start, and its owner finishes the work or takes it back.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readingroom.storage.database import small_database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS intents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Intent:
    """One piece of work that was begun."""

    id: int
    kind: str
    body: dict[str, Any]


class IntentLog:
    """The open intents of one base, in one SQLite file that is synced at every change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, kind: str, **body: Any) -> Intent:
        """Write down what is about to be done."""
        with small_database(self._path, _SCHEMA) as db:
            row = db.execute(
                "INSERT INTO intents (kind, body) VALUES (?, ?)", (kind, json.dumps(body))
            )
            assert row.lastrowid is not None
            return Intent(row.lastrowid, kind, body)

    def finish(self, intent: Intent) -> None:
        """It is done, or taken back."""
        with small_database(self._path, _SCHEMA) as db:
            db.execute("DELETE FROM intents WHERE id = ?", (intent.id,))

    def unfinished(self) -> list[Intent]:
        """What an earlier process began and did not finish, oldest first."""
        with small_database(self._path, _SCHEMA) as db:
            rows = db.execute("SELECT id, kind, body FROM intents ORDER BY id").fetchall()
        return [Intent(id, kind, json.loads(body)) for id, kind, body in rows]

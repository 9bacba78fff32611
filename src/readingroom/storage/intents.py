"""Intents: records of changes in progress, on disk from before a change until after it.

A change touches several stores, and none of them can undo the others. Whatever interrupts it, the
intent is still there at the next start, and its owner completes the change or undoes it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readingroom.storage.database import open_small_database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS intents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Intent:
    """A change that was begun."""

    id: int
    kind: str
    body: dict[str, Any]


class IntentLog:
    """The open intents of one base, in one SQLite file that is synced at every change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, kind: str, **body: Any) -> Intent:
        """Record a change that is about to be made, and return its intent."""
        with open_small_database(self._path, _SCHEMA) as db:
            cursor = db.execute(
                "INSERT INTO intents (kind, body) VALUES (?, ?)", (kind, json.dumps(body))
            )
            assert cursor.lastrowid is not None
            return Intent(cursor.lastrowid, kind, body)

    def finish(self, intent: Intent) -> None:
        """Delete the intent of a change that is complete or undone."""
        with open_small_database(self._path, _SCHEMA) as db:
            db.execute("DELETE FROM intents WHERE id = ?", (intent.id,))

    def list_unfinished(self) -> list[Intent]:
        """Return the changes that were begun and not completed, oldest first."""
        with open_small_database(self._path, _SCHEMA) as db:
            rows = db.execute("SELECT id, kind, body FROM intents ORDER BY id").fetchall()
        return [Intent(id, kind, json.loads(body)) for id, kind, body in rows]

"""Intents: records of changes in progress, on disk from before a change until after it.

A change touches several stores, and none of them can undo the others. Whatever interrupts it, the
intent is still there at the next start, and its owner completes the change or undoes it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readingroom.storage.database import open_small_database

# AUTOINCREMENT: the id of an intent that is finished is never given to another one.
_SCHEMA_SQL = """
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

    def __init__(self, intents_path: Path) -> None:
        self._path = intents_path

    def begin_intent(self, intent_kind: str, **intent_body: Any) -> Intent:
        """Record a change that is about to be made, and return its intent."""
        with open_small_database(self._path, _SCHEMA_SQL) as db:
            insert_cursor = db.execute(
                "INSERT INTO intents (kind, body) VALUES (?, ?)",
                (intent_kind, json.dumps(intent_body)),
            )
            assert insert_cursor.lastrowid is not None
            return Intent(insert_cursor.lastrowid, intent_kind, intent_body)

    def finish_intent(self, change_intent: Intent) -> None:
        """Delete the intent of a change that is complete or undone."""
        with open_small_database(self._path, _SCHEMA_SQL) as db:
            db.execute("DELETE FROM intents WHERE id = ?", (change_intent.id,))

    def list_unfinished(self) -> list[Intent]:
        """Return the changes that were begun and not completed, oldest first."""
        with open_small_database(self._path, _SCHEMA_SQL) as db:
            intent_rows = db.execute("SELECT id, kind, body FROM intents ORDER BY id").fetchall()
        return [
            Intent(intent_id, intent_kind, json.loads(intent_body))
            for intent_id, intent_kind, intent_body in intent_rows
        ]

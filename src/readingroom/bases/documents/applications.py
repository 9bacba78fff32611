"""The applications' own records, and the files that were offered and could not be read: SQLite."""

from collections.abc import Mapping
from dataclasses import astuple, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from readingroom.bases.documents.records import Application, Unread
from readingroom.storage.database import small_database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS applications (
    reference TEXT PRIMARY KEY,
    address TEXT,
    description TEXT,
    validation_date TEXT,
    status TEXT,
    updated_at TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS unread (
    application_ref TEXT NOT NULL,
    file_hash TEXT NOT NULL,
    source_file TEXT NOT NULL,
    document_type TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (application_ref, file_hash)
) STRICT;
"""
_PLACES = ", ".join("?" for _ in fields(Unread))


class ApplicationBook:
    """One file. A change is durable when its verb returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def application(self, reference: str) -> Application | None:
        with small_database(self._path, _SCHEMA) as db:
            row = db.execute(
                "SELECT * FROM applications WHERE reference = ?", (reference,)
            ).fetchone()
        return _application(row) if row else None

    def applications(self) -> list[Application]:
        """Every record, by reference."""
        with small_database(self._path, _SCHEMA) as db:
            rows = db.execute("SELECT * FROM applications ORDER BY reference").fetchall()
        return [_application(row) for row in rows]

    def set(self, reference: str, values: Mapping[str, Any], now: datetime) -> Application:
        """Write these values over what is known of an application; the others stay."""
        with small_database(self._path, _SCHEMA) as db:
            row = db.execute(
                "SELECT * FROM applications WHERE reference = ?", (reference,)
            ).fetchone()
            before = _application(row) if row else Application(reference)
            record = replace(before, **values, updated_at=now)
            written = [
                value.isoformat() if isinstance(value, date) else value for value in astuple(record)
            ]
            db.execute("INSERT OR REPLACE INTO applications VALUES (?, ?, ?, ?, ?, ?)", written)
        return record

    def unread(self, reference: str) -> list[Unread]:
        """The files of an application that are not among its documents, oldest first."""
        with small_database(self._path, _SCHEMA) as db:
            rows = db.execute(
                "SELECT * FROM unread WHERE application_ref = ? ORDER BY at, source_file",
                (reference,),
            ).fetchall()
        return [Unread(*row) for row in rows]

    def note(self, unread: Unread) -> None:
        """Remember a file that was not ingested, in place of what was known of it."""
        with small_database(self._path, _SCHEMA) as db:
            db.execute(f"INSERT OR REPLACE INTO unread VALUES ({_PLACES})", astuple(unread))

    def settle(self, reference: str, file_hash: str) -> None:
        """The file was ingested after all."""
        with small_database(self._path, _SCHEMA) as db:
            db.execute(
                "DELETE FROM unread WHERE application_ref = ? AND file_hash = ?",
                (reference, file_hash),
            )


def _application(row: tuple[Any, ...]) -> Application:
    reference, address, description, day, status, updated = row
    return Application(
        reference,
        address,
        description,
        date.fromisoformat(day) if day else None,
        status,
        datetime.fromisoformat(updated) if updated else None,
    )

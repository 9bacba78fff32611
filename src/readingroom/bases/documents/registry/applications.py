"""The applications' own records, and the files that could not be ingested: two small tables."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from readingroom.bases.documents.ids import ApplicationRef
from readingroom.bases.documents.registry.records import Application, UnreadEntry
from readingroom.storage.database import open_small_database, open_untrusted
from readingroom.storage.errors import BackupUnusable
from readingroom.storage.postgres.database import PostgresDatabase

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS applications (
    reference TEXT PRIMARY KEY,
    address TEXT,
    description TEXT,
    validation_date TEXT,
    status TEXT,
    updated_at TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS authorities (
    application_ref TEXT PRIMARY KEY,
    local_authority TEXT NOT NULL
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
# A table of its own and no column: releases before 0.2 open this file too.
_SELECT_APPLICATIONS_SQL = (
    "SELECT applications.*, local_authority FROM applications "
    "LEFT JOIN authorities ON application_ref = reference"
)
_SELECT_APPLICATION_SQL = f"{_SELECT_APPLICATIONS_SQL} WHERE reference = ?"
_COLUMN_COUNTS_BY_TABLE_NAME = {
    "applications": 6,
    "authorities": 2,
    "unread": len(fields(UnreadEntry)),
}
_UNREAD_VALUE_PLACEHOLDERS_SQL = ", ".join("?" for _ in fields(UnreadEntry))
# The hash is the key of the table, which earlier releases open too; so the key of a second file
# with the same bytes has its name after the hash.
_HASH_AND_NAME_SEPARATOR = "#"
_HAS_SAME_BYTES_SQL = "application_ref = ? AND (file_hash = ? OR file_hash LIKE ?)"


class ApplicationStore:
    """One SQLite file, or the tables of the same names in the shared database.

    A change is durable when its method returns, or when the transaction that it joins has ended.
    """

    def __init__(
        self, database_path: Path, postgres_database: PostgresDatabase | None = None
    ) -> None:
        """`postgres_database` has the tables where given, else the file at `database_path`."""
        self._database_path = database_path
        self._database = postgres_database

    @contextmanager
    def _open_tables(self) -> Iterator[Any]:
        """Open the tables for one transaction."""
        if self._database is not None:
            with self._database.transaction() as transaction:
                yield transaction.connection
        else:
            with open_small_database(self._database_path, _SCHEMA_SQL) as sqlite_connection:
                yield sqlite_connection

    def find_application(self, application_ref: str) -> Application | None:
        """Return an application's record, or None if it has none."""
        with self._open_tables() as connection:
            application_row = connection.execute(
                _SELECT_APPLICATION_SQL, (application_ref,)
            ).fetchone()
        return _parse_application_row(application_row) if application_row else None

    def list_applications(self) -> list[Application]:
        """Return every record, in the order of the references."""
        with self._open_tables() as connection:
            application_rows = connection.execute(
                f"{_SELECT_APPLICATIONS_SQL} ORDER BY reference"
            ).fetchall()
        return [_parse_application_row(application_row) for application_row in application_rows]

    def update_application(
        self, application_ref: str, changed_values: Mapping[str, Any], updated_at: datetime
    ) -> Application:
        """Write these fields of an application, keep the others, and return the new record."""
        with self._open_tables() as connection:
            application_row = connection.execute(
                _SELECT_APPLICATION_SQL, (application_ref,)
            ).fetchone()
            previous_application = (
                _parse_application_row(application_row)
                if application_row
                else Application(application_ref)
            )
            updated_application = replace(
                previous_application, **changed_values, updated_at=updated_at
            )
            *column_values, local_authority = [
                column_value.isoformat() if isinstance(column_value, date) else column_value
                for column_value in astuple(updated_application)
            ]
            connection.execute("DELETE FROM applications WHERE reference = ?", (application_ref,))
            connection.execute("INSERT INTO applications VALUES (?, ?, ?, ?, ?, ?)", column_values)
            connection.execute(
                "DELETE FROM authorities WHERE application_ref = ?", (application_ref,)
            )
            if local_authority is not None:
                connection.execute(
                    "INSERT INTO authorities VALUES (?, ?)", (application_ref, local_authority)
                )
        return updated_application

    def list_unread(self, application_ref: str) -> list[UnreadEntry]:
        """Return the files of an application that are not among its documents, oldest first."""
        with self._open_tables() as connection:
            unread_rows = connection.execute(
                "SELECT * FROM unread WHERE application_ref = ? ORDER BY at, source_file",
                (application_ref,),
            ).fetchall()
        unread_entries = [UnreadEntry(*unread_row) for unread_row in unread_rows]
        return [
            replace(
                unread_entry,
                file_hash=unread_entry.file_hash.partition(_HASH_AND_NAME_SEPARATOR)[0],
            )
            for unread_entry in unread_entries
        ]

    def add_unread_entry(self, unread_entry: UnreadEntry) -> None:
        """Record a file that was not ingested, in place of its earlier entry.

        Files of different names are different files, even with the same bytes.
        """
        application_ref, file_hash = unread_entry.application_ref, unread_entry.file_hash
        with self._open_tables() as connection:
            same_bytes_rows = connection.execute(
                f"SELECT file_hash, source_file FROM unread WHERE {_HAS_SAME_BYTES_SQL}",
                _list_same_bytes_sql_values(application_ref, file_hash),
            ).fetchall()
            file_hash_keys_by_name = {
                source_file: file_hash_key for file_hash_key, source_file in same_bytes_rows
            }
            unused_hash_key = file_hash
            if file_hash in file_hash_keys_by_name.values():
                unused_hash_key = f"{file_hash}{_HASH_AND_NAME_SEPARATOR}{unread_entry.source_file}"
            file_hash_key = file_hash_keys_by_name.get(unread_entry.source_file, unused_hash_key)
            connection.execute(
                "DELETE FROM unread WHERE application_ref = ? AND file_hash = ?",
                (application_ref, file_hash_key),
            )
            connection.execute(
                f"INSERT INTO unread VALUES ({_UNREAD_VALUE_PLACEHOLDERS_SQL})",
                astuple(replace(unread_entry, file_hash=file_hash_key)),
            )

    def restore_rows(self, untrusted_database_path: Path) -> None:
        """Add the rows of another store's file, which is not trusted.

        Only rows are taken over: the triggers of that file would act on every later change. Raise
        `BackupUnusable` for rows that no store has.
        """
        try:
            with closing(open_untrusted(untrusted_database_path)) as untrusted_connection:
                application_rows = untrusted_connection.execute(
                    "SELECT * FROM applications"
                ).fetchall()
                authority_rows = _list_authority_rows(untrusted_connection)
                unread_rows = untrusted_connection.execute("SELECT * FROM unread").fetchall()
            for application_row in application_rows:
                TypeAdapter(Application).validate_python(
                    asdict(_parse_application_row((*application_row, None)))
                )
            TypeAdapter(list[tuple[ApplicationRef, str]]).validate_python(authority_rows)
            for unread_row in unread_rows:
                TypeAdapter(UnreadEntry).validate_python(asdict(UnreadEntry(*unread_row)))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise BackupUnusable(
                f"{untrusted_database_path.name} of the backup cannot be read: {error}"
            ) from error
        with self._open_tables() as connection:
            connection.executemany(
                "INSERT INTO applications VALUES (?, ?, ?, ?, ?, ?)", application_rows
            )
            connection.executemany("INSERT INTO authorities VALUES (?, ?)", authority_rows)
            connection.executemany(
                f"INSERT INTO unread VALUES ({_UNREAD_VALUE_PLACEHOLDERS_SQL})", unread_rows
            )

    def delete_unread_entries(self, application_ref: str, file_hash: str) -> None:
        """Delete the entries of a file that was ingested after all, whatever its names were."""
        with self._open_tables() as connection:
            connection.execute(
                f"DELETE FROM unread WHERE {_HAS_SAME_BYTES_SQL}",
                _list_same_bytes_sql_values(application_ref, file_hash),
            )

    def dump_to_file(self, dump_path: Path) -> None:
        """Write everything to a new SQLite file, which `restore_rows` reads."""
        with self._open_tables() as connection:
            rows_by_table_name = {
                table_name: connection.execute(f"SELECT * FROM {table_name}").fetchall()
                for table_name in _COLUMN_COUNTS_BY_TABLE_NAME
            }
        with open_small_database(dump_path, _SCHEMA_SQL) as dump_connection:
            for table_name, table_rows in rows_by_table_name.items():
                value_placeholders_sql = ", ".join("?" * _COLUMN_COUNTS_BY_TABLE_NAME[table_name])
                dump_connection.executemany(
                    f"INSERT INTO {table_name} VALUES ({value_placeholders_sql})",
                    map(tuple, table_rows),
                )

    def delete_all_rows(self) -> None:
        """Delete every application and every unread file."""
        with self._open_tables() as connection:
            for table_name in _COLUMN_COUNTS_BY_TABLE_NAME:
                connection.execute(f"DELETE FROM {table_name}")


def _list_same_bytes_sql_values(application_ref: str, file_hash: str) -> tuple[str, str, str]:
    return application_ref, file_hash, f"{file_hash}{_HASH_AND_NAME_SEPARATOR}%"


def _list_authority_rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the authorities of applications; the file of an earlier release has none."""
    table_names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
    ).fetchall()
    if ("authorities",) not in table_names:
        return []
    return connection.execute("SELECT application_ref, local_authority FROM authorities").fetchall()


def _parse_application_row(application_row: tuple[Any, ...]) -> Application:
    (
        application_ref,
        site_address,
        description_text,
        validation_date,
        status_text,
        updated_at,
        local_authority,
    ) = application_row
    return Application(
        application_ref,
        site_address,
        description_text,
        date.fromisoformat(validation_date) if validation_date else None,
        status_text,
        datetime.fromisoformat(updated_at) if updated_at else None,
        local_authority,
    )

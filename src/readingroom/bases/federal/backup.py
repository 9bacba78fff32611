"""The federal database in a backup: one file, copied while it is read and written."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from readingroom.bases.federal.load.copying import (
    copy_records,
    count_rows_if_same,
    count_same_answers,
)
from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.bases.federal.schema.tables import SCHEMA_VERSION, list_statements
from readingroom.bases.federal.store import (
    SharedRecords,
    get_database_path,
    locate_records,
    prepare_records,
    translate_errors,
)
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.backup import BaseBackup
from readingroom.protocol.command import RunCommand
from readingroom.storage.archive import copy_database
from readingroom.storage.database import DatabaseError, connect, normalise_sql, open_untrusted
from readingroom.storage.errors import BackupUnusable, DataNotEmpty, FolderInUse, StorageFailed


class FederalBackup(BaseBackup):
    """SQLite copies the file page by page, so no owner has to be asked."""

    def has_data(self, settings: RoomSettings) -> bool:
        records_place = locate_records(settings)
        return (
            records_place.exists()
            if isinstance(records_place, Path)
            else _has_records(records_place)
        )

    def write_backup(
        self,
        settings: RoomSettings,
        copies_folder: Path,
        run_command: RunCommand,
        report_progress: ReportProgressSync,
    ) -> dict[str, int]:
        copied_database_path = get_database_path(copies_folder)
        records_place = locate_records(settings)
        if isinstance(records_place, Path):
            copy_database(records_place, copied_database_path, report_progress)
        else:
            prepare_records(records_place)
            copy_records(records_place, copied_database_path, report_progress)
            _merge_write_ahead_log(copied_database_path)
        with closing(connect(copied_database_path)) as copied_db:
            (schema_version,) = copied_db.execute("PRAGMA user_version").fetchone()
        return {"schema": int(schema_version)}

    def can_read_backup(self, manifest_counts: Mapping[str, Any]) -> bool:
        return bool(manifest_counts.get("schema", 0) <= SCHEMA_VERSION)

    def is_backup_file(self, file_name: str) -> bool:
        return file_name == get_database_path(Path()).as_posix()

    @contextmanager
    def lock_base(self, data_directory: Path) -> Iterator[None]:
        if _is_open_elsewhere(get_database_path(data_directory)):
            raise FolderInUse(
                f"{get_database_path(data_directory)} is in use; stop the server first"
            )
        yield

    def refuse_to_overwrite(self, settings: RoomSettings, run_command: RunCommand) -> None:
        records_place = locate_records(settings)
        if not isinstance(records_place, Path):
            _refuse_to_overwrite(records_place, False)

    def restore_backup(
        self,
        staged_settings: RoomSettings,
        home_directory: Path,
        is_replacing: bool,
        run_command: RunCommand,
    ) -> dict[str, int] | None:
        known_sql_statements = frozenset(map(normalise_sql, list_statements()))
        try:
            # The file stays as it is, so its triggers must be ours.
            open_untrusted(get_database_path(staged_settings.data), known_sql_statements).close()
        except DatabaseError as error:
            raise BackupUnusable(f"federal.db of the backup cannot be used: {error}") from error
        records_place = locate_records(staged_settings)
        if not isinstance(records_place, Path):
            staged_database_path = get_database_path(staged_settings.data)
            _refuse_to_overwrite(records_place, is_replacing)
            copy_records(staged_database_path, records_place)
            staged_database_path.unlink()
        return None

    def migrate_base(
        self, settings: RoomSettings, target_settings: RoomSettings, is_replacing: bool
    ) -> dict[str, Any] | None:
        source_place, target_place = locate_records(settings), locate_records(target_settings)
        assert isinstance(target_place, SharedRecords)
        row_count_by_table = count_rows_if_same(source_place, target_place)
        was_copied_before = bool(row_count_by_table)
        if not was_copied_before:
            _refuse_to_overwrite(target_place, is_replacing)
            copy_records(source_place, target_place)
            row_count_by_table = count_rows_if_same(source_place, target_place)
        if not row_count_by_table:
            raise StorageFailed(
                "The federal records in the database differ from the original; did it change "
                "meanwhile? Run this again with --force"
            )
        record_count = sum(row_count_by_table[record_source.name] for record_source in SOURCES)
        return {
            "counts": {"records": record_count},
            "was_there": was_copied_before,
            "compared_answers": count_same_answers(source_place, target_place),
        }


def _has_records(shared_records: SharedRecords) -> bool:
    prepare_records(shared_records)
    with translate_errors(shared_records), closing(shared_records.connect(writing=False)) as db:
        return db.execute("SELECT 1 FROM ingestion_logs LIMIT 1").fetchone() is not None


def _refuse_to_overwrite(shared_records: SharedRecords, is_replacing: bool) -> None:
    """Raise DataNotEmpty when there are records that may not be replaced."""
    if _has_records(shared_records) and not is_replacing:
        raise DataNotEmpty(
            "The database at READINGROOM_DATABASE_URL holds federal records already; choose "
            "another one, or replace them with --force"
        )


def _merge_write_ahead_log(database_path: Path) -> None:
    """Leave one file: a write-ahead log next to it would be left behind."""
    with closing(connect(database_path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")


def _is_open_elsewhere(database_path: Path) -> bool:
    """Return whether another process has this file open: then it cannot be locked."""
    if not database_path.exists():
        return False
    with closing(connect(database_path, timeout=0)) as db:
        try:
            # Without it, a file in WAL mode can be locked for writing while others read it.
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:  # damaged, so nobody can serve from it
            return False
    return False


BACKUP = FederalBackup()

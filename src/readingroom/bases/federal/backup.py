"""The federal database in a backup: one file, copied while it is read and written."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from readingroom.bases.federal.schema.tables import SCHEMA_VERSION, list_statements
from readingroom.bases.federal.store import get_database_path
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.backup import BaseBackup
from readingroom.protocol.command import RunCommand
from readingroom.storage.archive import copy_database
from readingroom.storage.database import DatabaseError, connect, normalise_sql, open_untrusted
from readingroom.storage.errors import BackupUnusable, FolderInUse


class FederalBackup(BaseBackup):
    """SQLite copies the file page by page, so no owner has to be asked."""

    def exists(self, settings: RoomSettings) -> bool:
        return get_database_path(settings.data).exists()

    def write(
        self,
        settings: RoomSettings,
        copies_folder: Path,
        run: RunCommand,
        report: ReportProgressSync,
    ) -> dict[str, int]:
        copied_file = get_database_path(copies_folder)
        copy_database(get_database_path(settings.data), copied_file, report)
        with closing(connect(copied_file)) as db:
            (schema_version,) = db.execute("PRAGMA user_version").fetchone()
        return {"schema": int(schema_version)}

    def can_read(self, manifest_counts: Mapping[str, Any]) -> bool:
        return bool(manifest_counts.get("schema", 0) <= SCHEMA_VERSION)

    def is_backup_file(self, file_name: str) -> bool:
        return file_name == get_database_path(Path()).as_posix()

    @contextmanager
    def lock(self, data_directory: Path) -> Iterator[None]:
        if _is_open_elsewhere(get_database_path(data_directory)):
            raise FolderInUse(
                f"{get_database_path(data_directory)} is in use; stop the server first"
            )
        yield

    def restore(
        self, staged_settings: RoomSettings, home_directory: Path, replace: bool, run: RunCommand
    ) -> dict[str, int] | None:
        known_statements = frozenset(map(normalise_sql, list_statements()))
        try:
            # The file stays as it is, so its triggers must be ours.
            open_untrusted(get_database_path(staged_settings.data), known_statements).close()
        except DatabaseError as error:
            raise BackupUnusable(f"federal.db of the backup cannot be used: {error}") from error
        return None


def _is_open_elsewhere(database: Path) -> bool:
    """Return whether another process has this file open: then it cannot be locked."""
    if not database.exists():
        return False
    with closing(connect(database, timeout=0)) as db:
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

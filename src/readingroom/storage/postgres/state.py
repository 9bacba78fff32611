"""The server's own tables in the shared database: sessions of browsers, connected apps, jobs."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from readingroom.core.settings import RoomSettings
from readingroom.storage.browser_sessions import BrowserSessions
from readingroom.storage.database import Database, StateFile, StateTables
from readingroom.storage.errors import DatabaseFailed, StorageFailed
from readingroom.storage.files import is_plain_name, translate_os_errors
from readingroom.storage.grants import GrantStore
from readingroom.storage.jobs.store import BackgroundJob, JobStore
from readingroom.storage.postgres.database import (
    Connection,
    PostgresDatabase,
    clean_text,
    find_database,
)

_PIECE_BYTES = 1024 * 1024


class SharedTables(StateTables):
    """Some tables of the shared database; who writes to them waits for whoever does already."""

    def __init__(
        self, postgres_database: PostgresDatabase, store_name: str, tables_label: str
    ) -> None:
        """`tables_label` is what the tables hold, for errors: "The jobs"."""
        self._database = postgres_database
        self._store_name = store_name
        self._tables_label = tables_label

    def has_data(self) -> bool:
        return True

    @contextmanager
    def begin_reading(self) -> Iterator["_CleaningConnection"]:
        # Never a part of a base's change: a heartbeat is seen at once, whatever else is going on.
        try:
            self._database.prepare()
            with self._database.lend_connection() as connection:
                yield _CleaningConnection(connection)
        except DatabaseFailed as error:
            raise StorageFailed(f"{self._tables_label} cannot be used: {error.message}") from error

    @contextmanager
    def begin_writing(self) -> Iterator["_CleaningConnection"]:
        with self.begin_reading() as connection, connection.begin_alone(self._store_name):
            yield connection

    def read_clock(self) -> float:
        """Return the seconds since 1970 by the clock of the database, which is the same for all."""
        with self.begin_reading() as connection:
            clock_row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
            return float(clock_row.fetchone()[0])


class _CleaningConnection:
    """A connection whose values may be any text: PostgreSQL takes no U+0000."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, sql_values: Sequence[Any] = ()) -> Any:
        cleaned_values = [
            clean_text(sql_value) if isinstance(sql_value, str) else sql_value
            for sql_value in sql_values
        ]
        return self._connection.execute(sql, cleaned_values)

    @contextmanager
    def begin_alone(self, store_name: str) -> Iterator[None]:
        """Enclose a transaction in which nobody else writes to this store."""
        with self._connection.transaction():
            self._connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))",
                (f"readingroom:state:{store_name}",),
            )
            yield


class SharedJobStore(JobStore):
    """The jobs of all processes on one database, with their files."""

    def __init__(
        self,
        data_directory: Path,
        postgres_database: PostgresDatabase,
        read_clock: Callable[[], float] | None = None,
    ) -> None:
        """Files are written into the data directory while this process does their job.

        Without `read_clock` it is the time of the database, whose clock all processes share.
        """
        shared_tables = SharedTables(postgres_database, "jobs", "The jobs")
        super().__init__(data_directory, read_clock or shared_tables.read_clock, shared_tables)

    def take_over_jobs(self, job_kinds: Sequence[str]) -> None:
        """Do nothing: what another process has begun is its own until it falls silent."""

    def put_job_back(self, job_id: str, worker_name: str) -> None:
        super().put_job_back(job_id, worker_name)
        self._delete_folder(job_id)

    def _keep_files(self, db: Any, job_id: str, job_folder: Path) -> None:
        for file_path in sorted(job_folder.iterdir()):
            with file_path.open("rb") as open_file:
                # A piece even of an empty file.
                piece_number, file_piece = 0, open_file.read(_PIECE_BYTES)
                while file_piece or not piece_number:
                    db.execute(
                        "INSERT INTO job_files VALUES (?, ?, ?, ?)",
                        (job_id, file_path.name, piece_number, file_piece),
                    )
                    piece_number, file_piece = piece_number + 1, open_file.read(_PIECE_BYTES)
        self._delete_folder(job_id)

    def _copy_files_to_folder(
        self, background_job: BackgroundJob, worker_name: str
    ) -> BackgroundJob:
        job_folder = (
            self._job_files_folder / background_job.kind / f"{background_job.id}-{worker_name}"
        )
        with (
            translate_os_errors("The files of the job cannot be kept"),
            self._state_tables.begin_reading() as db,
        ):
            shutil.rmtree(job_folder, ignore_errors=True)
            job_folder.mkdir(mode=0o700, parents=True)
            piece_rows = db.execute(
                "SELECT file_name, piece_number FROM job_files WHERE job_id = ? "
                "ORDER BY file_name, piece_number",
                (background_job.id,),
            ).fetchall()
            for file_name, piece_number in piece_rows:
                if not is_plain_name(file_name):
                    raise StorageFailed(f"{file_name[:100]!r} cannot be the name of a job's file")
                piece_row = db.execute(
                    "SELECT content FROM job_files WHERE job_id = ? AND file_name = ? "
                    "AND piece_number = ?",
                    (background_job.id, file_name, piece_number),
                ).fetchone()
                if piece_row is None:
                    break  # the job has ended meanwhile
                with (job_folder / file_name).open("ab") as job_file:
                    job_file.write(piece_row[0])
        return replace(
            background_job, question={**background_job.question, "folder": str(job_folder)}
        )

    def _clean_up(self, job_id: str, has_ended: bool) -> None:
        super()._clean_up(job_id, has_ended)
        # Also those of a job that another process has taken: they are copies.
        self._delete_folder(job_id)
        if has_ended:
            self._run_write("DELETE FROM job_files WHERE job_id = ?", (job_id,))

    def _fail_hopeless_jobs(self, db: Any, now_seconds: float) -> None:
        super()._fail_hopeless_jobs(db, now_seconds)
        db.execute(
            "DELETE FROM job_files WHERE job_id IN (SELECT id FROM jobs WHERE state = 'failed')"
        )

    def _delete_folder(self, job_id: str) -> None:
        for job_folder in self._job_files_folder.glob(f"*/{job_id}*"):
            shutil.rmtree(job_folder, ignore_errors=True)


def open_jobs(settings: RoomSettings) -> JobStore:
    """Return the jobs of the data directory, or of the database that the settings name."""
    postgres_database = find_database(settings)
    return (
        JobStore(settings.data)
        if postgres_database is None
        else SharedJobStore(settings.data, postgres_database)
    )


def open_sessions(settings: RoomSettings) -> BrowserSessions:
    """Return the signed-in browsers of the data directory, or of the database in the settings."""
    shared_tables = _find_shared_tables(settings, "browser_sessions", "The sessions")
    return BrowserSessions(settings.data, state_tables=shared_tables)


def open_grant_store(settings: RoomSettings) -> GrantStore:
    """Return the connected apps of the data directory, or of the database in the settings."""
    shared_tables = _find_shared_tables(settings, "grants", "The connected apps")
    return GrantStore(settings.data, state_tables=shared_tables)


def _find_shared_tables(
    settings: RoomSettings, table_name: str, tables_label: str
) -> SharedTables | None:
    """Return tables of the database that the settings name; None if they name none."""
    postgres_database = find_database(settings)
    return SharedTables(postgres_database, table_name, tables_label) if postgres_database else None


def list_collection_models(settings: RoomSettings) -> list[str]:
    """Return the models whose vectors the database has in collections; none without a database."""
    postgres_database = find_database(settings)
    if postgres_database is None:
        return []
    with SharedTables(postgres_database, "collections", "The collections").begin_reading() as db:
        model_rows = db.execute(
            "SELECT DISTINCT embedding FROM collections WHERE embedding IS NOT NULL ORDER BY 1"
        )
        return [model_identity for (model_identity,) in model_rows]


def open_waiting_tables(
    settings: RoomSettings, create_file_tables: Callable[[Database], object]
) -> StateTables:
    """Return the tables of texts that workers may embed: in the data directory or the database."""
    postgres_database = find_database(settings)
    if postgres_database is not None:
        return SharedTables(postgres_database, "waiting_texts", "The waiting texts")
    return StateFile(settings.data / "embedding.db", "The waiting texts", create_file_tables)

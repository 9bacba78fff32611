"""Jobs that outlive the request that began them, and the process: one table for every base.

A worker claims a job, says from time to time that it is alive and how far it has come, and writes
the outcome. A job whose worker has fallen silent is claimed again by the next one. All times come
from one clock: that of the machine, or of the database that processes share.

A job may have a folder of files, which is deleted when it has ended. Callers take turns, and what
may wait is bounded for each of them and for all together.
"""

import json
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from readingroom.core import clock
from readingroom.storage.database import Database, Row, StateFile, StateTables
from readingroom.storage.errors import JobNotFound, TooManyJobs
from readingroom.storage.files import translate_os_errors

JOBS_FILE_NAME = "jobs.db"
MAX_SILENT_SECONDS = 60.0
"""How long a worker may say nothing before its job is given to another."""
MAX_JOB_ATTEMPTS = 3
"""How often a job is begun: one that ends its worker each time would never let it live."""
_MAX_KEPT_JOBS = 500
"""Ended jobs that are kept to be looked at."""
MAX_UNFINISHED_JOBS_PER_CALLER = 20
"""Jobs of one caller that have not ended."""
MAX_UNFINISHED_BYTES_PER_CALLER = 4 * 2**30
"""Of the files of one caller's jobs that have not ended."""
MAX_UNFINISHED_JOBS = 200
MIN_FREE_DISK_BYTES = 2**30
"""What must stay free on the disk for files to be kept until a job reads them."""
_JOB_FILES_FOLDER_NAME = "queued"

JobState = Literal["queued", "running", "done", "failed"]

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    question TEXT NOT NULL,
    state TEXT NOT NULL,
    percent REAL NOT NULL,
    phase TEXT NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT NOT NULL,
    worker TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    created_at REAL NOT NULL,
    heard_at REAL NOT NULL,
    ended_at REAL NOT NULL,
    caller TEXT NOT NULL DEFAULT '',
    file_bytes INTEGER NOT NULL DEFAULT 0
)
"""
_SQL_BY_COLUMN = {
    "caller": "TEXT NOT NULL DEFAULT ''",
    "file_bytes": "INTEGER NOT NULL DEFAULT 0",
}
"""Which a table has not that was made before jobs took turns."""
_INDEX_SQL = "CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, created_at)"
_COLUMNS_SQL = (
    "id, kind, title, question, state, percent, phase, outcome, error, worker, attempts, "
    "created_at, heard_at, ended_at, caller, file_bytes"
)


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """A job as it stands."""

    id: str
    kind: str
    """Which handler does it: `documents.upload`."""
    title: str
    question: Mapping[str, Any]
    """What was asked, as JSON can hold it."""
    state: JobState
    percent: float
    phase: str
    """What is being done, in words."""
    outcome: Mapping[str, Any]
    error: str
    """Why it failed; empty unless it did."""
    attempts: int
    created_at: float
    ended_at: float
    """0 until it has ended."""
    caller: str
    """Who asked for it: `key:NAME` or `ip:ADDRESS`."""

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed")

    def hide_question(self) -> "BackgroundJob":
        """Return the job as others may see it: a question may name folders of this machine."""
        return replace(self, question={})


class JobStore:
    """The jobs of one data directory."""

    def __init__(
        self,
        data_directory: Path,
        read_clock: Callable[[], float] = clock.read_unix_seconds,
        state_tables: StateTables | None = None,
    ) -> None:
        """Without `state_tables` they are in a file, which is created with the first job."""
        self._state_tables = state_tables or StateFile(
            data_directory / JOBS_FILE_NAME, "The jobs", _create_tables
        )
        self._data_directory = data_directory
        self._job_files_folder = data_directory / _JOB_FILES_FOLDER_NAME
        self._get_now_seconds = read_clock

    def make_job_folder(self, job_kind: str) -> Path:
        """Return a new folder for the files of one job, which `add_job` is then given."""
        job_folder = self._job_files_folder / job_kind / secrets.token_hex(8)
        job_folder.mkdir(mode=0o700, parents=True)
        return job_folder

    def add_job(
        self,
        job_kind: str,
        job_title: str,
        job_arguments: Mapping[str, Any],
        caller_id: str = "",
        job_folder: Path | None = None,
    ) -> BackgroundJob:
        """Queue a job and return it. `job_folder` has its files, and is deleted when it has ended.

        Raise `TooManyJobs`, and delete the folder, when too much waits already.
        """
        # By this name the folder is found again when its job has ended.
        job_id = job_folder.name if job_folder else secrets.token_hex(8)
        try:
            with translate_os_errors("The files of the job cannot be read"):
                file_bytes = (
                    sum(spooled_path.stat().st_size for spooled_path in job_folder.iterdir())
                    if job_folder
                    else 0
                )
            now_seconds = self._get_now_seconds()
            with self._state_tables.begin_writing() as db:
                self._raise_if_too_many_jobs(db, caller_id, file_bytes)
                db.execute(
                    f"INSERT INTO jobs ({_COLUMNS_SQL}) "
                    "VALUES (?, ?, ?, ?, 'queued', 0, 'waiting', '{}', '', '', 0, ?, ?, 0, ?, ?)",
                    (
                        job_id,
                        job_kind,
                        job_title,
                        json.dumps(job_arguments),
                        now_seconds,
                        now_seconds,
                        caller_id,
                        file_bytes,
                    ),
                )
                if job_folder:
                    self._keep_files(db, job_id, job_folder)
        except BaseException:
            self._delete_folder(job_id)
            raise
        return self.get_job(job_id)

    def claim_job(self, job_kinds: Sequence[str], worker_name: str) -> BackgroundJob | None:
        """Return a job of these kinds that waits, or whose worker fell silent.

        It belongs to `worker_name` from then on. None when there is nothing to do. A caller has one
        job done at a time, and whoever's last one is longest ago comes first.
        """
        if not job_kinds or not self._state_tables.has_data():
            return None
        now_seconds = self._get_now_seconds()
        kind_placeholders_sql = ", ".join("?" * len(job_kinds))
        silent_since = now_seconds - MAX_SILENT_SECONDS
        # One transaction for looking and taking, or two workers could take the same job.
        with self._state_tables.begin_writing() as db:
            self._fail_hopeless_jobs(db, now_seconds)
            job_row = db.execute(
                f"SELECT {_COLUMNS_SQL} FROM jobs WHERE kind IN ({kind_placeholders_sql}) AND "
                "(state = 'queued' OR (state = 'running' AND heard_at < ?)) AND caller NOT IN "
                "(SELECT caller FROM jobs WHERE state = 'running' AND heard_at >= ?) "
                "ORDER BY COALESCE((SELECT MAX(CASE WHEN other.heard_at > other.ended_at "
                "THEN other.heard_at ELSE other.ended_at END) FROM jobs AS other "
                "WHERE other.caller = jobs.caller AND other.state != 'queued'), 0), "
                "created_at, id LIMIT 1",
                (*job_kinds, silent_since, silent_since),
            ).fetchone()
            if job_row is None:
                return None
            db.execute(
                "UPDATE jobs SET state = 'running', worker = ?, heard_at = ?, "
                "attempts = attempts + 1, phase = 'starting' WHERE id = ?",
                (worker_name, now_seconds, job_row["id"]),
            )
            claimed_row = db.execute(
                f"SELECT {_COLUMNS_SQL} FROM jobs WHERE id = ?", (job_row["id"],)
            ).fetchone()
        claimed_job = _parse_job_row(claimed_row)
        return (
            self._copy_files_to_folder(claimed_job, worker_name)
            if claimed_row["file_bytes"]
            else claimed_job
        )

    def take_over_jobs(self, job_kinds: Sequence[str]) -> None:
        """Queue the running jobs of these kinds again, and delete the files of no job.

        For a process that has just become the owner of what they work on, so that nobody else can
        be running them.
        """
        if not self._state_tables.has_data():
            return
        for job_kind in job_kinds:
            # They stay 'running', as if their worker had fallen silent: the next claim takes them,
            # or gives up those that were begun too often.
            self._run_write(
                "UPDATE jobs SET heard_at = 0 WHERE state = 'running' AND kind = ?", (job_kind,)
            )
            open_rows = self._query_job_rows(
                "SELECT id FROM jobs WHERE kind = ? AND ended_at = 0", (job_kind,)
            )
            open_ids = {job_row["id"] for job_row in open_rows}
            for job_folder in (self._job_files_folder / job_kind).glob("*"):
                if job_folder.name not in open_ids:
                    self._delete_folder(job_folder.name)

    def report_progress(
        self, job_id: str, worker_name: str, done_percent: float, phase_name: str
    ) -> bool:
        """Say that a worker is alive, and how far it is; False when the job is not its any more."""
        # By the worker's name: one that was silent too long may come back when another has its job.
        return self._run_write(
            "UPDATE jobs SET percent = ?, phase = ?, heard_at = ? "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (
                min(100.0, max(0.0, done_percent)),
                phase_name[:200],
                self._get_now_seconds(),
                job_id,
                worker_name,
            ),
        )

    def record_heartbeat(self, job_id: str, worker_name: str) -> bool:
        """Say that a worker is alive; False when the job is not its any more."""
        return self._run_write(
            "UPDATE jobs SET heard_at = ? WHERE id = ? AND worker = ? AND state = 'running'",
            (self._get_now_seconds(), job_id, worker_name),
        )

    def finish_job(self, job_id: str, worker_name: str, job_outcome: Mapping[str, Any]) -> bool:
        """Write the outcome of a job; False when it is not this worker's any more."""
        is_still_ours = self._run_write(
            "UPDATE jobs SET state = 'done', percent = 100, phase = 'done', outcome = ?, "
            "ended_at = ? WHERE id = ? AND worker = ? AND state = 'running'",
            (json.dumps(job_outcome), self._get_now_seconds(), job_id, worker_name),
        )
        self._clean_up(job_id, is_still_ours)
        return is_still_ours

    def fail_job(self, job_id: str, worker_name: str, failure_reason: str) -> bool:
        """Write why a job failed; False when it is not this worker's any more."""
        is_still_ours = self._run_write(
            "UPDATE jobs SET state = 'failed', phase = 'failed', error = ?, ended_at = ? "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (failure_reason[:1000], self._get_now_seconds(), job_id, worker_name),
        )
        self._clean_up(job_id, is_still_ours)
        return is_still_ours

    def put_job_back(self, job_id: str, worker_name: str) -> None:
        """Queue a job again that its worker cannot end, since it was told to stop."""
        # The attempt does not count: it was ended from outside, which says nothing against the job.
        self._run_write(
            "UPDATE jobs SET state = 'queued', phase = 'waiting', attempts = attempts - 1 "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (job_id, worker_name),
        )

    def get_job(self, job_id: str) -> BackgroundJob:
        """Return a job. Raise `JobNotFound`."""
        job_rows = self._query_job_rows(f"SELECT {_COLUMNS_SQL} FROM jobs WHERE id = ?", (job_id,))
        if not job_rows:
            raise JobNotFound(f"There is no job {job_id[:40]!r}; ended ones are kept for a while")
        return _parse_job_row(job_rows[0])

    def list_newest_jobs(self, max_jobs: int = 50, kind_prefix: str = "") -> list[BackgroundJob]:
        """Return the newest jobs, of the kinds that begin like this, newest first."""
        # Not with LIKE, which would take a `_` of the prefix for any character.
        job_rows = self._query_job_rows(
            f"SELECT {_COLUMNS_SQL} FROM jobs WHERE substr(kind, 1, ?) = ? "
            "ORDER BY created_at DESC, id LIMIT ?",
            (len(kind_prefix), kind_prefix, max_jobs),
        )
        return [_parse_job_row(job_row) for job_row in job_rows]

    def _raise_if_too_many_jobs(self, db: Any, caller_id: str, file_bytes: int) -> None:
        """Raise TooManyJobs unless one more job, with so many bytes of files, may wait."""
        total_count = db.execute("SELECT COUNT(*) FROM jobs WHERE ended_at = 0").fetchone()[0]
        own_count, own_bytes = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(file_bytes), 0) FROM jobs "
            "WHERE ended_at = 0 AND caller = ?",
            (caller_id,),
        ).fetchone()
        if (
            own_count >= MAX_UNFINISHED_JOBS_PER_CALLER
            or own_bytes + file_bytes > MAX_UNFINISHED_BYTES_PER_CALLER
        ):
            raise TooManyJobs(
                f"{own_count} of your jobs wait already; send this again when some are done"
            )
        if total_count >= MAX_UNFINISHED_JOBS:
            raise TooManyJobs("Too many jobs wait already; send this again later")
        # Only files can fill the disk.
        if file_bytes and shutil.disk_usage(self._data_directory).free < MIN_FREE_DISK_BYTES:
            raise TooManyJobs("The disk is nearly full; tell the operator, and send this later")

    def _fail_hopeless_jobs(self, db: Any, now_seconds: float) -> None:
        """Fail the jobs whose workers have ended too often without an outcome."""
        failed_rows = db.execute(
            "UPDATE jobs SET state = 'failed', phase = 'failed', ended_at = ?, "
            "error = 'It was interrupted each time it was begun; look at the log, then try again' "
            "WHERE state = 'running' AND heard_at < ? AND attempts >= ? RETURNING id",
            (now_seconds, now_seconds - MAX_SILENT_SECONDS, MAX_JOB_ATTEMPTS),
        ).fetchall()
        for job_row in failed_rows:
            self._delete_folder(job_row["id"])

    def _clean_up(self, job_id: str, has_ended: bool) -> None:
        """Delete the files of a job that has ended, and forget the oldest jobs."""
        if has_ended:
            self._delete_folder(job_id)
        self._run_write(
            "DELETE FROM jobs WHERE ended_at > 0 AND id NOT IN "
            "(SELECT id FROM jobs WHERE ended_at > 0 ORDER BY ended_at DESC LIMIT ?)",
            (_MAX_KEPT_JOBS,),
        )

    def _delete_folder(self, job_id: str) -> None:
        """Delete the files of a job; what cannot be deleted now is at the next start."""
        for job_folder in self._job_files_folder.glob(f"*/{job_id}"):
            shutil.rmtree(job_folder, ignore_errors=True)

    def _keep_files(self, db: Any, job_id: str, job_folder: Path) -> None:
        """Keep the files of a job until it has ended: here they stay where they are."""

    def _copy_files_to_folder(
        self, background_job: BackgroundJob, worker_name: str
    ) -> BackgroundJob:
        """Return a job whose question names the folder that its files can be read in."""
        return background_job

    def _run_write(self, sql: str, sql_values: Sequence[Any]) -> bool:
        """Run one statement in a transaction; return whether it changed a row."""
        with self._state_tables.begin_writing() as db:
            return bool(db.execute(sql, sql_values).rowcount > 0)

    def _query_job_rows(self, sql: str, sql_values: Sequence[Any]) -> list[Row]:
        if not self._state_tables.has_data():
            return []
        with self._state_tables.begin_reading() as db:
            job_rows: list[Row] = db.execute(sql, sql_values).fetchall()
        return job_rows


def _create_tables(db: Database) -> None:
    db.execute(_SCHEMA_SQL)
    db.execute(_INDEX_SQL)
    with db.transaction():  # so that two connections do not add the same column
        column_names = {column_row["name"] for column_row in db.execute("PRAGMA table_info(jobs)")}
        for column_name, column_definition_sql in _SQL_BY_COLUMN.items():
            if column_name not in column_names:
                db.execute(f"ALTER TABLE jobs ADD COLUMN {column_name} {column_definition_sql}")


def _parse_job_row(job_row: Row) -> BackgroundJob:
    return BackgroundJob(
        id=job_row["id"],
        kind=job_row["kind"],
        title=job_row["title"],
        question=json.loads(job_row["question"]),
        state=job_row["state"],
        percent=job_row["percent"],
        phase=job_row["phase"],
        outcome=json.loads(job_row["outcome"]),
        error=job_row["error"],
        attempts=job_row["attempts"],
        created_at=job_row["created_at"],
        ended_at=job_row["ended_at"],
        caller=job_row["caller"],
    )

"""Jobs that outlive the request that began them, and the process: one table for every base.

A worker claims a job, says from time to time that it is alive and how far it has come, and writes
the outcome. A job whose worker has fallen silent is claimed again by the next one. All times come
from one clock, that of the machine, which processes on it share.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from readingroom.core import clock
from readingroom.storage.database import ConnectionPool, Database, DatabaseError, Row, connect
from readingroom.storage.errors import JobNotFound, StorageFailed, describe_cause

JOBS_FILE = "jobs.db"
SILENT_SECONDS = 60.0
"""How long a worker may say nothing before its job is given to another."""
MAX_ATTEMPTS = 3
"""How often a job is begun: one that ends its worker each time would never let it live."""
_KEPT_JOBS = 500
"""Ended jobs that are kept to be looked at."""

JobState = Literal["queued", "running", "done", "failed"]

_SCHEMA = """
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
    ended_at REAL NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, created_at)"
_COLUMNS = (
    "id, kind, title, question, state, percent, phase, outcome, error, worker, attempts, "
    "created_at, heard_at, ended_at"
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

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed")

    def hide_question(self) -> "BackgroundJob":
        """Return the job as others may see it: a question may name folders of this machine."""
        return replace(self, question={})


class JobStore:
    """The jobs of one data directory; the file is created with the first."""

    def __init__(self, data: Path, now: Callable[[], float] = clock.unix_seconds) -> None:
        self._path = data / JOBS_FILE
        self._now = now
        self._pool = ConnectionPool(self._connect)

    def add(self, kind: str, title: str, question: Mapping[str, Any]) -> BackgroundJob:
        """Queue a job and return it."""
        job_id, now = secrets.token_hex(8), self._now()
        values = (job_id, kind, title, json.dumps(question), now, now)
        self._write(
            f"INSERT INTO jobs ({_COLUMNS}) "
            "VALUES (?, ?, ?, ?, 'queued', 0, 'waiting', '{}', '', '', 0, ?, ?, 0)",
            values,
        )
        return self.get(job_id)

    def claim(self, kinds: Sequence[str], worker: str) -> BackgroundJob | None:
        """Return the oldest job of these kinds that waits, or whose worker fell silent.

        It belongs to `worker` from then on. None when there is nothing to do.
        """
        if not kinds or not self._path.exists():
            return None
        now = self._now()
        marks = ", ".join("?" * len(kinds))
        try:
            with self._pool.connection() as db, db.transaction():
                self._give_up_hopeless(db, now)
                row = db.execute(
                    f"SELECT {_COLUMNS} FROM jobs WHERE kind IN ({marks}) AND "
                    "(state = 'queued' OR (state = 'running' AND heard_at < ?)) "
                    "ORDER BY created_at, id LIMIT 1",
                    (*kinds, now - SILENT_SECONDS),
                ).fetchone()
                if row is None:
                    return None
                db.execute(
                    "UPDATE jobs SET state = 'running', worker = ?, heard_at = ?, "
                    "attempts = attempts + 1, phase = 'starting' WHERE id = ?",
                    (worker, now, row["id"]),
                )
                return _read_job(self._select(db, row["id"]))
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error

    def release_all(self, kinds: Sequence[str]) -> None:
        """Queue the running jobs of these kinds again, when nobody else can be running them.

        For a process that has just become the owner of what they work on.
        """
        if kinds and self._path.exists():
            marks = ", ".join("?" * len(kinds))
            self._write(
                f"UPDATE jobs SET heard_at = 0 WHERE state = 'running' AND kind IN ({marks})",
                tuple(kinds),
            )

    def report(self, job_id: str, worker: str, percent: float, phase: str) -> bool:
        """Say that a worker is alive, and how far it is; False when the job is not its any more."""
        return self._write(
            "UPDATE jobs SET percent = ?, phase = ?, heard_at = ? "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (min(100.0, max(0.0, percent)), phase[:200], self._now(), job_id, worker),
        )

    def beat(self, job_id: str, worker: str) -> bool:
        """Say that a worker is alive; False when the job is not its any more."""
        return self._write(
            "UPDATE jobs SET heard_at = ? WHERE id = ? AND worker = ? AND state = 'running'",
            (self._now(), job_id, worker),
        )

    def finish(self, job_id: str, worker: str, outcome: Mapping[str, Any]) -> bool:
        """Write the outcome of a job; False when it is not this worker's any more."""
        is_ours = self._write(
            "UPDATE jobs SET state = 'done', percent = 100, phase = 'done', outcome = ?, "
            "ended_at = ? WHERE id = ? AND worker = ? AND state = 'running'",
            (json.dumps(outcome), self._now(), job_id, worker),
        )
        self._forget_old()
        return is_ours

    def fail(self, job_id: str, worker: str, reason: str) -> bool:
        """Write why a job failed; False when it is not this worker's any more."""
        return self._write(
            "UPDATE jobs SET state = 'failed', phase = 'failed', error = ?, ended_at = ? "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (reason[:1000], self._now(), job_id, worker),
        )

    def put_back(self, job_id: str, worker: str) -> None:
        """Queue a job again that its worker cannot end, since it was told to stop."""
        self._write(
            "UPDATE jobs SET state = 'queued', phase = 'waiting', attempts = attempts - 1 "
            "WHERE id = ? AND worker = ? AND state = 'running'",
            (job_id, worker),
        )

    def get(self, job_id: str) -> BackgroundJob:
        """Return a job. Raise `JobNotFound`."""
        rows = self._read(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job_id,))
        if not rows:
            raise JobNotFound(f"There is no job {job_id[:40]!r}; ended ones are kept for a while")
        return _read_job(rows[0])

    def list_newest(self, limit: int = 50, kind_prefix: str = "") -> list[BackgroundJob]:
        """Return the newest jobs, of the kinds that begin like this, newest first."""
        rows = self._read(
            f"SELECT {_COLUMNS} FROM jobs WHERE substr(kind, 1, ?) = ? "
            "ORDER BY created_at DESC, id LIMIT ?",
            (len(kind_prefix), kind_prefix, limit),
        )
        return [_read_job(row) for row in rows]

    def _give_up_hopeless(self, db: Database, now: float) -> None:
        """Fail the jobs whose workers have ended too often without an outcome."""
        db.execute(
            "UPDATE jobs SET state = 'failed', phase = 'failed', ended_at = ?, "
            "error = 'It was interrupted each time it was begun; look at the log, then try again' "
            "WHERE state = 'running' AND heard_at < ? AND attempts >= ?",
            (now, now - SILENT_SECONDS, MAX_ATTEMPTS),
        )

    def _forget_old(self) -> None:
        self._write(
            "DELETE FROM jobs WHERE ended_at > 0 AND id NOT IN "
            "(SELECT id FROM jobs WHERE ended_at > 0 ORDER BY ended_at DESC LIMIT ?)",
            (_KEPT_JOBS,),
        )

    def _write(self, sql: str, values: Sequence[Any]) -> bool:
        """Run one statement in a transaction; return whether it changed a row."""
        try:
            with self._pool.connection() as db, db.transaction():
                return db.execute(sql, values).rowcount > 0
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error

    def _read(self, sql: str, values: Sequence[Any]) -> list[Row]:
        if not self._path.exists():
            return []
        try:
            with self._pool.connection() as db:
                return db.execute(sql, values).fetchall()
        except (OSError, DatabaseError) as error:
            raise self._make_error(error) from error

    def _select(self, db: Database, job_id: str) -> Row:
        row: Row = db.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return row

    def _connect(self) -> Database:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite creates it, readable for everybody.
        self._path.touch(mode=0o600)
        db = connect(self._path, any_thread=True, named_rows=True)
        db.execute(_SCHEMA)
        db.execute(_INDEX)
        return db

    def _make_error(self, error: Exception) -> StorageFailed:
        return StorageFailed(
            f"The jobs in {self._path.name} cannot be used: {describe_cause(error)}"
        )


def _read_job(row: Row) -> BackgroundJob:
    return BackgroundJob(
        id=row["id"],
        kind=row["kind"],
        title=row["title"],
        question=json.loads(row["question"]),
        state=row["state"],
        percent=row["percent"],
        phase=row["phase"],
        outcome=json.loads(row["outcome"]),
        error=row["error"],
        attempts=row["attempts"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
    )

"""Jobs outlive the request and the process that began them."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from readingroom.core.ids import current_caller_id
from readingroom.storage.database import connect
from readingroom.storage.errors import JobNotFound, TooManyJobs
from readingroom.storage.jobs import store
from readingroom.storage.jobs.runner import JobRunner, ReportJobProgress
from readingroom.storage.jobs.store import (
    MAX_JOB_ATTEMPTS,
    MAX_SILENT_SECONDS,
    BackgroundJob,
    JobStore,
)
from readingroom.storage.postgres.state import SharedJobStore
from tests.requirements import requirement
from tests.support.engines import find_database, is_shared
from tests.support.processes import HANG_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]

KINDS = ("toy.count",)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def open_store(folder: Path, now: Clock | None = None) -> JobStore:
    """The jobs of a data directory, or of the database that belongs to it."""
    database = find_database(folder)
    if database is not None:
        return SharedJobStore(folder, database, now)
    return JobStore(folder, now) if now else JobStore(folder)


@requirement("room:jobs")
def test_a_job_is_claimed_once_and_reports_until_it_is_done(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    assert jobs.claim_job(KINDS, "ann") is None and jobs.list_newest_jobs() == []
    added = jobs.add_job("toy.count", "Count to <three>", {"to": 3})
    assert (added.state, added.percent) == ("queued", 0)
    claimed = jobs.claim_job(KINDS, "ann")
    assert claimed is not None and claimed.question == {"to": 3}
    assert jobs.claim_job(KINDS, "ben") is None
    assert jobs.report_progress(added.id, "ann", 40, "counting")
    assert (jobs.get_job(added.id).percent, jobs.get_job(added.id).phase) == (40, "counting")
    assert not jobs.report_progress(added.id, "ben", 99, "meddling")
    assert jobs.finish_job(added.id, "ann", {"counted": 3})
    ended = jobs.get_job(added.id)
    assert (ended.state, ended.outcome, ended.has_ended) == ("done", {"counted": 3}, True)
    assert [job.id for job in jobs.list_newest_jobs(kind_prefix="toy.")] == [added.id]
    assert jobs.list_newest_jobs(kind_prefix="other.") == []
    with pytest.raises(JobNotFound):
        jobs.get_job("nothing")


@requirement("room:jobs")
def test_a_job_whose_worker_fell_silent_is_claimed_again_and_not_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    jobs = open_store(tmp_path, clock)
    job = jobs.add_job("toy.count", "Count", {})
    for attempt in range(1, MAX_JOB_ATTEMPTS + 1):
        claimed = jobs.claim_job(KINDS, f"worker {attempt}")
        assert claimed is not None and claimed.attempts == attempt
        clock.seconds += MAX_SILENT_SECONDS - 1
        assert jobs.record_heartbeat(job.id, f"worker {attempt}")
        assert jobs.claim_job(KINDS, "too early") is None
        clock.seconds += MAX_SILENT_SECONDS + 1
    assert jobs.claim_job(KINDS, "too often") is None
    assert jobs.get_job(job.id).state == "failed"
    assert "interrupted" in jobs.get_job(job.id).error
    assert not jobs.finish_job(job.id, "worker 1", {})


async def run_until(
    jobs: JobStore, job: BackgroundJob, state: str, handlers: Mapping[str, Any]
) -> BackgroundJob:
    """Run jobs until this one has come so far."""
    async with anyio.create_task_group() as tasks:
        runner = JobRunner(jobs, handlers)
        await runner.take_over_jobs()
        tasks.start_soon(runner.run_jobs)
        with anyio.fail_after(HANG_SECONDS):
            while jobs.get_job(job.id).state != state:  # noqa: ASYNC110 (another process may write)
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return jobs.get_job(job.id)


@requirement("room:jobs")
async def test_a_runner_that_is_stopped_leaves_its_job_to_the_next(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    job = jobs.add_job("toy.count", "Count", {"to": 2})

    async def hang(question: Mapping[str, Any], report: ReportJobProgress) -> Mapping[str, Any]:
        await report(10, "hanging")
        await anyio.sleep_forever()
        return {}

    async def count(question: Mapping[str, Any], report: ReportJobProgress) -> Mapping[str, Any]:
        await report(50, "counting")
        return {"counted": question["to"]}

    left = await run_until(jobs, job, "running", {"toy.count": hang})
    assert (left.state, left.attempts) == ("queued", 0)
    done = await run_until(jobs, job, "done", {"toy.count": count})
    assert (done.outcome, done.percent, done.attempts) == ({"counted": 2}, 100, 1)


@pytest.mark.embedded_only("a new process owns the data directory alone")
@requirement("room:jobs")
async def test_what_a_killed_process_was_doing_is_begun_again_at_the_next_start(
    tmp_path: Path,
) -> None:
    jobs = open_store(tmp_path)
    job = jobs.add_job("toy.count", "Count", {})
    jobs.claim_job(KINDS, "killed")

    async def count(question: Mapping[str, Any], report: ReportJobProgress) -> Mapping[str, Any]:
        return {"counted": 0}

    done = await run_until(jobs, job, "done", {"toy.count": count})
    assert done.attempts == 2


@requirement("room:jobs")
async def test_a_job_that_fails_says_why_and_the_next_one_is_done(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    bad = jobs.add_job("toy.count", "Count", {"to": "no number"})
    good = jobs.add_job("toy.count", "Count", {"to": 1})

    async def count(question: Mapping[str, Any], report: ReportJobProgress) -> Mapping[str, Any]:
        if question["to"] == "no number":
            raise JobNotFound("There is nothing to count")
        return {}

    await run_until(jobs, good, "done", {"toy.count": count})
    assert (jobs.get_job(bad.id).state, jobs.get_job(bad.id).error) == (
        "failed",
        "There is nothing to count",
    )


# --- turns, bounds and files ---


def add_with_file(jobs: JobStore, caller: str, size: int = 1) -> BackgroundJob:
    folder = jobs.make_job_folder("toy.count")
    (folder / "0").write_bytes(b"x" * size)
    return jobs.add_job("toy.count", "Count", {"folder": str(folder)}, caller, folder)


@requirement("room:jobs")
def test_callers_take_turns_and_have_one_job_done_at_a_time(tmp_path: Path) -> None:
    clock = Clock()
    jobs = open_store(tmp_path, clock)
    names = {}
    for name in ("ann 1", "ann 2", "ann 3", "ben 1", "ben 2", "cat 1"):
        clock.seconds += 1
        names[jobs.add_job("toy.count", name, {}, f"key:{name[:3]}").id] = name
    done = []
    while first := jobs.claim_job(KINDS, "worker"):
        clock.seconds += 1
        second = jobs.claim_job(KINDS, "worker")
        if second:
            assert second.caller != first.caller
        for job in filter(None, (first, second)):
            clock.seconds += 1
            jobs.finish_job(job.id, "worker", {})
            done.append(names[job.id])
    assert done == ["ann 1", "ben 1", "cat 1", "ann 2", "ben 2", "ann 3"]


@requirement("room:jobs")
async def test_a_job_that_never_ends_keeps_no_other_caller_waiting(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    for _ in range(5):
        jobs.add_job("toy.count", "Hang", {"hang": True}, "key:ann")
    last = jobs.add_job("toy.count", "Count", {}, "key:ben")

    async def count(question: Mapping[str, Any], report: ReportJobProgress) -> Mapping[str, Any]:
        if question.get("hang"):
            await anyio.sleep_forever()
        return {"caller": current_caller_id.get()}

    done = await run_until(jobs, last, "done", {"toy.count": count})
    assert done.outcome == {"caller": "key:ben"}


@requirement("room:jobs")
def test_what_waits_is_bounded_for_each_caller_and_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = open_store(tmp_path)
    for _ in range(store.MAX_UNFINISHED_JOBS_PER_CALLER):
        add_with_file(jobs, "key:ann")
    with pytest.raises(TooManyJobs):
        add_with_file(jobs, "key:ann")
    add_with_file(jobs, "key:ben")
    monkeypatch.setattr(store, "MAX_UNFINISHED_BYTES_PER_CALLER", 1000)
    add_with_file(jobs, "key:ben", 900)
    with pytest.raises(TooManyJobs):
        add_with_file(jobs, "key:ben", 100)
    monkeypatch.setattr(store, "MAX_UNFINISHED_JOBS", store.MAX_UNFINISHED_JOBS_PER_CALLER + 2)
    with pytest.raises(TooManyJobs):
        add_with_file(jobs, "key:cat")
    monkeypatch.setattr(store, "MAX_UNFINISHED_JOBS", 1000)
    monkeypatch.setattr(store, "MIN_FREE_DISK_BYTES", 2**80)
    with pytest.raises(TooManyJobs):
        add_with_file(jobs, "key:cat")
    jobs.add_job("toy.count", "Without files", {}, "key:cat")
    # Whatever was refused left nothing behind.
    folders = list((tmp_path / "queued" / "toy.count").iterdir())
    assert len(folders) == (0 if is_shared() else store.MAX_UNFINISHED_JOBS_PER_CALLER + 2)


@requirement("room:jobs")
def test_the_files_of_a_job_go_when_it_ends_however_it_ends(tmp_path: Path) -> None:
    clock = Clock()
    jobs = open_store(tmp_path, clock)
    finished, failed = add_with_file(jobs, "key:ann"), add_with_file(jobs, "key:ben")
    hopeless = add_with_file(jobs, "key:cat")
    for _ in KINDS * 3:
        jobs.claim_job(KINDS, "worker")
    assert jobs.finish_job(finished.id, "worker", {}) and jobs.fail_job(failed.id, "worker", "No")
    (left,) = (tmp_path / "queued").glob("*/*")
    assert left.name.startswith(hopeless.id)
    for _ in range(MAX_JOB_ATTEMPTS):
        clock.seconds += MAX_SILENT_SECONDS + 1
        jobs.claim_job(KINDS, "worker")
    assert jobs.get_job(hopeless.id).state == "failed"
    assert list((tmp_path / "queued").glob("*/*")) == []


@pytest.mark.embedded_only("there the files are rows of their job")
@requirement("room:jobs")
def test_files_that_no_job_names_are_deleted_at_the_start(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    kept = add_with_file(jobs, "key:ann")
    jobs.make_job_folder("toy.count")  # a process was killed before it queued the job
    of_others = jobs.make_job_folder("other.kind")
    jobs.take_over_jobs(KINDS)
    left = {folder.name for folder in (tmp_path / "queued").glob("*/*")}
    assert left == {kept.id, of_others.name}


@pytest.mark.embedded_only("no older table exists there")
@requirement("room:jobs")
def test_jobs_of_a_table_without_callers_are_done(tmp_path: Path) -> None:
    jobs = open_store(tmp_path)
    jobs.add_job("toy.count", "Count", {})
    with closing(connect(tmp_path / store.JOBS_FILE_NAME)) as db:
        db.execute("ALTER TABLE jobs DROP COLUMN caller")
        db.execute("ALTER TABLE jobs DROP COLUMN file_bytes")
    claimed = JobStore(tmp_path).claim_job(KINDS, "ann")
    assert claimed is not None and claimed.caller == ""

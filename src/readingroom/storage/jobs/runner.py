"""Runs jobs in the background of a server: claims them, keeps them alive, writes their outcome."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from readingroom.core.caller import current_caller
from readingroom.core.errors import KnowledgeError
from readingroom.storage.errors import StorageFailed
from readingroom.storage.jobs.store import MAX_SILENT_SECONDS, BackgroundJob, JobStore

logger = logging.getLogger(__name__)

ReportPercent = Callable[[float, str], Awaitable[None]]
JobHandler = Callable[[Mapping[str, Any], ReportPercent], Awaitable[Mapping[str, Any]]]
"""Does a job of one kind: gets what was asked and a callback for percent and phase, and returns
the outcome. It is called again, with the same question, when it was interrupted.
"""
_SECONDS_BETWEEN_LOOKS = 1.0
"""How often the table is looked at: another process may have queued a job."""
_MAX_RUNNING_JOBS = 8
"""Jobs that are done at once, each of another caller. What they cost is shared out elsewhere: the
processes that read files and the embedding model have seats of their own.
"""


class JobRunner:
    """Does the jobs of the kinds that it has handlers for, one at a time for each caller."""

    def __init__(self, store: JobStore, handlers: Mapping[str, JobHandler]) -> None:
        self._job_store = store
        self._handlers_by_kind = handlers
        self._worker = secrets.token_hex(8)
        self._running_count = 0
        self._has_changed = anyio.Event()

    async def take_over_jobs(self) -> None:
        """Become the one who does these jobs; call it before the first form can be sent."""
        try:
            await _run_in_thread(self._job_store.take_over_jobs, tuple(self._handlers_by_kind))
        except StorageFailed as error:
            logger.warning("Jobs wait: %s", error.message)

    async def run_jobs(self) -> None:
        """Do jobs until this is cancelled. What is then unfinished is begun again by the next."""
        if not self._handlers_by_kind:
            return
        async with anyio.create_task_group() as tasks:
            while True:
                while job := await self._claim_job():
                    self._running_count += 1
                    tasks.start_soon(self._run_job, job)
                self._has_changed = anyio.Event()
                with anyio.move_on_after(_SECONDS_BETWEEN_LOOKS):
                    await self._has_changed.wait()

    async def _claim_job(self) -> BackgroundJob | None:
        if self._running_count >= _MAX_RUNNING_JOBS:
            return None
        job_kinds = tuple(self._handlers_by_kind)
        try:
            job: BackgroundJob | None = await _run_in_thread(
                self._job_store.claim_job, job_kinds, self._worker
            )
        except StorageFailed as error:
            logger.warning("Jobs wait: %s", error.message)
            return None
        return job

    async def _run_job(self, job: BackgroundJob) -> None:
        current_caller.set(job.caller)  # whose seats this takes
        try:
            await self._run_handler(job)
        except StorageFailed as error:  # the next worker begins the job again
            logger.warning("The outcome of a job cannot be kept: %s", error.message)
        finally:
            self._running_count -= 1
            self._has_changed.set()

    async def _run_handler(self, job: BackgroundJob) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_heartbeats, job)
            try:
                job_outcome = await self._handlers_by_kind[job.kind](
                    job.question, partial(self._report_progress, job)
                )
            except KnowledgeError as error:
                await _run_in_thread(self._job_store.fail_job, job.id, self._worker, error.message)
            except Exception as error:
                logger.error("job %s failed", job.kind, exc_info=error)
                reason = "Something went wrong on our side; the log has the reason"
                await _run_in_thread(self._job_store.fail_job, job.id, self._worker, reason)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await _run_in_thread(self._job_store.put_job_back, job.id, self._worker)
                raise
            else:
                await _run_in_thread(self._job_store.finish_job, job.id, self._worker, job_outcome)
            tasks.cancel_scope.cancel()

    async def _send_heartbeats(self, job: BackgroundJob) -> None:
        while True:
            await anyio.sleep(MAX_SILENT_SECONDS / 6)
            await _run_in_thread(self._job_store.record_heartbeat, job.id, self._worker)

    async def _report_progress(self, job: BackgroundJob, percent: float, phase: str) -> None:
        await _run_in_thread(self._job_store.report_progress, job.id, self._worker, percent, phase)


async def _run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return await anyio.to_thread.run_sync(partial(function, *arguments))

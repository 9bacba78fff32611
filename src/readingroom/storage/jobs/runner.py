"""Runs jobs in the background of a server: claims them, keeps them alive, writes their outcome."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from readingroom.core.errors import KnowledgeError
from readingroom.core.ids import current_caller_id
from readingroom.storage.errors import StorageFailed
from readingroom.storage.jobs.store import MAX_SILENT_SECONDS, BackgroundJob, JobStore

logger = logging.getLogger(__name__)

ReportJobProgress = Callable[[float, str], Awaitable[None]]
JobHandler = Callable[[Mapping[str, Any], ReportJobProgress], Awaitable[Mapping[str, Any]]]
"""Does a job of one kind: gets what was asked and a callback for percent and phase, and returns
the outcome. It is called again, with the same question, when it was interrupted.
"""
_SECONDS_BETWEEN_POLLS = 1.0
"""How often the table is looked at: another process may have queued a job."""
_MAX_RUNNING_JOBS = 8
"""Jobs that are done at once, each of another caller. What they cost is shared out elsewhere: the
processes that read files and the embedding model have seats of their own.
"""


class JobRunner:
    """Does the jobs of the kinds that it has handlers for, one at a time for each caller."""

    def __init__(self, job_store: JobStore, handlers_by_kind: Mapping[str, JobHandler]) -> None:
        self._job_store = job_store
        self._handlers_by_kind = handlers_by_kind
        self._worker_name = secrets.token_hex(8)
        self._running_count = 0
        self._change_event = anyio.Event()

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
        async with anyio.create_task_group() as task_group:
            while True:
                while claimed_job := await self._claim_job():
                    self._running_count += 1
                    task_group.start_soon(self._run_job, claimed_job)
                # An event stays set, so each wait has a new one.
                self._change_event = anyio.Event()
                with anyio.move_on_after(_SECONDS_BETWEEN_POLLS):
                    await self._change_event.wait()

    async def _claim_job(self) -> BackgroundJob | None:
        if self._running_count >= _MAX_RUNNING_JOBS:
            return None
        job_kinds = tuple(self._handlers_by_kind)
        try:
            claimed_job: BackgroundJob | None = await _run_in_thread(
                self._job_store.claim_job, job_kinds, self._worker_name
            )
        except StorageFailed as error:
            logger.warning("Jobs wait: %s", error.message)
            return None
        return claimed_job

    async def _run_job(self, background_job: BackgroundJob) -> None:
        current_caller_id.set(background_job.caller)  # whose seats this takes
        try:
            await self._run_handler(background_job)
        except StorageFailed as error:  # the next worker begins the job again
            logger.warning("The outcome of a job cannot be kept: %s", error.message)
        finally:
            self._running_count -= 1
            self._change_event.set()

    async def _run_handler(self, background_job: BackgroundJob) -> None:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(self._send_heartbeats, background_job)
            try:
                job_outcome = await self._handlers_by_kind[background_job.kind](
                    background_job.question, partial(self._report_progress, background_job)
                )
            except KnowledgeError as error:
                await _run_in_thread(
                    self._job_store.fail_job, background_job.id, self._worker_name, error.message
                )
            except Exception as error:
                logger.error("job %s failed", background_job.kind, exc_info=error)
                # The rest stays in the log: callers read this, and an error may name folders of
                # this machine.
                failure_reason = "Something went wrong on our side; the log has the reason"
                await _run_in_thread(
                    self._job_store.fail_job, background_job.id, self._worker_name, failure_reason
                )
            except anyio.get_cancelled_exc_class():
                # Shielded: a job that is not put back is begun again only when its worker counts as
                # silent.
                with anyio.CancelScope(shield=True):
                    await _run_in_thread(
                        self._job_store.put_job_back, background_job.id, self._worker_name
                    )
                raise
            else:
                await _run_in_thread(
                    self._job_store.finish_job, background_job.id, self._worker_name, job_outcome
                )
            # The heartbeats would go on, and this would wait for them.
            task_group.cancel_scope.cancel()

    async def _send_heartbeats(self, background_job: BackgroundJob) -> None:
        while True:
            # So often that several may be late before another worker takes the job.
            await anyio.sleep(MAX_SILENT_SECONDS / 6)
            await _run_in_thread(
                self._job_store.record_heartbeat, background_job.id, self._worker_name
            )

    async def _report_progress(
        self, background_job: BackgroundJob, done_percent: float, phase_name: str
    ) -> None:
        await _run_in_thread(
            self._job_store.report_progress,
            background_job.id,
            self._worker_name,
            done_percent,
            phase_name,
        )


async def _run_in_thread(blocking_function: Callable[..., Any], *arguments: Any) -> Any:
    return await anyio.to_thread.run_sync(partial(blocking_function, *arguments))

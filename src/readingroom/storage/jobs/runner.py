"""Runs jobs in the background of a server: claims them, keeps them alive, writes their outcome."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from readingroom.core.errors import KnowledgeError
from readingroom.storage.errors import StorageFailed
from readingroom.storage.jobs.store import SILENT_SECONDS, BackgroundJob, JobStore

logger = logging.getLogger(__name__)

ReportPercent = Callable[[float, str], Awaitable[None]]
JobHandler = Callable[[Mapping[str, Any], ReportPercent], Awaitable[Mapping[str, Any]]]
"""Does a job of one kind: gets what was asked and a callback for percent and phase, and returns
the outcome. It is called again, with the same question, when it was interrupted.
"""
_LOOK_SECONDS = 1.0
"""How often the table is looked at: another process may have queued a job."""


class JobRunner:
    """Does the jobs of the kinds that it has handlers for, one at a time."""

    def __init__(self, store: JobStore, handlers: Mapping[str, JobHandler]) -> None:
        self._store = store
        self._handlers = handlers
        self._worker = secrets.token_hex(8)

    async def run(self) -> None:
        """Do jobs until this is cancelled. What is then unfinished is begun again by the next."""
        if not self._handlers:
            return
        kinds = tuple(self._handlers)
        await _run_in_thread(self._store.release_all, kinds)
        while True:
            try:
                job = await _run_in_thread(self._store.claim, kinds, self._worker)
                if job is not None:
                    await self._do(job)
                    continue
            except StorageFailed as error:
                logger.warning("Jobs wait: %s", error.message)
            await anyio.sleep(_LOOK_SECONDS)

    async def _do(self, job: BackgroundJob) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat, job)
            try:
                outcome = await self._handlers[job.kind](job.question, partial(self._report, job))
            except KnowledgeError as error:
                await _run_in_thread(self._store.fail, job.id, self._worker, error.message)
            except Exception as error:
                logger.error("job %s failed", job.kind, exc_info=error)
                reason = "Something went wrong on our side; the log has the reason"
                await _run_in_thread(self._store.fail, job.id, self._worker, reason)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await _run_in_thread(self._store.put_back, job.id, self._worker)
                raise
            else:
                await _run_in_thread(self._store.finish, job.id, self._worker, outcome)
            tasks.cancel_scope.cancel()

    async def _beat(self, job: BackgroundJob) -> None:
        while True:
            await anyio.sleep(SILENT_SECONDS / 6)
            await _run_in_thread(self._store.beat, job.id, self._worker)

    async def _report(self, job: BackgroundJob, percent: float, phase: str) -> None:
        await _run_in_thread(self._store.report, job.id, self._worker, percent, phase)


async def _run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return await anyio.to_thread.run_sync(partial(function, *arguments))

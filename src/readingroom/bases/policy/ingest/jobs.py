"""Background ingestions: run one at a time, by turns, and picked up again after a restart."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio

from readingroom.bases.policy.errors import RevisionBusy
from readingroom.bases.policy.ingest.ingestion import Ingestion
from readingroom.bases.policy.registry.opening import AnyPolicyRegistry
from readingroom.bases.policy.registry.records import Revision, RevisionStatus
from readingroom.core.errors import KnowledgeError
from readingroom.core.ids import current_caller_id
from readingroom.core.progress import no_progress
from readingroom.core.work_slots import TurnQueue
from readingroom.protocol.command import is_opened_for_command
from readingroom.storage.errors import RegistryUnavailable

logger = logging.getLogger(__name__)

# Long enough not to flood the log while Redis restarts, short enough for one who waits.
_RETRY_SECONDS = 5.0
# How soon the work of a process that was killed is taken over: the database releases the lock when
# the kernel closes its connection, which is at once on the same machine.
_TAKEOVER_SECONDS = 3.0
# Whoever registered a revision has begun to read it by then, or has ended.
_MIN_ABANDONED_AGE = timedelta(seconds=10)


class IngestionQueue:
    """The queue of one process. Whatever it holds is also `processing` in the registry."""

    def __init__(self, policy_registry: AnyPolicyRegistry, ingestion: Ingestion) -> None:
        self._registry = policy_registry
        self._ingestion = ingestion
        self._queued_ids: set[str] = set()
        self._is_shared = ingestion.is_shared
        # Without a bound: what is queued is in the registry as well, so refusing it would not
        # save memory.
        self._queue: TurnQueue[Revision] = TurnQueue()

    @asynccontextmanager
    async def run_worker(self) -> AsyncIterator[None]:
        """Finish what an earlier process began, then work on jobs until the exit.

        Opened for one command, this leaves revisions that are `processing` to the command: what it
        began on them would be thrown away at the exit.
        """
        is_for_command = is_opened_for_command.get()
        async with anyio.create_task_group() as task_group:
            try:
                if is_for_command:
                    await self._ingestion.finish_interrupted_changes(no_progress)
                else:
                    await self._queue_unfinished_revisions()
            except RegistryUnavailable as error:
                logger.error("%s; trying again", error.message)
                if not is_for_command:
                    task_group.start_soon(self._retry_queueing)
            if self._is_shared and not is_for_command:
                task_group.start_soon(self._queue_abandoned_repeatedly)
            task_group.start_soon(self._run_jobs)
            yield
            task_group.cancel_scope.cancel()

    def queue_revision(self, revision: Revision) -> str:
        """Queue a revision whose file is in place; returns the job's id."""
        if revision.revision_id not in self._queued_ids:
            self._queued_ids.add(revision.revision_id)
            self._queue.put_item(current_caller_id.get(), revision)
        return f"ingest:{revision.revision_id}"

    def has_queued(self, revision_id: str) -> bool:
        """Return whether this process will come to a revision, or is at it."""
        return revision_id in self._queued_ids

    async def _queue_unfinished_revisions(self, skips_recent_revisions: bool = False) -> None:
        """Queue what waits; with `skips_recent`, not what its own process may be about to begin."""
        await self._ingestion.finish_interrupted_changes(no_progress)
        policies = await self._registry.list_policies()
        timelines_by_slug = await self._registry.get_timelines(policy.source for policy in policies)
        for revisions in timelines_by_slug.values():
            for revision in revisions:
                is_recent = self._ingestion.get_now() - revision.created_at < _MIN_ABANDONED_AGE
                if revision.status == RevisionStatus.PROCESSING and not (
                    skips_recent_revisions and is_recent
                ):
                    self.queue_revision(revision)

    async def _queue_abandoned_repeatedly(self) -> None:
        """Queue, again and again, what another process began and did not live to end."""
        while True:
            await anyio.sleep(_TAKEOVER_SECONDS)
            try:
                await self._queue_unfinished_revisions(skips_recent_revisions=True)
            except KnowledgeError as error:
                logger.error("%s; trying again", error.message)

    async def _retry_queueing(self) -> None:
        while True:
            await anyio.sleep(_RETRY_SECONDS)
            try:
                return await self._queue_unfinished_revisions()
            except KnowledgeError as error:
                logger.error("%s; trying again", error.message)

    async def _run_jobs(self) -> None:
        while True:
            revision = await self._queue.take_item()
            try:
                if await self._is_unfinished(revision):
                    await self._ingest_queued_revision(revision)
            except RevisionBusy:
                # Whoever has it ends it, or fails and says so.
                logger.info("%s is being ingested already", revision.revision_id)
            except KnowledgeError as error:
                logger.warning("%s could not be ingested: %s", revision.revision_id, error.message)
                await self._mark_failed(revision, error)
            # One bad file must not end the worker, and with it the task group of the whole base.
            except Exception as error:
                logger.error("ingesting %s failed", revision.revision_id, exc_info=error)
                await self._mark_failed(revision, error)
            self._queued_ids.discard(revision.revision_id)

    async def _is_unfinished(self, revision: Revision) -> bool:
        """Return whether it still waits: somebody else may have ended it since it was queued."""
        if revision.status != RevisionStatus.PROCESSING:
            return True  # somebody asked for it to be read again
        return any(
            registered_revision.revision_id == revision.revision_id
            and registered_revision.status == RevisionStatus.PROCESSING
            for registered_revision in await self._registry.get_revisions(revision.source)
        )

    async def _ingest_queued_revision(self, revision: Revision) -> None:
        file_path = await self._ingestion.locate_file(revision)
        async with self._ingestion.files.open_copy_in_thread(file_path) as private_copy:
            await self._ingestion.ingest_revision(revision, private_copy, no_progress)

    async def _mark_failed(self, revision: Revision, error: Exception) -> None:
        """Mark a revision as failed, so that none stays `processing` for good."""
        # An unexpected error's own words may name paths and hosts; they stay in the log.
        error_message = error.message if isinstance(error, KnowledgeError) else "internal error"
        try:
            for registered_revision in await self._registry.get_revisions(revision.source):
                is_same_revision = registered_revision.revision_id == revision.revision_id
                if is_same_revision and registered_revision.status == RevisionStatus.PROCESSING:
                    await self._ingestion.mark_failed(registered_revision, error_message)
        except KnowledgeError as second_error:
            logger.error(
                "%s could not be marked as failed: %s", revision.revision_id, second_error.message
            )

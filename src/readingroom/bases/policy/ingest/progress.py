"""Which revisions are being ingested now, and how far each has come."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from readingroom.bases.policy.admin_models import Progress
from readingroom.bases.policy.errors import RevisionBusy
from readingroom.storage.postgres.database import PostgresDatabase


class IngestionProgress:
    """The ingestions of one process; a revision has at most one at a time, in all processes."""

    def __init__(self, postgres_database: PostgresDatabase | None) -> None:
        """In `postgres_database`, processes that share it keep each other from one revision."""
        self._database = postgres_database
        self._progress_by_revision: dict[str, Progress] = {}

    def find_progress(self, revision_id: str) -> Progress | None:
        """Return how far the ingestion of a revision has come; None when there is none."""
        return self._progress_by_revision.get(revision_id)

    def set_progress(
        self, revision_id: str, phase_name: str, done_percent: float, chunk_count: int
    ) -> None:
        """Record how far the ingestion of a revision has come."""
        self._progress_by_revision[revision_id] = Progress(
            phase=phase_name, percent_complete=int(done_percent), chunks_processed=chunk_count
        )

    @asynccontextmanager
    async def enclose_ingestion(self, revision_id: str) -> AsyncIterator[None]:
        """Enclose an ingestion; raise `RevisionBusy` when the revision has one already."""
        error_message = f"{revision_id} is being ingested already; wait until it is active"
        if revision_id in self._progress_by_revision:
            raise RevisionBusy(error_message)
        self.set_progress(revision_id, "queued", 0, 0)
        try:
            async with self._claim_revision(revision_id) as is_claimed:
                if not is_claimed:
                    raise RevisionBusy(error_message)
                yield
        finally:
            del self._progress_by_revision[revision_id]

    async def is_being_ingested(self, revision_id: str) -> bool:
        """Return whether a process, this one or another, is ingesting a revision now."""
        if revision_id in self._progress_by_revision:
            return True
        async with self._claim_revision(revision_id) as is_claimed:
            return not is_claimed

    @asynccontextmanager
    async def claim_idle_revisions(self, revision_ids: Sequence[str]) -> AsyncIterator[None]:
        """Keep other processes from these revisions.

        Raise `RevisionBusy` when one of them is being ingested.
        """
        async with AsyncExitStack() as claim_stack:
            for revision_id in revision_ids:
                is_claimed = await claim_stack.enter_async_context(
                    self._claim_revision(revision_id)
                )
                if revision_id in self._progress_by_revision or not is_claimed:
                    raise RevisionBusy(
                        f"{revision_id} is being ingested; wait until that has ended, then delete "
                        "it"
                    )
            yield

    @asynccontextmanager
    async def _claim_revision(self, revision_id: str) -> AsyncIterator[bool]:
        """Keep other processes from a revision; yield False when one of them has it."""
        if self._database is None:
            yield True
            return
        async with self._database.hold_lock_async(f"policy revision {revision_id}") as is_claimed:
            yield is_claimed

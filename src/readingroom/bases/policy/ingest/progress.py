"""Which revisions are being ingested now, and how far each has come."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from readingroom.bases.policy.admin_models import Progress
from readingroom.bases.policy.errors import RevisionBusy


class IngestionProgress:
    """The ingestions of one process; a revision has at most one at a time."""

    def __init__(self) -> None:
        self._progress_by_revision: dict[str, Progress] = {}

    def get(self, revision_id: str) -> Progress | None:
        """Return how far the ingestion of a revision has come; None when there is none."""
        return self._progress_by_revision.get(revision_id)

    def set(self, revision_id: str, phase: str, percent: float, chunk_count: int) -> None:
        """Record how far the ingestion of a revision has come."""
        self._progress_by_revision[revision_id] = Progress(
            phase=phase, percent_complete=int(percent), chunks_processed=chunk_count
        )

    @contextmanager
    def mark_busy(self, revision_id: str) -> Iterator[None]:
        """Enclose an ingestion; raise `RevisionBusy` when the revision has one already."""
        if revision_id in self._progress_by_revision:
            raise RevisionBusy(f"{revision_id} is being ingested already; wait until it is active")
        self.set(revision_id, "queued", 0, 0)
        try:
            yield
        finally:
            del self._progress_by_revision[revision_id]

    def refuse_busy(self, revision_ids: Sequence[str]) -> None:
        """Raise `RevisionBusy` when one of these revisions is being ingested."""
        for revision_id in revision_ids:
            if revision_id in self._progress_by_revision:
                raise RevisionBusy(
                    f"{revision_id} is being ingested; wait until that has ended, then delete it"
                )

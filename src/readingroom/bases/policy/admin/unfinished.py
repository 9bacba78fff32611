"""Revisions that an interrupted command left `processing`, finished by the next one."""

import filecmp
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import NewRevision
from readingroom.bases.policy.errors import RevisionBusy
from readingroom.bases.policy.models import IngestedRevision
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Revision, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.progress import ReportProgress

_WAIT_SECONDS = 1.0


class UnfinishedRevisions:
    """The revisions of a base that are `processing`, for a command that waits for them."""

    def __init__(self, policy_service: PolicyService, report_progress: ReportProgress) -> None:
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)
        self._report_progress = report_progress

    async def find_revision(
        self, policy_slug: str, new_revision: NewRevision, spool_path: Path
    ) -> Revision | None:
        """Return the unfinished revision with this label, these days and this file, if any."""
        for revision in await self._service.registry.get_revisions(policy_slug):
            # The end that a successor gave it is not the one it was registered with.
            last_day = None if revision.closed_by else revision.effective_to
            if (
                revision.status == RevisionStatus.PROCESSING
                and revision.version_label == new_revision.version_label
                and revision.effective_from == new_revision.effective_from
                and last_day == new_revision.effective_to
                and revision.stage == new_revision.stage
                and await self._has_file(revision, spool_path)
            ):
                return revision
        return None

    async def finish_revision(
        self, policy_slug: str, revision_id: str, spool_path: Path, file_extension: str
    ) -> IngestedRevision:
        """Ingest a revision with the file it has, or wait for the process that does so.

        One whose file never came into place gets that at `spool_path`.

        Raises:
            PolicyNotFound, RevisionNotFound: it is not there any more.
            NoContent: no text was found in the file; the revision is marked as failed.
        """
        last_message = ""
        while (revision := await self._get_revision(policy_slug, revision_id)).status == (
            RevisionStatus.PROCESSING
        ):
            if not await self._service.ingestion.progress.is_being_ingested(revision_id):
                await self._report_progress(0, None, f"taking {revision_id} up again")
                try:
                    return await self._ingest_revision(revision, spool_path, file_extension)
                except RevisionBusy:  # somebody else was quicker
                    continue
            message = self._describe_wait(revision_id)
            if message != last_message:
                await self._report_progress(0, None, message)
                last_message = message
            await anyio.sleep(_WAIT_SECONDS)
        chunks = await self._service.store.get_chunks(policy_slug, revision_id)
        if not (revision.is_readable and chunks):  # it failed: reading it again says why
            return await self._ingest_revision(revision, spool_path, file_extension)
        return IngestedRevision(
            source=policy_slug,
            revision_id=revision_id,
            chunks_created=len(chunks),
            page_count=revision.page_count or 0,
            extraction_method=chunks[0].extraction_method,
            already_ingested=True,
        )

    async def _ingest_revision(
        self, revision: Revision, spool_path: Path, file_extension: str
    ) -> IngestedRevision:
        slug_and_id = (revision.source, revision.revision_id)
        file_path = await self._service.ingestion.locate_file(revision)
        if await anyio.Path(file_path).exists():
            return await self._admin.reingest_and_wait(*slug_and_id, self._report_progress)
        return await self._admin.replace_file(
            *slug_and_id, spool_path, self._report_progress, file_extension
        )

    def _describe_wait(self, revision_id: str) -> str:
        progress = self._service.ingestion.find_progress(revision_id)
        return f"waiting for {revision_id}, which " + (
            f"this server is ingesting: {progress.phase}, {progress.percent_complete}%"
            if progress
            else "another process is ingesting"
        )

    async def _has_file(self, revision: Revision, spool_path: Path) -> bool:
        """Return whether a file is that of a revision; any is where its own never came in."""
        file_path = await self._service.ingestion.locate_file(revision)
        return not await anyio.Path(file_path).exists() or await anyio.to_thread.run_sync(
            filecmp.cmp, file_path, spool_path, False
        )

    async def _get_revision(self, policy_slug: str, revision_id: str) -> Revision:
        await self._service.registry.get_policy(policy_slug)
        revisions = await self._service.registry.get_revisions(policy_slug)
        return timeline.get_revision(revisions, revision_id)

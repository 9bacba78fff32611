"""Bulk import of policies and revisions from a list.

What is there is left alone, what failed before is tried again, and a bad file stops no other.
"""

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import ImportedPolicy, ImportedRevision, ImportReport
from readingroom.bases.policy.errors import PolicyExists
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.storage.handover import open_handover


class BulkImport:
    """One import, and what it has added so far."""

    def __init__(self, service: PolicyService, report: ReportProgress) -> None:
        self._folder = service.folder
        self._admin = PolicyAdmin(service)
        self._report = report
        self._policies_added: list[str] = []
        self._revisions_added: list[str] = []
        self._already_there: list[str] = []
        self._failed: list[str] = []

    async def run(self, entries: list[ImportedPolicy]) -> ImportReport:
        """Add every policy and its revisions, oldest first: each then closes the one before."""
        for entry in entries:
            await self._add_policy(entry)
            for revision in sorted(entry.revisions, key=lambda item: item.revision.effective_from):
                await self._add_revision(entry.policy.source, revision)
        return ImportReport(
            policies_added=self._policies_added,
            revisions_added=self._revisions_added,
            already_there=self._already_there,
            failed=self._failed,
        )

    async def _add_policy(self, entry: ImportedPolicy) -> None:
        try:
            await self._admin.create_policy(entry.policy)
            self._policies_added.append(entry.policy.source)
        except PolicyExists:
            self._already_there.append(entry.policy.source)

    async def _add_revision(self, source: str, entry: ImportedRevision) -> None:
        label = f"{source} {entry.revision.version_label}"
        try:
            was_added = await self._ingest_if_missing(source, entry)
            (self._revisions_added if was_added else self._already_there).append(label)
        except KnowledgeError as error:
            if error.http_status >= 500:  # our own failure, so the next one would fail as well
                raise
            self._failed.append(f"{label}: {error.message}")

    async def _ingest_if_missing(self, source: str, entry: ImportedRevision) -> bool:
        """Ingest a revision; return False if one with the same first day is there already."""
        revisions = (await self._admin.get_policy(source)).revisions
        by_first_day = {revision.effective_from: revision for revision in revisions}
        # By day, not by label: labels are typed by people, and days cannot overlap.
        existing = by_first_day.get(entry.revision.effective_from)
        # Entered also when nothing is to be done, because leaving it deletes the copy.
        async with open_handover(self._folder, entry.file) as file:
            if existing is None:
                await self._admin.revise(source, entry.revision, file, self._report)
            elif existing.status == RevisionStatus.FAILED:
                await self._admin.replace_file(source, existing.revision_id, file, self._report)
            else:
                return False
        return True

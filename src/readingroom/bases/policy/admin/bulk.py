"""A bulk import: what is there is left alone, what failed before is tried again, and one bad file
does not keep the others out.
"""

from readingroom.bases.policy.admin.service import Registrar
from readingroom.bases.policy.admin_models import Imported, ImportedPolicy, ImportedRevision
from readingroom.bases.policy.errors import PolicyExists
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.storage.handover import handed_over


class BulkImport:
    """One import, and what has come of it so far."""

    def __init__(self, service: PolicyService, report: ReportProgress) -> None:
        self._folder = service.folder
        self._registrar = Registrar(service)
        self._report = report
        self._policies: list[str] = []
        self._revisions: list[str] = []
        self._there: list[str] = []
        self._failed: list[str] = []

    async def add(self, policies: list[ImportedPolicy]) -> Imported:
        """Add what is listed, each policy's revisions in the order of their days."""
        for one in policies:
            await self._policy(one)
            for entry in sorted(one.revisions, key=lambda of: of.revision.effective_from):
                await self._revision(one.policy.source, entry)
        return Imported(
            policies_added=self._policies,
            revisions_added=self._revisions,
            already_there=self._there,
            failed=self._failed,
        )

    async def _policy(self, one: ImportedPolicy) -> None:
        try:
            await self._registrar.create_policy(one.policy)
            self._policies.append(one.policy.source)
        except PolicyExists:
            self._there.append(one.policy.source)

    async def _revision(self, source: str, entry: ImportedRevision) -> None:
        named = f"{source} {entry.revision.version_label}"
        try:
            added = await self._added(source, entry)
            (self._revisions if added else self._there).append(named)
        except KnowledgeError as error:
            if error.http_status >= 500:  # the next one would fare no better
                raise
            self._failed.append(f"{named}: {error.message}")

    async def _added(self, source: str, entry: ImportedRevision) -> bool:
        known = (await self._registrar.policy(source)).revisions
        first_days = {one.effective_from: one for one in known}
        same = first_days.get(entry.revision.effective_from)
        async with handed_over(self._folder, entry.file) as spool:
            if same is None:
                await self._registrar.revise(source, entry.revision, spool, self._report)
            elif same.status == RevisionStatus.FAILED:
                await self._registrar.replace(source, same.revision_id, spool, self._report)
            else:
                return False
        return True

"""Bulk import of policies and revisions from a list.

What is there is left alone, what was cut off is finished, what failed before is tried again, and a
bad file stops no other.
"""

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin.unfinished import UnfinishedRevisions
from readingroom.bases.policy.admin_models import ImportedPolicy, ImportedRevision, ImportReport
from readingroom.bases.policy.errors import PolicyExists
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.storage.handover import open_handed_over_file


class BulkImport:
    """One import, and what it has added so far."""

    def __init__(self, policy_service: PolicyService, report_progress: ReportProgress) -> None:
        self._policy_folder = policy_service.folder
        self._admin = PolicyAdmin(policy_service)
        self._unfinished = UnfinishedRevisions(policy_service, report_progress)
        self._report_progress = report_progress
        self._added_slugs: list[str] = []
        self._added_revision_labels: list[str] = []
        self._labels_taken_up_again: list[str] = []
        self._names_already_there: list[str] = []
        self._failure_messages: list[str] = []

    async def import_policies(self, imported_policies: list[ImportedPolicy]) -> ImportReport:
        """Add every policy and its revisions, oldest first: each then closes the one before."""
        for imported_policy in imported_policies:
            await self._add_policy(imported_policy)
            for imported_revision in sorted(
                imported_policy.revisions,
                key=lambda imported_revision: imported_revision.revision.effective_from,
            ):
                await self._add_revision(imported_policy.policy.source, imported_revision)
        return ImportReport(
            policies_added=self._added_slugs,
            revisions_added=self._added_revision_labels,
            taken_up_again=self._labels_taken_up_again,
            already_there=self._names_already_there,
            failed=self._failure_messages,
        )

    async def _add_policy(self, imported_policy: ImportedPolicy) -> None:
        try:
            await self._admin.create_policy(imported_policy.policy)
            self._added_slugs.append(imported_policy.policy.source)
        except PolicyExists:
            self._names_already_there.append(imported_policy.policy.source)

    async def _add_revision(self, policy_slug: str, imported_revision: ImportedRevision) -> None:
        revision_label = f"{policy_slug} {imported_revision.revision.version_label}"
        try:
            report_lines = await self._ingest_revision_if_missing(policy_slug, imported_revision)
            report_lines.append(revision_label)
        except KnowledgeError as error:
            if error.http_status >= 500:  # our own failure, so the next one would fail as well
                raise
            self._failure_messages.append(f"{revision_label}: {error.message}")

    async def _ingest_revision_if_missing(
        self, policy_slug: str, imported_revision: ImportedRevision
    ) -> list[str]:
        """Ingest a revision unless one with its first day is there; return the list it is told in.

        One that is still `processing` is finished with the file it has.
        """
        revisions = (await self._admin.get_policy(policy_slug)).revisions
        revisions_by_first_day = {revision.effective_from: revision for revision in revisions}
        # By day, not by label: labels are typed by people, and days cannot overlap.
        existing_revision = revisions_by_first_day.get(imported_revision.revision.effective_from)
        # Entered also when nothing is to be done, because leaving it deletes the copy.
        async with open_handed_over_file(
            self._policy_folder, imported_revision.file
        ) as handed_over_file_path:
            if existing_revision is None:
                await self._admin.revise_policy(
                    *(
                        policy_slug,
                        imported_revision.revision,
                        handed_over_file_path,
                        self._report_progress,
                    ),
                    imported_revision.extension,
                )
            elif existing_revision.status == RevisionStatus.FAILED:
                await self._admin.replace_file(
                    *(
                        policy_slug,
                        existing_revision.revision_id,
                        handed_over_file_path,
                        self._report_progress,
                    ),
                    imported_revision.extension,
                )
            elif existing_revision.status == RevisionStatus.PROCESSING:
                await self._unfinished.finish_revision(
                    policy_slug,
                    existing_revision.revision_id,
                    handed_over_file_path,
                    imported_revision.extension,
                )
                return self._labels_taken_up_again
            else:
                return self._names_already_there
        return self._added_revision_labels

"""The operator's commands on the policy base, run here or by the process that owns its folder.

A file is handed over as a copy in that folder: the owner may not be allowed to read the caller's.
"""

from pathlib import Path
from typing import ClassVar

from readingroom.bases.policy.admin.bulk import BulkImport
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin.unfinished import UnfinishedRevisions
from readingroom.bases.policy.admin_models import (
    EffectivePolicies,
    ImportedPolicy,
    ImportReport,
    NewPolicy,
    NewRevision,
    PolicyDeleted,
    PolicyDetail,
    PolicyDiagnosis,
    PolicyIndex,
    PolicyPatch,
    RevisionDeleted,
    RevisionDetail,
    RevisionExtension,
    RevisionPatch,
)
from readingroom.bases.policy.backup import BACKUP_FILE_NAME_PATTERN, restore_backup, write_backup
from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    IngestedRevision,
    ListPolicySections,
    PolicyHits,
    PolicySnapshot,
    QuoteCheck,
    RevisionDiff,
    SearchPolicy,
    SectionList,
    SectionText,
    Snapshot,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.registry.records import SourceSlug
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings
from readingroom.protocol.backup import BackupCounts, OwnerBackup, ReadBackup, WriteBackup
from readingroom.protocol.command import Command, RunCommand
from readingroom.protocol.doctor import Complaint
from readingroom.storage.handover import HANDOVER_FOLDER_NAME, HandoverName, open_handed_over_file


class _PolicyCommand(Command):
    base: ClassVar[str] = "policy"


class AddPolicy(_PolicyCommand):
    """Register a policy."""

    name: ClassVar[str] = "policy.add"
    policy: NewPolicy

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyDetail:
        return await PolicyAdmin(policy_service).create_policy(self.policy)


class ChangePolicy(_PolicyCommand):
    """Change what is known of a policy: its title, category, authority or area."""

    name: ClassVar[str] = "policy.change"
    source: SourceSlug
    patch: PolicyPatch

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyDetail:
        return await PolicyAdmin(policy_service).update_policy_details(self.source, self.patch)


class RevisePolicy(_PolicyCommand):
    """Add a revision, or take up the same one that was cut off, and wait for it."""

    name: ClassVar[str] = "policy.revise"
    source: SourceSlug
    revision: NewRevision
    file: HandoverName
    extension: RevisionExtension = ".pdf"

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> IngestedRevision:
        async with open_handed_over_file(policy_service.folder, self.file) as spool_path:
            unfinished = UnfinishedRevisions(policy_service, report_progress)
            cut_off_revision = await unfinished.find_revision(
                self.source, self.revision, spool_path
            )
            if cut_off_revision:
                return await unfinished.finish_revision(
                    self.source, cut_off_revision.revision_id, spool_path, self.extension
                )
            return await PolicyAdmin(policy_service).revise_policy(
                self.source, self.revision, spool_path, report_progress, self.extension
            )


class ListPolicies(_PolicyCommand):
    """List every policy."""

    name: ClassVar[str] = "policy.list"
    reads_only: ClassVar[bool] = True

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyIndex:
        return await PolicyAdmin(policy_service).list_policies()


class ShowPolicy(_PolicyCommand):
    """Return one policy with its revisions."""

    name: ClassVar[str] = "policy.show"
    reads_only: ClassVar[bool] = True
    source: SourceSlug

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyDetail:
        return await PolicyAdmin(policy_service).get_policy(self.source)


class EffectiveOn(_PolicyCommand):
    """Return what was in force on a day."""

    name: ClassVar[str] = "policy.effective"
    reads_only: ClassVar[bool] = True
    day: str

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> EffectivePolicies:
        return await PolicyAdmin(policy_service).list_effective(parse_day(self.day))


class SearchPolicies(_PolicyCommand):
    """Search the policies."""

    name: ClassVar[str] = "policy.search"
    reads_only: ClassVar[bool] = True
    question: SearchPolicy

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyHits:
        return await policy_service.search(self.question)


class ReadSection(_PolicyCommand):
    """Return the whole text of a section."""

    name: ClassVar[str] = "policy.section"
    reads_only: ClassVar[bool] = True
    question: GetPolicySection

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> SectionText:
        return await policy_service.get_section(self.question)


class ListSections(_PolicyCommand):
    """List the sections of a revision."""

    name: ClassVar[str] = "policy.sections"
    reads_only: ClassVar[bool] = True
    question: ListPolicySections

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> SectionList:
        return await policy_service.list_section_titles(self.question)


class CompareRevisions(_PolicyCommand):
    """Compare two revisions."""

    name: ClassVar[str] = "policy.compare"
    reads_only: ClassVar[bool] = True
    question: ComparePolicyRevisions

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> RevisionDiff:
        return await policy_service.compare_revisions(self.question)


class VerifyQuote(_PolicyCommand):
    """Check a quotation."""

    name: ClassVar[str] = "policy.verify"
    reads_only: ClassVar[bool] = True
    question: VerifyPolicyQuote

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> QuoteCheck:
        return await policy_service.verify_quote(self.question)


class TakeSnapshot(_PolicyCommand):
    """Return every policy with its revision in force on a day."""

    name: ClassVar[str] = "policy.snapshot"
    reads_only: ClassVar[bool] = True
    question: PolicySnapshot

    async def run(self, policy_service: PolicyService, report_progress: ReportProgress) -> Snapshot:
        return await policy_service.get_snapshot(self.question)


class ChangeRevision(_PolicyCommand):
    """Change the days, the label or the notes of a revision."""

    name: ClassVar[str] = "policy.dates"
    source: SourceSlug
    revision_id: str
    patch: RevisionPatch

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> RevisionDetail:
        return await PolicyAdmin(policy_service).amend_revision(
            self.source, self.revision_id, self.patch
        )


class DeleteRevision(_PolicyCommand):
    """Delete a revision with its chunks and its file."""

    name: ClassVar[str] = "policy.delete"
    source: SourceSlug
    revision_id: str

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> RevisionDeleted:
        return await PolicyAdmin(policy_service).delete_revision(self.source, self.revision_id)


class DeletePolicy(_PolicyCommand):
    """Delete a policy with all its revisions."""

    name: ClassVar[str] = "policy.delete_policy"
    source: SourceSlug

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyDeleted:
        return await PolicyAdmin(policy_service).delete_policy(self.source)


class ReingestRevision(_PolicyCommand):
    """Ingest the file of a revision again and wait until it can be searched."""

    name: ClassVar[str] = "policy.reindex"
    source: SourceSlug
    revision_id: str

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> IngestedRevision:
        return await PolicyAdmin(policy_service).reingest_and_wait(
            self.source, self.revision_id, report_progress
        )


class ImportPolicies(_PolicyCommand):
    """Import policies and revisions in bulk; run again, it adds only what is still missing."""

    name: ClassVar[str] = "policy.import"
    policies: list[ImportedPolicy]

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> ImportReport:
        return await BulkImport(policy_service, report_progress).import_policies(self.policies)


class CheckPolicies(_PolicyCommand):
    """Compare registry, chunks, indexes and files."""

    name: ClassVar[str] = "policy.doctor"
    repair: bool = False

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> PolicyDiagnosis:
        return await PolicyDoctor(policy_service, self.repair).diagnose_policies()


class BackUpPolicies(_PolicyCommand, WriteBackup):
    """Write a backup of the whole base into the handover folder."""

    name: ClassVar[str] = "policy.backup"

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> BackupCounts:
        return await write_backup(
            policy_service, policy_service.folder / HANDOVER_FOLDER_NAME / self.folder
        )


class RestorePolicies(_PolicyCommand, ReadBackup):
    """Fill an empty base from a backup in the handover folder."""

    name: ClassVar[str] = "policy.restore"

    async def run(
        self, policy_service: PolicyService, report_progress: ReportProgress
    ) -> BackupCounts:
        backup_folder = policy_service.folder / HANDOVER_FOLDER_NAME / self.folder
        return await restore_backup(policy_service, backup_folder, Path(self.home), self.replace)


# A restore is not among them: it runs on a folder that no server owns.
COMMANDS: tuple[type[Command], ...] = (
    AddPolicy,
    RevisePolicy,
    ListPolicies,
    ShowPolicy,
    EffectiveOn,
    SearchPolicies,
    ReadSection,
    ListSections,
    CompareRevisions,
    VerifyQuote,
    TakeSnapshot,
    ChangeRevision,
    DeleteRevision,
    DeletePolicy,
    ReingestRevision,
    ImportPolicies,
    CheckPolicies,
    BackUpPolicies,
)

BACKUP = OwnerBackup(
    "policy",
    BackUpPolicies,
    RestorePolicies,
    BACKUP_FILE_NAME_PATTERN,
    lambda run_command, settings: bool(run_command(ListPolicies(), settings)["policies"]),
)


def run_doctor(
    settings: RoomSettings, is_repairing: bool, run_command: RunCommand
) -> list[Complaint]:
    """Return what the stores of the base disagree about; with `is_repairing`, mend what can be."""
    diagnosis_json = run_command(CheckPolicies(repair=is_repairing), settings)
    return [
        Complaint.model_validate(complaint_fields)
        for complaint_fields in diagnosis_json["complaints"]
    ]

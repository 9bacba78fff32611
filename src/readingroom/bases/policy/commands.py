"""The operator's commands on the policy base, run here or by the process that owns its folder.

A file is handed over as a copy: bytes, not a path of the caller's.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from readingroom.bases.policy.admin_models import (
    Diagnosis,
    EffectivePolicies,
    Imported,
    ImportedPolicy,
    NewPolicy,
    NewRevision,
    PolicyDetail,
    PolicyIndex,
)
from readingroom.bases.policy.models import (
    GetPolicySection,
    Ingested,
    PolicyHits,
    SearchPolicy,
    SectionText,
)
from readingroom.bases.policy.registry.records import SourceSlug
from readingroom.core.dates import parse_day
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings
from readingroom.protocol.backup import BackupCounts, OwnerBackup, ReadBackup, WriteBackup
from readingroom.protocol.command import Command, RunCommand
from readingroom.protocol.doctor import Complaint
from readingroom.storage.handover import HANDOVER, HandedOver, handed_over

if TYPE_CHECKING:
    from readingroom.bases.policy.admin.service import Registrar
    from readingroom.bases.policy.service import PolicyService


class _PolicyCommand(Command):
    base: ClassVar[str] = "policy"


class AddPolicy(_PolicyCommand):
    """Register a policy."""

    name: ClassVar[str] = "policy.add"
    policy: NewPolicy

    async def run(self, service: "PolicyService", report: ReportProgress) -> PolicyDetail:
        return await _registrar(service).create_policy(self.policy)


class RevisePolicy(_PolicyCommand):
    """Add a revision and wait until it can be searched."""

    name: ClassVar[str] = "policy.revise"
    source: SourceSlug
    revision: NewRevision
    file: HandedOver

    async def run(self, service: "PolicyService", report: ReportProgress) -> Ingested:
        async with handed_over(service.folder, self.file) as spool:
            return await _registrar(service).revise(self.source, self.revision, spool, report)


class ListPolicies(_PolicyCommand):
    """Every policy."""

    name: ClassVar[str] = "policy.list"

    async def run(self, service: "PolicyService", report: ReportProgress) -> PolicyIndex:
        return await _registrar(service).policies()


class ShowPolicy(_PolicyCommand):
    """One policy with its revisions."""

    name: ClassVar[str] = "policy.show"
    source: SourceSlug

    async def run(self, service: "PolicyService", report: ReportProgress) -> PolicyDetail:
        return await _registrar(service).policy(self.source)


class EffectiveOn(_PolicyCommand):
    """What was in force on a day."""

    name: ClassVar[str] = "policy.effective"
    day: str

    async def run(self, service: "PolicyService", report: ReportProgress) -> EffectivePolicies:
        return await _registrar(service).effective(parse_day(self.day))


class SearchPolicies(_PolicyCommand):
    """A search."""

    name: ClassVar[str] = "policy.search"
    question: SearchPolicy

    async def run(self, service: "PolicyService", report: ReportProgress) -> PolicyHits:
        return await service.search(self.question)


class ReadSection(_PolicyCommand):
    """A section, whole."""

    name: ClassVar[str] = "policy.section"
    question: GetPolicySection

    async def run(self, service: "PolicyService", report: ReportProgress) -> SectionText:
        return await service.section(self.question)


class ImportPolicies(_PolicyCommand):
    """Policies and revisions in bulk. Run again, it does only what is not done yet."""

    name: ClassVar[str] = "policy.import"
    policies: list[ImportedPolicy]

    async def run(self, service: "PolicyService", report: ReportProgress) -> Imported:
        from readingroom.bases.policy.admin.bulk import BulkImport

        return await BulkImport(service, report).add(self.policies)


class CheckPolicies(_PolicyCommand):
    """Compare registry, chunks, indexes and files."""

    name: ClassVar[str] = "policy.doctor"
    repair: bool = False

    async def run(self, service: "PolicyService", report: ReportProgress) -> Diagnosis:
        from readingroom.bases.policy.doctor import Checkup

        return await Checkup(service, self.repair).diagnose()


class BackUpPolicies(_PolicyCommand, WriteBackup):
    """Write a copy of the whole base for the one who asks."""

    name: ClassVar[str] = "policy.backup"

    async def run(self, service: "PolicyService", report: ReportProgress) -> BackupCounts:
        from readingroom.bases.policy.backup import write_copy

        return await write_copy(service, service.folder / HANDOVER / self.folder)


class RestorePolicies(_PolicyCommand, ReadBackup):
    """Fill an empty base from such a copy."""

    name: ClassVar[str] = "policy.restore"

    async def run(self, service: "PolicyService", report: ReportProgress) -> BackupCounts:
        from readingroom.bases.policy.backup import read_copy

        copy = service.folder / HANDOVER / self.folder
        return await read_copy(service, copy, Path(self.home), self.replace)


COMMANDS: tuple[type[Command], ...] = (
    AddPolicy,
    RevisePolicy,
    ListPolicies,
    ShowPolicy,
    EffectiveOn,
    SearchPolicies,
    ReadSection,
    ImportPolicies,
    CheckPolicies,
    BackUpPolicies,
)

BACKUP = OwnerBackup("policy", BackUpPolicies, RestorePolicies)


def check(settings: RoomSettings, repair: bool, run: RunCommand) -> list[Complaint]:
    """Return what the stores of the base disagree about; with `repair`, mend what can be."""
    result = run(CheckPolicies(repair=repair), settings)
    return [Complaint.model_validate(complaint) for complaint in result["complaints"]]


# Imported when a command runs: every start of the program reads this module.
def _registrar(service: "PolicyService") -> "Registrar":
    from readingroom.bases.policy.admin.service import Registrar

    return Registrar(service)

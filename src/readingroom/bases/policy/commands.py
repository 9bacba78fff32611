"""The operator's commands on the policy base, run here or by the process that owns its folder.

A file is handed over as a copy: bytes, not a path of the caller's.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from readingroom.bases.policy.models import (
    Diagnosis,
    EffectivePolicies,
    GetPolicySection,
    Ingested,
    NewPolicy,
    NewRevision,
    PolicyDetail,
    PolicyHits,
    PolicyIndex,
    SearchPolicy,
    SectionText,
)
from readingroom.bases.policy.records import SourceSlug
from readingroom.core.dates import parse_day
from readingroom.core.errors import PolicyExists
from readingroom.protocol.command import Command
from readingroom.protocol.copies import Copied, ReadCopy, WriteCopy
from readingroom.protocol.tool import Answer, Report
from readingroom.storage.handover import HANDOVER, HandedOver, handed_over

if TYPE_CHECKING:
    from readingroom.bases.policy.registrar import Registrar
    from readingroom.bases.policy.service import PolicyService


class _PolicyCommand(Command):
    base: ClassVar[str] = "policy"


class AddPolicy(_PolicyCommand):
    """Register a policy."""

    name: ClassVar[str] = "policy.add"
    policy: NewPolicy

    async def run(self, service: Any, report: Report) -> PolicyDetail:
        return await _registrar(service).create_policy(self.policy)


class RevisePolicy(_PolicyCommand):
    """Add a revision and wait until it can be searched."""

    name: ClassVar[str] = "policy.revise"
    source: SourceSlug
    revision: NewRevision
    file: HandedOver

    async def run(self, service: Any, report: Report) -> Ingested:
        async with handed_over(service.folder, self.file) as spool:
            return await _registrar(service).revise(self.source, self.revision, spool, report)


class ListPolicies(_PolicyCommand):
    """Every policy."""

    name: ClassVar[str] = "policy.list"

    async def run(self, service: Any, report: Report) -> PolicyIndex:
        return await _registrar(service).policies()


class ShowPolicy(_PolicyCommand):
    """One policy with its revisions."""

    name: ClassVar[str] = "policy.show"
    source: SourceSlug

    async def run(self, service: Any, report: Report) -> PolicyDetail:
        return await _registrar(service).policy(self.source)


class EffectiveOn(_PolicyCommand):
    """What was in force on a day."""

    name: ClassVar[str] = "policy.effective"
    day: str

    async def run(self, service: Any, report: Report) -> EffectivePolicies:
        return await _registrar(service).effective(parse_day(self.day))


class SearchPolicies(_PolicyCommand):
    """A search."""

    name: ClassVar[str] = "policy.search"
    question: SearchPolicy

    async def run(self, service: "PolicyService", report: Report) -> PolicyHits:
        return await service.search(self.question)


class ReadSection(_PolicyCommand):
    """A section, whole."""

    name: ClassVar[str] = "policy.section"
    question: GetPolicySection

    async def run(self, service: "PolicyService", report: Report) -> SectionText:
        return await service.section(self.question)


class ImportedRevision(BaseModel):
    """A revision of a bulk import, its file handed over."""

    model_config = ConfigDict(defer_build=True)

    revision: NewRevision
    file: HandedOver


class ImportedPolicy(BaseModel):
    """A policy of a bulk import."""

    model_config = ConfigDict(defer_build=True)

    policy: NewPolicy
    revisions: list[ImportedRevision]


class Imported(Answer):
    """What a bulk import did; what was there already it left alone."""

    policies_added: list[str]
    revisions_added: list[str]
    already_there: list[str]


class ImportPolicies(_PolicyCommand):
    """Policies and revisions in bulk. Run again, it does nothing again."""

    name: ClassVar[str] = "policy.import"
    policies: list[ImportedPolicy]

    async def run(self, service: Any, report: Report) -> Imported:
        registrar = _registrar(service)
        policies: list[str] = []
        revisions: list[str] = []
        there: list[str] = []
        for one in self.policies:
            try:
                await registrar.create_policy(one.policy)
                policies.append(one.policy.source)
            except PolicyExists:
                there.append(one.policy.source)
            for entry in sorted(one.revisions, key=lambda of: of.revision.effective_from):
                added = await self._revise(registrar, service, one.policy.source, entry, report)
                (revisions if added else there).append(
                    f"{one.policy.source} {entry.revision.version_label}"
                )
        return Imported(policies_added=policies, revisions_added=revisions, already_there=there)

    async def _revise(
        self,
        registrar: "Registrar",
        service: Any,
        source: str,
        entry: ImportedRevision,
        report: Report,
    ) -> bool:
        known = (await registrar.policy(source)).revisions
        starts = [one.effective_from for one in known]
        async with handed_over(service.folder, entry.file) as spool:
            if entry.revision.effective_from in starts:
                return False
            await registrar.revise(source, entry.revision, spool, report)
            return True


class CheckPolicies(_PolicyCommand):
    """Compare registry, chunks, indexes and files."""

    name: ClassVar[str] = "policy.doctor"
    repair: bool = False

    async def run(self, service: Any, report: Report) -> Diagnosis:
        from readingroom.bases.policy.checkup import Checkup

        return await Checkup(service, self.repair).diagnose()


class BackUpPolicies(WriteCopy):
    """Write a copy of the whole base for the one who asks."""

    name: ClassVar[str] = "policy.backup"
    base: ClassVar[str] = "policy"

    async def run(self, service: Any, report: Report) -> Copied:
        from readingroom.bases.policy.copies import write_copy

        return await write_copy(service, service.folder / HANDOVER / self.folder)


class RestorePolicies(ReadCopy):
    """Fill an empty base from such a copy."""

    name: ClassVar[str] = "policy.restore"
    base: ClassVar[str] = "policy"

    async def run(self, service: Any, report: Report) -> Copied:
        from readingroom.bases.policy.copies import read_copy

        copy = service.folder / HANDOVER / self.folder
        return await read_copy(service, copy, Path(self.home), self.replace)


POLICY_COMMANDS: tuple[type[Command], ...] = (
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


# Imported when a command runs: every start of the program reads this module.
def _registrar(service: Any) -> "Registrar":
    from readingroom.bases.policy.registrar import Registrar

    return Registrar(service)

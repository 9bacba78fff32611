"""Creates and changes policies and revisions: what REST and the command line ask for."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from readingroom.bases.policy.admin_models import (
    EffectivePolicies,
    EffectivePolicy,
    Links,
    NewPolicy,
    NewRevision,
    PolicyDetail,
    PolicyIndex,
    PolicyPatch,
    PolicySummary,
    Progress,
    ReindexAccepted,
    RevisionAccepted,
    RevisionDeleted,
    RevisionDetail,
    RevisionPatch,
    RevisionProgress,
    RevisionSummary,
    SideEffects,
)
from readingroom.bases.policy.ingest.ingestion import LARGEST
from readingroom.bases.policy.models import Ingested
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, PolicyCategory, Revision
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import FileTooLarge
from readingroom.core.progress import ReportProgress
from readingroom.ingest.errors import FileNotFound, UnsupportedFileType
from readingroom.ingest.intake import open_in_thread
from readingroom.protocol.rest import API

_PDF = b"%PDF-"
_HEAD = 1024  # readers accept the mark anywhere in the first kilobyte


class Registrar:
    """The book of policies, open for writing."""

    def __init__(self, service: PolicyService) -> None:
        self._service = service

    # --- policies ---

    async def create_policy(self, new: NewPolicy) -> PolicyDetail:
        now = self._service.now()
        policy = Policy(**new.model_dump(), created_at=now, updated_at=now)
        await self._service.registry.create_policy(policy)
        return self._detail(policy, ())

    async def policies(
        self, category: PolicyCategory | None = None, source: str | None = None
    ) -> PolicyIndex:
        """Every policy, or those of a category or with this in their slug."""
        found = [
            policy
            for policy in await self._service.registry.list_policies()
            if category in (None, policy.category) and (source or "").upper() in policy.source
        ]
        timelines = await self._service.registry.timelines(policy.source for policy in found)
        listed = [
            PolicySummary(
                source=policy.source,
                title=policy.title,
                category=policy.category,
                current_revision=self._current(timelines[policy.source]),
                revision_count=len(timelines[policy.source]),
            )
            for policy in found
        ]
        return PolicyIndex(policies=listed, total=len(listed))

    async def policy(self, source: str) -> PolicyDetail:
        policy = await self._service.registry.policy(source)
        return self._detail(policy, await self._service.registry.revisions(source))

    async def amend_policy(self, source: str, patch: PolicyPatch) -> PolicyDetail:
        values = patch.model_dump(exclude_unset=True)
        # A description may be taken away; a title and a category may only be replaced.
        kept = {
            name: value
            for name, value in values.items()
            if value is not None or name == "description"
        }
        await self._service.ingestion.amend_policy(source, kept)
        return await self.policy(source)

    async def effective(self, day: date) -> EffectivePolicies:
        """What was in force on a day, and which policies had nothing."""
        found: list[EffectivePolicy] = []
        early: list[str] = []
        none: list[str] = []
        policies = await self._service.registry.list_policies()
        resolved = await self._service.resolver.resolve_snapshot(
            day, [one.source for one in policies]
        )
        for policy in policies:
            resolution = resolved[policy.source]
            if resolution.revision:
                found.append(
                    EffectivePolicy(
                        source=policy.source,
                        title=policy.title,
                        category=policy.category,
                        effective_revision=_summary(resolution.revision),
                    )
                )
            else:
                missing = early if resolution.reason == "date_before_first_revision" else none
                missing.append(policy.source)
        return EffectivePolicies(
            effective_date=day,
            policies=found,
            policies_not_yet_effective=early,
            policies_with_no_revision_for_date=none,
        )

    # --- revisions ---

    async def add_revision(self, source: str, new: NewRevision, spool: Path) -> RevisionAccepted:
        """Register a revision and queue its file."""
        revision, closed = await self._register(source, new, spool)
        job = self._service.jobs.add(revision)
        return RevisionAccepted(
            source=source,
            revision_id=revision.revision_id,
            version_label=revision.version_label,
            effective_from=revision.effective_from,
            effective_to=revision.effective_to,
            status=revision.status,
            ingestion_job_id=job,
            links=_links(source, revision.revision_id),
            side_effects=SideEffects(
                superseded_revision=closed[0].revision_id if closed else None,
                superseded_effective_to=closed[0].effective_to if closed else None,
            ),
        )

    async def revise(
        self, source: str, new: NewRevision, spool: Path, report: ReportProgress
    ) -> Ingested:
        """The same, and wait until it can be searched."""
        revision, _ = await self._register(source, new, spool)
        return await self._ingested(revision, report)

    async def replace(
        self, source: str, revision_id: str, spool: Path, report: ReportProgress
    ) -> Ingested:
        """Ingest another file for a revision, and wait."""
        _check_file(spool)
        revision = await self._find(source, revision_id)
        await self._service.ingestion.exchange_file(revision, spool)
        return await self._ingested(revision, report)

    async def revision(self, source: str, revision_id: str) -> RevisionDetail:
        return _detail(await self._find(source, revision_id))

    async def status(self, source: str, revision_id: str) -> RevisionProgress:
        """How far an ingestion has come."""
        revision = await self._find(source, revision_id)
        done = revision.counts
        settled = Progress(
            phase="complete" if done else "failed" if revision.error else "queued",
            percent_complete=100 if done else 0,
            chunks_processed=revision.chunk_count,
        )
        progress = self._service.ingestion.progress(revision_id) or settled
        return RevisionProgress(revision_id=revision_id, status=revision.status, progress=progress)

    async def amend_revision(
        self, source: str, revision_id: str, patch: RevisionPatch
    ) -> RevisionDetail:
        values = patch.model_dump(exclude_unset=True)
        nullable = ("effective_to", "notes")
        kept = {
            name: value for name, value in values.items() if value is not None or name in nullable
        }
        await self._find(source, revision_id)
        await self._service.ingestion.amend(source, revision_id, kept)
        return await self.revision(source, revision_id)

    async def delete_revision(self, source: str, revision_id: str) -> RevisionDeleted:
        await self._find(source, revision_id)
        removed = await self._service.ingestion.delete(source, revision_id)
        return RevisionDeleted(source=source, revision_id=revision_id, chunks_removed=removed)

    async def reindex(self, source: str, revision_id: str) -> ReindexAccepted:
        """Ingest a revision's file anew; a failed or stuck one gets another chance."""
        revision = await self._find(source, revision_id)
        file = self._service.ingestion.file_of(source, revision_id)
        if not file.exists():
            raise FileNotFound(f"The file of {revision_id} is not there any more; upload it again")
        await self._service.ingestion.reopen(revision)
        revision = await self._find(source, revision_id)
        return ReindexAccepted(
            source=source,
            revision_id=revision_id,
            status=revision.status,
            ingestion_job_id=self._service.jobs.add(revision),
            links=_links(source, revision_id),
        )

    # --- parts ---

    async def _register(
        self, source: str, new: NewRevision, spool: Path
    ) -> tuple[Revision, list[Revision]]:
        await self._service.registry.policy(source)
        _check_file(spool)
        return await self._service.ingestion.create(
            source, spool, new.version_label, new.effective_from, new.effective_to, new.notes
        )

    async def _ingested(self, revision: Revision, report: ReportProgress) -> Ingested:
        file = self._service.ingestion.file_of(revision.source, revision.revision_id)
        async with open_in_thread(self._service.ingestion.own_files().open(str(file))) as intake:
            return await self._service.ingestion.ingest(revision, intake, report)

    async def _find(self, source: str, revision_id: str) -> Revision:
        await self._service.registry.policy(source)
        return timeline.find(await self._service.registry.revisions(source), revision_id)

    def _detail(self, policy: Policy, revisions: Sequence[Revision]) -> PolicyDetail:
        return PolicyDetail(
            **policy.model_dump(),
            revisions=[_detail(one) for one in revisions],
            current_revision=self._current(revisions),
            revision_count=len(revisions),
        )

    def _current(self, revisions: Sequence[Revision]) -> RevisionSummary | None:
        found = timeline.in_force(revisions, self._service.today)
        return _summary(found) if isinstance(found, Revision) else None


def _check_file(spool: Path) -> None:
    """Refuse what could not be ingested before a revision is registered for it."""
    with spool.open("rb") as file:
        if _PDF not in file.read(_HEAD):
            raise UnsupportedFileType("The file is not a PDF")
    if spool.stat().st_size > LARGEST:
        raise FileTooLarge(f"The file is larger than {LARGEST // 2**20} MB")


def _summary(revision: Revision) -> RevisionSummary:
    return RevisionSummary.model_validate(revision, from_attributes=True)


def _detail(revision: Revision) -> RevisionDetail:
    return RevisionDetail.model_validate(revision, from_attributes=True)


def _links(source: str, revision_id: str) -> Links:
    policy = f"{API}/policies/{source}"
    revision = f"{policy}/revisions/{revision_id}"
    return Links(self=revision, status=f"{revision}/status", policy=policy)

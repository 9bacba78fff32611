"""Administration of policies and revisions, for REST and the command line."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from readingroom.bases.policy.admin_models import (
    EffectivePolicies,
    EffectivePolicy,
    Links,
    NewPolicy,
    NewRevision,
    PolicyDeleted,
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
from readingroom.bases.policy.chunks.search import list_unread_revisions
from readingroom.bases.policy.ingest.files import check_revision_file
from readingroom.bases.policy.models import IngestedRevision
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, PolicyCategory, Revision
from readingroom.bases.policy.registry.resolver import PolicyOnDay
from readingroom.bases.policy.service import PolicyService
from readingroom.core.progress import ReportProgress
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.rest import API_PATH_PREFIX
from readingroom.protocol.search import UnreadRevision


class PolicyAdmin:
    """Creates, changes and lists policies and their revisions."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service

    # --- policies ---

    async def create_policy(self, new_policy: NewPolicy) -> PolicyDetail:
        """Register a policy; raise `PolicyExists` if its slug is in use."""
        created_at = self._service.get_now()
        policy = Policy(**new_policy.model_dump(), created_at=created_at, updated_at=created_at)
        await self._service.registry.create_policy(policy)
        return await self.get_policy(new_policy.source)

    async def list_policies(
        self, policy_category: PolicyCategory | None = None, slug_part: str | None = None
    ) -> PolicyIndex:
        """Return every policy, or those of a category or with this in their slug."""
        policies_today = [
            policy_as_of_today
            for policy_as_of_today in (await self._resolve_all_policies_today()).values()
            if policy_category in (None, policy_as_of_today.policy.category)
            and (slug_part or "").upper() in policy_as_of_today.source
        ]
        policy_summaries = [
            PolicySummary(
                source=policy_as_of_today.source,
                title=policy_as_of_today.policy.title,
                category=policy_as_of_today.policy.category,
                current_revision=_make_current_revision_summary(policy_as_of_today),
                revision_count=len(policy_as_of_today.timeline),
            )
            for policy_as_of_today in policies_today
        ]
        return PolicyIndex(policies=policy_summaries, total=len(policy_summaries))

    async def get_policy(self, policy_slug: str) -> PolicyDetail:
        """Return a policy with its revisions; raise `PolicyNotFound`."""
        policy_service = self._service
        return _build_policy_detail(
            await policy_service.resolver.resolve_for_policy(policy_slug, policy_service.today)
        )

    async def list_policy_details(self) -> list[PolicyDetail]:
        """Return every policy with its revisions, read at once."""
        return [
            _build_policy_detail(policy_as_of_today)
            for policy_as_of_today in (await self._resolve_all_policies_today()).values()
        ]

    async def update_policy_details(
        self, policy_slug: str, policy_patch: PolicyPatch
    ) -> PolicyDetail:
        """Change a policy's title, description or category; raise `PolicyNotFound`."""
        # A description may be cleared; a title and a category may only be replaced.
        patched_fields = _get_patched_fields(
            policy_patch,
            nullable_fields=("description", "local_authority", "area", "successor_authorities"),
        )
        await self._service.ingestion.update_policy_details(policy_slug, patched_fields)
        return await self.get_policy(policy_slug)

    async def delete_policy(self, policy_slug: str) -> PolicyDeleted:
        """Delete a policy with all its revisions, their chunks and their files.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionBusy: one of its revisions is being ingested.
        """
        revision_count, chunk_count = await self._service.ingestion.delete_policy(policy_slug)
        return PolicyDeleted(
            source=policy_slug, revisions_removed=revision_count, chunks_removed=chunk_count
        )

    async def list_effective(self, asked_day: date) -> EffectivePolicies:
        """Return what was in force on a day, and the policies that had no revision for it."""
        effective_policies: list[EffectivePolicy] = []
        not_yet_effective_sources: list[str] = []
        sources_without_revision: list[str] = []
        unread_revisions: list[UnreadRevision] = []
        for policy_on_day in (await self._service.resolver.resolve_snapshot(asked_day)).values():
            unread_revisions += list_unread_revisions(policy_on_day)
            if policy_on_day.revision:
                effective_policies.append(
                    EffectivePolicy(
                        source=policy_on_day.source,
                        title=policy_on_day.policy.title,
                        category=policy_on_day.policy.category,
                        effective_revision=_make_revision_summary(policy_on_day.revision),
                    )
                )
            elif policy_on_day.reason == "date_before_first_revision":
                not_yet_effective_sources.append(policy_on_day.source)
            else:
                sources_without_revision.append(policy_on_day.source)
        return EffectivePolicies(
            effective_date=asked_day,
            policies=effective_policies,
            policies_not_yet_effective=not_yet_effective_sources,
            policies_with_no_revision_for_date=sources_without_revision,
            unread_revisions=unread_revisions,
        )

    # --- revisions ---

    async def add_revision(
        self,
        policy_slug: str,
        new_revision: NewRevision,
        spool_path: Path,
        file_extension: str = ".pdf",
    ) -> RevisionAccepted:
        """Register a revision and queue its file for ingestion in the background.

        `file_extension` says what the file is, whatever the spool is called.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionOverlap: it shares a day with another revision.
            UnsupportedFileType, FileTooLarge: its file cannot be ingested.
        """
        revision, closed_revisions = await self._register_revision(
            policy_slug, new_revision, spool_path, file_extension
        )
        job_id = self._service.jobs.queue_revision(revision)
        return RevisionAccepted(
            source=policy_slug,
            revision_id=revision.revision_id,
            version_label=revision.version_label,
            effective_from=revision.effective_from,
            effective_to=revision.effective_to,
            status=revision.status,
            ingestion_job_id=job_id,
            links=_build_links(policy_slug, revision.revision_id),
            side_effects=SideEffects(
                superseded_revision=closed_revisions[0].revision_id if closed_revisions else None,
                superseded_effective_to=closed_revisions[0].effective_to
                if closed_revisions
                else None,
            ),
        )

    async def revise_policy(
        self,
        policy_slug: str,
        new_revision: NewRevision,
        spool_path: Path,
        report_progress: ReportProgress,
        file_extension: str = ".pdf",
    ) -> IngestedRevision:
        """Register a revision and wait until it can be searched; raises as `add_revision`."""
        revision, _ = await self._register_revision(
            policy_slug, new_revision, spool_path, file_extension
        )
        return await self._ingest_revision(revision, report_progress)

    async def replace_file(
        self,
        policy_slug: str,
        revision_id: str,
        spool_path: Path,
        report_progress: ReportProgress,
        file_extension: str = ".pdf",
    ) -> IngestedRevision:
        """Ingest another file for a revision, and wait until it can be searched."""
        check_revision_file(spool_path, file_extension)
        revision = await self._get_stored_revision(policy_slug, revision_id)
        await self._service.ingestion.replace_file(revision, spool_path, file_extension)
        return await self._ingest_revision(revision, report_progress)

    async def get_revision(self, policy_slug: str, revision_id: str) -> RevisionDetail:
        """Return a revision; raise `PolicyNotFound` or `RevisionNotFound`."""
        revision = await self._get_stored_revision(policy_slug, revision_id)
        return _make_revision_detail(
            revision, await self._service.registry.get_revisions(policy_slug)
        )

    async def get_progress(self, policy_slug: str, revision_id: str) -> RevisionProgress:
        """Return a revision's status and how far its ingestion has come."""
        revision = await self._get_stored_revision(policy_slug, revision_id)
        ingest_progress = self._service.ingestion.find_progress(revision_id)
        if ingest_progress is None:
            ingest_progress = Progress(
                phase="complete"
                if revision.is_readable
                else "failed"
                if revision.error
                else "queued",
                percent_complete=100 if revision.is_readable else 0,
                chunks_processed=revision.chunk_count,
            )
        return RevisionProgress(
            revision_id=revision_id, status=revision.status, progress=ingest_progress
        )

    async def amend_revision(
        self, policy_slug: str, revision_id: str, revision_patch: RevisionPatch
    ) -> RevisionDetail:
        """Change a revision's dates, label or notes; its neighbours keep theirs.

        Raises:
            PolicyNotFound, RevisionNotFound: there is no such revision.
            RevisionOverlap: it would share a day with another revision.
        """
        patched_fields = _get_patched_fields(
            revision_patch, nullable_fields=("effective_to", "notes")
        )
        await self._get_stored_revision(policy_slug, revision_id)
        await self._service.ingestion.amend_revision(policy_slug, revision_id, patched_fields)
        return await self.get_revision(policy_slug, revision_id)

    async def delete_revision(self, policy_slug: str, revision_id: str) -> RevisionDeleted:
        """Delete a revision, its chunks and its file.

        Raises:
            PolicyNotFound, RevisionNotFound: there is no such revision.
            SoleRevision: it is the only active one of its policy.
            RevisionBusy: it is being ingested.
        """
        await self._get_stored_revision(policy_slug, revision_id)
        chunk_count = await self._service.ingestion.delete_revision(policy_slug, revision_id)
        return RevisionDeleted(
            source=policy_slug, revision_id=revision_id, chunks_removed=chunk_count
        )

    async def reindex_revision(self, policy_slug: str, revision_id: str) -> ReindexAccepted:
        """Queue a revision's own file again, also when it had failed or is stuck.

        Raises:
            PolicyNotFound, RevisionNotFound: there is no such revision.
            FileNotFound: its file is gone.
        """
        revision = await self._get_stored_revision(policy_slug, revision_id)
        file_path = await self._service.ingestion.locate_file(revision)
        if not await anyio.Path(file_path).exists():
            raise FileNotFound(f"The file of {revision_id} is not there any more; upload it again")
        await self._service.ingestion.reopen_revision(revision)
        revision = await self._get_stored_revision(policy_slug, revision_id)
        return ReindexAccepted(
            source=policy_slug,
            revision_id=revision_id,
            status=revision.status,
            ingestion_job_id=self._service.jobs.queue_revision(revision),
            links=_build_links(policy_slug, revision_id),
        )

    async def reingest_and_wait(
        self, policy_slug: str, revision_id: str, report_progress: ReportProgress
    ) -> IngestedRevision:
        """Ingest a revision's own file again, and wait until it can be searched.

        Raises:
            PolicyNotFound, RevisionNotFound: there is no such revision.
            FileNotFound: its file is gone.
        """
        revision = await self._get_stored_revision(policy_slug, revision_id)
        await self._service.ingestion.reopen_revision(revision)
        return await self._ingest_revision(
            await self._get_stored_revision(policy_slug, revision_id), report_progress
        )

    # --- parts ---

    async def _resolve_all_policies_today(self) -> dict[str, PolicyOnDay]:
        return await self._service.resolver.resolve_snapshot(self._service.today)

    async def _register_revision(
        self, policy_slug: str, new_revision: NewRevision, spool_path: Path, file_extension: str
    ) -> tuple[Revision, list[Revision]]:
        await self._service.registry.get_policy(policy_slug)
        check_revision_file(spool_path, file_extension)
        return await self._service.ingestion.create_revision(
            policy_slug,
            spool_path,
            new_revision.version_label,
            new_revision.effective_from,
            new_revision.effective_to,
            new_revision.notes,
            new_revision.stage,
            file_extension,
        )

    async def _ingest_revision(
        self, revision: Revision, report_progress: ReportProgress
    ) -> IngestedRevision:
        file_path = await self._service.ingestion.locate_file(revision)
        file_store = self._service.ingestion.files
        async with file_store.open_copy_in_thread(file_path) as private_copy:
            return await self._service.ingestion.ingest_revision(
                revision, private_copy, report_progress
            )

    async def _get_stored_revision(self, policy_slug: str, revision_id: str) -> Revision:
        await self._service.registry.get_policy(policy_slug)
        return timeline.get_revision(
            await self._service.registry.get_revisions(policy_slug), revision_id
        )


def _get_patched_fields(record_patch: BaseModel, nullable_fields: Sequence[str]) -> dict[str, Any]:
    """Return the fields that a patch sets; a null clears only what may be null."""
    patched_fields = record_patch.model_dump(exclude_unset=True)
    return {
        field_name: field_value
        for field_name, field_value in patched_fields.items()
        if field_value is not None or field_name in nullable_fields
    }


def _build_policy_detail(policy_as_of_today: PolicyOnDay) -> PolicyDetail:
    return PolicyDetail(
        **policy_as_of_today.policy.model_dump(),
        revisions=[
            _make_revision_detail(revision, policy_as_of_today.timeline)
            for revision in policy_as_of_today.timeline
        ],
        current_revision=_make_current_revision_summary(policy_as_of_today),
        revision_count=len(policy_as_of_today.timeline),
    )


def _make_current_revision_summary(policy_as_of_today: PolicyOnDay) -> RevisionSummary | None:
    return (
        _make_revision_summary(policy_as_of_today.revision) if policy_as_of_today.revision else None
    )


def _make_revision_summary(revision: Revision) -> RevisionSummary:
    return RevisionSummary.model_validate(revision, from_attributes=True)


def _make_revision_detail(revision: Revision, revisions: Sequence[Revision]) -> RevisionDetail:
    listed_last_day = timeline.find_listed_last_day(revision, revisions)
    return RevisionDetail.model_validate(
        revision.model_copy(update={"effective_to": listed_last_day}), from_attributes=True
    )


def _build_links(policy_slug: str, revision_id: str) -> Links:
    policy_url = f"{API_PATH_PREFIX}/policies/{policy_slug}"
    revision_url = f"{policy_url}/revisions/{revision_id}"
    return Links(self=revision_url, status=f"{revision_url}/status", policy=policy_url)

"""Compares the registry with the chunks, the indexes and the files, and repairs differences."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from readingroom.bases.policy.admin_models import PolicyDiagnosis
from readingroom.bases.policy.chunks.store import build_registry_metadata, is_metadata_outdated
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, Revision, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.filters import Metadata
from readingroom.protocol.doctor import Complaint, RepairableFinding


@dataclass(frozen=True, slots=True)
class _CheckedRevision:
    """One revision, with everything that is compared for it."""

    policy: Policy
    revision: Revision
    revisions: Sequence[Revision]
    chunk_metadatas: Sequence[Metadata]
    """The metadata of its chunks."""


class PolicyDoctor:
    """One check of the whole base; with `repair` it mends what it can."""

    def __init__(self, policy_service: PolicyService, is_repairing: bool) -> None:
        self._service = policy_service
        self._should_repair = is_repairing

    async def diagnose_policies(self) -> PolicyDiagnosis:
        """Check everything and return each difference with its fix."""
        policy_service = self._service
        policies_by_slug = {
            policy.source: policy for policy in await policy_service.registry.list_policies()
        }
        timelines_by_slug = await policy_service.registry.get_timelines(policies_by_slug)
        chunk_metadatas_by_key = await policy_service.store.group_metadata_by_revision()
        revisions_by_key = {
            (policy_slug, revision.revision_id): revision
            for policy_slug, policy_revisions in timelines_by_slug.items()
            for revision in policy_revisions
        }
        orphan_chunk_counts_by_key = {
            revision_key: len(chunk_metadatas)
            for revision_key, chunk_metadatas in chunk_metadatas_by_key.items()
            if revision_key not in revisions_by_key
        }
        policy_complaints = await self._repair_and_report_findings(self._find_interrupted_changes())
        policy_complaints += await self._repair_and_report_findings(
            self._find_orphan_chunks(orphan_chunk_counts_by_key)
        )
        for revision_key, revision in revisions_by_key.items():
            # A revision that is being ingested changes while we look at it.
            if not policy_service.ingestion.find_progress(revision.revision_id):
                policy, policy_timeline = (
                    policies_by_slug[revision.source],
                    timelines_by_slug[revision.source],
                )
                checked_revision = _CheckedRevision(
                    policy, revision, policy_timeline, chunk_metadatas_by_key.get(revision_key, [])
                )
                policy_complaints += await self._repair_and_report_findings(
                    self._find_revision_faults(checked_revision)
                )
        policy_complaints += await self._repair_and_report_findings(self._find_index_faults())
        return PolicyDiagnosis(
            policies=len(policies_by_slug),
            revisions=len(revisions_by_key),
            chunks=sum(map(len, chunk_metadatas_by_key.values())),
            complaints=policy_complaints,
        )

    async def _repair_and_report_findings(
        self, policy_findings: AsyncIterator[RepairableFinding]
    ) -> list[Complaint]:
        """Repair each finding before the next is looked for, which may depend on it."""
        return [
            await policy_finding.repair_and_report(self._should_repair)
            async for policy_finding in policy_findings
        ]

    async def _find_interrupted_changes(self) -> AsyncIterator[RepairableFinding]:
        # A change that is being made right now has an intent too, and is not interrupted.
        async with self._service.ingestion.pause_changes():
            interrupted_intents = await self._service.ingestion.list_unfinished()
        for change_intent in interrupted_intents:
            yield RepairableFinding(
                str(change_intent.body.get("revision_id", change_intent.body["source"])),
                f"an interrupted {change_intent.kind} could not be finished",
                "restart the server; its log says why it fails",
            )

    async def _find_orphan_chunks(
        self, orphan_chunk_counts_by_key: dict[tuple[str, str], int]
    ) -> AsyncIterator[RepairableFinding]:
        for (policy_slug, revision_id), chunk_count in orphan_chunk_counts_by_key.items():
            yield RepairableFinding(
                revision_id,
                f"{chunk_count} chunks belong to no registered revision",
                "delete them",
                partial(self._service.store.delete_chunks_of_revision, policy_slug, revision_id),
            )

    async def _find_revision_faults(
        self, checked_revision: _CheckedRevision
    ) -> AsyncIterator[RepairableFinding]:
        ingestion = self._service.ingestion
        revision, chunk_count = checked_revision.revision, len(checked_revision.chunk_metadatas)
        if chunk_count != revision.chunk_count and await self._has_wrong_chunk_count(revision):
            yield RepairableFinding(
                revision.revision_id,
                f"the registry says {revision.chunk_count} chunks, there are {chunk_count}",
                "correct the number; reindex the revision if chunks are missing",
                partial(
                    ingestion.set_chunk_count, revision.source, revision.revision_id, chunk_count
                ),
            )
        file_path = await ingestion.locate_file(revision)
        is_processing = revision.status == RevisionStatus.PROCESSING
        if is_processing and not await anyio.Path(file_path).exists():
            yield RepairableFinding(
                revision.revision_id,
                "it is processing, but its file is missing",
                "mark it as failed, so that it can be deleted or uploaded again",
                partial(ingestion.mark_failed, revision, "its file is missing"),
            )
        elif is_processing and await self._is_left_unfinished(revision):
            yield RepairableFinding(
                revision.revision_id,
                "it is processing, but no process is reading its file",
                "run the same `policy import` or `policy revise` again, or start a server; one "
                "that runs already comes to it in its turn",
            )
        last_day = timeline.find_last_day(revision, checked_revision.revisions)
        registry_metadata = build_registry_metadata(checked_revision.policy, revision, last_day)
        outdated_chunk_count = sum(
            is_metadata_outdated(chunk_metadata, registry_metadata)
            for chunk_metadata in checked_revision.chunk_metadatas
        )
        if outdated_chunk_count:
            yield RepairableFinding(
                revision.revision_id,
                f"{outdated_chunk_count} chunks carry other dates or names than the registry",
                "write those of the registry",
                partial(
                    self._service.store.update_metadata, checked_revision.policy, revision, last_day
                ),
            )

    async def _is_left_unfinished(self, revision: Revision) -> bool:
        """Return whether nobody ingests it, now or soon; looks again, it may have ended by now."""
        policy_service = self._service
        if policy_service.jobs.has_queued(
            revision.revision_id
        ) or await policy_service.ingestion.progress.is_being_ingested(revision.revision_id):
            return False
        revisions = await policy_service.registry.get_revisions(revision.source)
        return any(
            registered_revision.revision_id == revision.revision_id
            and registered_revision.status == RevisionStatus.PROCESSING
            for registered_revision in revisions
        )

    async def _has_wrong_chunk_count(self, revision: Revision) -> bool:
        """Compare again: an ingestion may have ended between the reads of the two stores."""
        revisions = await self._service.registry.get_revisions(revision.source)
        registered_chunk_count = timeline.get_revision(revisions, revision.revision_id).chunk_count
        chunk_ids = await self._service.store.get_chunk_ids(revision.source, revision.revision_id)
        return len(chunk_ids) != registered_chunk_count

    async def _find_index_faults(self) -> AsyncIterator[RepairableFinding]:
        chunk_count = await self._count_chunks()
        indexed_chunk_counts = await self._service.store.count_indexed_chunks()
        # While an ingestion adds chunks the numbers move, and a difference means nothing.
        if (
            indexed_chunk_counts != (chunk_count, chunk_count)
            and chunk_count == await self._count_chunks()
        ):
            yield RepairableFinding(
                "index",
                f"the indexes hold {indexed_chunk_counts} of {chunk_count} chunks",
                "rebuild them",
                self._service.store.rebuild_index,
            )

    async def _count_chunks(self) -> int:
        return sum(map(len, (await self._service.store.group_metadata_by_revision()).values()))

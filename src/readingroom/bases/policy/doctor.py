"""Compares the registry with the chunks, the indexes and the files, and mends what disagrees."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from readingroom.bases.policy.admin_models import Diagnosis
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, Revision, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.bases.policy.store import differs, of_registry
from readingroom.core.filters import Metadata
from readingroom.protocol.doctor import Complaint, Finding


@dataclass(frozen=True, slots=True)
class _Case:
    """One revision with all that is held of it."""

    policy: Policy
    revision: Revision
    revisions: Sequence[Revision]
    metadatas: Sequence[Metadata]


class Checkup:
    """One look at the whole base; `repair` mends what it finds."""

    def __init__(self, service: PolicyService, repair: bool) -> None:
        self._service = service
        self._repair = repair

    async def diagnose(self) -> Diagnosis:
        service = self._service
        policies = {one.source: one for one in await service.registry.list_policies()}
        timelines = await service.registry.timelines(policies)
        census = await service.store.census()
        known = {(source, one.revision_id): one for source, of in timelines.items() for one in of}
        orphans = {key: len(held) for key, held in census.items() if key not in known}
        complaints = await self._told(self._interrupted())
        complaints += await self._told(self._orphans(orphans))
        for (source, revision_id), revision in known.items():
            if not service.ingestion.progress(revision_id):  # else it changes while we look
                held = census.get((source, revision_id), [])
                case = _Case(policies[source], revision, timelines[source], held)
                complaints += await self._told(self._revision(case))
        total = sum(map(len, census.values()))
        complaints += await self._told(self._indexes())
        return Diagnosis(
            policies=len(policies), revisions=len(known), chunks=total, complaints=complaints
        )

    async def _told(self, findings: AsyncIterator[Finding]) -> list[Complaint]:
        """Each as it is found: what is mended later would be mended on an older look."""
        return [await one.check(self._repair) async for one in findings]

    async def _interrupted(self) -> AsyncIterator[Finding]:
        for intent in await self._service.ingestion.unfinished():
            yield Finding(
                str(intent.body.get("revision_id", intent.body["source"])),
                f"an interrupted {intent.kind} could not be finished",
                "restart the server; its log says why it fails",
            )

    async def _orphans(self, orphans: dict[tuple[str, str], int]) -> AsyncIterator[Finding]:
        for (source, revision_id), count in orphans.items():
            yield Finding(
                revision_id,
                f"{count} chunks belong to no registered revision",
                "delete them",
                partial(self._sweep, source, revision_id),
            )

    async def _revision(self, case: _Case) -> AsyncIterator[Finding]:
        ingestion = self._service.ingestion
        revision, held = case.revision, len(case.metadatas)
        if held != revision.chunk_count and await self._disagrees(revision):
            yield Finding(
                revision.revision_id,
                f"the registry says {revision.chunk_count} chunks, there are {held}",
                "write the true number down; reindex the revision if chunks are missing",
                partial(ingestion.recount, revision.source, revision.revision_id, held),
            )
        file = ingestion.file_of(revision.source, revision.revision_id)
        if revision.status == RevisionStatus.PROCESSING and not file.exists():
            yield Finding(
                revision.revision_id,
                "it is processing, but its file is missing",
                "mark it as failed, so that it can be deleted or uploaded again",
                partial(ingestion.abandon, revision, "its file is missing"),
            )
        end = timeline.closing(revision, case.revisions)
        wanted = of_registry(case.policy, revision, end)
        wrong = sum(differs(metadata, wanted) for metadata in case.metadatas)
        if wrong:
            yield Finding(
                revision.revision_id,
                f"{wrong} chunks carry other dates or names than the registry",
                "write the registry's on them",
                partial(self._service.store.describe, case.policy, revision, end),
            )

    async def _disagrees(self, revision: Revision) -> bool:
        """Whether it still is so: an ingest may have ended between our looks at the two."""
        now = await self._service.registry.revisions(revision.source)
        counted = timeline.find(now, revision.revision_id).chunk_count
        held = await self._service.store.ids_of(revision.source, revision.revision_id)
        return len(held) != counted

    async def _indexes(self) -> AsyncIterator[Finding]:
        held = await self._held()
        sizes = await self._service.store.index_sizes()
        # An ingest that runs meanwhile adds to both: what moves is not yet to be judged.
        if sizes != (held, held) and held == await self._held():
            yield Finding(
                "index",
                f"the indexes hold {sizes} of {held} chunks",
                "make them anew",
                self._service.store.rebuild,
            )

    async def _sweep(self, source: str, revision_id: str) -> None:
        store = self._service.store
        await store.delete(await store.ids_of(source, revision_id))

    async def _held(self) -> int:
        return sum(map(len, (await self._service.store.census()).values()))

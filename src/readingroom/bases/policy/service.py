"""What the policy base can do, with no word of MCP or HTTP in it."""

import difflib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.policy.compare import passages
from readingroom.bases.policy.errors import RevisionNotFound, SectionNotFound
from readingroom.bases.policy.ids import section_id
from readingroom.bases.policy.ingest.ingestion import Ingestion
from readingroom.bases.policy.ingest.jobs import Jobs
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    Ingested,
    IngestPolicyRevision,
    ListedPolicy,
    ListedRevision,
    ListPolicyRevisions,
    NearestPassage,
    PolicyHit,
    PolicyHits,
    PolicyHitsBatch,
    PolicyList,
    PolicySnapshot,
    QuoteCheck,
    QuotePlace,
    Removed,
    RemovePolicyRevision,
    RevisionDiff,
    RevisionList,
    SearchPolicy,
    SearchPolicyBatch,
    SectionChange,
    SectionText,
    Snapshot,
    SnapshotEntry,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Revision, citation
from readingroom.bases.policy.registry.resolver import EffectiveDateResolver
from readingroom.bases.policy.registry.store import PolicyRegistry
from readingroom.bases.policy.search import PolicySearch, brief
from readingroom.bases.policy.store import PolicyStore, StoredChunk
from readingroom.core.dates import parse_day
from readingroom.core.progress import ReportProgress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.intake import open_in_thread
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.handover import sweep_handover
from readingroom.storage.keyvalue import KeyValues, check_durable, check_room, open_key_values

logger = logging.getLogger(__name__)

_CANDIDATES = 5  # passages looked at for the one nearest to a quotation


class PolicyService:
    """Policies and their revisions: searched, read, compared, and brought up to date."""

    def __init__(
        self,
        folder: Path,
        redis_url: str | None,
        bench: IngestContext,
    ) -> None:
        self.folder = folder
        self._redis_url = redis_url
        self._bench = bench
        self.now = bench.now
        self.store = PolicyStore(folder, bench.embedder)
        self.registry: PolicyRegistry
        self.resolver: EffectiveDateResolver
        self._search: PolicySearch
        self.ingestion: Ingestion
        self.jobs: Jobs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the stores, finish what was interrupted, and take jobs until it is left."""
        async with open_key_values(self._redis_url, self.folder / "registry") as client:
            self.registry = PolicyRegistry(client, partial(self._check, client))
            try:
                await self.registry.greet()
            except RegistryUnavailable as error:  # a Redis of somebody's may come back
                logger.error("%s; until it does, every tool says so", error.message)
            self.resolver = EffectiveDateResolver(self.registry)
            self._search = PolicySearch(self.registry, self.store, self._bench)
            self.ingestion = Ingestion(self.folder, self.registry, self.store, self._bench)
            self.jobs = Jobs(self.registry, self.ingestion)
            await self.store.open()
            try:
                await anyio.to_thread.run_sync(sweep_handover, self.folder, self.now())
                async with self.jobs.running():
                    yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.store.close()

    async def _check(self, client: KeyValues) -> None:
        if self._redis_url is not None:
            await check_durable(client)
        await check_room(client, self.folder / "room")

    @property
    def today(self) -> date:
        return self.now().date()

    # --- reading ---

    async def search(self, question: SearchPolicy) -> PolicyHits:
        """The passages that answer best, among the revisions in force on the day."""
        return await self._search.single(question)

    async def search_batch(self, question: SearchPolicyBatch) -> PolicyHitsBatch:
        """Several queries over the same revisions."""
        return await self._search.batch(question)

    async def section(self, question: GetPolicySection) -> SectionText:
        """All of a section, with the sections in it, from one revision."""
        revisions = await self._revisions(question.source)
        revision = self._chosen(question, revisions)
        chunks = await self.store.chunks_of(question.source, revision.revision_id)
        ref = passages.meant(question.section_ref, chunks)
        if ref is None:
            raise _no_section(question.section_ref, revision, chunks)
        chosen = passages.within(chunks, ref)
        pages = sorted({page for chunk in chosen for page in chunk.pages})
        return SectionText(
            source=question.source,
            section_ref=ref,
            revision_id=revision.revision_id,
            version_label=revision.version_label,
            text=passages.assembled(chosen),
            page_numbers=pages,
            effective_from=revision.effective_from,
            effective_to=timeline.closing(revision, revisions),
            in_force_today=timeline.in_force(revisions, self.today) == revision,
            citation=citation(revision, ref, pages),
            id=section_id(question.source, revision.revision_id, ref),
        )

    async def passage(self, chunk_id: str) -> PolicyHit:
        """One passage by its id, as a search told it."""
        return await self._search.passage(chunk_id)

    async def policies(self) -> PolicyList:
        """Every policy by name."""
        found = await self.registry.list_policies()
        return PolicyList(
            policy_count=len(found),
            policies=[
                ListedPolicy(source=one.source, title=one.title, category=one.category)
                for one in found
            ],
        )

    async def revisions(self, question: ListPolicyRevisions) -> RevisionList:
        """A policy's revisions, newest first."""
        found = await self._revisions(question.source)
        return RevisionList(
            source=question.source,
            revision_count=len(found),
            revisions=[ListedRevision.model_validate(one, from_attributes=True) for one in found],
        )

    async def sections(self, source: str, revision_id: str) -> dict[str, int]:
        """Every section of a revision with the page it begins on, in order."""
        pages: dict[str, int] = {}
        for chunk in await self.store.chunks_of(source, revision_id):
            for ref in filter(None, (*chunk.section_path, chunk.section_ref)):
                pages.setdefault(ref, chunk.page_number)
        return pages

    async def snapshot(self, question: PolicySnapshot) -> Snapshot:
        """Every policy on one day."""
        day = parse_day(question.date)
        catalogue = await self.registry.catalogue()
        entries = []
        for policy in catalogue.policies.values():
            revisions = catalogue.timelines[policy.source]
            found = timeline.in_force(revisions, day)
            entries.append(
                SnapshotEntry(
                    source=policy.source,
                    title=policy.title,
                    category=policy.category,
                    revision=brief(found, revisions) if isinstance(found, Revision) else None,
                    reason=None if isinstance(found, Revision) else found,
                )
            )
        return Snapshot(
            date=question.date,
            policy_count=len(entries),
            in_force_count=sum(entry.revision is not None for entry in entries),
            policies=entries,
        )

    async def compare(self, question: ComparePolicyRevisions) -> RevisionDiff:
        """What changed in a policy between two days, section by section."""
        days = parse_day(question.from_date), parse_day(question.to_date)
        revisions = await self._revisions(question.source)
        before, after = (self._on(question.source, revisions, day) for day in days)
        old, new = [
            passages.by_section(await self._section_chunks(one, question.section_ref))
            for one in (before, after)
        ]
        if question.section_ref and not old and not new:
            raise _no_section(question.section_ref, after, await self._section_chunks(after, None))
        refs = list(dict.fromkeys([*new, *old]))
        changes = await anyio.to_thread.run_sync(
            lambda: [change for ref in refs if (change := _change(ref, old, new))]
        )
        return RevisionDiff(
            source=question.source,
            from_revision=brief(before, revisions),
            to_revision=brief(after, revisions),
            sections_compared=len(refs),
            sections_unchanged=len(refs) - len(changes),
            changes=changes,
        )

    async def verify(self, question: VerifyPolicyQuote) -> QuoteCheck:
        """Whether words stand in the revision in force on a day, and where they do stand."""
        day = parse_day(question.date)
        revisions = await self._revisions(question.source)
        found = timeline.in_force(revisions, day)
        current = found if isinstance(found, Revision) else None
        in_force = [current] if current else []
        others = [one for one in revisions if one.counts and one != current]
        here = await self._places(question.quote, in_force, revisions)
        places = here or await self._places(question.quote, others, revisions)
        nearest = None
        if not places:
            nearest = await self._nearest_passage(question.quote, [*in_force, *others][:1])
        return QuoteCheck(
            source=question.source,
            date=question.date,
            verdict="verified" if here else "wrong_revision" if places else "not_found",
            revision_in_force=current.revision_id if current else None,
            reason=None if isinstance(found, Revision) else found,
            found=places,
            nearest=nearest,
        )

    # --- writing ---

    async def ingest(self, question: IngestPolicyRevision, report: ReportProgress) -> Ingested:
        """Read a PDF into a registered revision."""
        revisions = await self._revisions(question.source)
        revision = timeline.find(revisions, question.revision_id)
        async with open_in_thread(self._bench.roots.open(question.file_path)) as intake:
            chunks = await self.store.chunks_of(question.source, question.revision_id)
            if chunks and revision.counts and not question.reindex:
                return Ingested(
                    source=question.source,
                    revision_id=question.revision_id,
                    chunks_created=len(chunks),
                    page_count=revision.page_count or 0,
                    extraction_method=chunks[0].extraction_method,
                    already_ingested=True,
                )
            return await self.ingestion.ingest(revision, intake, report)

    async def remove(self, question: RemovePolicyRevision) -> Removed:
        """Delete a revision's chunks; one that is not registered has none to delete."""
        await self.registry.policy(question.source)
        gone = await self.ingestion.remove_chunks(question.source, question.revision_id)
        return Removed(
            source=question.source, revision_id=question.revision_id, chunks_removed=gone
        )

    # --- revisions ---

    async def _revisions(self, source: str) -> tuple[Revision, ...]:
        """A policy's revisions; an unknown policy is an error that names the known ones."""
        await self.registry.policy(source)
        return await self.registry.revisions(source)

    def _chosen(self, question: GetPolicySection, revisions: Sequence[Revision]) -> Revision:
        if question.revision_id is not None:
            return timeline.find(revisions, question.revision_id)
        return self._on(question.source, revisions, self.today)

    def _on(self, source: str, revisions: Sequence[Revision], day: date) -> Revision:
        found = timeline.in_force(revisions, day)
        if isinstance(found, Revision):
            return found
        near = timeline.nearest(revisions, day)
        raise RevisionNotFound(
            f"No revision of {source} was in force on {day}: {found}",
            reason=found,
            nearest=near.revision_id if near else None,
            use_tool="list_policy_revisions",
        )

    async def _section_chunks(self, revision: Revision, ref: str | None) -> list[StoredChunk]:
        chunks = await self.store.chunks_of(revision.source, revision.revision_id)
        if ref is None:
            return chunks
        section = passages.meant(ref, chunks)
        return passages.within(chunks, section) if section else []

    async def _places(
        self, quote: str, among: Sequence[Revision], revisions: Sequence[Revision]
    ) -> list[QuotePlace]:
        found = []
        for revision in among:
            chunks = await self.store.chunks_of(revision.source, revision.revision_id)
            place = await anyio.to_thread.run_sync(passages.locate, quote, chunks)
            if place:
                found.append(_quoted(place, revision, revisions))
        return found

    async def _nearest_passage(
        self, quote: str, revisions: list[Revision]
    ) -> NearestPassage | None:
        ranking = await self.store.ranked(quote[:2000], _CANDIDATES, revisions, "hybrid")
        chunks = await self.store.named([hit.chunk_id for hit in ranking.hits])
        near: list[NearestPassage] = []
        for chunk in chunks.values():
            text, similarity = await anyio.to_thread.run_sync(passages.closest, quote, chunk.text)
            near.append(
                NearestPassage(
                    text=text,
                    similarity=similarity,
                    section_ref=chunk.section_ref,
                    page_number=chunk.page_number,
                    chunk_id=chunk.chunk_id,
                )
            )
        return max(near, key=lambda one: one.similarity, default=None)


def _quoted(place: passages.Place, revision: Revision, revisions: Sequence[Revision]) -> QuotePlace:
    return QuotePlace(
        **brief(revision, revisions).model_dump(),
        section_ref=place.chunk.section_ref,
        page_number=place.page,
        chunk_id=place.chunk.chunk_id,
        citation=citation(revision, place.chunk.section_ref, [place.page]),
    )


def _change(
    ref: str, old: dict[str, list[StoredChunk]], new: dict[str, list[StoredChunk]]
) -> SectionChange | None:
    before, after = (passages.assembled(of.get(ref, [])) for of in (old, new))
    if ref in old and ref in new and passages.same_words(before, after):
        return None
    return SectionChange(
        section_ref=ref,
        change="changed" if ref in old and ref in new else "added" if ref in new else "removed",
        from_page=old[ref][0].page_number if ref in old else None,
        to_page=new[ref][0].page_number if ref in new else None,
        diff=passages.diff(before, after),
    )


def _no_section(ref: str, revision: Revision, chunks: Sequence[StoredChunk]) -> SectionNotFound:
    return SectionNotFound(
        f"Section '{ref}' not found in policy '{revision.source}'",
        revision_id=revision.revision_id,
        nearest=_nearest_refs(ref, chunks),
    )


def _nearest_refs(ref: str, chunks: Sequence[StoredChunk]) -> list[str]:
    """Sections that are written much like the one that was asked for."""
    known = passages.references(chunks)
    near = difflib.get_close_matches(passages.fold_ref(ref), known, n=5, cutoff=0.5)
    return [known[one] for one in near]

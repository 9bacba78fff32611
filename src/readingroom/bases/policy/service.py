"""What the policy base can do, with no word of MCP or HTTP in it."""

import difflib
import hashlib
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.policy import passages, timeline
from readingroom.bases.policy.ingestion import Ingestion
from readingroom.bases.policy.jobs import Jobs
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    Excluded,
    GetPolicySection,
    Ingested,
    IngestPolicyRevision,
    ListedPolicy,
    ListedRevision,
    ListPolicyRevisions,
    NearestPassage,
    NearestRevision,
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
from readingroom.bases.policy.records import Revision
from readingroom.bases.policy.registry import PolicyRegistry
from readingroom.bases.policy.resolver import EffectiveDateResolver
from readingroom.bases.policy.store import PolicyStore, StoredChunk
from readingroom.core.dates import parse_day
from readingroom.core.errors import (
    InvalidCursor,
    ModelUnavailable,
    RecordNotFound,
    RegistryUnavailable,
    RevisionNotFound,
    SectionNotFound,
)
from readingroom.core.ids import policy_passage_id, policy_section_id
from readingroom.core.pages import cited
from readingroom.engine.librarian import Ranking
from readingroom.ingest.intake import in_thread
from readingroom.ingest.workbench import Workbench
from readingroom.protocol.tool import Report
from readingroom.storage.handover import sweep_handover
from readingroom.storage.keyvalue import KeyValues, check_durable, check_room, open_key_values

logger = logging.getLogger(__name__)

_DEEPEST = 2_000  # results that paging may reach
_CANDIDATES = 5  # passages looked at for the one nearest to a quotation

Timelines = dict[str, tuple[Revision, ...]]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a search may look at: the revisions chosen, and why others were not."""

    timelines: Timelines
    revisions: list[Revision]
    excluded: list[Excluded]


class PolicyService:
    """Policies and their revisions: searched, read, compared, and brought up to date."""

    def __init__(
        self,
        folder: Path,
        redis_url: str | None,
        bench: Workbench,
    ) -> None:
        self.folder = folder
        self._redis_url = redis_url
        self._bench = bench
        self.now = bench.now
        self.store = PolicyStore(folder, bench.embedder)
        self.registry: PolicyRegistry
        self.resolver: EffectiveDateResolver
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
        scope = await self._scope(question.sources, question.effective_date)
        return await self._search(question, scope)

    async def search_batch(self, question: SearchPolicyBatch) -> PolicyHitsBatch:
        """Several queries over the same revisions, embedded together."""
        scope = await self._scope(question.sources, question.effective_date)
        singles = [
            SearchPolicy(
                query=query,
                sources=question.sources,
                effective_date=question.effective_date,
                n_results=question.n_results,
                mode=question.mode,
            )
            for query in question.queries
        ]
        if question.mode != "lexical":
            # One visit to the embedder; each search then finds its vector remembered.
            with suppress(ModelUnavailable):
                await anyio.to_thread.run_sync(self._bench.embedder.embed_each, question.queries)
        return PolicyHitsBatch(searches=[await self._search(one, scope) for one in singles])

    async def section(self, question: GetPolicySection) -> SectionText:
        """All of a section, with the sections in it, from one revision."""
        revisions = await self._revisions(question.source)
        revision = self._chosen(question, revisions)
        chunks = await self.store.chunks_of(question.source, revision.revision_id)
        chosen = passages.within(chunks, question.section_ref)
        if not chosen:
            raise SectionNotFound(
                f"Section '{question.section_ref}' not found in policy '{question.source}'",
                revision_id=revision.revision_id,
                nearest=_nearest_refs(question.section_ref, chunks),
            )
        ref = _as_written(question.section_ref, chosen[0])
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
            in_force_today=self._in_force_today(revision, revisions),
            citation=_citation(revision, ref, pages),
            id=policy_section_id(question.source, revision.revision_id, ref),
        )

    async def passage(self, chunk_id: str) -> PolicyHit:
        """One passage by its id, as a search told it."""
        chunk = (await self.store.named([chunk_id])).get(chunk_id)
        if chunk is None:
            raise RecordNotFound(f"No policy has a passage {chunk_id[:200]!r}")
        return self._hit(chunk, 1.0, (await self.registry.catalogue()).timelines)

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
                    revision=_brief(found, revisions) if isinstance(found, Revision) else None,
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
            raise SectionNotFound(
                f"Section '{question.section_ref}' not found in policy '{question.source}'"
            )
        refs = list(dict.fromkeys([*new, *old]))
        changes = await anyio.to_thread.run_sync(
            lambda: [change for ref in refs if (change := _change(ref, old, new))]
        )
        return RevisionDiff(
            source=question.source,
            from_revision=_brief(before, revisions),
            to_revision=_brief(after, revisions),
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
        ordered = [current] if current else []
        ordered += [one for one in revisions if one.counts and one != current]
        places = []
        for revision in ordered:
            chunks = await self.store.chunks_of(question.source, revision.revision_id)
            place = await anyio.to_thread.run_sync(passages.locate, question.quote, chunks)
            if place:
                places.append(_quoted(place, revision, revisions))
            if place and revision == current:
                break
        verified = bool(places) and current is not None
        verified = verified and places[0].revision_id == getattr(current, "revision_id", None)
        nearest = None if places else await self._nearest_passage(question.quote, ordered[:1])
        return QuoteCheck(
            source=question.source,
            date=question.date,
            verdict="verified" if verified else "wrong_revision" if places else "not_found",
            revision_in_force=current.revision_id if current else None,
            reason=None if isinstance(found, Revision) else found,
            found=places,
            nearest=nearest,
        )

    # --- writing ---

    async def ingest(self, question: IngestPolicyRevision, report: Report) -> Ingested:
        """Read a PDF into a registered revision."""
        revisions = await self._revisions(question.source)
        revision = timeline.find(revisions, question.revision_id)
        async with in_thread(self._bench.roots.open(question.file_path)) as intake:
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

    # --- searching ---

    async def _scope(self, sources: Sequence[str] | None, effective_date: str | None) -> _Scope:
        day = parse_day(effective_date) if effective_date is not None else None
        known = (await self.registry.catalogue()).timelines
        timelines = {
            source: revisions
            for source, revisions in known.items()
            if sources is None or source in sources
        }
        chosen: list[Revision] = []
        excluded = [
            Excluded(source=source, reason="unknown_source", nearest=None)
            for source in dict.fromkeys(sources or [])
            if source not in known
        ]
        for source, revisions in timelines.items():
            found = _eligible(revisions, day)
            if isinstance(found, list):
                chosen += found
            else:
                excluded.append(_exclusion(source, found, revisions, day))
        return _Scope(timelines, chosen, excluded)

    async def _search(self, question: SearchPolicy, scope: _Scope) -> PolicyHits:
        offset = _offset(question)
        wanted = offset + question.n_results
        ranking = await self._ranked(question, wanted + 1, scope.revisions)
        page = ranking.found[offset:wanted]
        chunks = await self.store.named([found.chunk_id for found in page])
        results = [
            self._hit(chunks[found.chunk_id], found.score, scope.timelines)
            for found in page
            if found.chunk_id in chunks
        ]
        more = len(ranking.found) > wanted and wanted < _DEEPEST
        return PolicyHits(
            query=question.query,
            effective_date=question.effective_date,
            results_count=len(results),
            results=results,
            excluded=scope.excluded,
            searched_revisions=len(scope.revisions),
            degraded=ranking.degraded,
            next_cursor=f"{wanted}.{_fingerprint(question)}" if more else None,
        )

    async def _ranked(self, question: SearchPolicy, k: int, revisions: list[Revision]) -> Ranking:
        if not revisions:
            return Ranking([])
        return await self.store.ranked(question.query, k, revisions, question.mode)

    def _hit(self, chunk: StoredChunk, score: float, timelines: Timelines) -> PolicyHit:
        revisions = timelines[chunk.source]
        revision = timeline.find(revisions, chunk.revision_id)
        successor = timeline.successor(revision, revisions)
        return PolicyHit(
            chunk_id=chunk.chunk_id,
            text=chunk.text,
            relevance_score=round(score, 6),
            source=chunk.source,
            revision_id=chunk.revision_id,
            version_label=revision.version_label,
            section_ref=chunk.section_ref,
            page_number=chunk.page_number,
            effective_from=revision.effective_from,
            effective_to=timeline.closing(revision, revisions),
            in_force_today=self._in_force_today(revision, revisions),
            superseded_by=successor.revision_id if successor else None,
            citation=_citation(revision, chunk.section_ref, chunk.pages),
            id=policy_passage_id(chunk.chunk_id),
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
        near = _nearest(revisions, day)
        raise RevisionNotFound(
            f"No revision of {source} was in force on {day}: {found}",
            reason=found,
            nearest=near.revision_id if near else None,
            use_tool="list_policy_revisions",
        )

    def _in_force_today(self, revision: Revision, revisions: Sequence[Revision]) -> bool:
        return timeline.in_force(revisions, self.today) == revision

    async def _section_chunks(self, revision: Revision, ref: str | None) -> list[StoredChunk]:
        chunks = await self.store.chunks_of(revision.source, revision.revision_id)
        return passages.within(chunks, ref) if ref else chunks

    async def _nearest_passage(
        self, quote: str, revisions: list[Revision]
    ) -> NearestPassage | None:
        question = SearchPolicy(query=quote[:2000], mode="hybrid")
        ranking = await self._ranked(question, _CANDIDATES, revisions)
        chunks = await self.store.named([found.chunk_id for found in ranking.found])
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


def _eligible(
    revisions: Sequence[Revision], day: date | None
) -> list[Revision] | timeline.Reason | str:
    """The revisions a search may look at, or why there are none."""
    if day is None:
        found = [one for one in revisions if one.counts]
        if not found:
            return "no_active_revision"
    else:
        in_force = timeline.in_force(revisions, day)
        if not isinstance(in_force, Revision):
            return in_force
        found = [in_force]
    with_chunks = [one for one in found if one.chunk_count]
    return with_chunks or "no_chunks"


def _exclusion(
    source: str, reason: str, revisions: Sequence[Revision], day: date | None
) -> Excluded:
    near = _nearest(revisions, day) if day else None
    brief = _brief(near, revisions) if near else None
    return Excluded.model_validate({"source": source, "reason": reason, "nearest": brief})


def _nearest(revisions: Iterable[Revision], day: date) -> Revision | None:
    """The revision that counts and lies closest to a day on which none was in force."""

    def distance(one: Revision) -> int:
        ends = [one.effective_from, one.effective_to or one.effective_from]
        return min(abs((end - day).days) for end in ends)

    return min((one for one in revisions if one.counts), key=distance, default=None)


def _brief(revision: Revision, revisions: Sequence[Revision]) -> NearestRevision:
    return NearestRevision(
        revision_id=revision.revision_id,
        version_label=revision.version_label,
        effective_from=revision.effective_from,
        effective_to=timeline.closing(revision, revisions),
    )


def _citation(revision: Revision, ref: str, pages: Sequence[int]) -> str:
    """`NPPF (December 2024), Para 116, p. 33–34`."""
    named = f"{revision.source} ({revision.version_label})"
    return ", ".join(filter(None, [named, ref, cited(pages)]))


def _quoted(place: passages.Place, revision: Revision, revisions: Sequence[Revision]) -> QuotePlace:
    return QuotePlace(
        **_brief(revision, revisions).model_dump(),
        section_ref=place.chunk.section_ref,
        page_number=place.page,
        chunk_id=place.chunk.chunk_id,
        citation=_citation(revision, place.chunk.section_ref, [place.page]),
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


def _nearest_refs(ref: str, chunks: Sequence[StoredChunk]) -> list[str]:
    """Sections that are written much like the one that was asked for."""
    paths = (part for chunk in chunks for part in (*chunk.section_path, chunk.section_ref))
    known = {passages.fold_ref(part): part for part in paths if part}
    near = difflib.get_close_matches(passages.fold_ref(ref), known, n=5, cutoff=0.5)
    return [known[one] for one in near]


def _as_written(ref: str, chunk: StoredChunk) -> str:
    """The reference as the document writes it."""
    wanted = passages.fold_ref(ref)
    named = (*chunk.section_path, chunk.section_ref)
    return next(part for part in named if passages.fold_ref(part) == wanted)


def _offset(question: SearchPolicy) -> int:
    if question.cursor is None:
        return 0
    offset, _, fingerprint = question.cursor.partition(".")
    if fingerprint != _fingerprint(question) or not offset.isascii() or not offset.isdecimal():
        raise InvalidCursor("This cursor does not belong to this query; start without one")
    return min(int(offset), _DEEPEST)


def _fingerprint(question: SearchPolicy) -> str:
    same = (question.query, question.sources, question.effective_date, question.mode)
    return hashlib.sha256(repr(same).encode()).hexdigest()[:12]

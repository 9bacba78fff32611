"""A search over policies: which revisions may answer, what they say, and where its pages end."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import anyio.to_thread

from readingroom.bases.policy.ids import passage_id
from readingroom.bases.policy.models import (
    Excluded,
    NearestRevision,
    PolicyHit,
    PolicyHits,
    PolicyHitsBatch,
    SearchPolicy,
    SearchPolicyBatch,
    Why,
)
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Revision, citation
from readingroom.bases.policy.registry.store import PolicyRegistry, Timeline
from readingroom.bases.policy.store import PolicyStore, StoredChunk
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidCursor, RecordNotFound
from readingroom.engine.errors import ModelUnavailable
from readingroom.ingest.context import IngestContext

_DEEPEST = 2_000  # results that paging may reach


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a search may look at: the revisions chosen, and why others were not."""

    timelines: dict[str, Timeline]
    revisions: list[Revision]
    excluded: list[Excluded]


class PolicySearch:
    """Passages of the revisions in force on a day, each with what is needed to cite it."""

    def __init__(self, registry: PolicyRegistry, store: PolicyStore, bench: IngestContext) -> None:
        self._registry = registry
        self._store = store
        self._bench = bench

    async def single(self, question: SearchPolicy) -> PolicyHits:
        """The passages that answer best, among the revisions in force on the day."""
        scope = await self._scope(question.sources, question.effective_date)
        return await self._hits(question, scope)

    async def batch(self, question: SearchPolicyBatch) -> PolicyHitsBatch:
        """Several queries over the same revisions, embedded together."""
        scope = await self._scope(question.sources, question.effective_date)
        shared = question.model_dump(exclude={"queries"})
        singles = [SearchPolicy(query=query, **shared) for query in question.queries]
        if question.mode != "lexical":
            # One visit to the embedder; each search then finds its vector remembered.
            with suppress(ModelUnavailable):
                await anyio.to_thread.run_sync(self._bench.embedder.embed_each, question.queries)
        return PolicyHitsBatch(searches=[await self._hits(one, scope) for one in singles])

    async def passage(self, chunk_id: str) -> PolicyHit:
        """One passage by its id, as a search told it."""
        chunk = (await self._store.named([chunk_id])).get(chunk_id)
        if chunk is None:
            raise RecordNotFound(f"No policy has a passage {chunk_id[:200]!r}")
        return self._hit(chunk, 1.0, (await self._registry.catalogue()).timelines)

    async def _scope(self, sources: Sequence[str] | None, effective_date: str | None) -> _Scope:
        day = parse_day(effective_date) if effective_date is not None else None
        known = (await self._registry.catalogue()).timelines
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

    async def _hits(self, question: SearchPolicy, scope: _Scope) -> PolicyHits:
        offset = _offset(question)
        wanted = offset + question.n_results
        ranking = await self._store.ranked(
            question.query, wanted + 1, scope.revisions, question.mode
        )
        page = ranking.hits[offset:wanted]
        chunks = await self._store.named([hit.chunk_id for hit in page])
        results = [
            self._hit(chunks[hit.chunk_id], hit.score, scope.timelines)
            for hit in page
            if hit.chunk_id in chunks
        ]
        more = len(ranking.hits) > wanted and wanted < _DEEPEST
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

    def _hit(self, chunk: StoredChunk, score: float, timelines: dict[str, Timeline]) -> PolicyHit:
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
            in_force_today=timeline.in_force(revisions, self._bench.now().date()) == revision,
            superseded_by=successor.revision_id if successor else None,
            citation=citation(revision, chunk.section_ref, chunk.pages),
            id=passage_id(chunk.chunk_id),
        )


def brief(revision: Revision, revisions: Sequence[Revision]) -> NearestRevision:
    """A revision by name, with the days it really has beside the others."""
    return NearestRevision(
        revision_id=revision.revision_id,
        version_label=revision.version_label,
        effective_from=revision.effective_from,
        effective_to=timeline.closing(revision, revisions),
    )


def _eligible(revisions: Sequence[Revision], day: date | None) -> list[Revision] | Why:
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
    source: str, reason: Why, revisions: Sequence[Revision], day: date | None
) -> Excluded:
    near = timeline.nearest(revisions, day) if day else None
    told = brief(near, revisions) if near else None
    return Excluded(source=source, reason=reason, nearest=told)


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

"""Search over policies: which revisions are eligible, their best passages, and paging."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import anyio.to_thread

from readingroom.bases.policy.chunks.hits import (
    group_chunks_by_passage,
    make_policy_hit,
)
from readingroom.bases.policy.chunks.references import (
    AskedReference,
    extract_topic_text,
    find_asked_references,
    has_clause_start,
)
from readingroom.bases.policy.chunks.store import PolicyStore
from readingroom.bases.policy.models import (
    Excluded,
    ExclusionReason,
    NearestRevision,
    PolicyHit,
    PolicyHits,
    PolicyHitsBatch,
    SearchPolicy,
    SearchPolicyBatch,
)
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import (
    Policy,
    Revision,
    RevisionStatus,
)
from readingroom.bases.policy.registry.resolver import EffectiveDateResolver, PolicyOnDay
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidCursor, RecordNotFound
from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import count_spare_hits
from readingroom.engine.index import ChunkHit, Ranking
from readingroom.ingest.context import IngestContext
from readingroom.protocol.search import UnreadRevision, is_heading_only

# Every page ranks all hits before it again, so the cost of paging grows with its depth.
_MAX_OFFSET = 2_000  # the last result that paging reaches
_MAX_NAMED_SECTIONS = 10  # passages that a query puts first by naming their sections
_MAX_LOOKED_UP_REVISIONS = 60  # whose sections are looked up
_MAX_SECTION_CHUNKS = 40  # of a section, in which a clause is looked for
_MAX_RANKED_REVISIONS = 5  # of which the passages of named sections are ranked by the query
_RANKED_PASSAGE_COUNT = 100
_COMMON_NAME_WORDS_PATTERN = re.compile(
    "and|for|the|polic(?:y|ies)|plans?|local|core|strateg(?:y|ic)|framework|national|planning"
    "|borough|district|county|city|council|documents?|development|guid(?:e|ance)|supplementary"
    "|spd|adopted|draft|review|part|area|joint|design|code|neighbourhood"
)
"""Words in the names of so many policies that they tell none from another."""


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """What a search may look at, why other policies have none, and what could not be read."""

    policies_today_by_slug: dict[str, PolicyOnDay]
    """Every policy as it stands today, which each hit is compared with."""
    revisions: list[Revision]
    exclusions: list[Excluded]
    unread_revisions: list[UnreadRevision]


class PolicySearch:
    """Passages of the revisions in force on a day, each with what is needed to cite it."""

    def __init__(
        self,
        date_resolver: EffectiveDateResolver,
        policy_store: PolicyStore,
        ingest_context: IngestContext,
    ) -> None:
        self._resolver = date_resolver
        self._store = policy_store
        self._context = ingest_context

    async def search_policies(
        self, arguments: SearchPolicy, site_address: str | None = None
    ) -> PolicyHits:
        """Return the best passages among the revisions in force on the day, and at the address."""
        search_scope = await self.resolve_scope(arguments, site_address)
        return await self._search_hits_page(arguments, search_scope)

    async def search_batch(self, arguments: SearchPolicyBatch) -> PolicyHitsBatch:
        """Answer several queries over the same revisions, embedded together."""
        search_scope = await self.resolve_scope(arguments)
        shared_arguments = arguments.model_dump(exclude={"queries"})
        if arguments.mode != "lexical":
            # One call of the embedder for all; each search then finds its vector in the cache.
            with suppress(ModelUnavailable):
                await anyio.to_thread.run_sync(self._context.embedder.embed_each, arguments.queries)
        return PolicyHitsBatch(
            searches=[
                await self._search_hits_page(
                    SearchPolicy(query=query_text, **shared_arguments), search_scope
                )
                for query_text in arguments.queries
            ]
        )

    async def resolve_scope(
        self, arguments: SearchPolicy | SearchPolicyBatch, site_address: str | None = None
    ) -> PolicyScope:
        """Return the revisions that a search looks at, and why other policies have none."""
        policy_slugs, effective_date = arguments.sources, arguments.effective_date
        asked_day = parse_day(effective_date) if effective_date is not None else None
        # Resolved for today also when a day is given: hits say whether they are in force today.
        policies_today_by_slug = await self._resolver.resolve_snapshot(self._today)
        revisions: list[Revision] = []
        unread_revisions: list[UnreadRevision] = []
        exclusions = [
            Excluded(source=policy_slug, reason="unknown_source", nearest=None)
            for policy_slug in dict.fromkeys(policy_slugs or [])
            if policy_slug not in policies_today_by_slug
        ]
        exclusion_reasons_by_slug = _get_exclusion_reasons_by_slug(
            [policy_as_of_today.policy for policy_as_of_today in policies_today_by_slug.values()],
            arguments.local_authority,
            site_address,
        )
        for policy_slug, policy_as_of_today in policies_today_by_slug.items():
            if policy_slugs is not None and policy_slug not in policy_slugs:
                continue
            if (exclusion_reason := exclusion_reasons_by_slug.get(policy_slug)) is not None:
                exclusions.append(_make_exclusion(policy_as_of_today, exclusion_reason, asked_day))
                continue
            policy_on_day = (
                policy_as_of_today.resolve_day(asked_day) if asked_day else policy_as_of_today
            )
            unread_revisions += list_unread_revisions(policy_on_day)
            emerging_revisions: list[Revision] = []
            if arguments.include_emerging:
                emerging_revisions = _list_emerging_revisions(policy_as_of_today, asked_day)
            revisions += emerging_revisions
            revisions_or_reason = _list_revisions_or_reason(policy_as_of_today, asked_day)
            if isinstance(revisions_or_reason, list):
                revisions += revisions_or_reason
            elif not emerging_revisions:
                exclusions.append(
                    _make_exclusion(policy_as_of_today, revisions_or_reason, asked_day)
                )
        return PolicyScope(policies_today_by_slug, revisions, exclusions, unread_revisions)

    async def get_passage(self, chunk_id: str) -> PolicyHit:
        """Return one passage by its id, in the shape of a search result.

        Raises:
            RecordNotFound: no policy has such a passage.
        """
        chunk = (await self._store.get_chunks_by_id([chunk_id])).get(chunk_id)
        if chunk is None:
            raise RecordNotFound(f"No policy has a passage {chunk_id[:200]!r}")
        policy_as_of_today = await self._resolver.resolve_for_policy(chunk.source, self._today)
        return make_policy_hit([chunk], ChunkHit(chunk_id, 1.0, ScoreParts()), policy_as_of_today)

    @property
    def _today(self) -> date:
        return self._context.get_now().date()

    async def _search_hits_page(
        self, arguments: SearchPolicy, search_scope: PolicyScope
    ) -> PolicyHits:
        first_rank = _parse_cursor(arguments)
        end_rank = first_rank + arguments.n_results
        named_chunk_ids = await self._list_named_chunk_ids(arguments, search_scope)
        # One more than the page holds shows whether there is a next page.
        ranking = await self._store.rank_chunks(
            arguments.query,
            end_rank + count_spare_hits(arguments.mode) + 1,
            search_scope.revisions,
            arguments.mode,
        )
        ranking = _put_named_passages_first(named_chunk_ids, ranking)
        hits_by_id = {hit.chunk_id: hit for hit in ranking.hits}
        chunks_by_id = await self._store.get_chunks_by_id([*hits_by_id])
        found_chunks = [
            chunks_by_id[chunk_id] for chunk_id in hits_by_id if chunk_id in chunks_by_id
        ]
        chunk_groups = group_chunks_by_passage(found_chunks, arguments.mode)
        policy_hits = [
            make_policy_hit(
                chunks,
                hits_by_id[chunks[0].chunk_id],
                search_scope.policies_today_by_slug[chunks[0].source],
                is_section_named=chunks[0].chunk_id in named_chunk_ids,
            )
            for chunks in chunk_groups[first_rank:end_rank]
        ]
        answer_confidence = judge_confidence(
            [hit.score for hit in ranking.hits], policy_hits[0].citation if policy_hits else ""
        )
        has_next_page = len(chunk_groups) > end_rank and end_rank < _MAX_OFFSET
        return PolicyHits(
            query=arguments.query,
            effective_date=arguments.effective_date,
            results_count=len(policy_hits),
            results=policy_hits,
            excluded=search_scope.exclusions,
            searched_revisions=len(search_scope.revisions),
            confidence=answer_confidence.level,
            confidence_reason=answer_confidence.reason,
            degraded=ranking.degraded_reason,
            next_cursor=f"{end_rank}.{_hash_search_arguments(arguments)}"
            if has_next_page
            else None,
            unread_revisions=search_scope.unread_revisions,
        )

    async def _list_named_chunk_ids(
        self, arguments: SearchPolicy, search_scope: PolicyScope
    ) -> list[str]:
        """Return a passage of each section that the query names, of the likeliest policy first."""
        name_words_by_slug = {
            policy_slug: _list_policy_name_words(policy_as_of_today.policy)
            for policy_slug, policy_as_of_today in search_scope.policies_today_by_slug.items()
        }
        asked_references = find_asked_references(
            arguments.query, set().union(*name_words_by_slug.values())
        )
        if not asked_references:
            return []
        query_words = set(re.findall(r"\w+", arguments.query.casefold()))

        def get_sort_key(revision: Revision) -> tuple[bool, bool, bool, int]:
            # `NPPF` is the whole name of one policy, and a word of that of `NPPF_DRAFT`.
            is_slug_named = revision.source.casefold() in query_words
            is_policy_named = bool(name_words_by_slug[revision.source] & query_words)
            policy_as_of_today = search_scope.policies_today_by_slug[revision.source]
            is_in_force = policy_as_of_today.revision == revision
            newest_first_key = -revision.effective_from.toordinal()
            return not is_slug_named, not is_policy_named, not is_in_force, newest_first_key

        named_sections: list[_NamedSection] = []
        for asked_reference in asked_references[:_MAX_NAMED_SECTIONS]:
            for revision in sorted(search_scope.revisions, key=get_sort_key)[
                :_MAX_LOOKED_UP_REVISIONS
            ]:
                chunk_ids_by_folded_ref = await self._store.get_section_index(
                    revision.source, revision.revision_id
                )
                matching_folded_refs = (
                    folded_ref
                    for folded_ref in asked_reference.folded_refs
                    if folded_ref in chunk_ids_by_folded_ref
                )
                if (folded_ref := next(matching_folded_refs, None)) is not None:
                    named_sections.append(
                        _NamedSection(
                            asked_reference, revision, chunk_ids_by_folded_ref[folded_ref]
                        )
                    )
        named_sections = named_sections[:_MAX_NAMED_SECTIONS]
        ranks_by_chunk_id = await self._rank_named_passages(arguments, named_sections)
        chunk_ids = [
            await self._choose_chunk_id(named_section, ranks_by_chunk_id)
            for named_section in named_sections
        ]
        return [*dict.fromkeys(chunk_ids)]

    async def _rank_named_passages(
        self, arguments: SearchPolicy, named_sections: Sequence["_NamedSection"]
    ) -> dict[str, int]:
        """Return the places of the best passages of the policies whose sections are named.

        There are none when the query says nothing beside the references.
        """
        topic_text = extract_topic_text(arguments.query)
        if not topic_text or all(
            len(named_section.chunk_ids) == 1 for named_section in named_sections
        ):
            return {}
        revisions = [
            named_section.revision for named_section in named_sections[:_MAX_RANKED_REVISIONS]
        ]
        search_mode: Mode = "lexical" if arguments.mode == "lexical" else "hybrid"
        ranking = await self._store.rank_chunks(
            topic_text, _RANKED_PASSAGE_COUNT, revisions, search_mode
        )
        return {hit.chunk_id: hit_rank for hit_rank, hit in enumerate(ranking.hits)}

    async def _choose_chunk_id(
        self, named_section: "_NamedSection", ranks_by_chunk_id: Mapping[str, int]
    ) -> str:
        """Return the chunk where the clause that is asked for begins, the best, or the first."""
        chunk_ids, clause_ref = named_section.chunk_ids, named_section.reference.clause
        if len(chunk_ids) == 1:
            return chunk_ids[0]
        chunks_by_id = await self._store.get_chunks_by_id(chunk_ids[:_MAX_SECTION_CHUNKS])
        chunks = [chunks_by_id[chunk_id] for chunk_id in chunk_ids if chunk_id in chunks_by_id]
        if clause_ref:
            for chunk in chunks:
                if has_clause_start(chunk.text, clause_ref):
                    return chunk.chunk_id
        # A heading has the words of the question and not their answer.
        text_chunks = [chunk for chunk in chunks if not is_heading_only(chunk.text)]
        own_section_chunk_ids = [
            chunk.chunk_id for chunk in text_chunks if chunk.section_ref == chunks[0].section_ref
        ]
        ranked_chunk_ids = [
            chunk.chunk_id for chunk in text_chunks if chunk.chunk_id in ranks_by_chunk_id
        ]
        return min(
            ranked_chunk_ids,
            key=lambda chunk_id: ranks_by_chunk_id[chunk_id],
            default=next(iter(own_section_chunk_ids), chunk_ids[0]),
        )


@dataclass(frozen=True, slots=True)
class _NamedSection:
    """A section that a query names, in one revision."""

    reference: AskedReference
    revision: Revision
    chunk_ids: list[str]


def _put_named_passages_first(named_chunk_ids: Sequence[str], ranking: Ranking) -> Ranking:
    """Return a ranking that the named passages lead, as certain as a search can be."""
    if not named_chunk_ids:
        return ranking
    score_parts_by_chunk_id = {hit.chunk_id: hit.score_parts for hit in ranking.hits}
    # Without its cosine: the relevance of a named passage is that it was named.
    named_hits = [
        ChunkHit(
            chunk_id,
            1.0,
            ScoreParts(matched_terms=score_parts_by_chunk_id[chunk_id].matched_terms)
            if chunk_id in score_parts_by_chunk_id
            else ScoreParts(),
        )
        for chunk_id in named_chunk_ids
    ]
    other_hits = [hit for hit in ranking.hits if hit.chunk_id not in named_chunk_ids]
    return Ranking([*named_hits, *other_hits], ranking.degraded_reason)


def _list_policy_name_words(policy: Policy) -> set[str]:
    """Return the words that tell a policy from others, in lower case."""
    name_words = re.findall(
        r"[a-z0-9]+", f"{policy.source} {policy.title}".casefold().replace("_", " ")
    )
    return {
        name_word
        for name_word in name_words
        if len(name_word) > 2 and not _COMMON_NAME_WORDS_PATTERN.fullmatch(name_word)
    } | {policy.source.casefold()}


def make_nearest_revision(revision: Revision, revisions: Sequence[Revision]) -> NearestRevision:
    """Return a revision by name, with the last day that its successors leave it."""
    return NearestRevision(
        revision_id=revision.revision_id,
        version_label=revision.version_label,
        effective_from=revision.effective_from,
        effective_to=timeline.find_last_day(revision, revisions),
    )


def list_unread_revisions(
    policy_on_day: PolicyOnDay, answering_revision: Revision | None = None
) -> list[UnreadRevision]:
    """Return the revisions that would answer for the day, had their files been readable.

    With `answering_revision` only where that one answers instead.
    """
    if answering_revision is not None and policy_on_day.revision != answering_revision:
        return []
    return [
        UnreadRevision(
            source=revision.source,
            **make_nearest_revision(revision, policy_on_day.timeline).model_dump(),
            answered_by=policy_on_day.revision.revision_id if policy_on_day.revision else None,
        )
        for revision in policy_on_day.unread_revisions
    ]


def _get_exclusion_reasons_by_slug(
    policies: Sequence[Policy], local_authority: str | None, site_address: str | None
) -> dict[str, ExclusionReason]:
    """Return, by their slugs, the policies that do not apply, and why.

    An authority that took the place of several decides by the plan of each in its old area. So
    where the address names the area of a plan that it inherited, those of other areas do not
    apply.
    """
    if local_authority is None:
        return {}
    exclusion_reasons_by_slug: dict[str, ExclusionReason] = {
        policy.source: "authority_unknown" if policy.is_unattributed else "other_authority"
        for policy in policies
        if not policy.is_applicable_in(local_authority)
    }
    inherited_plans = [
        policy
        for policy in policies
        if policy.area and not policy.is_national and policy.is_inherited_by(local_authority)
    ]
    slugs_covering_site = {
        policy.source for policy in inherited_plans if policy.covers(site_address or "")
    }
    if slugs_covering_site:
        slugs_of_other_areas = {policy.source for policy in inherited_plans} - slugs_covering_site
        exclusion_reasons_by_slug |= dict.fromkeys(slugs_of_other_areas, "other_area")
    return exclusion_reasons_by_slug


def _list_revisions_or_reason(
    policy_as_of_today: PolicyOnDay, asked_day: date | None
) -> list[Revision] | ExclusionReason:
    """Return the revisions of a policy that a search may look at, or why there are none."""
    if asked_day is None:
        candidate_revisions = [
            revision for revision in policy_as_of_today.timeline if revision.can_be_in_force
        ]
        if not candidate_revisions:
            return "no_active_revision"
    else:
        policy_on_day = policy_as_of_today.resolve_day(asked_day)
        if policy_on_day.reason is not None:
            return policy_on_day.reason
        candidate_revisions = [policy_on_day.require_revision()]
    # A revision whose chunks were removed is in force all the same; it just has no text here.
    revisions_with_chunks = [revision for revision in candidate_revisions if revision.chunk_count]
    return revisions_with_chunks or "no_chunks"


def _list_emerging_revisions(
    policy_as_of_today: PolicyOnDay, asked_day: date | None
) -> list[Revision]:
    """Return the revisions of a policy that are not adopted, as they were known on a day."""
    return [
        revision
        for revision in policy_as_of_today.timeline
        if revision.status == RevisionStatus.EMERGING
        and revision.chunk_count
        and (asked_day is None or revision.effective_from <= asked_day)
    ]


def _make_exclusion(
    policy_as_of_today: PolicyOnDay, exclusion_reason: ExclusionReason, asked_day: date | None
) -> Excluded:
    nearest_revision = (
        policy_as_of_today.resolve_day(asked_day).find_nearest_revision() if asked_day else None
    )
    return Excluded(
        source=policy_as_of_today.source,
        reason=exclusion_reason,
        nearest=make_nearest_revision(nearest_revision, policy_as_of_today.timeline)
        if nearest_revision
        else None,
    )


def _parse_cursor(arguments: SearchPolicy) -> int:
    """Return the offset of the page that the cursor asks for; raise `InvalidCursor`."""
    if arguments.cursor is None:
        return 0
    rank_text, _, cursor_fingerprint = arguments.cursor.partition(".")
    # isdecimal alone also accepts digits of other scripts, which nobody was given.
    if (
        cursor_fingerprint != _hash_search_arguments(arguments)
        or not rank_text.isascii()
        or not rank_text.isdecimal()
    ):
        raise InvalidCursor("This cursor does not belong to this query; start without one")
    return min(int(rank_text), _MAX_OFFSET)


def _hash_search_arguments(arguments: SearchPolicy) -> str:
    """Return a digest of what all pages of one search share; a cursor is refused with another."""
    shared_arguments: tuple[object, ...] = (
        arguments.query,
        arguments.sources,
        arguments.effective_date,
        arguments.mode,
    )
    if arguments.local_authority is not None or arguments.include_emerging:
        shared_arguments += (arguments.local_authority, arguments.include_emerging)
    return hashlib.sha256(repr(shared_arguments).encode()).hexdigest()[:12]

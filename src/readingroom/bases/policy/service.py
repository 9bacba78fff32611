"""What the policy base can do, independent of MCP and HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from readingroom.bases.policy.errors import SectionNotFound
from readingroom.bases.policy.ids import format_section_id
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    IngestedRevision,
    IngestPolicyRevision,
    ListedPolicy,
    ListedRevision,
    ListPolicyRevisions,
    ListPolicySections,
    NearestPassage,
    PolicyHit,
    PolicyHits,
    PolicyHitsBatch,
    PolicyList,
    PolicySnapshot,
    QuoteCheck,
    QuotePlace,
    RemovedRevision,
    RemovePolicyRevision,
    RevisionDiff,
    RevisionList,
    SearchPolicy,
    SearchPolicyBatch,
    SectionList,
    SectionText,
    Snapshot,
    SnapshotEntry,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.opening import AnyPolicyRegistry, open_registry
from readingroom.bases.policy.registry.records import Revision
from readingroom.bases.policy.registry.resolver import EffectiveDateResolver, PolicyOnDay
from readingroom.core.dates import parse_day
from readingroom.core.imports import LazyModule
from readingroom.core.progress import ReportProgress
from readingroom.ingest.context import IngestContext
from readingroom.protocol.search import UnreadRevision
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.handover import delete_old_handovers

# What an open base needs no sooner than it is served.
if TYPE_CHECKING:
    from readingroom.bases.policy.chunks import joining, references, store
    from readingroom.bases.policy.chunks import search as chunk_search
    from readingroom.bases.policy.compare import diffs, pairing, passages, quotes
    from readingroom.bases.policy.ingest import ingestion, jobs
else:
    joining = LazyModule("readingroom.bases.policy.chunks.joining")
    references = LazyModule("readingroom.bases.policy.chunks.references")
    chunk_search = LazyModule("readingroom.bases.policy.chunks.search")
    store = LazyModule("readingroom.bases.policy.chunks.store")
    diffs = LazyModule("readingroom.bases.policy.compare.diffs")
    pairing = LazyModule("readingroom.bases.policy.compare.pairing")
    passages = LazyModule("readingroom.bases.policy.compare.passages")
    quotes = LazyModule("readingroom.bases.policy.compare.quotes")
    ingestion = LazyModule("readingroom.bases.policy.ingest.ingestion")
    jobs = LazyModule("readingroom.bases.policy.ingest.jobs")

logger = logging.getLogger(__name__)

_NEAREST_CANDIDATE_COUNT = 5  # passages compared with a quotation that stands nowhere


class PolicyService:
    """Policies and their revisions: searched, read, compared, and brought up to date."""

    def __init__(
        self, base_folder: Path, redis_url: str | None, ingest_context: IngestContext
    ) -> None:
        self.folder = base_folder
        self._redis_url = redis_url
        self._context = ingest_context
        self.get_now = ingest_context.get_now
        self.database = ingest_context.database
        self.store: store.PolicyStore
        self.registry: AnyPolicyRegistry
        self.resolver: EffectiveDateResolver
        self._search: chunk_search.PolicySearch
        self.ingestion: ingestion.Ingestion
        self.jobs: jobs.IngestionQueue

    @asynccontextmanager
    async def run_service(self) -> AsyncIterator[None]:
        """Open the stores, finish interrupted changes, and work on queued jobs until the exit."""
        async with open_registry(self.folder, self._redis_url, self.database) as self.registry:
            try:
                await self.registry.ping()
            except RegistryUnavailable as error:
                # A Redis at REDIS_URL may come back, so the server starts without it.
                logger.error("%s; the policy tools fail until it does", error.message)
            self.resolver = EffectiveDateResolver(self.registry)
            self.store = store.PolicyStore(self.folder, self._context.embedder, self.database)
            self._search = chunk_search.PolicySearch(self.resolver, self.store, self._context)
            self.ingestion = ingestion.Ingestion(
                self.folder, self.registry, self.store, self._context
            )
            self.jobs = jobs.IngestionQueue(self.registry, self.ingestion)
            # Opened before the jobs run: a recovered ingestion writes chunks at once.
            await self.store.open()
            try:
                # Files that a killed command handed over have no owner any more; nothing else
                # deletes them.
                await anyio.to_thread.run_sync(delete_old_handovers, self.folder, self.get_now())
                async with self.jobs.run_worker():
                    yield
            finally:
                # A shutdown arrives as a cancellation, which would otherwise interrupt the close
                # itself.
                with anyio.CancelScope(shield=True):
                    await self.store.close()

    async def check_ready(self) -> None:
        """Raise `RegistryUnavailable` or `StoreUnusable` while no policy can be read."""
        await self.registry.ping()
        await self.store.check_readable()

    async def warm_up(self) -> None:
        """Load what the first search waits for; raise `ModelUnavailable` without a model."""
        await self.store.warm_up()

    @property
    def today(self) -> date:
        return self.get_now().date()

    # --- reading ---

    async def search(self, arguments: SearchPolicy, site_address: str | None = None) -> PolicyHits:
        """Return the best passages among the revisions in force on the day, and at the address."""
        return await self._search.search_policies(arguments, site_address)

    async def search_batch(self, arguments: SearchPolicyBatch) -> PolicyHitsBatch:
        """Answer several queries over the same revisions."""
        return await self._search.search_batch(arguments)

    async def resolve_scope(
        self, arguments: SearchPolicy, site_address: str | None = None
    ) -> chunk_search.PolicyScope:
        """Return the revisions that a search looks at, and why other policies have none."""
        return await self._search.resolve_scope(arguments, site_address)

    async def get_section(self, arguments: GetPolicySection) -> SectionText:
        """Return the whole text of a section, with the sections in it, from one revision.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionNotFound: it has no such revision, or none is in force today.
            SectionNotFound: the revision has no such section; the error names similar ones.
        """
        policy_as_of_today = await self.resolver.resolve_for_policy(arguments.source, self.today)
        revision = _choose_asked_revision(policy_as_of_today, arguments.revision_id, arguments.date)
        policy_on_asked_day = (
            policy_as_of_today.resolve_day(parse_day(arguments.date))
            if arguments.date
            else policy_as_of_today.resolve_last_day(revision)
        )
        chunks = await self.store.get_chunks(arguments.source, revision.revision_id)
        section_ref = references.find_section_ref(
            arguments.section_ref, passages.index_references(chunks)
        )
        if section_ref is None:
            raise await self._make_section_error(
                arguments.section_ref, revision, policy_as_of_today, chunks
            )
        section_chunks = passages.select_section_chunks(chunks, section_ref)
        page_numbers = sorted(
            {page_number for chunk in section_chunks for page_number in chunk.pages}
        )
        return SectionText(
            source=arguments.source,
            section_ref=section_ref,
            revision_id=revision.revision_id,
            version_label=revision.version_label,
            text=passages.join_section_text(section_chunks),
            page_numbers=page_numbers,
            effective_from=revision.effective_from,
            effective_to=timeline.find_last_day(revision, policy_as_of_today.timeline),
            in_force_today=policy_as_of_today.revision == revision,
            citation=passages.cite_section(revision, section_ref, section_chunks, page_numbers),
            id=format_section_id(arguments.source, revision.revision_id, section_ref),
            section_title=passages.get_section_title(section_chunks, section_ref),
            passage_kind=section_chunks[0].passage_kind,
            printed_pages=joining.list_printed_page_labels(section_chunks, page_numbers),
            stage=revision.stage,
            unread_revisions=chunk_search.list_unread_revisions(policy_on_asked_day, revision),
        )

    async def list_unread_successors(
        self, policy_slug: str, revision_id: str
    ) -> list[UnreadRevision]:
        """Return the revisions that would have replaced this one, had they been readable.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionNotFound: it has no such revision.
        """
        policy_as_of_today = await self.resolver.resolve_for_policy(policy_slug, self.today)
        revision = timeline.get_revision(policy_as_of_today.timeline, revision_id)
        return chunk_search.list_unread_revisions(
            policy_as_of_today.resolve_last_day(revision), revision
        )

    async def get_passage(self, chunk_id: str) -> PolicyHit:
        """Return one passage by its id; raise `RecordNotFound` if there is none."""
        return await self._search.get_passage(chunk_id)

    async def list_policies(self) -> PolicyList:
        """Return every policy by name."""
        policies = await self.registry.list_policies()
        return PolicyList(
            policy_count=len(policies),
            policies=[
                ListedPolicy(source=policy.source, title=policy.title, category=policy.category)
                for policy in policies
            ],
        )

    async def list_revisions(self, arguments: ListPolicyRevisions) -> RevisionList:
        """Return a policy's revisions, newest first; raise `PolicyNotFound`."""
        await self.registry.get_policy(arguments.source)
        revisions = await self.registry.get_revisions(arguments.source)
        return RevisionList(
            source=arguments.source,
            revision_count=len(revisions),
            revisions=[
                ListedRevision(
                    **chunk_search.make_nearest_revision(revision, revisions).model_dump(
                        exclude={"effective_to"}
                    ),
                    effective_to=timeline.find_listed_last_day(revision, revisions),
                    status=revision.status,
                    chunk_count=revision.chunk_count,
                )
                for revision in revisions
            ],
        )

    async def find_section_first_pages(self, policy_slug: str, revision_id: str) -> dict[str, int]:
        """Return every section of a revision with the page it begins on, in reading order."""
        first_page_by_section: dict[str, int] = {}
        for chunk in await self.store.get_chunks(policy_slug, revision_id):
            for section_ref in filter(None, (*chunk.section_path, chunk.section_ref)):
                first_page_by_section.setdefault(section_ref, chunk.page_number)
        return first_page_by_section

    async def list_section_titles(self, arguments: ListPolicySections) -> SectionList:
        """Return every section of a revision with its title and page; raises as `get_section`."""
        policy_as_of_today = await self.resolver.resolve_for_policy(arguments.source, self.today)
        revision = _choose_asked_revision(policy_as_of_today, arguments.revision_id, arguments.date)
        chunks = await self.store.get_chunks(arguments.source, revision.revision_id)
        listed_sections = passages.list_sections(chunks)
        return SectionList(
            source=arguments.source,
            revision_id=revision.revision_id,
            version_label=revision.version_label,
            section_count=len(listed_sections),
            sections=listed_sections,
        )

    async def get_snapshot(self, arguments: PolicySnapshot) -> Snapshot:
        """Return every policy with its revision in force on one day."""
        policies_on_day_by_slug = await self.resolver.resolve_snapshot(parse_day(arguments.date))
        snapshot_entries = [
            SnapshotEntry(
                source=policy_on_day.source,
                title=policy_on_day.policy.title,
                category=policy_on_day.policy.category,
                revision=chunk_search.make_nearest_revision(
                    policy_on_day.revision, policy_on_day.timeline
                )
                if policy_on_day.revision
                else None,
                reason=policy_on_day.reason,
                unread_revisions=chunk_search.list_unread_revisions(policy_on_day),
            )
            for policy_on_day in policies_on_day_by_slug.values()
        ]
        return Snapshot(
            date=arguments.date,
            policy_count=len(snapshot_entries),
            in_force_count=sum(entry.revision is not None for entry in snapshot_entries),
            policies=snapshot_entries,
        )

    async def compare_revisions(self, arguments: ComparePolicyRevisions) -> RevisionDiff:
        """Return what changed in a policy between two days, section by section.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionNotFound: on one of the days no revision was in force.
            SectionNotFound: neither revision has the section.
        """
        paired_revisions = await self.pair_revisions(arguments)
        # Diffs are slow on long texts, so they must not block the event loop.
        revision_diff = await anyio.to_thread.run_sync(
            diffs.make_revision_diff,
            arguments,
            paired_revisions.section_pairs,
            paired_revisions.old_revision,
            paired_revisions.new_revision,
        )
        unread_revisions = paired_revisions.unread_revisions
        return revision_diff.model_copy(update={"unread_revisions": unread_revisions})

    async def pair_revisions(self, arguments: ComparePolicyRevisions) -> pairing.PairedRevisions:
        """Return the revisions of two days with their sections paired; raises as `compare`."""
        old_day, new_day = parse_day(arguments.from_date), parse_day(arguments.to_date)
        policy_on_old_day = await self.resolver.resolve_for_policy(arguments.source, old_day)
        # Both days from one reading of the registry: a change in between could make them disagree.
        old_revision = policy_on_old_day.require_revision()
        policy_on_new_day = policy_on_old_day.resolve_day(new_day)
        new_revision = policy_on_new_day.require_revision()
        old_chunks, new_chunks = [
            await self.store.get_chunks(revision.source, revision.revision_id)
            for revision in (old_revision, new_revision)
        ]
        paired_revisions = await anyio.to_thread.run_sync(
            pairing.pair_revisions,
            arguments.section_ref,
            (old_revision, old_chunks),
            (new_revision, new_chunks),
            policy_on_old_day.timeline,
        )
        unread_revisions_by_id = {
            unread_revision.revision_id: unread_revision
            for policy_on_day in (policy_on_old_day, policy_on_new_day)
            for unread_revision in chunk_search.list_unread_revisions(policy_on_day)
        }
        return replace(paired_revisions, unread_revisions=[*unread_revisions_by_id.values()])

    async def verify_quote(self, arguments: VerifyPolicyQuote) -> QuoteCheck:
        """Check whether words stand in the revision in force on a day, and where they do stand."""
        policy_on_day = await self.resolver.resolve_for_policy(
            arguments.source, parse_day(arguments.date)
        )
        revision_in_force = policy_on_day.revision
        revisions_in_force = [revision_in_force] if revision_in_force else []
        other_revisions = [
            revision
            for revision in policy_on_day.timeline
            if revision.is_readable and revision != revision_in_force
        ]
        # The other revisions are read only when the right one fails: each costs a scan of its text.
        quote_places = quote_places_in_force = await self._find_quote_places(
            arguments.quote, revisions_in_force, policy_on_day.timeline
        )
        if not quote_places_in_force:
            quote_places = await self._find_quote_places(
                arguments.quote, other_revisions, policy_on_day.timeline
            )
        nearest_passage = None
        if not quote_places:
            nearest_passage = await self._find_nearest_passage(
                arguments.quote, [*revisions_in_force, *other_revisions][:1]
            )
        return QuoteCheck(
            source=arguments.source,
            date=arguments.date,
            verdict="verified"
            if quote_places_in_force
            else "wrong_revision"
            if quote_places
            else "not_found",
            revision_in_force=revision_in_force.revision_id if revision_in_force else None,
            reason=policy_on_day.reason,
            found=quote_places,
            nearest=nearest_passage,
            unread_revisions=chunk_search.list_unread_revisions(policy_on_day),
        )

    async def find_quote_in_all_revisions(self, policy_slug: str, quote: str) -> list[QuotePlace]:
        """Return where words stand in each revision that was read, the newest first."""
        revisions = await self.registry.get_revisions(policy_slug)
        readable_revisions = [revision for revision in revisions if revision.is_readable]
        return await self._find_quote_places(quote, readable_revisions, revisions)

    # --- writing ---

    async def ingest_revision(
        self, arguments: IngestPolicyRevision, report_progress: ReportProgress
    ) -> IngestedRevision:
        """Read a PDF into a registered revision; without `reindex` an ingested one stays.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionNotFound: it has no such revision.
        """
        await self.registry.get_policy(arguments.source)
        revisions = await self.registry.get_revisions(arguments.source)
        revision = timeline.get_revision(revisions, arguments.revision_id)
        # Opened before the check below, so that a bad path is refused whether or not chunks exist.
        async with self._context.roots.open_copy_in_thread(arguments.file_path) as private_copy:
            chunks = await self.store.get_chunks(arguments.source, arguments.revision_id)
            if chunks and revision.is_readable and not arguments.reindex:
                return IngestedRevision(
                    source=arguments.source,
                    revision_id=arguments.revision_id,
                    chunks_created=len(chunks),
                    page_count=revision.page_count or 0,
                    extraction_method=chunks[0].extraction_method,
                    already_ingested=True,
                )
            return await self.ingestion.ingest_revision(revision, private_copy, report_progress)

    async def remove_revision_chunks(self, arguments: RemovePolicyRevision) -> RemovedRevision:
        """Delete a revision's chunks; one that is not registered has none to delete."""
        await self.registry.get_policy(arguments.source)
        chunk_count = await self.ingestion.remove_chunks(arguments.source, arguments.revision_id)
        return RemovedRevision(
            source=arguments.source, revision_id=arguments.revision_id, chunks_removed=chunk_count
        )

    # --- parts ---

    async def _make_section_error(
        self,
        asked_ref: str,
        revision: Revision,
        policy_on_day: PolicyOnDay,
        chunks: list[store.StoredChunk],
    ) -> SectionNotFound:
        """Return an error that names similar sections, and the revisions that have this one."""
        folded_forms = set(references.list_folded_forms(asked_ref))
        revisions_with_section = [
            other_revision
            for other_revision in policy_on_day.timeline
            if other_revision.can_be_in_force
            and other_revision != revision
            and not folded_forms.isdisjoint(
                await self.store.get_section_index(revision.source, other_revision.revision_id)
            )
        ]
        return pairing.make_section_error(asked_ref, revision, chunks, revisions_with_section)

    async def _find_quote_places(
        self, quote: str, searched_revisions: Sequence[Revision], revisions: Sequence[Revision]
    ) -> list[QuotePlace]:
        quote_places = []
        for revision in searched_revisions:
            chunks = await self.store.get_chunks(revision.source, revision.revision_id)
            quote_position = await anyio.to_thread.run_sync(quotes.locate_quote, quote, chunks)
            if quote_position:
                quote_places.append(quotes.make_quote_place(quote_position, revision, revisions))
        return quote_places

    async def _find_nearest_passage(
        self, quote: str, revisions: list[Revision]
    ) -> NearestPassage | None:
        # Cut to what a search query may have: the model reads no more than that anyway.
        ranking = await self.store.rank_chunks(
            quote[:2000], _NEAREST_CANDIDATE_COUNT, revisions, "hybrid"
        )
        chunks_by_id = await self.store.get_chunks_by_id([hit.chunk_id for hit in ranking.hits])
        nearest_passages: list[NearestPassage] = []
        for chunk in chunks_by_id.values():
            closest_text, text_similarity = await anyio.to_thread.run_sync(
                quotes.find_closest_stretch, quote, chunk.text
            )
            nearest_passages.append(
                NearestPassage(
                    text=closest_text,
                    similarity=text_similarity,
                    section_ref=chunk.section_ref,
                    page_number=chunk.page_number,
                    chunk_id=chunk.chunk_id,
                    section_title=chunk.section_title,
                    passage_kind=chunk.passage_kind,
                )
            )
        return max(
            nearest_passages, key=lambda nearest_passage: nearest_passage.similarity, default=None
        )


def _choose_asked_revision(
    policy_as_of_today: PolicyOnDay, revision_id: str | None, day_text: str | None
) -> Revision:
    """Return the revision that is named, or that of a day, or today's. Raise `RevisionNotFound`."""
    if revision_id is not None:
        return timeline.get_revision(policy_as_of_today.timeline, revision_id)
    return (
        policy_as_of_today.resolve_day(parse_day(day_text)) if day_text else policy_as_of_today
    ).require_revision()

"""What the federal base can do, independent of MCP and HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from readingroom.bases.federal import listing, store
from readingroom.bases.federal.filters import SqlFilter, build_sql_filter
from readingroom.bases.federal.models import (
    DEFAULT_MATCH_LIMIT,
    ActionPage,
    BillText,
    ChangeKind,
    ChangePage,
    CosponsorPage,
    LinkPage,
    ListRecords,
    MembershipPage,
    MemberVotePage,
    RecordList,
    RecordPage,
    Resolved,
    Search,
    SearchAnswer,
    WitnessPage,
)
from readingroom.bases.federal.query import cursors
from readingroom.bases.federal.query.aggregate_models import Buckets, Series, Total
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.query.dossier_models import (
    BillDossier,
    CommitteeDossier,
    LegislatorDossier,
    PublicLawDossier,
)
from readingroom.bases.federal.schema.ids import FederalId, parse_federal_id
from readingroom.bases.federal.schema.records import Bill, Committee, Law, Legislator, LinkKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source, get_source
from readingroom.bases.federal.search import answers
from readingroom.bases.federal.search.coverage import EmbeddingCoverage
from readingroom.bases.federal.search.passages import PassageOwners
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import FederalPlace, FederalStore, SourceProgress
from readingroom.core.errors import InvalidArguments, RecordNotFound, UnrecognizedId
from readingroom.core.imports import LazyModule
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.vocabulary import preload_vocabulary
from readingroom.protocol.search import Fetched
from readingroom.storage.database import Database

# What a search does not need: half of the base is not imported before somebody asks for it.
if TYPE_CHECKING:
    from readingroom.bases.federal.names import citations, filter_values, gaps, resolver
    from readingroom.bases.federal.query import cards, dossiers, lists, record_lists, texts
else:
    citations = LazyModule("readingroom.bases.federal.names.citations")
    filter_values = LazyModule("readingroom.bases.federal.names.filter_values")
    gaps = LazyModule("readingroom.bases.federal.names.gaps")
    resolver = LazyModule("readingroom.bases.federal.names.resolver")
    cards = LazyModule("readingroom.bases.federal.query.cards")
    dossiers = LazyModule("readingroom.bases.federal.query.dossiers")
    lists = LazyModule("readingroom.bases.federal.query.lists")
    record_lists = LazyModule("readingroom.bases.federal.query.record_lists")
    texts = LazyModule("readingroom.bases.federal.query.texts")


class FederalService:
    """Everything that REST and the tools can ask of the federal base."""

    def __init__(
        self, federal_place: FederalPlace, embedder: Embedder, cost_budget: Budget | None = None
    ) -> None:
        self.place = federal_place
        self.budget = cost_budget or Budget()
        self.store = FederalStore(federal_place)
        self.vectors = FederalVectors(embedder)
        self.passage_owners = PassageOwners()
        self.embedding_coverage = EmbeddingCoverage()

    async def warm_up(self) -> None:
        """Load what the first search waits for; raise `ModelUnavailable` without a model."""
        await self.store.query(self.passage_owners.add_new_passages)
        await self.store.query(self.vectors.apply_vector_changes)
        await anyio.to_thread.run_sync(preload_vocabulary)
        if len(self.vectors):
            await anyio.to_thread.run_sync(self.vectors.embedder.load)
            if self.vectors.embedder.reranker is not None:
                await anyio.to_thread.run_sync(self.vectors.embedder.reranker.load)

    async def _get_canonical_id(self, record_source: Source, written_id: str) -> str:
        """Return the canonical id of a record of a source, from any spelling or citation."""
        return listing.get_id_in_source(record_source, await self._resolve_citation(written_id))

    async def _resolve_citation(self, citation: str) -> FederalId:
        try:
            return parse_federal_id(citation)
        except UnrecognizedId:
            return await self.store.query(lambda db: citations.resolve_citation(db, citation))

    # --- records ---

    async def read_record_json(self, record_source: Source, record_id: str) -> str:
        """Return a record as JSON; raise RecordNotFound for an id of another source."""
        canonical_id = await self._get_canonical_id(record_source, record_id)
        return await self.store.query(
            lambda db: texts.read_record_json(db, record_source, canonical_id)
        )

    async def list_records(
        self,
        record_source: Source,
        sql_filter: SqlFilter,
        max_results: int = 50,
        cursor: str | None = None,
    ) -> RecordPage:
        """List the records of a source, newest first."""
        list_name = cursors.build_list_name(record_source.name, sql_filter.filters)
        after_key = cursors.decode(list_name, cursor, (str, type(None)), str)
        return await self.store.query(
            lambda db: lists.list_records(db, record_source, sql_filter, max_results, after_key)
        )

    async def get_bill(self, record_id: str) -> Bill:
        return Bill.model_validate_json(
            await self.read_record_json(SOURCES_BY_NAME["bills"], record_id)
        )

    async def get_legislator(self, record_id: str) -> Legislator:
        return Legislator.model_validate_json(
            await self.read_record_json(SOURCES_BY_NAME["legislators"], record_id)
        )

    async def get_committee(self, record_id: str) -> Committee:
        return Committee.model_validate_json(
            await self.read_record_json(SOURCES_BY_NAME["committees"], record_id)
        )

    async def list_ids(self, id_prefix: str, max_results: int) -> list[str]:
        """List ids of searchable records that begin with a prefix."""
        return await self.store.query(lambda db: store.list_ids(db, id_prefix.lower(), max_results))

    async def list_progress(self) -> list[SourceProgress]:
        """Return how much of each source is loaded, and up to which date."""
        return await self.store.query(store.list_progress)

    async def list_cards(self, arguments: ListRecords) -> RecordList:
        """List records of a source, or what belongs to one, newest first, each cut short."""
        if arguments.source.strip().lower() == record_lists.CHANGES_LIST_NAME:
            return await listing.list_change_cards(self, arguments)
        record_source = get_source(arguments.source)
        if arguments.id is None:
            if arguments.part is not None:
                problem_text = "say the id of the record whose parts are wanted"
                raise InvalidArguments([{"field": "id", "message": problem_text}])
            return await listing.list_source_cards(self, record_source, arguments)
        part_name = record_lists.check_part_name(record_source, arguments.part)
        record_id = await self._get_canonical_id(record_source, arguments.id)
        return await listing.list_part_cards(self, record_source, record_id, part_name, arguments)

    # --- what belongs to a record ---

    async def list_cosponsors(
        self, bill_id: str, max_results: int, cursor: str | None
    ) -> CosponsorPage:
        return await self._list_children(CosponsorPage, bill_id, max_results, cursor)

    async def list_actions(self, bill_id: str, max_results: int, cursor: str | None) -> ActionPage:
        return await self._list_children(ActionPage, bill_id, max_results, cursor)

    async def list_witnesses(
        self, hearing_id: str, max_results: int, cursor: str | None
    ) -> WitnessPage:
        return await self._list_children(WitnessPage, hearing_id, max_results, cursor)

    async def _list_children(
        self,
        page_class: type[lists.ChildPageT],
        record_id: str,
        max_results: int,
        cursor: str | None,
    ) -> lists.ChildPageT:
        source_name, table_name = lists.SOURCE_AND_TABLE_NAMES_BY_PAGE[page_class]
        canonical_id = await self._get_canonical_id(SOURCES_BY_NAME[source_name], record_id)
        (after_key,) = cursors.decode(f"{table_name}:{canonical_id}", cursor, int) or (0,)
        return await self.store.query(
            lambda db: lists.list_children(db, page_class, canonical_id, max_results, after_key)
        )

    async def list_amendments(
        self, bill_id: str, max_results: int, cursor: str | None
    ) -> RecordPage:
        """List the amendments to a bill; raise RecordNotFound if the bill is not loaded."""
        bill_source, amendment_source = SOURCES_BY_NAME["bills"], SOURCES_BY_NAME["amendments"]
        bill_id = await self._get_canonical_id(bill_source, bill_id)
        bill_fields = await self.store.query(lambda db: store.read_record(db, bill_source, bill_id))
        sql_filter = build_sql_filter(amendment_source.record_table, {"bill_id": bill_id})
        amendment_page = await self.list_records(amendment_source, sql_filter, max_results, cursor)
        missing_status_note = lists.describe_missing_status(bill_fields) or amendment_page.note
        return amendment_page.model_copy(update={"note": missing_status_note})

    async def list_committee_members(
        self, committee_id: str, congress: int | None, max_results: int, cursor: str | None
    ) -> MembershipPage:
        """List who sits on a committee, in one Congress or the newest loaded."""
        record_id = await self._get_canonical_id(SOURCES_BY_NAME["committees"], committee_id)
        list_name = cursors.build_list_name(
            f"committee_members:{record_id}", {"congress": congress}
        )
        key_before_first = store.KEY_BEFORE_FIRST_MEMBER
        after_key = cursors.decode(list_name, cursor, str, int, str) or key_before_first
        return await self.store.query(
            lambda db: lists.list_members(db, record_id, congress, max_results, after_key)
        )

    async def list_member_votes(
        self, bioguide_id: str, congress: int | None, max_results: int, cursor: str | None
    ) -> MemberVotePage:
        """List how a member voted, newest first."""
        record_id = await self._get_canonical_id(SOURCES_BY_NAME["legislators"], bioguide_id)
        list_name = cursors.build_list_name(f"member_votes:{record_id}", {"congress": congress})
        after_key = cursors.decode(list_name, cursor, str, str)
        return await self.store.query(
            lambda db: lists.list_member_votes(db, record_id, congress, max_results, after_key)
        )

    async def list_roll_call_votes(
        self, vote_id: str, max_results: int, cursor: str | None
    ) -> MemberVotePage:
        """List how each member voted in a roll call."""
        record_id = await self._get_canonical_id(SOURCES_BY_NAME["roll_call_votes"], vote_id)
        (after_key,) = cursors.decode(f"roll_call_members:{record_id}", cursor, int) or (0,)
        return await self.store.query(
            lambda db: lists.list_roll_call_votes(db, record_id, max_results, after_key)
        )

    async def list_links(
        self,
        record_source: Source,
        record_id: str,
        link_kind: LinkKind | None,
        max_results: int,
        cursor: str | None,
    ) -> LinkPage:
        """List what a record is linked to, in either direction, with the evidence."""
        canonical_id = await self._get_canonical_id(record_source, record_id)
        list_name = cursors.build_list_name(f"links:{canonical_id}", {"kind": link_kind})
        after_key = cursors.decode(list_name, cursor, str, str)
        return await self.store.query(
            lambda db: lists.list_links(
                db, record_source, canonical_id, link_kind, max_results, after_key
            )
        )

    async def list_changes(
        self,
        since_day_text: str | None,
        source_name: str | None,
        change_kind: ChangeKind | None,
        max_results: int,
        cursor: str | None,
    ) -> ChangePage:
        """List what was added, changed or withdrawn since a day, or since an earlier cursor."""
        if since_day_text is None and cursor is None:
            problem_text = "say a day, or go on with the `resume_cursor` of an earlier answer"
            raise InvalidArguments([{"field": "since", "message": problem_text}])
        only_source = get_source(source_name) if source_name else None
        list_name = lists.build_changes_list_name(only_source, change_kind)
        after_key = cursors.decode(list_name, cursor, int, wider_list_name=lists.ALL_CHANGES_NAME)
        (after_change_number,) = after_key or (0,)
        return await self.store.query(
            lambda db: lists.list_changes(
                db, since_day_text, only_source, change_kind, max_results, after_change_number
            )
        )

    # --- texts ---

    async def read_bill_text(
        self,
        bill_id: str,
        version_code: str | None,
        offset: int,
        section_label: str | None = None,
        compare_with: str | None = None,
    ) -> BillText:
        """Return a version of the text of a bill or a compiled law, or the newest, from an offset.

        With `section_label` one section of it or its outline, with `compare_with` what differs.
        """
        parsed_id = await self._resolve_citation(bill_id)
        return await self.store.query(
            lambda db: texts.read_bill_text(
                db, parsed_id, version_code, offset, section_label, compare_with
            )
        )

    async def fetch_record(self, id: str, offset: int = 0, section: str | None = None) -> Fetched:
        """Return any record by its id, with as much of its text as one answer contains.

        An address that an answer printed (`more_url`) is taken too: its `text` is that page.
        """
        if id.strip().startswith(("/v1/", "http")) and "/v1/" in id:
            return await listing.fetch_address(self, id)
        parsed_id = await self._resolve_citation(id)
        record_source = SOURCES_BY_NAME.get(parsed_id.source)
        if record_source is None:
            raise RecordNotFound(
                f"No record {parsed_id.id} has been loaded", source=parsed_id.source
            )
        return await self.store.query(
            lambda db: texts.fetch_record(db, record_source, parsed_id.id, offset, section)
        )

    # --- names ---

    async def resolve_name(
        self,
        record_source: Source,
        query_text: str,
        sql_filter: SqlFilter,
        max_results: int = DEFAULT_MATCH_LIMIT,
        cursor: str | None = None,
    ) -> Resolved:
        """Return the records of a registry that a name may mean, the likeliest first."""
        list_name = lists.build_match_list_name(record_source, query_text, sql_filter.filters)
        (start_index,) = cursors.decode(list_name, cursor, int) or (0,)
        page_slice = slice(start_index, start_index + max_results)

        def find_matches(db: Database) -> Resolved:
            with db.begin_consistent_read():
                stored_filter = filter_values.resolve_filters(
                    db, record_source.record_table, sql_filter
                )
                name_matches = resolver.resolve_name(db, record_source, query_text, stored_filter)
                loaded_up_to = store.read_progress(db, record_source).loaded_up_to
            matched_records = [
                name_match.record
                | {
                    "loaded_up_to": loaded_up_to,
                    "score": name_match.score,
                    "why": name_match.reasons,
                }
                for name_match in name_matches[page_slice]
            ]
            return Resolved(
                results=matched_records,
                total=len(name_matches),
                query=query_text,
                source=record_source.name,
                loaded_up_to=loaded_up_to,
                filters_read=filter_values.find_reinterpreted_values(
                    sql_filter.filters, stored_filter.filters
                ),
                note=gaps.describe_name_gaps(db, record_source, query_text, name_matches),
                **lists.build_next_names_page_fields(list_name, page_slice, len(name_matches)),
            )

        return await self.store.query(find_matches)

    # --- dossiers ---

    async def build_bill_dossier(self, record_id: str) -> BillDossier:
        bill_fields, sections = await self._read_record_and_sections(
            SOURCES_BY_NAME["bills"], record_id, None, dossiers.READER_BY_BILL_SECTION
        )
        return BillDossier(bill=Bill.model_validate(bill_fields), **sections)

    async def build_legislator_dossier(
        self, record_id: str, congress: int | None
    ) -> LegislatorDossier:
        member_fields, sections = await self._read_record_and_sections(
            SOURCES_BY_NAME["legislators"], record_id, congress, dossiers.READER_BY_MEMBER_SECTION
        )
        return LegislatorDossier(
            legislator=Legislator.model_validate(member_fields), congress=congress, **sections
        )

    async def build_committee_dossier(
        self, record_id: str, congress: int | None
    ) -> CommitteeDossier:
        committee_fields, sections = await self._read_record_and_sections(
            SOURCES_BY_NAME["committees"], record_id, congress, dossiers.READER_BY_COMMITTEE_SECTION
        )
        return CommitteeDossier(
            committee=Committee.model_validate(committee_fields), congress=congress, **sections
        )

    async def build_public_law_dossier(self, record_id: str) -> PublicLawDossier:
        law_fields, sections = await self._read_record_and_sections(
            SOURCES_BY_NAME["public_laws"], record_id, None, dossiers.READER_BY_LAW_SECTION
        )
        return PublicLawDossier(public_law=Law.model_validate(law_fields), **sections)

    async def _read_record_and_sections(
        self,
        record_source: Source,
        record_id: str,
        congress: int | None,
        reader_by_section: Mapping[str, dossiers.SectionReader],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a record and its sections, all from one snapshot."""
        canonical_id = await self._get_canonical_id(record_source, record_id)

        def read_sections(db: Database) -> tuple[dict[str, Any], dict[str, Any]]:
            with db.begin_consistent_read():
                record_fields = lists.get_record_or_hint_links(db, record_source, canonical_id)
                subject = dossiers.DossierSubject(db, record_source, record_fields, congress)
                sections: dict[str, Any] = dict(dossiers.read_sections(subject, reader_by_section))
                shown_fields, cuts_by_field = cards.shorten_record_to_fit(record_fields, sections)
                return shown_fields, sections | {"shortened": cuts_by_field or None}

        return await self.store.query(read_sections)

    # --- aggregates ---

    async def compute_aggregate(self, aggregation: Aggregation) -> Total | Buckets:
        """Return a count or a sum, of all or by group."""

        def read_total(db: Database) -> Total | Buckets:
            with db.begin_consistent_read():
                return Aggregator(db, self.budget).compute_total(aggregation)

        return await self.store.query(read_total)

    async def compute_time_series(self, aggregation: Aggregation) -> Series:
        """Return a count or a sum for each interval of time."""

        def read_series(db: Database) -> Series:
            with db.begin_consistent_read():
                return Aggregator(db, self.budget).compute_series(aggregation)

        return await self.store.query(read_series)

    # --- search ---

    async def search(self, arguments: Search, mode: Mode = "hybrid") -> SearchAnswer:
        """Search records by words, by meaning, or both, best first."""
        return await answers.answer_search(self, arguments, mode)

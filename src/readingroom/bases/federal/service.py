"""What the federal base can do, independent of MCP and HTTP."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio.to_thread

from readingroom.bases.federal import listing, store
from readingroom.bases.federal.filters import RowFilter, build_row_filter
from readingroom.bases.federal.models import (
    MOST_LIKELY,
    ActionPage,
    BillText,
    ChangeKind,
    ChangePage,
    CosponsorPage,
    Degraded,
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
from readingroom.bases.federal.names import agencies, resolver
from readingroom.bases.federal.names.citations import find_cited_id
from readingroom.bases.federal.names.filter_values import (
    describe_reading,
    resolve_filters,
    resolve_search_filters,
)
from readingroom.bases.federal.query import (
    cards,
    cursors,
    dossiers,
    lists,
    record_lists,
    texts,
)
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
from readingroom.bases.federal.schema.sources import BY_NAME, Source, find_source
from readingroom.bases.federal.search.coverage import EmbeddingCoverage
from readingroom.bases.federal.search.passages import Passages
from readingroom.bases.federal.search.search import Plan, SearchResult, plan_search, run_search
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import FederalStore, SourceProgress
from readingroom.core.errors import InvalidArguments, RecordNotFound, UnrecognizedId
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.protocol.search import Fetched
from readingroom.storage.database import Database


class FederalService:
    """Everything that REST and the tools can ask of the federal base."""

    def __init__(self, path: Path, embedder: Embedder, budget: Budget | None = None) -> None:
        self.path = path
        self.budget = budget or Budget()
        self.store = FederalStore(path)
        self.vectors = FederalVectors(embedder)
        self.passages = Passages()
        self.coverage = EmbeddingCoverage()

    async def warm_up(self) -> None:
        """Load what the first search waits for; raise `ModelUnavailable` without a model."""
        await self.store.read(self.passages.refresh)
        await self.store.read(self.vectors.refresh)
        if len(self.vectors):
            await anyio.to_thread.run_sync(self.vectors.embedder.load)

    async def _find_id(self, source: Source, text: str) -> str:
        """Return the canonical id of a record of a source, from any spelling or citation."""
        return _check_source(source, await self._find_cited(text))

    async def _find_cited(self, text: str) -> FederalId:
        try:
            return parse_federal_id(text)
        except UnrecognizedId:
            return await self.store.read(lambda db: find_cited_id(db, text))

    # --- records ---

    async def read_record_json(self, source: Source, id: str) -> str:
        """Return a record as JSON; raise RecordNotFound for an id of another source."""
        canonical = await self._find_id(source, id)
        return await self.store.read(lambda db: texts.read_record_json(db, source, canonical))

    async def list_records(
        self,
        source: Source,
        row_filter: RowFilter,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RecordPage:
        """List the records of a source, newest first."""
        after = cursors.decode(source.name, cursor, (str, type(None)), str)
        return await self.store.read(
            lambda db: lists.list_records(db, source, row_filter, limit, after)
        )

    async def get_bill(self, id: str) -> Bill:
        return Bill.model_validate_json(await self.read_record_json(BY_NAME["bills"], id))

    async def get_legislator(self, id: str) -> Legislator:
        return Legislator.model_validate_json(
            await self.read_record_json(BY_NAME["legislators"], id)
        )

    async def get_committee(self, id: str) -> Committee:
        return Committee.model_validate_json(await self.read_record_json(BY_NAME["committees"], id))

    async def list_ids(self, prefix: str, limit: int) -> list[str]:
        """List ids of searchable records that begin with a prefix."""
        return await self.store.read(lambda db: store.list_ids(db, prefix.lower(), limit))

    async def list_progress(self) -> list[SourceProgress]:
        """Return how much of each source is loaded, and up to which date."""
        return await self.store.read(store.list_progress)

    async def list_cards(self, question: ListRecords) -> RecordList:
        """List records of a source, or what belongs to one, newest first, each cut short."""
        if question.source.strip().lower() == record_lists.CHANGES:
            return await listing.list_change_cards(self, question)
        source = find_source(question.source)
        if question.id is None:
            if question.part is not None:
                problem = "say the id of the record whose parts are wanted"
                raise InvalidArguments([{"field": "id", "message": problem}])
            return await listing.list_source_cards(self, source, question)
        part = record_lists.check_part(source, question.part)
        id = await self._find_id(source, question.id)
        return await listing.list_part_cards(self, source, id, part, question)

    async def list_progress_of(self, source: Source) -> SourceProgress:
        return await self.store.read(lambda db: store.read_progress(db, source))

    # --- what belongs to a record ---

    async def list_cosponsors(self, bill_id: str, limit: int, cursor: str | None) -> CosponsorPage:
        return await self._list_children(CosponsorPage, bill_id, limit, cursor)

    async def list_actions(self, bill_id: str, limit: int, cursor: str | None) -> ActionPage:
        return await self._list_children(ActionPage, bill_id, limit, cursor)

    async def list_witnesses(self, hearing_id: str, limit: int, cursor: str | None) -> WitnessPage:
        return await self._list_children(WitnessPage, hearing_id, limit, cursor)

    async def _list_children(
        self, model: type[lists.ChildPage], record_id: str, limit: int, cursor: str | None
    ) -> lists.ChildPage:
        source, table = lists.CHILD_TABLES[model]
        id = await self._find_id(BY_NAME[source], record_id)
        (after,) = cursors.decode(table, cursor, int) or (0,)
        return await self.store.read(lambda db: lists.list_children(db, model, id, limit, after))

    async def list_amendments(self, bill_id: str, limit: int, cursor: str | None) -> RecordPage:
        """List the amendments to a bill; raise RecordNotFound if the bill is not loaded."""
        bills, amendments = BY_NAME["bills"], BY_NAME["amendments"]
        id = await self._find_id(bills, bill_id)
        await self.store.read(lambda db: store.read_record(db, bills, id))
        row_filter = build_row_filter(amendments.table, {"bill_id": id})
        return await self.list_records(amendments, row_filter, limit, cursor)

    async def list_committee_members(
        self, committee_id: str, congress: int | None, limit: int, cursor: str | None
    ) -> MembershipPage:
        """List who sits on a committee, in one Congress or the newest loaded."""
        id = await self._find_id(BY_NAME["committees"], committee_id)
        after = cursors.decode("committee_members", cursor, str, int, str) or store.FIRST_MEMBER
        return await self.store.read(lambda db: lists.list_members(db, id, congress, limit, after))

    async def list_member_votes(
        self, bioguide_id: str, congress: int | None, limit: int, cursor: str | None
    ) -> MemberVotePage:
        """List how a member voted, newest first."""
        id = await self._find_id(BY_NAME["legislators"], bioguide_id)
        after = cursors.decode("member_votes", cursor, str, str)
        return await self.store.read(
            lambda db: lists.list_member_votes(db, id, congress, limit, after)
        )

    async def list_roll_call_votes(
        self, vote_id: str, limit: int, cursor: str | None
    ) -> MemberVotePage:
        """List how each member voted in a roll call."""
        id = await self._find_id(BY_NAME["roll_call_votes"], vote_id)
        (after,) = cursors.decode("roll_call_members", cursor, int) or (0,)
        return await self.store.read(lambda db: lists.list_roll_call_votes(db, id, limit, after))

    async def list_links(
        self, source: Source, id: str, kind: LinkKind | None, limit: int, cursor: str | None
    ) -> LinkPage:
        """List what a record is linked to, in either direction, with the evidence."""
        canonical = await self._find_id(source, id)
        after = cursors.decode("links", cursor, str, str)
        return await self.store.read(
            lambda db: lists.list_links(db, source, canonical, kind, limit, after)
        )

    async def list_changes(
        self,
        since: str | None,
        source: str | None,
        kind: ChangeKind | None,
        limit: int,
        cursor: str | None,
    ) -> ChangePage:
        """List what was added, changed or withdrawn since a day, or since an earlier cursor."""
        if since is None and cursor is None:
            problem = "say a day, or go on with the `resume_cursor` of an earlier answer"
            raise InvalidArguments([{"field": "since", "message": problem}])
        (after,) = cursors.decode("changes", cursor, int) or (0,)
        only = find_source(source) if source else None
        return await self.store.read(
            lambda db: lists.list_changes(db, since, only, kind, limit, after)
        )

    # --- texts ---

    async def read_bill_text(
        self,
        bill_id: str,
        version: str | None,
        offset: int,
        section: str | None = None,
        compare_with: str | None = None,
    ) -> BillText:
        """Return a version of the text of a bill or a compiled law, or the newest, from an offset.

        With `section` one section of it or its outline, with `compare_with` what differs.
        """
        parsed = await self._find_cited(bill_id)
        return await self.store.read(
            lambda db: texts.read_bill_text(db, parsed, version, offset, section, compare_with)
        )

    async def fetch(self, id: str, offset: int = 0, section: str | None = None) -> Fetched:
        """Return any record by its id, with as much of its text as one answer contains.

        An address that an answer printed (`more_url`) is taken too: its `text` is that page.
        """
        if id.strip().startswith(("/v1/", "http")) and "/v1/" in id:
            return await self._fetch_address(id)
        parsed = await self._find_cited(id)
        source = BY_NAME.get(parsed.source)
        if source is None:
            raise RecordNotFound(f"No record {parsed.id} has been loaded", source=parsed.source)
        return await self.store.read(
            lambda db: texts.fetch_record(db, source, parsed.id, offset, section)
        )

    async def _fetch_address(self, address: str) -> Fetched:
        """Return what an address of this server has: a record, or a page of a list as lines."""
        split = urlsplit(address.strip())
        params = dict(parse_qsl(split.query))
        names = split.path.removeprefix("/v1/").strip("/").split("/")
        offset = int(params.get("offset", "0")) if params.get("offset", "0").isdecimal() else 0
        if names == ["fetch"] and "id" in params:
            return await self.fetch(params["id"], offset, params.get("section"))
        if len(names) == 3 and names[2] == "body":
            text = await self.read_bill_text(
                unquote(names[1]),
                params.get("version"),
                offset,
                params.get("section"),
                params.get("compare_with"),
            )
            return texts.render_bill_text(text)
        question = record_lists.parse_list_address(address)
        if question is None:
            if len(names) == 2:
                return await self.fetch(unquote(names[1]))
            raise UnrecognizedId(f"{address[:200]!r} is no address of this server")
        page = await self.list_cards(question)
        more_url = record_lists.format_list_address(question, page.next_cursor)
        return texts.render_list(split.path, page, more_url)

    # --- names ---

    async def resolve(
        self,
        source: Source,
        query: str,
        row_filter: RowFilter,
        limit: int = MOST_LIKELY,
        cursor: str | None = None,
    ) -> Resolved:
        """Return the records of a registry that a name may mean, the likeliest first."""
        (start,) = cursors.decode("names", cursor, int) or (0,)
        end = start + limit

        def read(db: Database) -> Resolved:
            with db.snapshot():
                stored_filter = resolve_filters(db, source.table, row_filter)
                matches = resolver.resolve(db, source, query, stored_filter)
                loaded_up_to = store.read_progress(db, source).loaded_up_to
            return Resolved(
                results=[
                    match.record
                    | {"loaded_up_to": loaded_up_to, "score": match.score, "why": match.reasons}
                    for match in matches[start:end]
                ],
                total=len(matches),
                query=query,
                source=source.name,
                loaded_up_to=loaded_up_to,
                filters_read=describe_reading(row_filter.filters, stored_filter.filters),
                **lists.build_next_page_fields("names", (end,) if end < len(matches) else None),
            )

        return await self.store.read(read)

    async def resolve_agency(self, query: str, limit: int, cursor: str | None) -> Resolved:
        """Return the agencies that a name may mean, as loaded documents name them."""
        (start,) = cursors.decode(agencies.AGENCIES, cursor, int) or (0,)
        end = start + limit

        def read(db: Database) -> Resolved:
            with db.snapshot():
                matches = agencies.resolve_agency(db, query)
                progress = store.read_progress(db, BY_NAME["federal_register"])
            return Resolved(
                results=[match.to_record() for match in matches[start:end]],
                total=len(matches),
                query=query,
                source=agencies.AGENCIES,
                loaded_up_to=progress.loaded_up_to,
                **lists.build_next_page_fields(
                    agencies.AGENCIES, (end,) if end < len(matches) else None
                ),
            )

        return await self.store.read(read)

    # --- dossiers ---

    async def build_bill_dossier(self, id: str) -> BillDossier:
        record, sections = await self._read_dossier(
            BY_NAME["bills"], id, None, dossiers.BILL_SECTIONS
        )
        return BillDossier(bill=Bill.model_validate(record), **sections)

    async def build_legislator_dossier(self, id: str, congress: int | None) -> LegislatorDossier:
        record, sections = await self._read_dossier(
            BY_NAME["legislators"], id, congress, dossiers.LEGISLATOR_SECTIONS
        )
        return LegislatorDossier(
            legislator=Legislator.model_validate(record), congress=congress, **sections
        )

    async def build_committee_dossier(self, id: str, congress: int | None) -> CommitteeDossier:
        record, sections = await self._read_dossier(
            BY_NAME["committees"], id, congress, dossiers.COMMITTEE_SECTIONS
        )
        return CommitteeDossier(
            committee=Committee.model_validate(record), congress=congress, **sections
        )

    async def build_public_law_dossier(self, id: str) -> PublicLawDossier:
        record, sections = await self._read_dossier(
            BY_NAME["public_laws"], id, None, dossiers.PUBLIC_LAW_SECTIONS
        )
        return PublicLawDossier(public_law=Law.model_validate(record), **sections)

    async def _read_dossier(
        self,
        source: Source,
        id: str,
        congress: int | None,
        readers: Mapping[str, dossiers.SectionReader],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a record and its sections, all from one snapshot."""
        canonical = await self._find_id(source, id)

        def read(db: Database) -> tuple[dict[str, Any], dict[str, Any]]:
            with db.snapshot():
                record = lists.read_or_tell_links(db, source, canonical)
                subject = dossiers.Subject(db, source, record, congress)
                sections: dict[str, Any] = dict(dossiers.read_sections(subject, readers))
                shown, cut = cards.shorten_fields(record)
                return shown, sections | {"shortened": cut or None}

        return await self.store.read(read)

    # --- aggregates ---

    async def compute_aggregate(self, request: Aggregation) -> Total | Buckets:
        """Return a count or a sum, of all or by group."""

        def read(db: Database) -> Total | Buckets:
            with db.snapshot():
                return Aggregator(db, self.budget).compute_total(request)

        return await self.store.read(read)

    async def compute_time_series(self, request: Aggregation) -> Series:
        """Return a count or a sum for each interval of time."""

        def read(db: Database) -> Series:
            with db.snapshot():
                return Aggregator(db, self.budget).compute_series(request)

        return await self.store.read(read)

    # --- search ---

    async def search(self, question: Search, mode: Mode = "hybrid") -> SearchAnswer:
        """Search records by words, by meaning, or both, best first."""
        started = time.perf_counter()
        question, filters_read = await self._resolve_search_filters(question)
        plan = plan_search(question, mode)

        def read(db: Database) -> tuple[Plan, SearchResult]:
            # One snapshot: a hit must still be there when its title is read.
            with db.snapshot():
                return run_search(db, plan, self.vectors, self.passages)

        final_plan, result = await self.store.read(read)
        degraded = final_plan.degraded
        if mode != "lexical":
            names = [searched.source for searched in result.searched]
            degraded = await self._tell_coverage(mode, degraded, names)
        # Who does not say how many wants an answer that can be read; the rest is a page away.
        wants_all = "limit" in question.model_fields_set
        hits = result.hits if wants_all else list(cards.fit_answer(result.hits))
        end = question.offset + len(hits)
        return SearchAnswer(
            results=hits,
            total=result.total,
            took_ms=round((time.perf_counter() - started) * 1000, 1),
            mode=mode,
            searched=result.searched,
            confidence=result.confidence.level,
            confidence_reason=result.confidence.reason,
            degraded=degraded,
            next_offset=end if hits and end < result.total else None,
            filters_read=filters_read,
        )

    async def _tell_coverage(
        self, mode: Mode, degraded: Degraded | None, sources: Sequence[str]
    ) -> Degraded | None:
        """Return why a search is not what was asked for, with how much of each source is embedded.

        What is partly embedded is searched by both, but by meaning only in part.
        """
        percents = await self.store.read(self.coverage.read)
        partly = {name: percents[name] for name in sources if percents.get(name, 100) < 100}
        if not partly:
            return degraded
        if degraded is not None:
            return degraded.model_copy(update={"embedded_percent": partly})
        percent_list = ", ".join(f"{name} {percent} %" for name, percent in partly.items())
        return Degraded(
            requested_mode=mode,
            used_mode=mode,
            sources=list(partly),
            reason=f"embedded so far: {percent_list}; what is not is found by its words alone",
            embedded_percent=partly,
        )

    async def _resolve_search_filters(
        self, question: Search
    ) -> tuple[Search, dict[str, Any] | None]:
        """Return the question with filter values as they are stored, and which were changed."""
        if question.filters is None:
            return question, None
        written = question.filters.model_dump(exclude_none=True)
        resolved = await self.store.read(lambda db: resolve_search_filters(db, written))
        stored = question.filters.model_copy(update=resolved)
        return question.model_copy(update={"filters": stored}), describe_reading(written, resolved)


def _check_source(source: Source, parsed: FederalId) -> str:
    """Return the id of a record of a source; raise RecordNotFound for one of another source."""
    if parsed.source == source.name:
        return parsed.id
    if (parsed.source, source.name) == ("federal_register", "presidential_documents"):
        return f"presdoc:{parsed.id}"
    raise RecordNotFound(
        f"{parsed.id} is an id of {parsed.source}, not of {source.name}", source=parsed.source
    )

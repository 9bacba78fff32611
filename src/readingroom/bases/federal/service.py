"""What the federal base can do, with no word of MCP or HTTP in it."""

import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import RowFilter, build_row_filter, match_stored_case
from readingroom.bases.federal.models import (
    MOST_LIKELY,
    ActionPage,
    BillDossier,
    BillText,
    Buckets,
    Change,
    ChangeKind,
    ChangePage,
    CommitteeDossier,
    CosponsorPage,
    LegislatorDossier,
    LinkedRecord,
    LinkPage,
    MembershipPage,
    MemberVotePage,
    PublicLawDossier,
    RecordPage,
    Resolved,
    Search,
    SearchAnswer,
    Series,
    Total,
    WitnessPage,
)
from readingroom.bases.federal.names import resolver
from readingroom.bases.federal.query import changes, cursors, dossiers, links
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.schema.ids import federal_id
from readingroom.bases.federal.schema.records import (
    Bill,
    BillAction,
    Committee,
    Cosponsor,
    Law,
    Legislator,
    LinkKind,
    Membership,
    MemberVote,
    Witness,
)
from readingroom.bases.federal.schema.sources import BY_NAME, Source, find_source
from readingroom.bases.federal.schema.tables import PARENTS
from readingroom.bases.federal.search import search as searching
from readingroom.bases.federal.search.passages import Passages
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import FederalStore, Progress, StoredText
from readingroom.core.errors import InvalidArguments, RecordNotFound
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.protocol.search import MAX_TEXT, Citation, Fetched

T = TypeVar("T")


class FederalService:
    """Records by id, lists, texts: the handlers that REST and the tools share."""

    def __init__(self, path: Path, embedder: Embedder, budget: Budget | None = None) -> None:
        self.path = path
        self.budget = budget or Budget()
        self.store = FederalStore(path)
        self.vectors = FederalVectors(embedder)
        self.passages = Passages()

    # --- records ---

    async def record_json(self, source: Source, id: str) -> str:
        """One record, whole. An id of another source has no record in this one."""
        canonical = self._of(source, id)
        return await self.store.ask(lambda db: _record_json(db, source, canonical))

    async def records(
        self,
        source: Source,
        row_filter: RowFilter,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RecordPage:
        after = cursors.decode(cursor, (str, type(None)), str)

        def read(db: sqlite3.Connection) -> RecordPage:
            stored = match_stored_case(db, source.resource, row_filter)
            page = store.records(db, source, stored, limit, after)
            up_to = store.progress_of(db, source).loaded_up_to
            return RecordPage(
                results=page.rows, source=source.name, loaded_up_to=up_to, **_next(page)
            )

        return await self.store.ask(read)

    async def bill(self, id: str) -> Bill:
        return Bill.model_validate_json(await self.record_json(BY_NAME["bills"], id))

    async def legislator(self, id: str) -> Legislator:
        return Legislator.model_validate_json(await self.record_json(BY_NAME["legislators"], id))

    async def committee(self, id: str) -> Committee:
        return Committee.model_validate_json(await self.record_json(BY_NAME["committees"], id))

    async def ids(self, begun: str, most: int) -> list[str]:
        """Ids of searchable records that begin so."""
        return await self.store.ask(lambda db: store.ids(db, begun.lower(), most))

    async def progress(self) -> list[Progress]:
        return await self.store.ask(store.progress)

    # --- what belongs to a record ---

    async def cosponsors(self, bill: str, limit: int, cursor: str | None) -> CosponsorPage:
        def page(rows: list[Any], told: dict[str, Any]) -> CosponsorPage:
            found = [Cosponsor.model_validate_json(row["record"]) for row in rows]
            return CosponsorPage(results=found, **told)

        return await self._children_of(
            BY_NAME["bills"], "bill_cosponsors", bill, limit, cursor, page
        )

    async def actions(self, bill: str, limit: int, cursor: str | None) -> ActionPage:
        def page(rows: list[Any], told: dict[str, Any]) -> ActionPage:
            found = [BillAction.model_validate_json(row["record"]) for row in rows]
            return ActionPage(results=found, **told)

        return await self._children_of(BY_NAME["bills"], "bill_actions", bill, limit, cursor, page)

    async def witnesses(self, hearing: str, limit: int, cursor: str | None) -> WitnessPage:
        def page(rows: list[Any], told: dict[str, Any]) -> WitnessPage:
            found = [Witness.model_validate_json(row["record"]) for row in rows]
            return WitnessPage(results=found, **told)

        return await self._children_of(
            BY_NAME["hearings"], "hearing_witnesses", hearing, limit, cursor, page
        )

    async def amendments(self, bill: str, limit: int, cursor: str | None) -> RecordPage:
        source = BY_NAME["bills"]
        id = self._of(source, bill)
        await self.store.ask(lambda db: store.record(db, source, id))
        theirs = BY_NAME["amendments"]
        row_filter = build_row_filter(theirs.resource, {"bill_id": id})
        return await self.records(theirs, row_filter, limit, cursor)

    async def members(
        self, committee: str, congress: int | None, limit: int, cursor: str | None
    ) -> MembershipPage:
        source = BY_NAME["committees"]
        id = self._of(source, committee)
        after = cursors.decode(cursor, str, int, str) or store.FIRST_MEMBER

        def read(db: sqlite3.Connection) -> MembershipPage:
            up_to = store.progress_of(db, BY_NAME["committee_memberships"]).loaded_up_to
            store.record(db, source, id)
            page, total, sitting = store.members(db, id, congress, limit, after)
            return MembershipPage(
                results=[Membership.model_validate(row) for row in page.rows],
                total=total,
                committee_id=id,
                congress=sitting,
                loaded_up_to=up_to,
                **_next(page),
            )

        return await self.store.ask(read)

    async def member_votes(
        self, bioguide: str, congress: int | None, limit: int, cursor: str | None
    ) -> MemberVotePage:
        source = BY_NAME["legislators"]
        id = self._of(source, bioguide)
        after = cursors.decode(cursor, str, str)

        def read(db: sqlite3.Connection) -> MemberVotePage:
            store.record(db, source, id)
            page, total = store.member_votes(db, id, congress, limit, after)
            return MemberVotePage(
                results=[_member_vote(row, from_json(row["record"])) for row in page.rows],
                total=total,
                loaded_up_to=store.progress_of(db, BY_NAME["roll_call_votes"]).loaded_up_to,
                **_next(page),
            )

        return await self.store.ask(read)

    async def vote_members(self, vote: str, limit: int, cursor: str | None) -> MemberVotePage:
        source = BY_NAME["roll_call_votes"]
        id = self._of(source, vote)
        (after,) = cursors.decode(cursor, int) or (0,)

        def read(db: sqlite3.Connection) -> MemberVotePage:
            told = store.record(db, source, id)
            page, total = store.children(db, "member_votes", "vote_id", id, limit, after)
            return MemberVotePage(
                results=[_member_vote(row, told) for row in page.rows],
                total=total,
                loaded_up_to=told["loaded_up_to"],
                **_next(page),
            )

        return await self.store.ask(read)

    async def links(
        self, source: Source, id: str, kind: LinkKind | None, limit: int, cursor: str | None
    ) -> LinkPage:
        """What a record is linked to, whichever of the two says so, with the evidence."""
        canonical = self._of(source, id)
        after = cursors.decode(cursor, str, str)

        def read(db: sqlite3.Connection) -> LinkPage:
            told = from_json(_record_json(db, source, canonical))
            rows, more, total = links.of(db, told["id"], kind, limit, after)
            return LinkPage(
                results=[LinkedRecord.model_validate(asdict(row)) for row in rows],
                total=total,
                id=told["id"],
                loaded_up_to=told["loaded_up_to"],
                **_next(store.Page([], more)),
            )

        return await self.store.ask(read)

    # --- what is new ---

    async def changes(
        self,
        since: str | None,
        source: str | None,
        kind: ChangeKind | None,
        limit: int,
        cursor: str | None,
    ) -> ChangePage:
        """What came, changed or was withdrawn here since a day, or since a cursor was given out."""
        if since is None and cursor is None:
            told = "say a day, or go on with the `resume_cursor` of an earlier answer"
            raise InvalidArguments([{"field": "since", "message": told}])
        (after,) = cursors.decode(cursor, int) or (0,)
        meant = find_source(source) if source else None

        def read(db: sqlite3.Connection) -> ChangePage:
            rows, end, more = changes.since(db, since, meant, kind, limit, after)
            resume = cursors.encode((end,)) if end else None
            return ChangePage(
                results=[Change(**row) for row in rows],
                next_cursor=resume if more else None,
                has_more=more,
                resume_cursor=resume,
                since=since,
            )

        return await self.store.ask(read)

    # --- texts ---

    async def bill_text(self, bill: str, version: str | None, offset: int) -> BillText:
        """One version of a bill's text, or the newest, in pieces of bounded length."""
        source = BY_NAME["bills"]
        id = self._of(source, bill)

        def read(db: sqlite3.Connection) -> BillText:
            told = store.record(db, source, id)
            versions = store.texts(db, id)
            chosen = version.lower() if version else next(iter(versions), None)
            text = store.text(db, id, chosen) if chosen else None
            if text is None:
                raise RecordNotFound(
                    f"No text of {id}{f' in version {version!r}' if version else ''} is loaded",
                    versions=versions,
                    url=told["url"],
                )
            return _bill_text(told, text, versions, offset)

        return await self.store.ask(read)

    async def fetch(self, id: str, offset: int = 0) -> Fetched:
        """Any record by its id, with as much of its text as one answer holds."""
        found = federal_id(id)
        source = BY_NAME.get(found.source)
        if source is None:
            raise RecordNotFound(f"No record {found.id} has been loaded", source=found.source)

        def read(db: sqlite3.Connection) -> Fetched:
            told = from_json(_record_json(db, source, found.id))
            parts = store.texts(db, told["id"])
            text = store.text(db, told["id"], parts[0]) if parts else None
            linked = links.counts(db, told["id"])
            return _fetched(told, text.body if text else _said(told), linked, offset)

        return await self.store.ask(read)

    # --- names ---

    async def resolve(
        self,
        source: Source,
        query: str,
        row_filter: RowFilter,
        limit: int = MOST_LIKELY,
        cursor: str | None = None,
    ) -> Resolved:
        """The records of a registry that a name may mean, the likeliest first."""
        (start,) = cursors.decode(cursor, int) or (0,)

        def look(db: sqlite3.Connection) -> Resolved:
            with store.snapshot(db):
                stored = match_stored_case(db, source.resource, row_filter)
                found = resolver.resolve(db, source, query, stored)
                up_to = store.progress_of(db, source).loaded_up_to
            end = start + limit
            page = store.Page(found[start:end], (end,) if end < len(found) else None)
            return Resolved(
                results=[
                    match.record
                    | {"loaded_up_to": up_to, "score": match.score, "why": match.reasons}
                    for match in page.rows
                ],
                total=len(found),
                query=query,
                source=source.name,
                loaded_up_to=up_to,
                **_next(page),
            )

        return await self.store.ask(look)

    # --- dossiers ---

    async def bill_dossier(self, id: str) -> BillDossier:
        told, sections = await self._dossier(BY_NAME["bills"], id, None, dossiers.BILL)
        return BillDossier(bill=Bill.model_validate(told), **sections)

    async def legislator_dossier(self, id: str, congress: int | None) -> LegislatorDossier:
        told, sections = await self._dossier(
            BY_NAME["legislators"], id, congress, dossiers.LEGISLATOR
        )
        return LegislatorDossier(
            legislator=Legislator.model_validate(told), congress=congress, **sections
        )

    async def committee_dossier(self, id: str, congress: int | None) -> CommitteeDossier:
        told, sections = await self._dossier(
            BY_NAME["committees"], id, congress, dossiers.COMMITTEE
        )
        return CommitteeDossier(
            committee=Committee.model_validate(told), congress=congress, **sections
        )

    async def public_law_dossier(self, id: str) -> PublicLawDossier:
        told, sections = await self._dossier(BY_NAME["public_laws"], id, None, dossiers.PUBLIC_LAW)
        return PublicLawDossier(public_law=Law.model_validate(told), **sections)

    async def _dossier(
        self, source: Source, id: str, congress: int | None, parts: Mapping[str, dossiers.Part]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A record and its sections, all as they were at one moment."""
        canonical = self._of(source, id)

        def read(db: sqlite3.Connection) -> tuple[dict[str, Any], dict[str, Any]]:
            with store.snapshot(db):
                told = store.record(db, source, canonical)
                return told, dossiers.gather(dossiers.Subject(db, source, told, congress), parts)

        return await self.store.ask(read)

    # --- numbers ---

    async def aggregate(self, asked: Aggregation) -> Total | Buckets:
        """A count or a sum, of all or by group."""

        def read(db: sqlite3.Connection) -> Total | Buckets:
            with store.snapshot(db):
                return Aggregator(db, self.budget).total(asked)

        return await self.store.ask(read)

    async def time_series(self, asked: Aggregation) -> Series:
        """A count or a sum for each stretch of time."""

        def read(db: sqlite3.Connection) -> Series:
            with store.snapshot(db):
                return Aggregator(db, self.budget).over_time(asked)

        return await self.store.ask(read)

    # --- search ---

    async def search(self, question: Search, mode: Mode = "hybrid") -> SearchAnswer:
        """Records by words and meaning, best first; what was searched is said with them."""
        started = time.perf_counter()
        plan = searching.planned(question, mode)

        def look(db: sqlite3.Connection) -> tuple[searching.Plan, searching.Found]:
            # One snapshot: what was found is still there when its title is read.
            with store.snapshot(db):
                made, vector = searching.with_meaning(db, plan, self.vectors)
                return made, searching.run(db, made, vector, self.vectors, self.passages)

        made, found = await self.store.ask(look)
        end = question.offset + len(found.hits)
        return SearchAnswer(
            results=found.hits,
            total=found.total,
            took_ms=round((time.perf_counter() - started) * 1000, 1),
            mode=mode,
            searched=found.searched,
            degraded=made.degraded,
            next_offset=end if found.hits and end < found.total else None,
        )

    # --- helpers ---

    def _of(self, source: Source, id: str) -> str:
        """The canonical form of an id that should be one of this source's."""
        found = federal_id(id)
        if found.source == source.name:
            return found.id
        if (found.source, source.name) == ("federal_register", "presidential_documents"):
            return f"presdoc:{found.id}"
        raise RecordNotFound(
            f"{found.id} is an id of {found.source}, not of {source.name}", source=found.source
        )

    async def _children_of(
        self,
        source: Source,
        table: str,
        record: str,
        limit: int,
        cursor: str | None,
        page_of: Callable[[list[Any], dict[str, Any]], T],
    ) -> T:
        id, parent = self._of(source, record), PARENTS[table]
        (after,) = cursors.decode(cursor, int) or (0,)

        def read(db: sqlite3.Connection) -> T:
            told = store.record(db, source, id)
            page, total = store.children(db, table, parent, id, limit, after)
            rest = {"total": total, parent: id, "loaded_up_to": told["loaded_up_to"]}
            return page_of(page.rows, {**rest, **_next(page)})

        return await self.store.ask(read)


def _record_json(db: sqlite3.Connection, source: Source, id: str) -> str:
    try:
        return store.record_json(db, source, id)
    except RecordNotFound as missing:
        # A document number alone does not say that the document is the President's.
        if source.name != "federal_register":
            raise
        try:
            return store.record_json(db, BY_NAME["presidential_documents"], f"presdoc:{id}")
        except RecordNotFound:
            raise missing from None  # told of the number that was asked for


def _next(page: store.Page) -> dict[str, Any]:
    cursor = cursors.encode(page.after)
    return {"next_cursor": cursor, "has_more": cursor is not None}


def _member_vote(row: sqlite3.Row, vote: dict[str, Any]) -> MemberVote:
    names = ("voted_at", "question", "result", "bills", "title", "url")
    about: dict[str, Any] = {name: vote.get(name) for name in names}
    return MemberVote(
        vote_id=row["vote_id"],
        bioguide_id=row["bioguide_id"],
        name=row["name"],
        party=row["party"],
        state=row["state"],
        position=row["position"],
        **about,
    )


def _bill_text(
    told: dict[str, Any], text: StoredText, versions: list[str], offset: int
) -> BillText:
    end = offset + MAX_TEXT
    more = end if end < len(text.body) else None
    path = f"/v1/bills/{told['id']}/body?version={text.part}&offset={more}"
    return BillText(
        bill_id=told["id"],
        version=text.part,
        stage=text.stage,
        dated=text.dated,
        title=text.title,
        text=text.body[offset:end],
        offset=offset,
        total_chars=len(text.body),
        next_offset=more,
        more_url=path if more else None,
        versions=versions,
        url=text.url,
        citation=Citation.model_validate(told["citation"]),
        loaded_up_to=told["loaded_up_to"],
    )


def _fetched(told: dict[str, Any], text: str, linked: dict[str, int], offset: int) -> Fetched:
    end = offset + MAX_TEXT
    more = end if end < len(text) else None
    shown = ("published_at", "source_org", "citation_string", "loaded_up_to", "retrieved_at")
    return Fetched(
        id=told["id"],
        title=told["title"],
        text=text[offset:end],
        url=told["url"],
        metadata={"source": told["source"], **{name: told[name] for name in shown}},
        source=told["source"],
        citation=Citation.model_validate(told["citation"]),
        record=told,
        offset=offset,
        total_chars=len(text),
        next_offset=more,
        more_url=f"/v1/fetch?id={told['id']}&offset={more}" if more else None,
        links=linked,
        links_url=f"/v1/{BY_NAME[told['source']].path}/{told['id']}/links" if linked else None,
    )


def _said(told: dict[str, Any]) -> str:
    """What a record without a text of its own has to say, in lines."""
    summary, latest = told.get("summary") or {}, told.get("latest_action") or {}
    lines = (
        told["title"],
        told.get("abstract"),
        told.get("description"),
        summary.get("text"),
        told.get("jurisdiction"),
        f"Latest action ({latest.get('date')}): {latest['text']}" if latest else None,
        told["citation_string"],
    )
    return "\n\n".join(line for line in lines if line)

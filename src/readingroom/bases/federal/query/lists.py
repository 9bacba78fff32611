"""Pages of lists: records of a source, what belongs to a record, its links, and changes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import RowFilter
from readingroom.bases.federal.models import (
    ActionPage,
    Change,
    ChangeKind,
    ChangePage,
    CosponsorPage,
    LinkedRecord,
    LinkPage,
    MembershipPage,
    MemberVotePage,
    RecordPage,
    WitnessPage,
)
from readingroom.bases.federal.names.filter_values import (
    describe_missing_numbers,
    describe_reading,
    resolve_filters,
)
from readingroom.bases.federal.query import changes, cursors, links
from readingroom.bases.federal.query.texts import read_record_json
from readingroom.bases.federal.schema.records import LinkKind, Membership, MemberVote
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.bases.federal.schema.tables import PARENTS
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.tool import Answer
from readingroom.storage.database import Database, Row

ChildPage = TypeVar("ChildPage", CosponsorPage, ActionPage, WitnessPage)

CHILD_TABLES: dict[type[Answer], tuple[str, str]] = {
    CosponsorPage: ("bills", "bill_cosponsors"),
    ActionPage: ("bills", "bill_actions"),
    WitnessPage: ("hearings", "hearing_witnesses"),
}
"""Pages of what belongs to a record: the source of the record, and the table of the rows."""

_ROLL_CALL_FIELDS = ("voted_at", "question", "result", "bills", "title", "url")


def build_next_page_fields(list_name: str, after: Sequence[Any] | None) -> dict[str, Any]:
    """Return the fields of a page that lead to the next one."""
    cursor = cursors.encode(list_name, after)
    return {"next_cursor": cursor, "has_more": cursor is not None}


def list_records(
    db: Database,
    source: Source,
    row_filter: RowFilter,
    limit: int,
    after: Sequence[Any] | None,
) -> RecordPage:
    stored_filter = resolve_filters(db, source.table, row_filter)
    page = store.list_records(db, source, stored_filter, limit, after)
    return RecordPage(
        results=page.rows,
        source=source.name,
        filters_read=describe_reading(row_filter.filters, stored_filter.filters),
        loaded_up_to=store.read_progress(db, source).loaded_up_to,
        note=describe_missing_numbers(db, source.table, stored_filter.filters),
        **build_next_page_fields(source.name, page.after),
    )


def list_children(
    db: Database, model: type[ChildPage], id: str, limit: int, after: int
) -> ChildPage:
    """Return a page of what belongs to a record; raise RecordNotFound if that is not loaded."""
    source, table = CHILD_TABLES[model]
    parent = PARENTS[table]
    record = store.read_record(db, BY_NAME[source], id)
    page, total = store.list_children(db, table, parent, id, limit, after)
    fields: dict[str, Any] = {
        "results": [from_json(row["record"]) for row in page.rows],
        "total": total,
        parent: id,
        "loaded_up_to": record["loaded_up_to"],
        **build_next_page_fields(table, page.after),
    }
    return model.model_validate(fields)


def read_or_tell_links(db: Database, source: Source, id: str) -> dict[str, Any]:
    """Return a record; raise RecordNotFound, which tells loaded records that name it."""
    try:
        return store.read_record(db, source, id)
    except RecordNotFound as missing:
        rows, _, _ = links.list_links(db, id, None, 3, None)
        if not rows:
            raise
        named_by = ", ".join(f"{row.id} ({row.kind})" for row in rows)
        raise RecordNotFound(
            f"{missing.message}, but records here are linked to it: {named_by}",
            source=source.name,
            linked_from=[row.id for row in rows],
        ) from missing


def add_party_and_state(
    db: Database, memberships: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return seats on a committee with the party and the state of their members."""
    ids = [seat["bioguide_id"] for seat in memberships]
    rows = db.execute(
        f"SELECT id, party, state FROM legislators WHERE id IN ({', '.join('?' * len(ids))})", ids
    )
    by_id = {row["id"]: {"party": row["party"], "state": row["state"]} for row in rows}
    return [seat | by_id.get(seat["bioguide_id"], {}) for seat in memberships]


def list_members(
    db: Database, id: str, congress: int | None, limit: int, after: Sequence[Any]
) -> MembershipPage:
    loaded_up_to = store.read_progress(db, BY_NAME["committee_memberships"]).loaded_up_to
    store.read_record(db, BY_NAME["committees"], id)
    page, total, members_congress = store.list_members(db, id, congress, limit, after)
    return MembershipPage(
        results=[Membership.model_validate(seat) for seat in add_party_and_state(db, page.rows)],
        total=total,
        committee_id=id,
        congress=members_congress,
        loaded_up_to=loaded_up_to,
        **build_next_page_fields("committee_members", page.after),
    )


def list_member_votes(
    db: Database,
    id: str,
    congress: int | None,
    limit: int,
    after: Sequence[Any] | None,
) -> MemberVotePage:
    """Return a page of how a member voted."""
    store.read_record(db, BY_NAME["legislators"], id)
    page, total = store.list_member_votes(db, id, congress, limit, after)
    return MemberVotePage(
        results=[_build_member_vote(row, from_json(row["record"])) for row in page.rows],
        total=total,
        loaded_up_to=store.read_progress(db, BY_NAME["roll_call_votes"]).loaded_up_to,
        **build_next_page_fields("member_votes", page.after),
    )


def list_roll_call_votes(db: Database, id: str, limit: int, after: int) -> MemberVotePage:
    """Return a page of how the members voted in a roll call."""
    roll_call = store.read_record(db, BY_NAME["roll_call_votes"], id)
    page, total = store.list_children(db, "member_votes", "vote_id", id, limit, after)
    return MemberVotePage(
        results=[_build_member_vote(row, roll_call) for row in page.rows],
        total=total,
        loaded_up_to=roll_call["loaded_up_to"],
        **build_next_page_fields("roll_call_members", page.after),
    )


def _build_member_vote(row: Row, roll_call: dict[str, Any]) -> MemberVote:
    about: dict[str, Any] = {name: roll_call.get(name) for name in _ROLL_CALL_FIELDS}
    return MemberVote(
        vote_id=row["vote_id"],
        bioguide_id=row["bioguide_id"],
        name=row["name"],
        party=row["party"],
        state=row["state"],
        position=row["position"],
        standard_position=row["standard_position"],
        **about,
    )


def list_links(
    db: Database,
    source: Source,
    id: str,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> LinkPage:
    record = from_json(read_record_json(db, source, id))
    rows, last, total = links.list_links(db, record["id"], kind, limit, after)
    return LinkPage(
        results=[LinkedRecord.model_validate(asdict(row)) for row in rows],
        total=total,
        id=record["id"],
        loaded_up_to=record["loaded_up_to"],
        **build_next_page_fields("links", last),
    )


def list_changes(
    db: Database,
    since: str | None,
    source: Source | None,
    kind: ChangeKind | None,
    limit: int,
    after: int,
) -> ChangePage:
    rows, end, has_more = changes.list_changes(db, since, source, kind, limit, after)
    cursor = cursors.encode("changes", (end,)) if end else None
    return ChangePage(
        results=[Change(**row) for row in rows],
        next_cursor=cursor if has_more else None,
        has_more=has_more,
        resume_cursor=cursor,
        since=since,
    )

"""Pages of lists: records of a source, what belongs to a record, its links, and changes."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import SqlFilter
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
    find_reinterpreted_values,
    resolve_filters,
)
from readingroom.bases.federal.names.gaps import describe_gaps
from readingroom.bases.federal.query import changes, cursors, links
from readingroom.bases.federal.query.texts import read_record_json
from readingroom.bases.federal.schema.congress import format_ordinal
from readingroom.bases.federal.schema.loaded import describe_loaded_records
from readingroom.bases.federal.schema.records import LinkKind, Membership, MemberVote
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.bases.federal.schema.tables import PARENT_COLUMN_BY_CHILD_TABLE
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.tool import Answer
from readingroom.storage.database import Database, Row

ChildPageT = TypeVar("ChildPageT", CosponsorPage, ActionPage, WitnessPage)

SOURCE_AND_TABLE_NAMES_BY_PAGE: dict[type[Answer], tuple[str, str]] = {
    CosponsorPage: ("bills", "bill_cosponsors"),
    ActionPage: ("bills", "bill_actions"),
    WitnessPage: ("hearings", "hearing_witnesses"),
}
"""Pages of what belongs to a record: the source of the record, and the table of the rows."""

ALL_CHANGES_NAME = "changes"
"""The name of the list of all changes, whatever their source and kind."""

_ROLL_CALL_FIELDS = ("voted_at", "question", "result", "bills", "title", "url")


def build_next_page_fields(list_name: str, after_key: Sequence[Any] | None) -> dict[str, Any]:
    """Return the fields of a page that lead to the next one."""
    next_cursor = cursors.encode(list_name, after_key)
    return {"next_cursor": next_cursor, "has_more": next_cursor is not None}


def list_records(
    db: Database,
    record_source: Source,
    sql_filter: SqlFilter,
    max_results: int,
    after_key: Sequence[Any] | None,
) -> RecordPage:
    resolved_filter = resolve_filters(db, record_source.record_table, sql_filter)
    record_page = store.list_records(db, record_source, resolved_filter, max_results, after_key)
    return RecordPage(
        results=record_page.rows,
        source=record_source.name,
        filters_read=find_reinterpreted_values(sql_filter.filters, resolved_filter.filters),
        loaded_up_to=store.read_progress(db, record_source).loaded_up_to,
        note=describe_gaps(
            db, record_source.record_table, resolved_filter.filters, is_empty=not record_page.rows
        ),
        **build_next_page_fields(
            cursors.build_list_name(record_source.name, sql_filter.filters), record_page.after_key
        ),
    )


def list_children(
    db: Database, page_class: type[ChildPageT], record_id: str, max_results: int, after_key: int
) -> ChildPageT:
    """Return a page of what belongs to a record; raise RecordNotFound if that is not loaded."""
    source_name, table_name = SOURCE_AND_TABLE_NAMES_BY_PAGE[page_class]
    parent_column_name = PARENT_COLUMN_BY_CHILD_TABLE[table_name]
    parent_record = store.read_record(db, SOURCES_BY_NAME[source_name], record_id)
    child_page, total_count = store.list_children(
        db, table_name, parent_column_name, record_id, max_results, after_key
    )
    page_fields: dict[str, Any] = {
        "results": [from_json(child_row["record"]) for child_row in child_page.rows],
        "total": total_count,
        parent_column_name: record_id,
        "loaded_up_to": parent_record["loaded_up_to"],
        **build_next_page_fields(f"{table_name}:{record_id}", child_page.after_key),
    }
    if source_name == "bills":
        page_fields["note"] = describe_missing_status(parent_record)
    elif not total_count:
        page_fields["note"] = (
            f"No list of witnesses of {record_id} is loaded here. "
            f"{describe_loaded_records(db, source_name)}"
        )
    return page_class.model_validate(page_fields)


def describe_missing_status(bill_fields: Mapping[str, Any]) -> str | None:
    """Return what a list of a bill cannot know; None where the bill's status file is loaded."""
    if bill_fields["status_loaded"]:
        return None
    return (
        "Only texts of this bill are loaded here; its status file, which lists all cosponsors, "
        "actions (hearings too), amendments, votes, reports, cost estimates and laws, is not."
    )


def describe_missing_roster(member_count: int, congress: int | None) -> str | None:
    """Return of which Congress no roster is loaded; None where there are members."""
    if member_count:
        return None
    congress_phrase = (
        f"of the {format_ordinal(congress)} Congress" if congress else "of this committee"
    )
    return f"No roster {congress_phrase} is loaded here."


def describe_stub(record_fields: Mapping[str, Any]) -> str | None:
    """Return what is not known of a person whom only other records name; None of others."""
    if not record_fields.get("stub"):
        return None
    return "Only other records name this person here: terms, posts and who sits now are not known."


def describe_missing_votes(db: Database, vote_count: int, congress: int | None) -> str | None:
    """Return that no vote of a member is loaded, and which are; None where one is."""
    if vote_count:
        return None
    congress_phrase = f" of the {format_ordinal(congress)} Congress" if congress else ""
    return (
        f"No roll call{congress_phrase} with this member's vote is loaded here. "
        f"{describe_loaded_records(db, 'roll_call_votes')}"
    )


def get_record_or_hint_links(db: Database, record_source: Source, record_id: str) -> dict[str, Any]:
    """Return a record; raise RecordNotFound, which tells loaded records that name it."""
    try:
        return store.read_record(db, record_source, record_id)
    except RecordNotFound as missing:
        found_links, _, _ = links.read_link_page(db, record_id, None, 3, None)
        if not found_links:
            raise
        linked_records_text = ", ".join(
            f"{found_link.id} ({found_link.kind})" for found_link in found_links
        )
        raise RecordNotFound(
            f"{missing.message}, but records here are linked to it: {linked_records_text}",
            source=record_source.name,
            linked_from=[found_link.id for found_link in found_links],
        ) from missing


def add_party_and_state(
    db: Database, committee_seats: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return seats on a committee with the party and the state of their members."""
    member_ids = [committee_seat["bioguide_id"] for committee_seat in committee_seats]
    id_placeholders_sql = ", ".join("?" * len(member_ids))
    member_rows = db.execute(
        f"SELECT id, party, state FROM legislators WHERE id IN ({id_placeholders_sql})",
        member_ids,
    )
    party_and_state_by_id = {
        member_row["id"]: {"party": member_row["party"], "state": member_row["state"]}
        for member_row in member_rows
    }
    return [
        committee_seat | party_and_state_by_id.get(committee_seat["bioguide_id"], {})
        for committee_seat in committee_seats
    ]


def list_members(
    db: Database, record_id: str, congress: int | None, max_results: int, after_key: Sequence[Any]
) -> MembershipPage:
    loaded_up_to = store.read_progress(db, SOURCES_BY_NAME["committee_memberships"]).loaded_up_to
    store.read_record(db, SOURCES_BY_NAME["committees"], record_id)
    member_page, total_count, roster_congress = store.list_members(
        db, record_id, congress, max_results, after_key
    )
    return MembershipPage(
        results=[
            Membership.model_validate(committee_seat)
            for committee_seat in add_party_and_state(db, member_page.rows)
        ],
        total=total_count,
        committee_id=record_id,
        congress=roster_congress,
        loaded_up_to=loaded_up_to,
        note=describe_missing_roster(total_count, roster_congress),
        **build_next_page_fields(
            cursors.build_list_name(f"committee_members:{record_id}", {"congress": congress}),
            member_page.after_key,
        ),
    )


def list_member_votes(
    db: Database,
    record_id: str,
    congress: int | None,
    max_results: int,
    after_key: Sequence[Any] | None,
) -> MemberVotePage:
    """Return a page of how a member voted."""
    store.read_record(db, SOURCES_BY_NAME["legislators"], record_id)
    vote_page, total_count = store.list_member_votes(
        db, record_id, congress, max_results, after_key
    )
    return MemberVotePage(
        results=[
            _build_member_vote(vote_row, from_json(vote_row["record"]))
            for vote_row in vote_page.rows
        ],
        total=total_count,
        loaded_up_to=store.read_progress(db, SOURCES_BY_NAME["roll_call_votes"]).loaded_up_to,
        note=describe_missing_votes(db, total_count, congress),
        **build_next_page_fields(
            cursors.build_list_name(f"member_votes:{record_id}", {"congress": congress}),
            vote_page.after_key,
        ),
    )


def list_roll_call_votes(
    db: Database, record_id: str, max_results: int, after_key: int
) -> MemberVotePage:
    """Return a page of how the members voted in a roll call."""
    roll_call = store.read_record(db, SOURCES_BY_NAME["roll_call_votes"], record_id)
    voter_page, total_count = store.list_children(
        db, "member_votes", "vote_id", record_id, max_results, after_key
    )
    return MemberVotePage(
        results=[_build_member_vote(voter_row, roll_call) for voter_row in voter_page.rows],
        total=total_count,
        loaded_up_to=roll_call["loaded_up_to"],
        **build_next_page_fields(f"roll_call_members:{record_id}", voter_page.after_key),
    )


def _build_member_vote(member_vote_row: Row, roll_call: dict[str, Any]) -> MemberVote:
    roll_call_fields: dict[str, Any] = {
        field_name: roll_call.get(field_name) for field_name in _ROLL_CALL_FIELDS
    }
    return MemberVote(
        vote_id=member_vote_row["vote_id"],
        bioguide_id=member_vote_row["bioguide_id"],
        name=member_vote_row["name"],
        party=member_vote_row["party"],
        state=member_vote_row["state"],
        position=member_vote_row["position"],
        standard_position=member_vote_row["standard_position"],
        **roll_call_fields,
    )


def list_links(
    db: Database,
    record_source: Source,
    record_id: str,
    link_kind: LinkKind | None,
    max_results: int,
    after_key: Sequence[str] | None,
) -> LinkPage:
    record_fields = from_json(read_record_json(db, record_source, record_id))
    found_links, last_key, total_count = links.read_link_page(
        db, record_fields["id"], link_kind, max_results, after_key
    )
    return LinkPage(
        results=[LinkedRecord.model_validate(asdict(found_link)) for found_link in found_links],
        total=total_count,
        id=record_fields["id"],
        loaded_up_to=record_fields["loaded_up_to"],
        **build_next_page_fields(
            cursors.build_list_name(f"links:{record_id}", {"kind": link_kind}), last_key
        ),
    )


def list_changes(
    db: Database,
    since_day_text: str | None,
    record_source: Source | None,
    change_kind: ChangeKind | None,
    max_results: int,
    after_key: int,
) -> ChangePage:
    change_rows, last_change_number, has_more = changes.read_change_page(
        db, since_day_text, record_source, change_kind, max_results, after_key
    )
    list_name = build_changes_list_name(record_source, change_kind)
    resume_cursor = cursors.encode(list_name, (last_change_number,)) if last_change_number else None
    return ChangePage(
        results=[Change(**change_row) for change_row in change_rows],
        next_cursor=resume_cursor if has_more else None,
        has_more=has_more,
        resume_cursor=resume_cursor,
        since=since_day_text,
    )


def build_changes_list_name(record_source: Source | None, change_kind: ChangeKind | None) -> str:
    """Return the name of a list of changes; the day it begins with is not part of it."""
    source_name = record_source.name if record_source else None
    return cursors.build_list_name(ALL_CHANGES_NAME, {"source": source_name, "kind": change_kind})


def build_match_list_name(
    record_source: Source, query_text: str, list_filters: Mapping[str, Any]
) -> str:
    """Return the name of a list of matches: each registry, query and filter has its own."""
    query_checksum = zlib.crc32(query_text.encode("utf-8", "replace"))
    return cursors.build_list_name(f"names:{record_source.name}:{query_checksum}", list_filters)


def build_next_names_page_fields(
    list_name: str, page_slice: slice, match_count: int
) -> dict[str, Any]:
    """Return the fields that say where a list of names goes on after a page."""
    after_key = (page_slice.stop,) if page_slice.stop < match_count else None
    return build_next_page_fields(list_name, after_key)

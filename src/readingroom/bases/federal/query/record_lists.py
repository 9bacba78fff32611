"""One list for agents: records of a source by filters, or what belongs to one record, as cards."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import (
    SourceFilters,
    parse_filters,
    validate_filters,
)
from readingroom.bases.federal.models import ListRecords, RecordList
from readingroom.bases.federal.names.filter_values import find_reinterpreted_values, resolve_filters
from readingroom.bases.federal.query import cursors
from readingroom.bases.federal.query.cards import make_card
from readingroom.bases.federal.query.links import list_links_and_sponsors
from readingroom.bases.federal.query.votes import (
    describe_missing_voters,
    list_members_voting_alike,
    summarize_roll_call,
)
from readingroom.bases.federal.schema.records import LinkKind, SponsorKind
from readingroom.bases.federal.schema.sources import (
    MEMBER_VOTES,
    SOURCES_BY_NAME,
    Source,
    get_source,
)
from readingroom.core.errors import InvalidArguments, UnknownSource, validate_model
from readingroom.storage.database import Database

CHANGES_LIST_NAME = "changes"
"""What stands for a source in a list of what is new."""
PART_NAMES_BY_SOURCE: Mapping[str, tuple[str, ...]] = {
    "bills": ("actions", "amendments", "cosponsors", "links", "similar"),
    "roll_call_votes": ("members", "links"),
    "legislators": ("votes", "voted_alike", "links"),
    "committees": ("members", "actions", "links"),
    "hearings": ("witnesses", "links"),
}
_DEFAULT_PART_NAMES = ("links", "similar")
_NO_LINK_NOTE = "No record that is loaded here says so; of what is not, nothing is known."
_VOTER_FIELDS = ("bioguide_id", "name", "party", "state", "position")


def check_part_name(record_source: Source, part_name: str | None) -> str:
    """Return the part of a record that is to be listed; raise InvalidArguments if it has none."""
    allowed_part_names = PART_NAMES_BY_SOURCE.get(record_source.name, _DEFAULT_PART_NAMES)
    if part_name not in allowed_part_names:
        problem_text = (
            f"{record_source.slug} have {', '.join(allowed_part_names)}; "
            "`fetch` gives the record itself"
        )
        raise InvalidArguments([{"field": "part", "message": problem_text}])
    return part_name


def list_voters(
    db: Database,
    vote_id: str,
    filter_values: Mapping[str, Any] | None,
    max_results: int,
    page_cursor: str | None,
) -> RecordList:
    """List how members voted in a roll call, all or those of a position, party or state."""
    roll_call_fields = store.read_record(db, SOURCES_BY_NAME["roll_call_votes"], vote_id)
    parsed_sql_filter = parse_filters(MEMBER_VOTES, {**(filter_values or {}), "vote_id": vote_id})
    resolved_sql_filter = resolve_filters(db, MEMBER_VOTES, parsed_sql_filter)
    list_name = cursors.build_list_name(
        f"roll_call_members:{vote_id}", {**parsed_sql_filter.filters, "vote_id": None}
    )
    (after_key,) = cursors.decode(list_name, page_cursor, int) or (0,)
    (total_count,) = db.execute(
        f"SELECT count(*) FROM member_votes WHERE {resolved_sql_filter.sql}",
        resolved_sql_filter.values,
    ).fetchone()
    voter_rows = db.execute(
        f"""SELECT * FROM member_votes WHERE {resolved_sql_filter.sql} AND ordinal > ?
            ORDER BY ordinal LIMIT ?""",
        (*resolved_sql_filter.values, after_key, max_results + 1),
    ).fetchall()
    last_key = (voter_rows[max_results - 1]["ordinal"],) if len(voter_rows) > max_results else None
    return build_record_list(
        "roll_call_votes",
        [
            {field_name: voter_row[field_name] for field_name in _VOTER_FIELDS}
            for voter_row in voter_rows[:max_results]
        ],
        list_name,
        last_key,
        id=vote_id,
        part="members",
        total=total_count,
        loaded_up_to=roll_call_fields["loaded_up_to"],
        filters_read=find_reinterpreted_values(
            parsed_sql_filter.filters, resolved_sql_filter.filters
        ),
        note=describe_missing_voters(roll_call_fields),
        vote=summarize_roll_call(db, roll_call_fields),
    )


def list_link_cards(
    db: Database,
    record_source: Source,
    record_id: str,
    kind_filter: LinkKind | SponsorKind | None,
    max_results: int,
    page_cursor: str | None,
) -> RecordList:
    """List what a record is linked to, then its sponsors and cosponsors, with the evidence."""
    record_fields = store.read_record(db, record_source, record_id)
    list_name = cursors.build_list_name(f"links:{record_id}", {"kind": kind_filter})
    found_links, last_key, total_count = list_links_and_sponsors(
        db,
        record_id,
        kind_filter,
        max_results,
        cursors.decode(list_name, page_cursor, str, str),
    )
    return build_record_list(
        record_source.name,
        [make_card(asdict(found_link)) for found_link in found_links],
        list_name,
        last_key,
        id=record_id,
        part="links",
        total=total_count,
        loaded_up_to=record_fields["loaded_up_to"],
        note=None if total_count else _NO_LINK_NOTE,
    )


def list_voting_alike(
    db: Database, bioguide_id: str, congress: int | None, max_results: int, page_cursor: str | None
) -> RecordList:
    """List who voted most often as a member did, and over how many votes of which days."""
    store.read_record(db, SOURCES_BY_NAME["legislators"], bioguide_id)
    list_name = cursors.build_list_name(f"voted_alike:{bioguide_id}", {"congress": congress})
    (start_index,) = cursors.decode(list_name, page_cursor, int) or (0,)
    members_voting_alike, total_count = list_members_voting_alike(
        db, bioguide_id, congress, max_results, start_index
    )
    end_index = start_index + len(members_voting_alike)
    return build_record_list(
        "legislators",
        members_voting_alike,
        list_name,
        (end_index,) if end_index < total_count else None,
        id=bioguide_id,
        part="voted_alike",
        total=total_count,
        loaded_up_to=store.read_progress(db, SOURCES_BY_NAME["roll_call_votes"]).loaded_up_to,
        note="Counted over the votes that are loaded here, in which both said yea or nay; who was "
        "compared in fewer than two is left out.",
    )


def list_committee_actions(
    db: Database,
    committee_id: str,
    filter_values: Mapping[str, Any],
    max_results: int,
    page_cursor: str | None,
) -> RecordList:
    """List what a committee and its subcommittees did with bills, and when they met, newest first.

    The filters `since` and `until` are about the day of each action.
    """
    committee_fields = store.read_record(db, SOURCES_BY_NAME["committees"], committee_id)
    period_filters = validate_filters(SourceFilters, filter_values, "actions")
    list_name = cursors.build_list_name(
        f"committee_actions:{committee_id}",
        {"since": period_filters.since, "until": period_filters.until},
    )
    (start_index,) = cursors.decode(list_name, page_cursor, int) or (0,)
    all_actions = (
        *_iterate_bill_actions(db, committee_id),
        *_iterate_meeting_actions(db, committee_id),
    )
    actions_in_period = sorted(
        (
            committee_action
            for committee_action in all_actions
            if (period_filters.since or "")
            <= committee_action["date"]
            <= (period_filters.until or "9999")
        ),
        key=lambda committee_action: (
            committee_action["date"],
            committee_action["id"],
            committee_action["action"],
        ),
        reverse=True,
    )
    end_index = start_index + max_results
    return build_record_list(
        "committees",
        actions_in_period[start_index:end_index],
        list_name,
        (end_index,) if end_index < len(actions_in_period) else None,
        id=committee_id,
        part="actions",
        total=len(actions_in_period),
        loaded_up_to=committee_fields["loaded_up_to"],
        note="Of the bills and meetings that are loaded here.",
    )


def _iterate_bill_actions(db: Database, committee_id: str) -> Iterator[dict[str, Any]]:
    bill_rows = db.execute(
        """SELECT id, record ->> 'title' AS title, record ->> 'committees' AS committees FROM bills
           WHERE status = 'active' AND id IN (
               SELECT bill_id FROM bill_committees WHERE committee_id = ? OR committee_id IN (
                   SELECT id FROM committees WHERE parent_id = ?))""",
        (committee_id, committee_id),
    )
    for bill_row in bill_rows:
        for bill_committee in from_json(bill_row["committees"]):
            if not bill_committee["id"].startswith(committee_id):
                continue
            for dated_activity in bill_committee.get("dated_activities") or ():
                yield {
                    "date": (dated_activity["date"] or "")[:10],
                    "action": dated_activity["name"],
                    "id": bill_row["id"],
                    "title": bill_row["title"],
                    "committee": bill_committee["id"],
                }


def _iterate_meeting_actions(db: Database, committee_id: str) -> Iterator[dict[str, Any]]:
    meeting_rows = db.execute(
        """SELECT h.id, h.type, h.published_at, h.record ->> 'title' AS title, min(l.to_id) AS seat
           FROM links l JOIN hearings h ON h.id = l.from_id
           WHERE h.status = 'active' AND l.kind = 'committee' AND (l.to_id = ? OR l.to_id IN (
               SELECT id FROM committees WHERE parent_id = ?))
           GROUP BY h.id""",
        (committee_id, committee_id),
    )
    for meeting_row in meeting_rows:
        yield {
            "date": meeting_row["published_at"] or "",
            "action": meeting_row["type"],
            "id": meeting_row["id"],
            "title": meeting_row["title"],
            "committee": meeting_row["seat"],
        }


def build_record_list(
    source_name: str,
    result_rows: Sequence[Mapping[str, Any]],
    list_name: str,
    after_key: Sequence[Any] | None,
    **answer_fields: Any,
) -> RecordList:
    page_cursor = cursors.encode(list_name, after_key)
    return RecordList(
        source=source_name,
        results=[dict(result_row) for result_row in result_rows],
        next_cursor=page_cursor,
        has_more=page_cursor is not None,
        **answer_fields,
    )


def convert_page_to_cards(
    model_page: Any, record_source: Source, record_id: str, part_name: str
) -> RecordList:
    """Return a page of what belongs to a record as a list of cards."""
    result_rows = [
        result_row if isinstance(result_row, Mapping) else result_row.model_dump()
        for result_row in model_page.results
    ]
    return RecordList(
        source=record_source.name,
        results=[make_card(result_row) for result_row in result_rows],
        id=record_id,
        part=part_name,
        total=getattr(model_page, "total", None),
        next_cursor=model_page.next_cursor,
        has_more=model_page.has_more,
        loaded_up_to=model_page.loaded_up_to,
        note=getattr(model_page, "note", None),
    )


# --- the addresses that answers print ---

_ADDRESSABLE_PART_NAMES = {
    "cosponsors",
    "actions",
    "amendments",
    "links",
    "members",
    "votes",
    "witnesses",
}


def parse_list_address(list_address: str) -> ListRecords | None:
    """Return the list that a `more_url` of an answer leads to; None for any other text.

    Raise InvalidArguments for a path that is no list.
    """
    split_url = urlsplit(list_address.strip())
    if not split_url.path.startswith("/v1/"):
        return None
    path_segments = [
        unquote(path_segment)
        for path_segment in split_url.path.removeprefix("/v1/").strip("/").split("/")
    ]
    query_params: dict[str, Any] = dict(parse_qsl(split_url.query))
    page_size, page_cursor = query_params.pop("limit", None), query_params.pop("cursor", None)
    list_arguments: dict[str, Any] = {"cursor": page_cursor}
    if page_size and page_size.isdecimal() and 1 <= int(page_size) <= 200:
        list_arguments["limit"] = int(page_size)
    if path_segments == [CHANGES_LIST_NAME]:
        return validate_model(
            ListRecords,
            {"source": CHANGES_LIST_NAME, "filters": query_params or None, **list_arguments},
        )
    try:
        record_source = get_source(path_segments[0])
    except UnknownSource:
        return None
    filter_values = {
        filter_name: int(param_value) if param_value.isdecimal() else param_value
        for filter_name, param_value in query_params.items()
    }
    list_arguments |= {"source": record_source.name, "filters": filter_values or None}
    if len(path_segments) == 1:
        return validate_model(ListRecords, list_arguments)
    if len(path_segments) == 3 and path_segments[2] in _ADDRESSABLE_PART_NAMES:
        return validate_model(
            ListRecords, list_arguments | {"id": path_segments[1], "part": path_segments[2]}
        )
    return None


def format_list_address(arguments: ListRecords, next_cursor: str | None) -> str | None:
    """Return the address of the next page of a list, which `fetch` takes."""
    if next_cursor is None:
        return None
    list_path = f"/v1/{arguments.source.replace('_', '-')}"
    if arguments.id:
        list_path += f"/{arguments.id}/{arguments.part}"
    query_params = {**(arguments.filters or {}), "limit": arguments.limit, "cursor": next_cursor}
    return f"{list_path}?{urlencode(query_params)}"

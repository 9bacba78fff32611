"""One list for agents: records of a source by filters, or what belongs to one record, as cards."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.models import ListRecords, RecordList
from readingroom.bases.federal.names.filter_values import describe_reading, resolve_filters
from readingroom.bases.federal.query import cursors
from readingroom.bases.federal.query.cards import make_card
from readingroom.bases.federal.query.votes import list_members_voting_alike
from readingroom.bases.federal.schema.sources import BY_NAME, MEMBER_VOTES, Source, find_source
from readingroom.core.errors import InvalidArguments, UnknownSource
from readingroom.storage.database import Database

CHANGES = "changes"
"""What stands for a source in a list of what is new."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "bills": ("actions", "amendments", "cosponsors", "links", "similar"),
    "roll_call_votes": ("members", "links"),
    "legislators": ("votes", "voted_alike", "links"),
    "committees": ("members", "links"),
    "hearings": ("witnesses", "links"),
}
_OTHER_PARTS = ("links", "similar")
_VOTER_FIELDS = ("bioguide_id", "name", "party", "state", "position")


def check_part(source: Source, part: str | None) -> str:
    """Return the part of a record that is to be listed; raise InvalidArguments if it has none."""
    parts = PARTS.get(source.name, _OTHER_PARTS)
    if part not in parts:
        problem = f"{source.path} have {', '.join(parts)}; `fetch` gives the record itself"
        raise InvalidArguments([{"field": "part", "message": problem}])
    return part


def list_voters(
    db: Database, vote_id: str, filters: Mapping[str, Any] | None, limit: int, cursor: str | None
) -> RecordList:
    """List how members voted in a roll call, all or those of a position, party or state."""
    roll_call = store.read_record(db, BY_NAME["roll_call_votes"], vote_id)
    written = parse_filters(MEMBER_VOTES, {**(filters or {}), "vote_id": vote_id})
    row_filter = resolve_filters(db, MEMBER_VOTES, written)
    (after,) = cursors.decode("roll_call_members", cursor, int) or (0,)
    (total,) = db.execute(
        f"SELECT count(*) FROM member_votes WHERE {row_filter.sql}", row_filter.values
    ).fetchone()
    rows = db.execute(
        f"""SELECT * FROM member_votes WHERE {row_filter.sql} AND ordinal > ?
            ORDER BY ordinal LIMIT ?""",
        (*row_filter.values, after, limit + 1),
    ).fetchall()
    last = (rows[limit - 1]["ordinal"],) if len(rows) > limit else None
    note = None if roll_call.get("recorded") else "How each member voted is not loaded here."
    return build_list(
        "roll_call_votes",
        [{name: row[name] for name in _VOTER_FIELDS} for row in rows[:limit]],
        "roll_call_members",
        last,
        id=vote_id,
        part="members",
        total=total,
        loaded_up_to=roll_call["loaded_up_to"],
        filters_read=describe_reading(written.filters, row_filter.filters),
        note=note,
    )


def list_voting_alike(
    db: Database, bioguide_id: str, congress: int | None, limit: int, cursor: str | None
) -> RecordList:
    """List who voted most often as a member did, and over how many votes of which days."""
    store.read_record(db, BY_NAME["legislators"], bioguide_id)
    (start,) = cursors.decode("voted_alike", cursor, int) or (0,)
    members, total = list_members_voting_alike(db, bioguide_id, congress, limit, start)
    end = start + len(members)
    return build_list(
        "legislators",
        members,
        "voted_alike",
        (end,) if end < total else None,
        id=bioguide_id,
        part="voted_alike",
        total=total,
        loaded_up_to=store.read_progress(db, BY_NAME["roll_call_votes"]).loaded_up_to,
        note="Counted over the votes that are loaded here, in which both said yea or nay.",
    )


def build_list(
    source: str,
    results: Sequence[Mapping[str, Any]],
    list_name: str,
    after: Sequence[Any] | None,
    **fields: Any,
) -> RecordList:
    cursor = cursors.encode(list_name, after)
    return RecordList(
        source=source,
        results=[dict(row) for row in results],
        next_cursor=cursor,
        has_more=cursor is not None,
        **fields,
    )


def convert_page(page: Any, source: Source, id: str, part: str) -> RecordList:
    """Return a page of what belongs to a record as a list of cards."""
    rows = [row if isinstance(row, Mapping) else row.model_dump() for row in page.results]
    return RecordList(
        source=source.name,
        results=[make_card(row) for row in rows],
        id=id,
        part=part,
        total=getattr(page, "total", None),
        next_cursor=page.next_cursor,
        has_more=page.has_more,
        loaded_up_to=page.loaded_up_to,
    )


# --- the addresses that answers print ---

_PART_NAMES = {"cosponsors", "actions", "amendments", "links", "members", "votes", "witnesses"}


def parse_list_address(text: str) -> ListRecords | None:
    """Return the list that a `more_url` of an answer leads to; None for any other text.

    Raise InvalidArguments for a path that is no list.
    """
    split = urlsplit(text.strip())
    if not split.path.startswith("/v1/"):
        return None
    names = [unquote(name) for name in split.path.removeprefix("/v1/").strip("/").split("/")]
    params: dict[str, Any] = dict(parse_qsl(split.query))
    limit, cursor = params.pop("limit", None), params.pop("cursor", None)
    page: dict[str, Any] = {"cursor": cursor}
    if limit and limit.isdecimal() and 1 <= int(limit) <= 200:
        page["limit"] = int(limit)
    if names == [CHANGES]:
        return ListRecords.model_validate({"source": CHANGES, "filters": params or None, **page})
    try:
        source = find_source(names[0])
    except UnknownSource:
        return None
    filters = {name: int(value) if value.isdecimal() else value for name, value in params.items()}
    page |= {"source": source.name, "filters": filters or None}
    if len(names) == 1:
        return ListRecords.model_validate(page)
    if len(names) == 3 and names[2] in _PART_NAMES:
        return ListRecords.model_validate(page | {"id": names[1], "part": names[2]})
    return None


def format_list_address(question: ListRecords, next_cursor: str | None) -> str | None:
    """Return the address of the next page of a list, which `fetch` takes."""
    if next_cursor is None:
        return None
    path = f"/v1/{question.source.replace('_', '-')}"
    if question.id:
        path += f"/{question.id}/{question.part}"
    params = {**(question.filters or {}), "limit": question.limit, "cursor": next_cursor}
    return f"{path}?{urlencode(params)}"

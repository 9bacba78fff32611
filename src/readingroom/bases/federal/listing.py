"""Lists for agents: records of a source, what belongs to one, what is new, what is alike.

Each function asks the service, whose lists it makes short.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.models import ChangesQuestion, ListRecords, RecordList, Search
from readingroom.bases.federal.query import cards, record_lists
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import Source
from readingroom.core.errors import InvalidArguments


async def list_source_cards(service: Any, source: Source, question: ListRecords) -> RecordList:
    row_filter = parse_filters(source.table, question.filters)
    page = await service.list_records(source, row_filter, question.limit, question.cursor)
    records = (await service.list_progress_of(source)).records
    return RecordList(
        source=source.name,
        results=[cards.make_card(record) for record in page.results],
        next_cursor=page.next_cursor,
        has_more=page.has_more,
        loaded_up_to=page.loaded_up_to,
        filters_read=page.filters_read,
        note=page.note if records else f"No record of {source.name} is loaded here.",
    )


async def list_part_cards(
    service: Any, source: Source, id: str, part: str, question: ListRecords
) -> RecordList:
    limit, cursor, filters = question.limit, question.cursor, dict(question.filters or {})
    congress = filters.pop("congress", None)
    congress = congress if isinstance(congress, int) else None
    if part == "members" and source.name == "roll_call_votes":
        voters: RecordList = await service.store.read(
            lambda db: record_lists.list_voters(db, id, question.filters, limit, cursor)
        )
        return voters
    if part == "voted_alike":
        alike: RecordList = await service.store.read(
            lambda db: record_lists.list_voting_alike(db, id, congress, limit, cursor)
        )
        return alike
    if part == "similar":
        return await list_similar(service, source, id, limit)
    kind = filters.pop("kind", None)
    _refuse_filters(part, filters)
    pages: dict[str, Callable[[], Awaitable[Any]]] = {
        "actions": lambda: service.list_actions(id, limit, cursor),
        "amendments": lambda: service.list_amendments(id, limit, cursor),
        "cosponsors": lambda: service.list_cosponsors(id, limit, cursor),
        "links": lambda: service.list_links(source, id, parse_link_kind(kind), limit, cursor),
        "members": lambda: service.list_committee_members(id, congress, limit, cursor),
        "votes": lambda: service.list_member_votes(id, congress, limit, cursor),
        "witnesses": lambda: service.list_witnesses(id, limit, cursor),
    }
    return record_lists.convert_page(await pages[part](), source, id, part)


async def list_change_cards(service: Any, question: ListRecords) -> RecordList:
    filters = dict(question.filters or {})
    since, source, kind = (filters.pop(name, None) for name in ("since", "source", "kind"))
    _refuse_filters("changes", filters)
    asked = ChangesQuestion.model_validate({"since": since, "source": source, "kind": kind})
    page = await service.list_changes(
        asked.since, asked.source, asked.kind, question.limit, question.cursor
    )
    return RecordList(
        source=record_lists.CHANGES,
        results=[change.model_dump(exclude_none=True) for change in page.results],
        next_cursor=page.next_cursor,
        has_more=page.has_more,
    )


async def list_similar(service: Any, source: Source, id: str, limit: int) -> RecordList:
    """List records of the same source that are about the same, nearest first."""
    record = await service.store.read(lambda db: store.read_record(db, source, id))
    summary = (record.get("summary") or {}).get("text") or record.get("abstract") or ""
    query = f"{record['title']} {summary}"[:600]
    found = await service.search(
        Search.model_validate({"query": query, "source": source.name, "limit": limit + 1})
    )
    hits = [hit for hit in found.results if hit.id != id][:limit]
    return RecordList(
        source=source.name,
        results=[
            {"id": hit.id, "title": hit.title, "published_at": hit.published_at, "url": hit.url}
            for hit in hits
        ],
        total=len(hits),
        next_cursor=None,
        has_more=False,
        id=id,
        part="similar",
        loaded_up_to=record["loaded_up_to"],
        note=found.degraded.reason if found.degraded else None,
    )


def _refuse_filters(part: str, filters: Mapping[str, Any]) -> None:
    if filters:
        problem = f"{part} take no such filter"
        raise InvalidArguments(
            [{"field": f"filters.{name}", "message": problem} for name in filters]
        )


def parse_link_kind(kind: Any) -> LinkKind | None:
    """Return the kind of links that a filter names; raise InvalidArguments if there is none."""
    try:
        return LinkKind(kind) if kind is not None else None
    except ValueError as error:
        problem = f"there is no {str(kind)[:50]!r}; one of {', '.join(LinkKind)}"
        raise InvalidArguments([{"field": "filters.kind", "message": problem}]) from error

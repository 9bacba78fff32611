"""Lists for agents: records of a source, what belongs to one, what is new, what is alike.

Each function asks the service, whose lists it makes short.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import parse_filters, validate_filters
from readingroom.bases.federal.models import ChangesQuestion, ListRecords, RecordList, Search
from readingroom.bases.federal.schema.ids import FederalId
from readingroom.bases.federal.schema.records import LinkKind, SponsorKind
from readingroom.bases.federal.schema.sources import Source
from readingroom.core.errors import InvalidArguments, RecordNotFound, UnrecognizedId
from readingroom.core.imports import LazyModule
from readingroom.protocol.search import Fetched

if TYPE_CHECKING:
    from readingroom.bases.federal.query import cards, record_lists, texts
else:
    cards = LazyModule("readingroom.bases.federal.query.cards")
    record_lists = LazyModule("readingroom.bases.federal.query.record_lists")
    texts = LazyModule("readingroom.bases.federal.query.texts")


_FILTER_NAME_BY_PART = {
    "links": "kind",
    **dict.fromkeys(("members", "votes", "voted_alike"), "congress"),
}
"""What belongs to a record and can be narrowed, each with its filter."""
_MAX_CONGRESS, _MAX_LIMIT = 999, 200


async def list_source_cards(
    federal_service: Any, record_source: Source, arguments: ListRecords
) -> RecordList:
    sql_filter = parse_filters(record_source.record_table, arguments.filters)
    record_page = await federal_service.list_records(
        record_source, sql_filter, arguments.limit, arguments.cursor
    )
    return RecordList(
        source=record_source.name,
        results=[cards.make_card(listed_record) for listed_record in record_page.results],
        next_cursor=record_page.next_cursor,
        has_more=record_page.has_more,
        loaded_up_to=record_page.loaded_up_to,
        filters_read=record_page.filters_read,
        note=record_page.note,
    )


async def list_part_cards(
    federal_service: Any,
    record_source: Source,
    record_id: str,
    part_name: str,
    arguments: ListRecords,
) -> RecordList:
    page_size, cursor, filter_values = (
        arguments.limit,
        arguments.cursor,
        dict(arguments.filters or {}),
    )
    if part_name == "members" and record_source.name == "roll_call_votes":
        voter_list: RecordList = await federal_service.store.query(
            lambda db: record_lists.list_voters(db, record_id, arguments.filters, page_size, cursor)
        )
        return voter_list
    if part_name == "actions" and record_source.name == "committees":
        _refuse_other_filters(part_name, filter_values, "since", "until")
        committee_action_list: RecordList = await federal_service.store.query(
            lambda db: record_lists.list_committee_actions(
                db, record_id, filter_values, page_size, cursor
            )
        )
        return committee_action_list
    accepted_filter_name = _FILTER_NAME_BY_PART.get(part_name)
    _refuse_other_filters(part_name, filter_values, *filter(None, (accepted_filter_name,)))
    congress = _parse_congress(filter_values.get("congress"))
    if part_name == "voted_alike":
        voting_alike_list: RecordList = await federal_service.store.query(
            lambda db: record_lists.list_voting_alike(db, record_id, congress, page_size, cursor)
        )
        return voting_alike_list
    if part_name == "similar":
        return await list_similar_records(federal_service, record_source, record_id, page_size)
    if part_name == "links":
        link_kind = parse_link_kind(filter_values.get("kind"))
        return await list_link_cards(
            federal_service, record_source, record_id, link_kind, page_size, cursor
        )
    lister_by_part: dict[str, Callable[[], Awaitable[Any]]] = {
        "actions": lambda: federal_service.list_actions(record_id, page_size, cursor),
        "amendments": lambda: federal_service.list_amendments(record_id, page_size, cursor),
        "cosponsors": lambda: federal_service.list_cosponsors(record_id, page_size, cursor),
        "members": lambda: federal_service.list_committee_members(
            record_id, congress, page_size, cursor
        ),
        "votes": lambda: federal_service.list_member_votes(record_id, congress, page_size, cursor),
        "witnesses": lambda: federal_service.list_witnesses(record_id, page_size, cursor),
    }
    return record_lists.convert_page_to_cards(
        await lister_by_part[part_name](), record_source, record_id, part_name
    )


async def list_link_cards(
    federal_service: Any,
    record_source: Source,
    record_id: str,
    link_kind: LinkKind | SponsorKind | None,
    max_results: int,
    page_cursor: str | None = None,
) -> RecordList:
    """List a record's links, then its sponsors and cosponsors, with the evidence."""
    link_list: RecordList = await federal_service.store.query(
        lambda db: record_lists.list_link_cards(
            db, record_source, record_id, link_kind, max_results, page_cursor
        )
    )
    return link_list


async def list_change_cards(federal_service: Any, arguments: ListRecords) -> RecordList:
    if arguments.id is not None or arguments.part is not None:
        problem_text = "changes are of all records; leave `id` and `part` out"
        raise InvalidArguments([{"field": "id", "message": problem_text}])
    filter_values = dict(arguments.filters or {})
    _refuse_other_filters("changes", filter_values, *ChangesQuestion.model_fields)
    changes_question = validate_filters(ChangesQuestion, filter_values, "changes")
    change_page = await federal_service.list_changes(
        changes_question.since,
        changes_question.source,
        changes_question.kind,
        arguments.limit,
        arguments.cursor,
    )
    return RecordList(
        source=record_lists.CHANGES_LIST_NAME,
        results=[
            record_change.model_dump(exclude_none=True) for record_change in change_page.results
        ],
        next_cursor=change_page.next_cursor,
        has_more=change_page.has_more,
    )


async def list_similar_records(
    federal_service: Any, record_source: Source, record_id: str, max_results: int
) -> RecordList:
    """List records of the same source that are about the same, nearest first."""
    record_fields = await federal_service.store.query(
        lambda db: store.read_record(db, record_source, record_id)
    )
    summary_text = (
        (record_fields.get("summary") or {}).get("text") or record_fields.get("abstract") or ""
    )
    similarity_query = f"{record_fields['title']} {summary_text}"[:600]
    search_answer = await federal_service.search(
        Search.model_validate(
            {
                "query": similarity_query,
                "source": record_source.name,
                "limit": min(max_results + 1, _MAX_LIMIT),
            }
        )
    )
    hits = [hit for hit in search_answer.results if hit.id != record_id][:max_results]
    return RecordList(
        source=record_source.name,
        results=[
            {"id": hit.id, "title": hit.title, "published_at": hit.published_at, "url": hit.url}
            for hit in hits
        ],
        total=len(hits),
        next_cursor=None,
        has_more=False,
        id=record_id,
        part="similar",
        loaded_up_to=record_fields["loaded_up_to"],
        note=search_answer.degraded.reason if search_answer.degraded else None,
    )


def _refuse_other_filters(
    part_name: str, filter_values: Mapping[str, Any], *accepted_filter_names: str
) -> None:
    """Raise InvalidArguments for filters that a part does not take: none is passed over."""
    refused_filter_names = [
        filter_name for filter_name in filter_values if filter_name not in accepted_filter_names
    ]
    if refused_filter_names:
        accepted_names_text = (
            f", only {' and '.join(accepted_filter_names)}" if accepted_filter_names else ""
        )
        problem_text = f"{part_name} take no such filter{accepted_names_text}"
        raise InvalidArguments(
            [
                {"field": f"filters.{filter_name}", "message": problem_text}
                for filter_name in refused_filter_names
            ]
        )


def _parse_congress(written_congress: Any) -> int | None:
    if written_congress is None:
        return None
    is_number = isinstance(written_congress, int) and not isinstance(written_congress, bool)
    if is_number and 1 <= written_congress <= _MAX_CONGRESS:
        return int(written_congress)
    problem_text = f"{str(written_congress)[:50]!r} is no number of a Congress, such as 118"
    raise InvalidArguments([{"field": "filters.congress", "message": problem_text}])


def parse_link_kind(link_kind_name: Any) -> LinkKind | SponsorKind | None:
    """Return the kind of links that a filter names; raise InvalidArguments if there is none."""
    if link_kind_name is None:
        return None
    kind_by_name: dict[Any, LinkKind | SponsorKind] = {
        link_kind.value: link_kind for link_kind in (*LinkKind, *SponsorKind)
    }
    if not isinstance(link_kind_name, str) or link_kind_name not in kind_by_name:
        problem_text = f"there is no {str(link_kind_name)[:50]!r}; one of {', '.join(kind_by_name)}"
        raise InvalidArguments([{"field": "filters.kind", "message": problem_text}])
    return kind_by_name[link_kind_name]


async def fetch_address(federal_service: Any, list_address: str) -> Fetched:
    """Return what an address of this server has: a record, or a page of a list as lines."""
    url_parts = urlsplit(list_address.strip())
    query_params = dict(parse_qsl(url_parts.query))
    path_segments = url_parts.path.removeprefix("/v1/").strip("/").split("/")
    text_offset = (
        int(query_params.get("offset", "0")) if query_params.get("offset", "0").isdecimal() else 0
    )
    if path_segments == ["fetch"] and "id" in query_params:
        fetched_record: Fetched = await federal_service.fetch_record(
            query_params["id"], text_offset, query_params.get("section")
        )
        return fetched_record
    if len(path_segments) == 3 and path_segments[2] == "body":
        bill_text = await federal_service.read_bill_text(
            unquote(path_segments[1]),
            query_params.get("version"),
            text_offset,
            query_params.get("section"),
            query_params.get("compare_with"),
        )
        return texts.make_fetched_bill_text(bill_text)
    arguments = record_lists.parse_list_address(list_address)
    if arguments is None:
        if len(path_segments) == 2:
            record_at_address: Fetched = await federal_service.fetch_record(
                unquote(path_segments[1])
            )
            return record_at_address
        raise UnrecognizedId(f"{list_address[:200]!r} is no address of this server")
    record_list = await federal_service.list_cards(arguments)
    more_url = record_lists.format_list_address(arguments, record_list.next_cursor)
    return texts.make_fetched_list(url_parts.path, record_list, more_url)


def get_id_in_source(record_source: Source, parsed_id: FederalId) -> str:
    """Return the id of a record of a source; raise RecordNotFound for one of another source."""
    if parsed_id.source == record_source.name:
        return parsed_id.id
    if (parsed_id.source, record_source.name) == ("federal_register", "presidential_documents"):
        return f"presdoc:{parsed_id.id}"
    raise RecordNotFound(
        f"{parsed_id.id} is an id of {parsed_id.source}, not of {record_source.name}",
        source=parsed_id.source,
    )

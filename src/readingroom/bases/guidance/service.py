"""What the guidance base can do, with no word of MCP or HTTP in it."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from readingroom.bases.guidance.answers import (
    describe_error_kind,
    make_cache_state,
    make_page_answer,
    make_passage,
    make_passage_at,
    make_passage_of,
    make_source_fields,
    make_warnings,
)
from readingroom.bases.guidance.errors import (
    TAXONOMY,
    ContentOutOfScope,
    NotFoundOrRedirected,
)
from readingroom.bases.guidance.models import (
    Changes,
    ErrorTaxonomy,
    ForceRefresh,
    GetContentById,
    GetContentByPath,
    GetSourceMetadata,
    GuidanceQuoteCheck,
    Hit,
    PageContent,
    PageText,
    PassagesInPage,
    RecentChanges,
    Refreshed,
    SearchGuidance,
    SearchInPage,
    SearchResults,
    SourceMetadata,
    VerifyGuidanceQuote,
    make_guidance_id,
)
from readingroom.bases.guidance.pages.addresses import (
    PageAddress,
    names_publication,
    parse_address,
)
from readingroom.bases.guidance.pages.page import ORGANISATION, GovukPage
from readingroom.bases.guidance.pages.sections import (
    find_nearest,
    find_quotation,
    list_sections,
    search_blocks,
)
from readingroom.bases.guidance.pages.values import is_plain_path, make_website_url
from readingroom.bases.guidance.store import GovukStore
from readingroom.core import clock
from readingroom.core.errors import InvalidArguments
from readingroom.net.cache import CachedReply
from readingroom.net.errors import UpstreamParameterError, UpstreamRateLimited
from readingroom.net.limiter import Limiter
from readingroom.net.upstream import CallContext, QueryParams

# A short burst is smoothed out; a longer wait would hold the caller's connection.
MAX_RATE_WAIT_SECONDS = 1.0
"""Seconds that a call over its client's rate may wait before it is refused."""

# Without this list GOV.UK's search sends many fields that nobody here reads.
_SEARCH_FIELDS = (
    "content_id",
    "content_store_document_type",
    "description",
    "link",
    "public_timestamp",
    "title",
)

# The form of GOV.UK's own slugs: nothing else can match, or break out of a parameter.
_Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$")]
_Slugs = _Slug | Annotated[list[_Slug], Field(min_length=1, max_length=20)]


class _Filters(BaseModel):
    """The filters that a search accepts; any other is rejected by name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    organisation: _Slugs = ORGANISATION
    organisations: _Slugs = ORGANISATION
    format: _Slugs | None = None
    document_type: _Slugs | None = None
    public_timestamp_from: date | None = None
    public_timestamp_to: date | None = None


class GuidanceService:
    """Charity Commission guidance: its pages, searches over them, and their metadata."""

    def __init__(self, store: GovukStore, limiter: Limiter) -> None:
        self._store = store
        self._limiter = limiter

    async def read_page(
        self, question: GetContentByPath, context: CallContext
    ) -> PageContent | PageText:
        await self._check_rate(context)
        address, page, cached_reply = await self._get_page_at(question.path, context)
        return await anyio.to_thread.run_sync(
            make_page_answer, page, cached_reply, question, address.anchor
        )

    async def read_page_by_id(
        self, question: GetContentById, context: CallContext
    ) -> PageContent | PageText:
        """Return the page with this content id; raise `NotFoundOrRedirected` if there is none."""
        await self._check_rate(context)
        # The Content API knows paths only, so the search has to find the path of the id.
        params = [("filter_content_id", question.content_id), *_make_scope_params(10, 0)]
        response, _ = await self._store.search(params, context)
        # Translations share an id; theirs is the original's path and a suffix.
        path = min((hit.path for hit in _parse_hits(response) if hit.path), key=len, default=None)
        if path:
            page, cached_reply = await self._get_page(path, context)
            # The search index may lag behind, and still name a path that the page has left.
            if page.content.get("content_id") == question.content_id:
                return await anyio.to_thread.run_sync(
                    make_page_answer, page, cached_reply, question
                )
        raise NotFoundOrRedirected(
            f"The Charity Commission has no page with the id {question.content_id}",
            use_tool="search_guidance",
        )

    async def describe_source(
        self, question: GetSourceMetadata, context: CallContext
    ) -> SourceMetadata:
        await self._check_rate(context)
        _, page, cached_reply = await self._get_page_at(question.path, context)
        return SourceMetadata(
            **make_source_fields(page, cached_reply),
            last_updated=page.public_updated_at,
            first_published_at=page.first_published_at,
            organisations=page.organisations,
        )

    async def refresh_page(self, question: ForceRefresh, context: CallContext) -> Refreshed:
        """Fetch a page past the cache; where GOV.UK fails, keep the old copy and state its age."""
        await self._check_rate(context)
        # Read before the refresh, which replaces it.
        address = await self._resolve_address(question.path, context)
        previous_entry = await self._store.peek_page(address.path)
        page, cached_reply = await self._store.refresh_page(address.path, context)
        _check_scope(page)
        return Refreshed(
            refreshed=cached_reply.failure is None,
            timestamp=_format_timestamp(cached_reply.entry.fetched_at),
            changed=previous_entry.reply.body != cached_reply.reply.body
            if previous_entry
            else None,
            url=page.url,
            public_updated_at=page.public_updated_at,
            warnings=make_warnings(cached_reply),
        )

    async def search(self, question: SearchGuidance, context: CallContext) -> SearchResults:
        await self._check_rate(context)
        query = _clean_query(question.query)
        filters = _translate_filters(question.filters)
        params = [
            ("q", query),
            *filters,
            *_make_scope_params(question.page_size, _find_start(question)),
        ]
        if question.order == "newest":
            params.append(("order", "-public_timestamp"))
        response, cached_reply = await self._store.search(params, context)
        return SearchResults(
            **_make_paging_fields(response, cached_reply, question),
            query=query,
            searched={"organisation": ORGANISATION, **_group_by_name(filters)},
            results=_parse_hits(response),
        )

    async def search_page(self, question: SearchInPage, context: CallContext) -> PassagesInPage:
        """Return the passages of one page that have words of the query."""
        await self._check_rate(context)
        query = _clean_query(question.query)
        _, page, cached_reply = await self._get_page_at(question.path, context)

        def find_passages() -> PassagesInPage:
            sections = list_sections(page.text, page.anchors)
            blocks = search_blocks(page.text, sections, query)
            return PassagesInPage(
                **make_source_fields(page, cached_reply),
                query=query,
                total=len(blocks),
                passages=[
                    make_passage(page, block.text, block.start, block.section)
                    for block in blocks[: question.limit]
                ],
            )

        return await anyio.to_thread.run_sync(find_passages)

    async def verify_quote(
        self, question: VerifyGuidanceQuote, context: CallContext
    ) -> GuidanceQuoteCheck:
        """Return whether the words stand in the page, and where; else what is most like them."""
        await self._check_rate(context)
        _, page, cached_reply = await self._get_page_at(question.path, context)

        def check() -> GuidanceQuoteCheck:
            fields = {**make_source_fields(page, cached_reply), "quote": question.quote}
            offset = find_quotation(page.text, question.quote)
            if offset is None:
                block, similarity = find_nearest(page.text, question.quote)
                nearest = make_passage_of(page, block) if block else None
                return GuidanceQuoteCheck(
                    **fields,
                    verdict="not_found",
                    passage=None,
                    nearest=nearest,
                    similarity=similarity if nearest else None,
                )
            return GuidanceQuoteCheck(
                **fields,
                verdict="verified",
                passage=make_passage_at(page, offset),
                nearest=None,
                similarity=None,
            )

        return await anyio.to_thread.run_sync(check)

    async def list_changes(self, question: RecentChanges, context: CallContext) -> Changes:
        await self._check_rate(context)
        params = [
            ("filter_public_timestamp", f"from:{question.since}"),
            ("order", "-public_timestamp"),
            *_make_scope_params(question.page_size, _find_start(question)),
        ]
        response, cached_reply = await self._store.search(params, context)
        return Changes(
            **_make_paging_fields(response, cached_reply, question),
            since=question.since,
            changes=_parse_hits(response),
        )

    async def list_error_kinds(self, context: CallContext) -> ErrorTaxonomy:
        await self._check_rate(context)
        return ErrorTaxonomy(errors=[describe_error_kind(error) for error in TAXONOMY])

    async def _check_rate(self, context: CallContext) -> None:
        wait_seconds = await self._limiter.acquire(context.client, MAX_RATE_WAIT_SECONDS)
        if wait_seconds is not None:
            raise UpstreamRateLimited(
                "This client sends more requests than GOV.UK allows",
                retry_after=round(wait_seconds, 1),
            )

    async def _get_page_at(
        self, text: str, context: CallContext
    ) -> tuple[PageAddress, GovukPage, CachedReply]:
        """Return the page that an address names, with that address."""
        address = await self._resolve_address(text, context)
        return address, *await self._get_page(address.path, context)

    async def _resolve_address(self, text: str, context: CallContext) -> PageAddress:
        """Return the address with its path; raise `InvalidPath` or `NotFoundOrRedirected`."""
        address = parse_address(text)
        if address.cc_number is None:
            return address
        params = [("q", address.cc_number), *_make_scope_params(50, 0)]
        response, _ = await self._store.search(params, context)
        paths = [
            hit.path
            for hit in _parse_hits(response)
            if hit.path and names_publication(address.cc_number, hit.title, hit.path)
        ]
        if not paths:
            raise NotFoundOrRedirected(
                f"The Charity Commission has no publication {address.cc_number.upper()} that its "
                "search finds",
                use_tool="search_guidance",
            )
        # Parts of a publication are below it.
        return PageAddress(min(paths, key=len))

    async def _get_page(self, path: str, context: CallContext) -> tuple[GovukPage, CachedReply]:
        page, cached_reply = await self._store.read_page(path, context)
        _check_scope(page)
        return page, cached_reply


def _check_scope(page: GovukPage) -> None:
    if not page.is_in_scope:
        publishers = ", ".join(page.organisations[:5]) or "no organisation"
        raise ContentOutOfScope(
            f"{page.path} is published by {publishers}, not by the Charity Commission",
            url=page.url,
            use_tool="search_guidance",
        )


def _clean_query(query: str) -> str:
    """Return a query with single blanks; raise `InvalidArguments` where it has nothing else."""
    words = " ".join(query.split())
    if not words:
        raise InvalidArguments([{"field": "query", "message": "Give at least one word"}])
    return words


def _make_paging_fields(
    response: Mapping[str, Any], cached_reply: CachedReply, question: SearchGuidance | RecentChanges
) -> dict[str, Any]:
    total = response.get("total")
    # GOV.UK's answers are read with suspicion: a missing field must not fail the call.
    total = total if isinstance(total, int) else len(_parse_hits(response))
    has_more = _find_start(question) + question.page_size < total
    return {
        "total": total,
        "page": question.page,
        "page_size": question.page_size,
        "next_page": question.page + 1 if has_more else None,
        "cache": make_cache_state(cached_reply),
        "warnings": make_warnings(cached_reply),
    }


def _make_scope_params(result_count: int, start: int) -> list[tuple[str, str]]:
    """Return the parameters of every search, whatever the caller wants."""
    return [
        ("filter_organisations", ORGANISATION),
        ("count", str(result_count)),
        ("start", str(start)),
        *(("fields", name) for name in _SEARCH_FIELDS),
    ]


def _find_start(question: SearchGuidance | RecentChanges) -> int:
    return (question.page - 1) * question.page_size


def _translate_filters(given_filters: Mapping[str, Any]) -> QueryParams:
    """Return the caller's filters as GOV.UK names them; raise `UpstreamParameterError`."""
    try:
        # By way of JSON: strict mode takes a date from a JSON string, not from a Python one.
        filters = _Filters.model_validate_json(to_json(given_filters))
    except ValidationError as error:
        problems = InvalidArguments.from_validation_error(error).errors
        names = "; ".join(f"{problem['field']}: {problem['message']}" for problem in problems)
        raise UpstreamParameterError(
            f"These filters cannot be used: {names}", known_filters=sorted(_Filters.model_fields)
        ) from error
    for organisations in (filters.organisation, filters.organisations):
        if set(_as_list(organisations)) != {ORGANISATION}:
            raise UpstreamParameterError(
                f"Only guidance of {ORGANISATION} can be searched in this base",
                organisation=ORGANISATION,
            )
    return [
        *(("filter_format", name) for name in _as_list(filters.format)),
        *(("filter_content_store_document_type", name) for name in _as_list(filters.document_type)),
        *_format_period(filters.public_timestamp_from, filters.public_timestamp_to),
    ]


def _as_list(names: str | list[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else names


def _format_period(first_day: date | None, last_day: date | None) -> QueryParams:
    bounds = [f"{end}:{day}" for end, day in (("from", first_day), ("to", last_day)) if day]
    return [("filter_public_timestamp", ",".join(bounds))] if bounds else []


def _group_by_name(params: QueryParams) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in params:
        values.setdefault(name.removeprefix("filter_"), []).append(value)
    return values


def _parse_hits(response: Mapping[str, Any]) -> list[Hit]:
    results = response.get("results")
    hits = (
        _parse_hit(search_result)
        for search_result in results or []
        if isinstance(search_result, Mapping)
    )
    return [hit for hit in hits if hit is not None]


def _parse_hit(search_result: Mapping[str, Any]) -> Hit | None:
    """Return a search result as a hit; None where it has no title or no link to cite."""
    title, link = _get_text(search_result, "title"), _get_text(search_result, "link")
    url = make_website_url(link) if link else None
    if not title or not link or not url:
        return None
    # The search also returns pages of other sites, which only have an address.
    path = link if is_plain_path(link) else None
    return Hit(
        title=title,
        url=url,
        summary=_get_text(search_result, "description") or "",
        public_updated_at=_get_text(search_result, "public_timestamp"),
        path=path,
        id=make_guidance_id(path) if path else None,
        document_type=_get_text(search_result, "content_store_document_type"),
    )


def _get_text(search_result: Mapping[str, Any], name: str) -> str | None:
    value = search_result.get(name)
    return value if isinstance(value, str) and value else None


def _format_timestamp(unix_seconds: float) -> str:
    return clock.from_timestamp(unix_seconds).isoformat(timespec="seconds").replace("+00:00", "Z")

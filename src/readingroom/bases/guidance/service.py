"""What the guidance base can do, with no word of MCP or HTTP in it."""

import inspect
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from readingroom.bases.guidance.errors import (
    TAXONOMY,
    ContentOutOfScope,
    NotFoundOrRedirected,
    StaleCacheServed,
)
from readingroom.bases.guidance.models import (
    CacheState,
    Changes,
    ErrorKind,
    ErrorTaxonomy,
    ForceRefresh,
    GetContentById,
    GetContentByPath,
    GetSourceMetadata,
    Hit,
    PageContent,
    PageText,
    RecentChanges,
    Refreshed,
    SearchGuidance,
    SearchResults,
    SourceMetadata,
    Warned,
    make_guidance_id,
)
from readingroom.bases.guidance.pages.page import ORGANISATION, GovukPage
from readingroom.bases.guidance.pages.values import is_plain_path, make_website_url
from readingroom.bases.guidance.store import GovukStore
from readingroom.core import clock
from readingroom.core.errors import InvalidArguments, KnowledgeError
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
        page, cached_reply = await self._get_page(question.path, context)
        return _make_page_answer(page, cached_reply, question)

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
                return _make_page_answer(page, cached_reply, question)
        raise NotFoundOrRedirected(
            f"The Charity Commission has no page with the id {question.content_id}",
            use_tool="search_guidance",
        )

    async def describe_source(
        self, question: GetSourceMetadata, context: CallContext
    ) -> SourceMetadata:
        await self._check_rate(context)
        page, cached_reply = await self._get_page(question.path, context)
        return SourceMetadata(
            **_make_source_fields(page, cached_reply),
            last_updated=page.public_updated_at,
            first_published_at=page.first_published_at,
            organisations=page.organisations,
        )

    async def refresh_page(self, question: ForceRefresh, context: CallContext) -> Refreshed:
        """Fetch a page past the cache; where GOV.UK fails, keep the old copy and state its age."""
        await self._check_rate(context)
        # Read before the refresh, which replaces it.
        previous_entry = await self._store.peek_page(question.path)
        page, cached_reply = await self._store.refresh_page(question.path, context)
        _check_scope(page)
        return Refreshed(
            refreshed=cached_reply.failure is None,
            timestamp=_format_timestamp(cached_reply.entry.fetched_at),
            changed=previous_entry.reply.body != cached_reply.reply.body
            if previous_entry
            else None,
            url=page.url,
            public_updated_at=page.public_updated_at,
            warnings=_make_warnings(cached_reply),
        )

    async def search(self, question: SearchGuidance, context: CallContext) -> SearchResults:
        await self._check_rate(context)
        query = " ".join(question.query.split())
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
        return ErrorTaxonomy(errors=[_describe_error_kind(error) for error in TAXONOMY])

    async def _check_rate(self, context: CallContext) -> None:
        wait_seconds = await self._limiter.acquire(context.client, MAX_RATE_WAIT_SECONDS)
        if wait_seconds is not None:
            raise UpstreamRateLimited(
                "This client sends more requests than GOV.UK allows",
                retry_after=round(wait_seconds, 1),
            )

    async def _get_page(self, path: str, context: CallContext) -> tuple[GovukPage, CachedReply]:
        page, cached_reply = await self._store.read_page(path, context)
        _check_scope(page)
        return page, cached_reply


def _describe_error_kind(error: type[KnowledgeError]) -> ErrorKind:
    first_line = inspect.cleandoc(error.__doc__ or "").partition("\n")[0]
    return ErrorKind(code=error.code.upper(), description=first_line)


def _check_scope(page: GovukPage) -> None:
    if not page.is_in_scope:
        publishers = ", ".join(page.organisations[:5]) or "no organisation"
        raise ContentOutOfScope(
            f"{page.path} is published by {publishers}, not by the Charity Commission",
            url=page.url,
            use_tool="search_guidance",
        )


def _make_page_answer(
    page: GovukPage, cached_reply: CachedReply, question: GetContentByPath | GetContentById
) -> PageContent | PageText:
    """Return the part of a page that the question is for."""
    end = len(page.text) if question.max_chars is None else question.offset + question.max_chars
    fields = {
        **_make_source_fields(page, cached_reply),
        "public_updated_at": page.public_updated_at,
        "text": page.text[question.offset : end],
        "text_chars": len(page.text),
        "next_offset": end if end < len(page.text) else None,
        "documents": page.documents,
        "change_notes": page.change_notes,
    }
    if question.text_only:
        return PageText(**fields)
    return PageContent(**fields, content=dict(page.content))


def _make_source_fields(page: GovukPage, cached_reply: CachedReply) -> dict[str, Any]:
    """Return the fields that every answer about a page has."""
    return {
        "id": make_guidance_id(page.path),
        "url": page.url,
        "title": page.title,
        "citation": page.citation,
        "identifiers": page.identifiers,
        "locale": page.locale,
        "translations": page.translations,
        "withdrawn": page.withdrawn_notice is not None,
        "withdrawn_notice": page.withdrawn_notice,
        "cache": _make_cache_state(cached_reply),
        "warnings": _make_warnings(cached_reply),
    }


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
        "cache": _make_cache_state(cached_reply),
        "warnings": _make_warnings(cached_reply),
    }


def _make_cache_state(cached_reply: CachedReply) -> CacheState:
    return CacheState(
        hit=cached_reply.hit,
        age_s=round(cached_reply.age, 3),
        ttl_s=cached_reply.entry.ttl,
        stale=cached_reply.failure is not None,
    )


def _make_warnings(cached_reply: CachedReply) -> list[Warned]:
    if cached_reply.failure is None:
        return []
    message = (
        f"{_describe_error_kind(StaleCacheServed).description}: {cached_reply.failure.message}"
    )
    age = round(cached_reply.age, 3)
    return [Warned(code=StaleCacheServed.code.upper(), message=message, age_s=age)]


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

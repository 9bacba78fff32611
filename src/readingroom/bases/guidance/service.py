"""What the guidance base can do, with no word of MCP or HTTP in it."""

import inspect
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from readingroom.bases.guidance.errors import (
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
)
from readingroom.bases.guidance.page import ORGANISATION, Page, is_plain_path, website_url
from readingroom.bases.guidance.store import GovukStore
from readingroom.core import clock, ids
from readingroom.core.errors import Internal, InvalidArguments, KnowledgeError
from readingroom.net.cache import Cached
from readingroom.net.errors import GuidanceError, UpstreamParameterError, UpstreamRateLimited
from readingroom.net.limiter import Limiter
from readingroom.net.upstream import Errand, Params

PATIENCE_SECONDS = 1.0
"""How long a call over its client's rate waits before it is refused."""

_FIELDS = (
    "content_id",
    "content_store_document_type",
    "description",
    "link",
    "public_timestamp",
    "title",
)

_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$")]
_Names = _Name | Annotated[list[_Name], Field(min_length=1, max_length=20)]


class _Filters(BaseModel):
    """The filters a search may have; anything else is refused by name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    organisation: _Names = ORGANISATION
    organisations: _Names = ORGANISATION
    format: _Names | None = None
    document_type: _Names | None = None
    public_timestamp_from: date | None = None
    public_timestamp_to: date | None = None


class GuidanceService:
    """Charity Commission guidance: pages, searches, and what is known of each."""

    def __init__(self, store: GovukStore, limiter: Limiter) -> None:
        self._store = store
        self._limiter = limiter

    async def content(self, asked: GetContentByPath, errand: Errand) -> PageContent | PageText:
        await self._admit(errand)
        page, cached = await self._page(asked.path, errand)
        return _reading(page, cached, asked)

    async def content_by_id(self, asked: GetContentById, errand: Errand) -> PageContent | PageText:
        """The Content API knows paths only, so the search is asked for the path of the id."""
        await self._admit(errand)
        params = [("filter_content_id", asked.content_id), *_scope(10, 0)]
        found, _ = await self._store.search(params, errand)
        # Translations share an id; theirs is the original's path and a suffix.
        path = min((hit.path for hit in _hits(found) if hit.path), key=len, default=None)
        if path:
            page, cached = await self._page(path, errand)
            if page.content.get("content_id") == asked.content_id:
                return _reading(page, cached, asked)
        raise NotFoundOrRedirected(
            f"The Charity Commission has no page with the id {asked.content_id}",
            use_tool="search_guidance",
        )

    async def metadata(self, asked: GetSourceMetadata, errand: Errand) -> SourceMetadata:
        await self._admit(errand)
        page, cached = await self._page(asked.path, errand)
        return SourceMetadata(
            **_source(page, cached),
            last_updated=page.public_updated_at,
            first_published_at=page.first_published_at,
            organisations=page.organisations,
        )

    async def refresh(self, asked: ForceRefresh, errand: Errand) -> Refreshed:
        """Go past the cache. Where GOV.UK fails, say that the old copy stays, and how old it is."""
        await self._admit(errand)
        before = await self._store.held(asked.path)
        page, cached = await self._store.refresh(asked.path, errand)
        _check_scope(page)
        return Refreshed(
            refreshed=cached.failure is None,
            timestamp=_moment(cached.entry.fetched_at),
            changed=before.reply.body != cached.reply.body if before else None,
            url=page.url,
            public_updated_at=page.public_updated_at,
            warnings=_warnings(cached),
        )

    async def search(self, asked: SearchGuidance, errand: Errand) -> SearchResults:
        await self._admit(errand)
        query = " ".join(asked.query.split())
        filters = _filters(asked.filters)
        params = [("q", query), *filters, *_scope(asked.page_size, _start(asked))]
        if asked.order == "newest":
            params.append(("order", "-public_timestamp"))
        found, cached = await self._store.search(params, errand)
        return SearchResults(
            **_found(found, cached, asked),
            query=query,
            searched={"organisation": ORGANISATION, **_told(filters)},
            results=_hits(found),
        )

    async def changes(self, asked: RecentChanges, errand: Errand) -> Changes:
        await self._admit(errand)
        params = [
            ("filter_public_timestamp", f"from:{asked.since}"),
            ("order", "-public_timestamp"),
            *_scope(asked.page_size, _start(asked)),
        ]
        found, cached = await self._store.search(params, errand)
        return Changes(**_found(found, cached, asked), since=asked.since, changes=_hits(found))

    async def taxonomy(self, errand: Errand) -> ErrorTaxonomy:
        await self._admit(errand)
        return TAXONOMY

    async def _admit(self, errand: Errand) -> None:
        missing = await self._limiter.take(errand.client, PATIENCE_SECONDS)
        if missing is not None:
            raise UpstreamRateLimited(
                "This client asks more often than GOV.UK allows", retry_after=round(missing, 1)
            )

    async def _page(self, path: str, errand: Errand) -> tuple[Page, Cached]:
        page, cached = await self._store.page(path, errand)
        _check_scope(page)
        return page, cached


def _described(error: type[KnowledgeError]) -> ErrorKind:
    first_line = inspect.cleandoc(error.__doc__ or "").partition("\n")[0]
    return ErrorKind(code=error.code.upper(), description=first_line)


# The base's own errors, and the two that the server around it may tell in its place.
TAXONOMY = ErrorTaxonomy(
    errors=[
        _described(error) for error in (*GuidanceError.__subclasses__(), InvalidArguments, Internal)
    ]
)


def _check_scope(page: Page) -> None:
    if not page.in_scope:
        by = ", ".join(page.organisations[:5]) or "no organisation"
        raise ContentOutOfScope(
            f"{page.path} is published by {by}, not by the Charity Commission",
            url=page.url,
            use_tool="search_guidance",
        )


def _reading(
    page: Page, cached: Cached, asked: GetContentByPath | GetContentById
) -> PageContent | PageText:
    """As much of a page as was asked for."""
    end = len(page.text) if asked.max_chars is None else asked.offset + asked.max_chars
    fields = {
        **_source(page, cached),
        "public_updated_at": page.public_updated_at,
        "text": page.text[asked.offset : end],
        "text_chars": len(page.text),
        "next_offset": end if end < len(page.text) else None,
    }
    if asked.text_only:
        return PageText(**fields)
    return PageContent(**fields, content=dict(page.content))


def _source(page: Page, cached: Cached) -> dict[str, Any]:
    """What every answer about a page says of it."""
    return {
        "id": ids.guidance_id(page.path),
        "url": page.url,
        "title": page.title,
        "citation": page.citation,
        "identifiers": page.identifiers,
        "locale": page.locale,
        "translations": page.translations,
        "withdrawn": page.withdrawn_notice is not None,
        "withdrawn_notice": page.withdrawn_notice,
        "cache": _state(cached),
        "warnings": _warnings(cached),
    }


def _found(
    found: Mapping[str, Any], cached: Cached, asked: SearchGuidance | RecentChanges
) -> dict[str, Any]:
    total = found.get("total")
    total = total if isinstance(total, int) else len(_hits(found))
    more = _start(asked) + asked.page_size < total
    return {
        "total": total,
        "page": asked.page,
        "page_size": asked.page_size,
        "next_page": asked.page + 1 if more else None,
        "cache": _state(cached),
        "warnings": _warnings(cached),
    }


def _state(cached: Cached) -> CacheState:
    return CacheState(
        hit=cached.hit,
        age_s=round(cached.age, 3),
        ttl_s=cached.entry.ttl,
        stale=cached.failure is not None,
    )


def _warnings(cached: Cached) -> list[Warned]:
    if cached.failure is None:
        return []
    message = f"{_described(StaleCacheServed).description}: {cached.failure.message}"
    age = round(cached.age, 3)
    return [Warned(code=StaleCacheServed.code.upper(), message=message, age_s=age)]


def _scope(count: int, start: int) -> list[tuple[str, str]]:
    """What every search says, whatever the caller asked for."""
    return [
        ("filter_organisations", ORGANISATION),
        ("count", str(count)),
        ("start", str(start)),
        *(("fields", name) for name in _FIELDS),
    ]


def _start(asked: SearchGuidance | RecentChanges) -> int:
    return (asked.page - 1) * asked.page_size


def _filters(given: Mapping[str, Any]) -> Params:
    """The caller's filters in GOV.UK's words."""
    try:
        filters = _Filters.model_validate_json(to_json(given))
    except ValidationError as error:
        told = InvalidArguments.of(error).errors
        names = "; ".join(f"{one['field']}: {one['message']}" for one in told)
        raise UpstreamParameterError(
            f"These filters cannot be used: {names}", known_filters=sorted(_Filters.model_fields)
        ) from error
    for wanted in (filters.organisation, filters.organisations):
        if set(_listed(wanted)) != {ORGANISATION}:
            raise UpstreamParameterError(
                f"Only guidance of {ORGANISATION} can be searched here", organisation=ORGANISATION
            )
    return [
        *(("filter_format", name) for name in _listed(filters.format)),
        *(("filter_content_store_document_type", name) for name in _listed(filters.document_type)),
        *_period(filters.public_timestamp_from, filters.public_timestamp_to),
    ]


def _listed(names: str | list[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else names


def _period(first: date | None, last: date | None) -> Params:
    ends = [f"{end}:{day}" for end, day in (("from", first), ("to", last)) if day]
    return [("filter_public_timestamp", ",".join(ends))] if ends else []


def _told(params: Params) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for name, value in params:
        told.setdefault(name.removeprefix("filter_"), []).append(value)
    return told


def _hits(found: Mapping[str, Any]) -> list[Hit]:
    results = found.get("results")
    read = (_hit(one) for one in results or [] if isinstance(one, Mapping))
    return [hit for hit in read if hit is not None]


def _hit(result: Mapping[str, Any]) -> Hit | None:
    """A result as the contract has it; what has no title or no address cannot be cited."""
    title, link = _word(result, "title"), _word(result, "link")
    if not title or not link:
        return None
    path = link if is_plain_path(link) else None
    return Hit(
        title=title,
        url=website_url(link),
        summary=_word(result, "description") or "",
        public_updated_at=_word(result, "public_timestamp"),
        path=path,
        id=ids.guidance_id(path) if path else None,
        document_type=_word(result, "content_store_document_type"),
    )


def _word(result: Mapping[str, Any], name: str) -> str | None:
    value = result.get(name)
    return value if isinstance(value, str) and value else None


def _moment(seconds: float) -> str:
    return clock.moment(seconds).isoformat(timespec="seconds").replace("+00:00", "Z")

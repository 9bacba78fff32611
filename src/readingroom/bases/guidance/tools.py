"""The guidance base's tools, and the base itself as the server sees it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

from readingroom.bases.guidance.models import (
    ATTRIBUTION,
    DISCLAIMER,
    Changes,
    ErrorTaxonomy,
    ForceRefresh,
    GetContentById,
    GetContentByPath,
    GetErrorTaxonomy,
    GetSourceMetadata,
    PageContent,
    PageText,
    RecentChanges,
    Refreshed,
    SearchGuidance,
    SearchResults,
    SourceMetadata,
)
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.store import GovukStore, Lifetimes
from readingroom.net.cache import Cache, MemoryShelf, Shelf
from readingroom.net.limiter import Limiter, SlidingWindow
from readingroom.net.metrics import Meter
from readingroom.net.upstream import Errand, UpstreamClient
from readingroom.protocol.base import KnowledgeBase
from readingroom.protocol.errors import GuidanceDialect
from readingroom.protocol.tool import Call, Hints, Tool, tool

SCHEMA_VERSION = "1.0.0"
"""Of the tools' schemas, by SemVer: docs/governance.md says what a change asks for."""
_META = {"schemaVersion": SCHEMA_VERSION}
_live = partial(tool, hints=Hints(open_world=True), meta=_META)  # what asks GOV.UK


def open_guidance(
    base_url: str,
    *,
    timeout: float = 10.0,
    fresh: Lifetimes | None = None,
    stale_seconds: float = 86_400.0,
    per_second: int = 10,
    redis_url: str | None = None,
) -> KnowledgeBase:
    """Open the guidance base on a host; nothing is asked of it before the first call."""
    redis = None
    limiter: Limiter = SlidingWindow(per_second)
    shelf: Shelf = MemoryShelf()
    if redis_url:
        from readingroom.net.shared import SharedRedis, SharedShelf, SharedWindow

        redis = SharedRedis(redis_url)
        limiter, shelf = SharedWindow(redis, per_second), SharedShelf(redis)
    meter = Meter()
    client = UpstreamClient(base_url, limiter, meter, timeout=timeout)
    store = GovukStore(base_url, client, Cache(shelf, stale_seconds), meter, fresh or Lifetimes())
    service = GuidanceService(store, limiter)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await client.close()
            if redis:
                await redis.close()

    return KnowledgeBase(
        name="guidance",
        server_name="ccew-mcp",
        title="Charity Commission guidance",
        instructions=(
            "Guidance of the Charity Commission for England and Wales, read live from GOV.UK. Call "
            "search_guidance to find pages, then get_content_by_path with a result's path. Check "
            "`withdrawn` before you rely on a page, cite `citation` and `url`, and repeat the "
            "attribution and the disclaimer: this is guidance, not legal advice."
        ),
        dialect=GuidanceDialect(ATTRIBUTION, DISCLAIMER),
        tools=(*_reading(service), *_searching(service), *_checking(service)),
        service=service,
        running=running,
        collectors=meter.collectors,
    )


def _reading(service: GuidanceService) -> Iterable[Tool]:
    async def get_content_by_path(question: GetContentByPath, call: Call) -> PageContent | PageText:
        """Open and read a page of Charity Commission guidance whose GOV.UK path or address you know
        (`/guidance/…`, `/government/publications/…`, https://www.gov.uk/guidance/…). What does that
        page say? Gives the content item untouched and its text as Markdown, with the date of the
        last change and whether it was withdrawn; it reads no other organisation's pages. When you
        know only the topic use `search_guidance`. For its licence and dates without the text use
        `get_source_metadata`.
        """
        return await service.content(question, errand_of(call))

    async def get_content_by_id(question: GetContentById, call: Call) -> PageContent | PageText:
        """Open a page of Charity Commission guidance by its GOV.UK content_id, a UUID
        (`5f4bb9ab-7631-11e4-a3cb-005056011aef`): read the content item when you have the content id
        only, which survives when a page moves. With a path use `get_content_by_path`.
        """
        return await service.content_by_id(question, errand_of(call))

    yield _live(get_content_by_path, title="Read guidance by path")
    yield _live(get_content_by_id, title="Read guidance by id")


def _searching(service: GuidanceService) -> Iterable[Tool]:
    async def search_guidance(question: SearchGuidance, call: Call) -> SearchResults:
        """Find what the Charity Commission says on a question about a charity or its trustees: the
        rules and advice for charities in England and Wales. What must or may a charity do about
        registering, closing, trustees and their pay and liability, reserves, fundraising, accounts,
        audit and examination, the annual return, serious incidents, safeguarding, campaigning,
        conflicts of interest? Searches its guidance on GOV.UK by words, best match first; gives
        titles, summaries, dates and paths. To read a page use `get_content_by_path`.
        """
        return await service.search(question, errand_of(call))

    async def recent_changes(question: RecentChanges, call: Call) -> Changes:
        """List what is new for charities from the Charity Commission, the regulator. Which guidance
        pages on GOV.UK were published, updated or revised lately, since a day, this week or month?
        Gives the latest first; it says that a page changed, not what changed in it.
        """
        return await service.changes(question, errand_of(call))

    yield _live(search_guidance, title="Search guidance")
    yield _live(recent_changes, title="List recent changes")


def _checking(service: GuidanceService) -> Iterable[Tool]:
    async def get_source_metadata(question: GetSourceMetadata, call: Call) -> SourceMetadata:
        """Tell where a page of Charity Commission guidance (`/guidance/…`) is from, its provenance.
        Under which licence may we reuse it and whom to credit, who publishes it, how old is it,
        when was it first published and last updated? Gives address, content_id and other
        identifiers, and none of its text. For the text use `get_content_by_path`.
        """
        return await service.metadata(question, errand_of(call))

    async def force_refresh(question: ForceRefresh, call: Call) -> Refreshed:
        """Reload a page of guidance (`/guidance/…`) from GOV.UK right now, bypassing the cache,
        when the stored copy looks stale, old or outdated and you want the live, current version
        fetched again. It says whether the page changed and does not return the text. To read it
        afterwards use `get_content_by_path`.
        """
        return await service.refresh(question, errand_of(call))

    async def get_error_taxonomy(question: GetErrorTaxonomy, call: Call) -> ErrorTaxonomy:
        """List every error code that the charity guidance tools can return. What does an error or
        failure such as `UPSTREAM_TIMEOUT` mean, what can go wrong, how can a lookup in the charity
        service fail? It asks nothing of GOV.UK.
        """
        return await service.taxonomy(errand_of(call))

    yield _live(get_source_metadata, title="Tell where a page is from")
    yield _live(force_refresh, title="Fetch a page anew")
    yield tool(get_error_taxonomy, title="List error codes", meta=_META)


def errand_of(call: Call) -> Errand:
    """On whose behalf GOV.UK is asked; what is said of it goes to the call's log line."""
    call.facts["correlation_id"] = call.correlation_id
    if call.request_bytes is not None:
        call.facts["request_bytes"] = call.request_bytes
    return Errand(call.client, call.correlation_id, call.traceparent, call.facts)

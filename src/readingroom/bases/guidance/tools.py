"""The guidance base's tools, and `open_guidance_base`, which opens the base for the server."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio.to_thread

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
    GuidanceQuoteCheck,
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
)
from readingroom.bases.guidance.offline.answers import OfflineGuidance
from readingroom.bases.guidance.offline.library import GuidanceLibrary
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.bases.guidance.store import CacheLifetimes, GovukReader
from readingroom.core.settings import reveal_secret
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.net.cache import Cache, CacheBackend, MemoryCacheBackend
from readingroom.net.limiter import Limiter, SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import CallContext, UpstreamClient
from readingroom.protocol.errors import GuidanceDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Tool, ToolContext, ToolHints, make_tool

SCHEMA_VERSION = "1.1.0"
"""Semantic version of the tools' schemas; docs/governance.md says what a change requires."""
_TOOL_META = {"schemaVersion": SCHEMA_VERSION}
_make_upstream_tool = partial(
    make_tool, hints=ToolHints(open_world=True), meta=_TOOL_META
)  # tools that send requests to GOV.UK


def open_base(settings: GuidanceSettings) -> KnowledgeBase:
    """Open the guidance base as the settings say."""
    guidance_base = open_guidance_base(
        settings.govuk_base_url,
        timeout_seconds=settings.govuk_timeout_seconds,
        cache_lifetimes=CacheLifetimes(
            settings.cache_ttl_content_seconds, settings.cache_ttl_search_seconds
        ),
        stale_seconds=settings.cache_stale_seconds,
        requests_per_second=settings.rate_limit_per_second,
        redis_url=reveal_secret(settings.redis_url),
        offline_guidance=open_offline_guidance(settings),
    )
    return replace(guidance_base, leasable_passages=get_shared_embedder(settings).waiting_texts)


def open_offline_guidance(settings: GuidanceSettings) -> OfflineGuidance:
    """Return the offline copy of these settings; nothing is read or made before it is used."""
    return OfflineGuidance(
        GuidanceLibrary(settings.data / "guidance"),
        get_shared_embedder(settings),
        settings.guidance_offline_max_days,
    )


def open_guidance_base(
    base_url: str,
    *,
    timeout_seconds: float = 10.0,
    cache_lifetimes: CacheLifetimes | None = None,
    stale_seconds: float = 86_400.0,
    requests_per_second: int = 10,
    redis_url: str | None = None,
    offline_guidance: OfflineGuidance | None = None,
) -> KnowledgeBase:
    """Open the guidance base on a host; no request is sent before the first call."""
    redis_connection = None
    rate_limiter: Limiter = SlidingWindow(requests_per_second)
    cache_backend: CacheBackend = MemoryCacheBackend()
    if redis_url:
        # Imported here: most installations have no Redis, and its client is slow to load.
        from readingroom.net.shared import RedisCacheBackend, RedisConnection, RedisLimiter

        # With Redis, several processes share one cache and keep one limit together.
        redis_connection = RedisConnection(redis_url)
        rate_limiter, cache_backend = (
            RedisLimiter(redis_connection, requests_per_second),
            RedisCacheBackend(redis_connection),
        )
    upstream_metrics = UpstreamMetrics()
    upstream_client = UpstreamClient(
        base_url, rate_limiter, upstream_metrics, timeout_seconds=timeout_seconds
    )
    govuk_reader = GovukReader(
        base_url,
        upstream_client,
        Cache(cache_backend, stale_seconds),
        upstream_metrics,
        cache_lifetimes or CacheLifetimes(),
        rate_limiter,
    )
    guidance_service = GuidanceService(govuk_reader, rate_limiter, offline_guidance)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await upstream_client.close()
            if redis_connection:
                await redis_connection.close()
            if offline_guidance:
                await anyio.to_thread.run_sync(offline_guidance.close)

    return KnowledgeBase(
        name="guidance",
        server_name="ccew-mcp",
        title="Charity Commission guidance",
        instructions=(
            "Guidance of the Charity Commission for England and Wales, read live from GOV.UK. Call "
            "search_guidance to find pages, then get_content_by_path with a result's path. Check "
            "`withdrawn` before you rely on a page, cite `citation` and `url`, and repeat "
            "attribution and disclaimer: this is guidance, not legal advice."
        ),
        error_dialect=GuidanceDialect(ATTRIBUTION, DISCLAIMER),
        tools=(
            *_make_reading_tools(guidance_service),
            *_make_searching_tools(guidance_service),
            *_make_checking_tools(guidance_service),
        ),
        service=guidance_service,
        lifespan=lifespan,
        metric_collectors=(upstream_metrics,),
    )


def _make_reading_tools(guidance_service: GuidanceService) -> Iterable[Tool]:
    async def get_content_by_path(
        arguments: GetContentByPath, tool_context: ToolContext
    ) -> PageContent | PageText:
        """Open and read a page of Charity Commission guidance whose GOV.UK path or address you know
        (`/guidance/…`, `/government/publications/…`, https://www.gov.uk/guidance/…, CC3). What does
        that page say, or one section of it? Gives its text as Markdown (`text_only`, recommended)
        and the content item untouched, with the date of the last change and whether it was
        withdrawn; it reads no other organisation's pages. When you know only the topic use
        `search_guidance`. For its licence and dates without the text use `get_source_metadata`.
        """
        return await guidance_service.read_page(arguments, make_call_context(tool_context))

    async def get_content_by_id(
        arguments: GetContentById, tool_context: ToolContext
    ) -> PageContent | PageText:
        """Open a page of Charity Commission guidance by its GOV.UK content_id, a UUID
        (`5f4bb9ab-7631-11e4-a3cb-005056011aef`): read the content item when you have the content id
        only, which survives when a page moves. With a path use `get_content_by_path`.
        """
        return await guidance_service.read_page_by_id(arguments, make_call_context(tool_context))

    yield _make_upstream_tool(get_content_by_path, title="Read guidance by path")
    yield _make_upstream_tool(get_content_by_id, title="Read guidance by id")


def _make_searching_tools(guidance_service: GuidanceService) -> Iterable[Tool]:
    async def search_guidance(
        arguments: SearchGuidance, tool_context: ToolContext
    ) -> SearchResults:
        """Find what the Charity Commission says on a question about a charity or its trustees: the
        rules and advice for charities in England and Wales. What must or may a charity do about
        registering, closing, trustees and their pay and liability, reserves, fundraising, accounts,
        audit and examination, the annual return, serious incidents, safeguarding, campaigning,
        conflicts of interest? Searches its guidance on GOV.UK by words, best match first; gives
        titles, summaries, dates and paths; with `mode` offline or auto, passages of the offline
        copy. To read a page use `get_content_by_path`.
        """
        return await guidance_service.search(arguments, make_call_context(tool_context))

    async def recent_changes(arguments: RecentChanges, tool_context: ToolContext) -> Changes:
        """List what is new for charities from the Charity Commission, the regulator. Which guidance
        pages on GOV.UK were published, updated or revised lately, since a day, this week or month?
        Gives the latest first, with the note on the change where the offline copy has the page.
        """
        return await guidance_service.list_changes(arguments, make_call_context(tool_context))

    async def search_in_page(arguments: SearchInPage, tool_context: ToolContext) -> PassagesInPage:
        """Find the passages in one long page of Charity Commission guidance (`/guidance/…`, CC3)
        that speak of something: where in that page does it say this? Searches that page alone. To
        find pages use `search_guidance`; for a section by its heading use `get_content_by_path`.
        """
        return await guidance_service.search_page(arguments, make_call_context(tool_context))

    yield _make_upstream_tool(search_in_page, title="Search within a page")
    yield _make_upstream_tool(search_guidance, title="Search guidance")
    yield _make_upstream_tool(recent_changes, title="List recent changes")


def _make_checking_tools(guidance_service: GuidanceService) -> Iterable[Tool]:
    async def get_source_metadata(
        arguments: GetSourceMetadata, tool_context: ToolContext
    ) -> SourceMetadata:
        """Tell where a page of Charity Commission guidance (`/guidance/…`) is from, its provenance.
        Under which licence may we reuse it and whom to credit, who publishes it, how old is it,
        when was it first published and last updated? Gives address, content_id and other
        identifiers, and none of its text. For the text use `get_content_by_path`.
        """
        return await guidance_service.get_source_metadata(
            arguments, make_call_context(tool_context)
        )

    async def force_refresh(arguments: ForceRefresh, tool_context: ToolContext) -> Refreshed:
        """Reload a page of guidance (`/guidance/…`) from GOV.UK right now, bypassing the cache,
        when the stored copy looks stale, old or outdated and you want the live, current version
        fetched again. It says whether the page changed and does not return the text. To read it
        afterwards use `get_content_by_path`.
        """
        return await guidance_service.refresh_page(arguments, make_call_context(tool_context))

    async def verify_guidance_quote(
        arguments: VerifyGuidanceQuote, tool_context: ToolContext
    ) -> GuidanceQuoteCheck:
        """Check before printing it that a quotation stands word for word in a page of Charity
        Commission guidance (`/guidance/…`, CC3). Gives the passage, or the nearest one where the
        words stand nowhere. It checks no planning policy.
        """
        return await guidance_service.verify_quote(arguments, make_call_context(tool_context))

    yield _make_upstream_tool(verify_guidance_quote, title="Check a quotation from guidance")

    async def get_error_taxonomy(
        arguments: GetErrorTaxonomy, tool_context: ToolContext
    ) -> ErrorTaxonomy:
        """List every error code that the charity guidance tools can return. What does an error or
        failure such as `UPSTREAM_TIMEOUT` mean, what can go wrong, how can a lookup in the charity
        service fail? It asks nothing of GOV.UK.
        """
        return await guidance_service.list_error_kinds(make_call_context(tool_context))

    yield _make_upstream_tool(get_source_metadata, title="Tell where a page is from")
    yield _make_upstream_tool(force_refresh, title="Fetch a page anew")
    yield make_tool(get_error_taxonomy, title="List error codes", meta=_TOOL_META)


def make_call_context(tool_context: ToolContext) -> CallContext:
    """Return the context of requests to GOV.UK; its facts go into the call's log line."""
    tool_context.log_facts["correlation_id"] = tool_context.correlation_id
    if tool_context.request_bytes is not None:
        tool_context.log_facts["request_bytes"] = tool_context.request_bytes
    return CallContext(
        tool_context.client,
        tool_context.correlation_id,
        tool_context.trace_headers,
        tool_context.log_facts,
    )

"""Reads GOV.UK's Content API and Search API through the cache."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio.to_thread
from pydantic_core import from_json

from readingroom.bases.guidance.errors import NotFoundOrRedirected
from readingroom.bases.guidance.pages.markdown import convert_to_markdown
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.values import WEBSITE_URL, is_plain_path
from readingroom.core.lru import LRUCache
from readingroom.net.breaker import BreakerState
from readingroom.net.cache import Cache, CacheEntry, Reply, ServedReply, StoredVersion
from readingroom.net.errors import InvalidPath, UpstreamRateLimited, UpstreamUnavailable
from readingroom.net.limiter import Limiter
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import CallContext, QueryParams, Request, UpstreamClient

# A short burst is smoothed out; a longer wait would hold the caller's connection.
MAX_RATE_WAIT_SECONDS = 1.0
"""Seconds that a call over its client's rate may wait before it is refused."""

_CONTENT_API_PATH = "/api/content"
_SEARCH_API_PATH = "/api/search.json"
_MAX_PARSED_PAGES_BYTES = 64_000_000  # stored parsed, so that a popular page is parsed once
_PARSED_JSON_FACTOR = 5  # an item takes up to this many times more memory than its JSON


_MAX_KEPT_COPIES = 500


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A page that was read here, and how long the cache's copy of it counts as fresh."""

    path: str
    title: str
    public_updated_at: str | None
    is_withdrawn: bool
    fetched_at: float
    ttl_seconds: float


@dataclass(frozen=True, slots=True)
class CacheLifetimes:
    """Seconds for which answers are fresh."""

    content_seconds: float = 60.0
    search_seconds: float = 30.0


class GovukReader:
    """Access to GOV.UK's pages and its search."""

    def __init__(
        self,
        base_url: str,
        upstream_client: UpstreamClient,
        reply_cache: Cache,
        upstream_metrics: UpstreamMetrics,
        cache_lifetimes: CacheLifetimes,
        caller_limiter: Limiter | None = None,
    ) -> None:
        """`caller_limiter` bounds what one caller may have fetched; what is cached is free."""
        self._base_url = base_url
        self._caller_limiter = caller_limiter
        self._client = upstream_client
        self._cache = reply_cache
        self._metrics = upstream_metrics
        self._lifetimes = cache_lifetimes
        self._parsed_pages: LRUCache[tuple[str, bytes], GovukPage] = LRUCache(
            _MAX_PARSED_PAGES_BYTES, _estimate_page_bytes
        )
        self._kept_copies: LRUCache[str, KeptCopy] = LRUCache(_MAX_KEPT_COPIES)

    async def read_page(
        self, page_path: str, call_context: CallContext
    ) -> tuple[GovukPage, ServedReply]:
        """Return the page at a path; raise `NotFoundOrRedirected` or `InvalidPath`."""
        request = Request("content", _make_content_api_path(page_path))
        govuk_reply = await self._read_reply(request, self._lifetimes.content_seconds, call_context)
        govuk_page = await self._parse_page(page_path, govuk_reply)
        self._remember_copy(page_path, govuk_page, govuk_reply)
        return govuk_page, govuk_reply

    async def refresh_page(
        self, page_path: str, call_context: CallContext
    ) -> tuple[GovukPage, ServedReply]:
        """Return the page at a path, fetched anew from GOV.UK."""
        request = Request("content", _make_content_api_path(page_path), bypass_caches=True)

        async def fetch_from_govuk(stored_version: StoredVersion) -> Reply | None:
            await self._wait_for_caller_turn(call_context)
            return await self._client.send_get(request, call_context)

        started_at = time.perf_counter()
        govuk_reply = await self._cache.fetch_fresh_reply(
            self._make_cache_key(request), self._lifetimes.content_seconds, fetch_from_govuk
        )
        self._record_read(request, govuk_reply, call_context, started_at)
        govuk_page = await self._parse_page(page_path, govuk_reply)
        self._remember_copy(page_path, govuk_page, govuk_reply)
        return govuk_page, govuk_reply

    def list_kept_copies(self) -> list[KeptCopy]:
        """Return the pages that were read by this process, the most recently read first."""
        return self._kept_copies.list_values()

    def describe_outage(self) -> str:
        """Return when GOV.UK is asked again after it kept failing; empty while it answers."""
        circuit_breaker = self._client.breaker
        if circuit_breaker.state is BreakerState.CLOSED:
            return ""
        return f"GOV.UK keeps failing; it is asked again in {circuit_breaker.wait_seconds:.0f} s"

    def _remember_copy(
        self, page_path: str, govuk_page: GovukPage, govuk_reply: ServedReply
    ) -> None:
        cache_entry = govuk_reply.entry
        self._kept_copies.put(
            page_path,
            KeptCopy(
                page_path,
                govuk_page.title or page_path,
                govuk_page.public_updated_at,
                govuk_page.withdrawn_notice is not None,
                cache_entry.fetched_at,
                cache_entry.ttl_seconds,
            ),
        )

    async def peek_cache_entry(self, page_path: str) -> CacheEntry | None:
        """Return the cache's entry of a page, fresh or not; nothing is fetched."""
        return await self._cache.peek_entry(
            self._make_cache_key(Request("content", _make_content_api_path(page_path)))
        )

    async def search_govuk(
        self, query_params: QueryParams, call_context: CallContext
    ) -> tuple[Mapping[str, Any], ServedReply]:
        """Return GOV.UK's answer to a search, as it came."""
        # Sorted, so that the same search in another order is found in the cache.
        request = Request("search", _SEARCH_API_PATH, tuple(sorted(query_params)))
        govuk_reply = await self._read_reply(request, self._lifetimes.search_seconds, call_context)
        if govuk_reply.reply.status != 200:
            raise UpstreamUnavailable("GOV.UK's search does not answer at its usual address")
        search_response = await anyio.to_thread.run_sync(from_json, govuk_reply.reply.body)
        return search_response, govuk_reply

    async def _read_reply(
        self, request: Request, ttl_seconds: float, call_context: CallContext
    ) -> ServedReply:
        async def fetch_from_govuk(stored_version: StoredVersion) -> Reply | None:
            await self._wait_for_caller_turn(call_context)
            # With a stale copy at hand, it is better to fail at once than to retry.
            conditional_request = replace(
                request, etag=stored_version.etag, fail_fast=stored_version.is_served_if_fetch_fails
            )
            return await self._client.send_get(conditional_request, call_context)

        started_at = time.perf_counter()
        govuk_reply = await self._cache.get_reply(
            self._make_cache_key(request), ttl_seconds, fetch_from_govuk
        )
        self._record_read(request, govuk_reply, call_context, started_at)
        return govuk_reply

    async def _wait_for_caller_turn(self, call_context: CallContext) -> None:
        if self._caller_limiter:
            await wait_for_caller_turn(self._caller_limiter, call_context)

    def _make_cache_key(self, request: Request) -> str:
        return f"{self._base_url}{request.path}?{urlencode(request.params)}"

    def _record_read(
        self,
        request: Request,
        govuk_reply: ServedReply,
        call_context: CallContext,
        started_at: float,
    ) -> None:
        self._metrics.observe_read(
            request.endpoint, govuk_reply.outcome, time.perf_counter() - started_at
        )
        call_context.log_facts["cache"] = govuk_reply.outcome

    async def _parse_page(self, page_path: str, govuk_reply: ServedReply) -> GovukPage:
        """Return the page of a reply, parsed once for as long as its bytes stay the same."""
        # The bytes are in the key: a revalidated page has the same ones, and a changed one others.
        # So is the path, by which a page is cited whose own is none.
        cache_key = (page_path, govuk_reply.reply.body)
        govuk_page = self._parsed_pages.get(cache_key) if govuk_reply.reply.status == 200 else None
        if govuk_page is None:
            govuk_page = await anyio.to_thread.run_sync(_parse_reply, page_path, govuk_reply.reply)
            self._parsed_pages.put(cache_key, govuk_page)
        return govuk_page


async def wait_for_caller_turn(rate_limiter: Limiter, call_context: CallContext) -> None:
    """Wait for the caller's turn; raise `UpstreamRateLimited` where that would take too long."""
    wait_seconds = await rate_limiter.acquire_turn(call_context.client, MAX_RATE_WAIT_SECONDS)
    if wait_seconds is not None:
        raise UpstreamRateLimited(
            "This server's own limit: one client may have only so many pages fetched from GOV.UK "
            "in a second",
            retry_after=round(wait_seconds, 1),
        )


def _estimate_page_bytes(path_and_body: tuple[str, bytes], govuk_page: GovukPage) -> int:
    """Return about how many bytes of memory a parsed page takes."""
    _, raw_body = path_and_body
    return len(raw_body) * (1 + _PARSED_JSON_FACTOR) + sys.getsizeof(govuk_page.text)


def _make_content_api_path(page_path: str) -> str:
    if not is_plain_path(page_path):
        raise InvalidPath(f"{page_path[:100]!r} is not the plain path of a GOV.UK page")
    return _CONTENT_API_PATH + page_path


def _parse_reply(page_path: str, upstream_reply: Reply) -> GovukPage:
    """Return the page that a reply holds; raise `NotFoundOrRedirected` where it holds none."""
    if upstream_reply.status == 200:
        govuk_page = GovukPage(from_json(upstream_reply.body), page_path)
        if govuk_page.content.get("schema_name") == "redirect":
            raise _make_moved_error(
                page_path, _find_redirect_target(page_path, govuk_page.content.get("redirects"))
            )
        if govuk_page.content.get("schema_name") == "gone":
            raise _make_gone_error(page_path, govuk_page.content)
        _ = govuk_page.text  # computed here, in a worker thread, instead of in the event loop
        return govuk_page
    if upstream_reply.status == 410:
        raise _make_gone_error(page_path, _parse_json_object(upstream_reply.body))
    if upstream_reply.location is not None:
        raise _make_moved_error(page_path, _parse_location(upstream_reply.location))
    raise NotFoundOrRedirected(f"GOV.UK has no page at {page_path}", use_tool="search_guidance")


def _make_moved_error(page_path: str, new_location: str | None) -> NotFoundOrRedirected:
    if new_location is None:
        return NotFoundOrRedirected(f"{page_path} was moved, and GOV.UK does not say where")
    hint_fields = {"redirected_to": new_location}
    if is_plain_path(new_location):
        hint_fields["use_tool"] = "get_content_by_path"
    return NotFoundOrRedirected(f"{page_path} was moved to {new_location}", **hint_fields)


def _make_gone_error(page_path: str, gone_item: Mapping[str, Any]) -> NotFoundOrRedirected:
    gone_details = gone_item.get("details")
    gone_details = gone_details if isinstance(gone_details, Mapping) else {}
    hint_fields = {}
    if gone_details.get("explanation"):
        hint_fields["explanation"] = convert_to_markdown(
            str(gone_details["explanation"]), WEBSITE_URL
        )
    if gone_details.get("alternative_path"):
        hint_fields["alternative_path"] = str(gone_details["alternative_path"])
    return NotFoundOrRedirected(f"The page at {page_path} was taken down", **hint_fields)


def _parse_location(location_header: str) -> str | None:
    """Return the target of a Location header: a path on GOV.UK, or the full URL of another site."""
    try:
        url_parts = urlsplit(location_header)
    except ValueError:
        return None
    # The Content API redirects within itself, under its own prefix.
    is_other_site = url_parts.netloc not in ("", urlsplit(WEBSITE_URL).netloc)
    if is_other_site and not url_parts.path.startswith(_CONTENT_API_PATH):
        return location_header
    target_path = url_parts.path.removeprefix(_CONTENT_API_PATH)
    return target_path if is_plain_path(target_path) else None


def _find_redirect_target(page_path: str, redirect_rules: Any) -> str | None:
    """Return where a redirect item sends this path, by the longest rule that matches."""
    matching_rules = [
        redirect_rule
        for redirect_rule in _select_valid_rules(redirect_rules)
        if _is_rule_for_path(redirect_rule, page_path)
    ]
    if not matching_rules:
        return None
    # GOV.UK's router prefers the longest rule, so a prefix gives way to an exact path.
    longest_rule = max(matching_rules, key=lambda redirect_rule: len(str(redirect_rule["path"])))
    redirect_target = str(longest_rule["destination"])
    if (
        longest_rule.get("type") == "prefix"
        and longest_rule.get("segments_mode", "preserve") == "preserve"
    ):
        redirect_target += page_path.removeprefix(str(longest_rule["path"]))
    return redirect_target


def _select_valid_rules(redirect_rules: Any) -> Sequence[Mapping[str, Any]]:
    return [
        redirect_rule
        for redirect_rule in (redirect_rules if isinstance(redirect_rules, list) else [])
        if isinstance(redirect_rule, Mapping)
        and redirect_rule.get("path")
        and redirect_rule.get("destination")
    ]


def _is_rule_for_path(redirect_rule: Mapping[str, Any], page_path: str) -> bool:
    rule_path = str(redirect_rule["path"])
    return page_path == rule_path or (
        redirect_rule.get("type") == "prefix" and page_path.startswith(f"{rule_path}/")
    )


def _parse_json_object(raw_body: bytes) -> Mapping[str, Any]:
    try:
        json_document = from_json(raw_body)
    except ValueError:
        return {}
    return json_document if isinstance(json_document, dict) else {}

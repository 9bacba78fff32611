"""Client of one fixed host: a budget of requests, retries with backoff, a circuit breaker.

A definitive answer comes back as a `Reply`. A passing failure (a timeout, a 5xx, a 429, JSON cut
short) is retried while the deadline allows, then raised.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import anyio
from pydantic_core import from_json

from readingroom.core.imports import LazyModule
from readingroom.core.lru import LRUCache
from readingroom.net.breaker import BreakerState, CircuitBreaker
from readingroom.net.cache import Reply
from readingroom.net.errors import (
    InvalidPath,
    UpstreamError,
    UpstreamParameterError,
    UpstreamRateLimited,
    UpstreamUnavailable,
)
from readingroom.net.http import (
    MAX_RETRY_AFTER_SECONDS,
    RetryPolicy,
    TransientError,
    make_async_client,
    parse_retry_after,
    retry_async,
)
from readingroom.net.limiter import Limiter
from readingroom.net.metrics import UpstreamMetrics

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = LazyModule("httpx2")

logger = logging.getLogger("readingroom.net")

MAX_BODY_BYTES = 5 * 1024 * 1024
FAIL_FAST_TIMEOUT_SECONDS = 2.0
BODY_PREVIEW_BYTES = 4096
_MAX_FAILING_PAGES = 1000  # beyond this the page unseen for longest is forgotten

# Statuses that the next attempt would get again. Redirects are for the caller to follow.
_DEFINITIVE_STATUSES = {200, 301, 302, 303, 307, 308, 404, 410}

QueryParams = Sequence[tuple[str, str]]


@dataclass(slots=True)
class CallContext:
    """The caller on whose behalf a request is sent, and the facts about it for the log."""

    client: str
    correlation_id: str
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers that make a request part of the caller's trace, where there is one."""
    log_facts: dict[str, Any] = field(default_factory=dict)

    def record_request_duration(self, duration_ms: float) -> None:
        """Add one upstream request to the facts."""
        self.log_facts["upstream_requests"] = self.log_facts.get("upstream_requests", 0) + 1
        total_milliseconds = self.log_facts.get("upstream_ms", 0.0) + duration_ms
        self.log_facts["upstream_ms"] = round(total_milliseconds, 3)


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request, and the endpoint under which it is counted."""

    endpoint: str
    path: str
    params: QueryParams = ()
    etag: str | None = None
    bypass_caches: bool = False
    """Ask caches on the way to revalidate too."""
    fail_fast: bool = False
    """Try once and briefly: the caller has an older copy to serve."""


class _FailedAttempt(TransientError):
    """An attempt that may be repeated, and the error to raise when it is not."""

    def __init__(
        self, outcome_name: str, error: UpstreamError, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(outcome_name, retry_after_seconds)
        self.outcome = outcome_name
        self.error = error


class UpstreamClient:
    """One host, one connection pool, one budget."""

    def __init__(
        self,
        base_url: str,
        rate_limiter: Limiter,
        upstream_metrics: UpstreamMetrics,
        *,
        timeout_seconds: float = 10.0,
        circuit_breaker: CircuitBreaker | None = None,
        read_clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        draw_jitter: Callable[[], float] = random.random,
    ) -> None:
        self.breaker = circuit_breaker or CircuitBreaker()
        self._host_url = base_url
        self._limiter = rate_limiter
        self._metrics = upstream_metrics
        self._timeout = timeout_seconds
        self._get_now = read_clock
        self._sleep = sleep
        self._retry_policy = RetryPolicy(
            max_attempts=4,
            first_wait_seconds=0.2,
            max_wait_seconds=MAX_RETRY_AFTER_SECONDS,
            draw_jitter=draw_jitter,
        )
        self._resume_at = 0.0
        # A page that fails is no host that fails: each has its own breaker, and the host's counts
        # different pages.
        self._page_breakers: LRUCache[str, CircuitBreaker] = LRUCache(_MAX_FAILING_PAGES)
        self._failing_paths: set[str] = set()
        upstream_metrics.watch_breaker(lambda: self.breaker.state is not BreakerState.CLOSED)

    async def close(self) -> None:
        # Asking for the property would make a client in order to close it.
        if "_http_client" in self.__dict__:
            await self._http_client.aclose()

    @cached_property
    def _base_url(self) -> httpx2.URL:
        return httpx2.URL(self._host_url)

    @cached_property
    def _http_client(self) -> httpx2.AsyncClient:
        # Made when first needed: loading the certificates takes a while.
        return make_async_client(
            timeout=self._timeout, extra_headers={"Accept": "application/json"}
        )

    async def send_get(self, request: Request, call_context: CallContext) -> Reply | None:
        """Return the host's answer; None when it has not changed since `request.etag`.

        Raise `UpstreamUnavailable` or `UpstreamRateLimited` when no attempt succeeds in time, and
        `UpstreamParameterError` when the host rejects the parameters.
        """
        url = self._build_url(request)
        timeout_seconds = (
            min(self._timeout, FAIL_FAST_TIMEOUT_SECONDS) if request.fail_fast else self._timeout
        )
        deadline_at = self._get_now() + timeout_seconds
        retry_policy = (
            replace(self._retry_policy, max_attempts=1) if request.fail_fast else self._retry_policy
        )

        async def attempt_request() -> Reply | None:
            # Checked before and after the wait: nobody queues for a host that is not asked, and
            # only who sends a request takes the breaker's probe.
            self._raise_unless_allowed(self.breaker.would_allow_request, request.path)
            await self._wait_for_budget(deadline_at)
            self._raise_unless_allowed(self.breaker.allow_request, request.path)
            return await self._send_attempt(request, url, call_context, deadline_at)

        try:
            return await retry_async(
                attempt_request,
                retry_policy,
                deadline_at=deadline_at,
                read_clock=self._get_now,
                sleep=self._sleep,
            )
        except _FailedAttempt as failure:
            raise failure.error from failure

    def _build_url(self, request: Request) -> httpx2.URL:
        """Return the URL; raise `InvalidPath` where the path would lead to another host or page."""
        # `join` follows `..` and `//host`, so what it returns is compared with what was asked for.
        url = self._base_url.join(request.path)
        is_below_base = (url.scheme, url.netloc, url.path) == (
            self._base_url.scheme,
            self._base_url.netloc,
            request.path,
        )
        if not is_below_base or url.query or url.fragment:
            raise InvalidPath("The path would lead away from the page that it names")
        return url.copy_with(query=urlencode(request.params).encode()) if request.params else url

    def _raise_unless_allowed(self, check_breaker: Callable[[], bool], url_path: str) -> None:
        """Raise while the host wants to be left alone, or it or this page keeps failing."""
        page_breaker = self._page_breakers.get(url_path)
        if page_breaker and not page_breaker.would_allow_request():
            raise UpstreamUnavailable(
                "GOV.UK keeps failing for this page, so it is not asked for it for a while",
                retry_after=round(page_breaker.wait_seconds, 1),
            )
        pause_seconds = self._resume_at - self._get_now()
        if pause_seconds > 0:
            raise UpstreamRateLimited(
                "GOV.UK asked us to slow down", retry_after=round(pause_seconds, 1)
            )
        if not check_breaker():
            raise UpstreamUnavailable(
                "GOV.UK keeps failing, so no request is sent to it for a while",
                retry_after=round(self.breaker.wait_seconds, 1),
            )

    async def _wait_for_budget(self, deadline_at: float) -> None:
        """Wait until the budget allows one more request; raise when that would take too long."""
        max_wait_seconds = max(0.0, deadline_at - self._get_now())
        wait_seconds = await self._limiter.acquire_turn(f"to {self._base_url}", max_wait_seconds)
        if wait_seconds is not None:
            raise _make_rate_limit_error(wait_seconds)

    async def _wait_for_rate_limit(self, deadline_at: float) -> None:
        """Wait until one more request may leave now; raise when that would take too long.

        Those who had their turn may have waited for a connection since, and would leave together.
        """
        # Never a turn in the future: who sleeps too long would use another second's.
        while wait_seconds := await self._limiter.acquire_turn(f"sent to {self._base_url}", 0.0):
            if self._get_now() + wait_seconds > deadline_at:
                raise _make_rate_limit_error(wait_seconds)
            await self._sleep(wait_seconds)

    async def _send_attempt(
        self, request: Request, url: httpx2.URL, call_context: CallContext, deadline_at: float
    ) -> Reply | None:
        started_at = time.perf_counter()
        attempt_outcome, body_byte_count = "cancelled", 0
        try:
            with anyio.fail_after(max(0.001, deadline_at - self._get_now())):
                response, response_body = await self._send_request(
                    request, url, call_context, deadline_at
                )
            body_byte_count = len(response_body)
            upstream_reply = self._interpret_response(request, response, response_body)
            attempt_outcome = "unchanged" if upstream_reply is None else str(response.status_code)
            return upstream_reply
        except _FailedAttempt as failure:
            attempt_outcome = failure.outcome
            raise
        except (TimeoutError, httpx2.TimeoutException) as failure:
            attempt_outcome = "timeout"
            upstream_error = UpstreamUnavailable("GOV.UK did not answer in time")
            raise _FailedAttempt(attempt_outcome, upstream_error) from failure
        except httpx2.HTTPError as failure:
            attempt_outcome = "unreachable"
            raise _FailedAttempt(
                attempt_outcome, UpstreamUnavailable("GOV.UK cannot be reached")
            ) from failure
        except UpstreamError as failure:
            attempt_outcome = failure.code
            raise
        finally:
            self._update_breakers(attempt_outcome, request.path)
            self._record_attempt(
                request,
                call_context,
                attempt_outcome,
                body_byte_count,
                time.perf_counter() - started_at,
            )

    async def _send_request(
        self, request: Request, url: httpx2.URL, call_context: CallContext, deadline_at: float
    ) -> tuple[httpx2.Response, bytes]:
        async def wait_before_request_headers(
            trace_event: str, event_info: Mapping[str, Any]
        ) -> None:
            if trace_event == "http11.send_request_headers.started":  # there is a connection now
                await self._wait_for_rate_limit(deadline_at)

        request_headers = {
            **call_context.trace_headers,
            "X-Correlation-ID": call_context.correlation_id,
        }
        if request.etag:
            request_headers["If-None-Match"] = request.etag
        if request.bypass_caches:
            request_headers["Cache-Control"] = "no-cache"
        async with self._http_client.stream(
            "GET", url, headers=request_headers, extensions={"trace": wait_before_request_headers}
        ) as response:
            self._http_client.cookies.clear()  # no request is linked to the one before
            return response, await _read_response_body(response)

    def _interpret_response(
        self, request: Request, response: httpx2.Response, response_body: bytes
    ) -> Reply | None:
        """Return the reply that a response stands for; None for a 304."""
        http_status = response.status_code
        # Without an ETag of ours a 304 answers nothing that was asked, and counts as a failure.
        if http_status == 304 and request.etag:
            return None
        if http_status == 200:
            _check_json_body(response, response_body)
        if http_status in _DEFINITIVE_STATUSES:
            return Reply(
                http_status,
                response_body,
                etag=response.headers.get("etag"),
                location=response.headers.get("location"),
                max_age=_parse_max_age(response.headers.get("cache-control", "")),
            )
        if http_status in (400, 422):
            raise UpstreamParameterError("GOV.UK does not take these parameters")
        wait_seconds = parse_retry_after(response.headers.get("retry-after"))
        if http_status == 429:
            # The longest pause counts: of two answers the one that asks for less may arrive later.
            self._resume_at = max(self._resume_at, self._get_now() + (wait_seconds or 0.0))
            hint_fields = {} if wait_seconds is None else {"retry_after": round(wait_seconds, 1)}
            raise _FailedAttempt(
                "429",
                UpstreamRateLimited("GOV.UK asked us to slow down", **hint_fields),
                wait_seconds,
            )
        upstream_error = UpstreamUnavailable(f"GOV.UK answered with status {http_status}")
        # Any other 4xx is about the request itself, which would be refused again.
        if http_status < 500:
            raise upstream_error
        raise _FailedAttempt(str(http_status), upstream_error, wait_seconds)

    def _update_breakers(self, attempt_outcome: str, url_path: str) -> None:
        # A 429 is the answer of a host at work, not of one that fails.
        if attempt_outcome in ("timeout", "unreachable"):
            self.breaker.record_failure()
        elif attempt_outcome == "malformed" or attempt_outcome.startswith("5"):
            self._record_page_failure(url_path)
        elif attempt_outcome == "cancelled":
            self.breaker.record_cancelled()
        else:
            self._failing_paths.clear()
            self._page_breakers.discard(url_path)
            self.breaker.record_success()

    def _record_page_failure(self, url_path: str) -> None:
        """Count a failure for the page, and for the host if this page is not counted already."""
        page_breaker = self._page_breakers.get(url_path)
        if page_breaker is None:
            page_breaker = CircuitBreaker(read_clock=self._get_now)
            self._page_breakers.put(url_path, page_breaker)
        page_breaker.record_failure()
        is_host_probe = self.breaker.state is BreakerState.HALF_OPEN
        if url_path not in self._failing_paths or is_host_probe:
            self._failing_paths.add(url_path)
            self.breaker.record_failure()

    def _record_attempt(
        self,
        request: Request,
        call_context: CallContext,
        attempt_outcome: str,
        body_byte_count: int,
        duration_seconds: float,
    ) -> None:
        duration_ms = round(duration_seconds * 1000, 3)
        call_context.record_request_duration(duration_ms)
        self._metrics.observe_request(request.endpoint, attempt_outcome, duration_seconds)
        log_fields = {
            "correlation_id": call_context.correlation_id,
            "endpoint": request.endpoint,
            "outcome": attempt_outcome,
            "upstream_ms": duration_ms,
            "response_bytes": body_byte_count,
        }
        logger.info("upstream request", extra={"fields": log_fields})


def _make_rate_limit_error(wait_seconds: float) -> UpstreamRateLimited:
    return UpstreamRateLimited(
        "This server's own limit: too many requests to GOV.UK are waiting",
        retry_after=round(wait_seconds, 1),
    )


async def _read_response_body(response: httpx2.Response) -> bytes:
    """Return the body, decompressed; raise `UpstreamUnavailable` when it is too long."""
    body_blocks: list[bytes] = []
    body_byte_count = 0
    # Counted when decompressed: a few kilobytes on the way can become gigabytes here.
    async for body_block in response.aiter_bytes():
        body_byte_count += len(body_block)
        if body_byte_count > MAX_BODY_BYTES:
            raise UpstreamUnavailable(
                f"GOV.UK sent more than {MAX_BODY_BYTES // 1024 // 1024} MB for one page"
            )
        body_blocks.append(body_block)
    whole_body = b"".join(body_blocks)
    if logger.isEnabledFor(logging.DEBUG):
        body_preview = whole_body[:BODY_PREVIEW_BYTES].decode("utf-8", "ignore")
        logger.debug("upstream answer", extra={"fields": {"preview": body_preview}})
    return whole_body


def _check_json_body(response: httpx2.Response, raw_body: bytes) -> None:
    """Raise unless the body of a 200 is a JSON object."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise _FailedAttempt(
            "malformed", UpstreamUnavailable("GOV.UK sent something that is not JSON")
        )
    try:
        # NaN and Infinity are no JSON, though this parser takes them by default.
        json_document = from_json(raw_body, allow_inf_nan=False)
    except ValueError as error:
        raise _FailedAttempt(
            "malformed", UpstreamUnavailable("GOV.UK sent JSON that cannot be read")
        ) from error
    if not isinstance(json_document, dict):
        raise _FailedAttempt(
            "malformed", UpstreamUnavailable("GOV.UK sent JSON that is not an object")
        )


def _parse_max_age(cache_control: str) -> float | None:
    """Return the seconds that Cache-Control allows; 0 where it forbids storing the answer."""
    cache_rules = {cache_rule.strip().lower() for cache_rule in cache_control.split(",")}
    # `private` is for one reader, and this cache serves everybody.
    if cache_rules & {"no-store", "no-cache", "private"}:
        return 0.0
    max_age_texts = [
        cache_rule.removeprefix("max-age=")
        for cache_rule in cache_rules
        if cache_rule.startswith("max-age=")
    ]
    return float(max_age_texts[0]) if max_age_texts and max_age_texts[0].isdecimal() else None

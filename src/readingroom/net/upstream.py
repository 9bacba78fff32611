"""Asks one fixed host, politely: a budget of requests, retries that wait longer, a circuit breaker.

What the host said for good comes back as a `Reply`. What may be otherwise in a moment (a timeout, a
5xx, a 429, JSON cut short) is tried again while the deadline allows, then raised.
"""

import email.utils
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_core import from_json

from readingroom import __version__
from readingroom.core import clock
from readingroom.net.breaker import CircuitBreaker, State
from readingroom.net.cache import Reply
from readingroom.net.errors import (
    GuidanceError,
    InvalidPath,
    UpstreamParameterError,
    UpstreamRateLimited,
    UpstreamUnavailable,
)
from readingroom.net.limiter import Limiter
from readingroom.net.metrics import Meter

logger = logging.getLogger("readingroom.net")

LARGEST_BODY = 5 * 1024 * 1024
RETRIES = 3
HURRY_SECONDS = 2.0
PREVIEW_BYTES = 4096

_FIRST_WAIT = 0.2
_LONGEST_PAUSE = 3600.0
_TRACE = TraceContextTextMapPropagator()  # the trace alone: a caller's baggage is not for others
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_DEFINITIVE = {200, 301, 302, 303, 307, 308, 404, 410}

Params = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Errand:
    """On whose behalf something is asked, and what may be said of it in the log afterwards."""

    client: str
    correlation_id: str
    traceparent: str | None = None
    """The trace to go on in, where no span of this process is in one."""
    facts: dict[str, Any] = field(default_factory=dict)

    def spent(self, milliseconds: float) -> None:
        """Add one upstream request to what this errand took."""
        self.facts["upstream_requests"] = self.facts.get("upstream_requests", 0) + 1
        total = self.facts.get("upstream_ms", 0.0) + milliseconds
        self.facts["upstream_ms"] = round(total, 3)


@dataclass(frozen=True, slots=True)
class Request:
    """One GET: where, with what, and under which name it is counted."""

    endpoint: str
    path: str
    params: Params = ()
    etag: str | None = None
    past_caches: bool = False
    """Ask caches on the way to look again too."""
    hurried: bool = False
    """Try once and not for long: the caller has something else to serve."""


class _Transient(Exception):
    """An attempt that failed in a way the next one may not."""

    def __init__(self, outcome: str, error: GuidanceError, wait: float | None = None) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.error = error
        self.wait = wait
        """How long the host asked us to stay away, if it did."""


class UpstreamClient:
    """One host, one connection pool, one budget."""

    def __init__(
        self,
        base_url: str,
        limiter: Limiter,
        meter: Meter,
        *,
        timeout: float = 10.0,
        breaker: CircuitBreaker | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.breaker = breaker or CircuitBreaker()
        self._base = httpx2.URL(base_url)
        self._limiter = limiter
        self._meter = meter
        self._timeout = timeout
        self._now = now
        self._sleep = sleep
        self._jitter = jitter
        self._resume_at = 0.0
        meter.watch_breaker(lambda: self.breaker.state is not State.CLOSED)

    async def close(self) -> None:
        if "_http" in self.__dict__:
            await self._http.aclose()

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        """The connections; made when first needed, because reading certificates takes a while.

        Redirects are told, not followed: the host could send us anywhere. What the environment says
        of proxies is not taken up: settings are read in one place.
        """
        return httpx2.AsyncClient(
            timeout=self._timeout,
            follow_redirects=False,
            trust_env=False,
            limits=httpx2.Limits(max_connections=20, max_keepalive_connections=10),
            headers={"Accept": "application/json", "User-Agent": f"readingroom/{__version__}"},
        )

    async def get(self, request: Request, errand: Errand) -> Reply | None:
        """The host's last word on a request; None when it has not changed since `etag`."""
        url = self._url(request)
        patience = min(self._timeout, HURRY_SECONDS) if request.hurried else self._timeout
        deadline = self._now() + patience
        last = 0 if request.hurried else RETRIES
        for attempt in range(last + 1):
            self._rest_unless(self.breaker.would_admit)
            await self._turn(deadline)
            self._rest_unless(self.breaker.admits)
            try:
                return await self._attempt(request, url, errand, deadline)
            except _Transient as failure:
                wait = self._backoff(attempt) if failure.wait is None else failure.wait
                if attempt == last or self._now() + wait >= deadline:
                    raise failure.error from failure
            await self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _url(self, request: Request) -> httpx2.URL:
        """The address, after checking that nothing in the path moved it elsewhere."""
        url = self._base.join(request.path)
        same = (url.scheme, url.netloc, url.path) == (
            self._base.scheme,
            self._base.netloc,
            request.path,
        )
        if not same or url.query or url.fragment:
            raise InvalidPath("The path does not stay where it should")
        return url.copy_with(query=urlencode(request.params).encode()) if request.params else url

    def _rest_unless(self, admitted: Callable[[], bool]) -> None:
        """Raise while the host asked to be left alone, or keeps failing."""
        pause = self._resume_at - self._now()
        if pause > 0:
            raise UpstreamRateLimited("GOV.UK asked us to slow down", retry_after=round(pause, 1))
        if not admitted():
            raise UpstreamUnavailable(
                "GOV.UK has been failing, so it is given a rest",
                retry_after=round(self.breaker.wait_seconds, 1),
            )

    async def _turn(self, deadline: float) -> None:
        """Wait until the budget allows one more request."""
        patience = max(0.0, deadline - self._now())
        missing = await self._limiter.take(f"to {self._base}", patience)
        if missing is not None:
            raise UpstreamRateLimited(
                "Too many requests to GOV.UK are waiting", retry_after=round(missing, 1)
            )

    async def _attempt(
        self, request: Request, url: httpx2.URL, errand: Errand, deadline: float
    ) -> Reply | None:
        started = time.perf_counter()
        outcome, size = "cancelled", 0
        try:
            with anyio.fail_after(max(0.001, deadline - self._now())):
                response, body = await self._exchange(request, url, errand)
            size = len(body)
            reply = self._judge(request, response, body)
            outcome = "unchanged" if reply is None else str(response.status_code)
            return reply
        except _Transient as failure:
            outcome = failure.outcome
            raise
        except (TimeoutError, httpx2.TimeoutException) as failure:
            outcome = "timeout"
            error = UpstreamUnavailable("GOV.UK did not answer in time")
            raise _Transient(outcome, error) from failure
        except httpx2.HTTPError as failure:
            outcome = "unreachable"
            raise _Transient(outcome, UpstreamUnavailable("GOV.UK cannot be reached")) from failure
        except GuidanceError as failure:
            outcome = failure.code
            raise
        finally:
            self._settle(outcome)
            self._record(request, errand, outcome, size, time.perf_counter() - started)

    async def _exchange(
        self, request: Request, url: httpx2.URL, errand: Errand
    ) -> tuple[httpx2.Response, bytes]:
        headers = {"X-Correlation-ID": errand.correlation_id}
        if request.etag:
            headers["If-None-Match"] = request.etag
        if request.past_caches:
            headers["Cache-Control"] = "no-cache"
        _TRACE.inject(headers)
        if errand.traceparent and _TRACEPARENT.fullmatch(errand.traceparent):
            headers.setdefault("traceparent", errand.traceparent)
        async with self._http.stream("GET", url, headers=headers) as response:
            self._http.cookies.clear()  # we are nobody in particular, each time
            return response, await _body(response)

    def _judge(self, request: Request, response: httpx2.Response, body: bytes) -> Reply | None:
        """What a response means; None for a 304."""
        status = response.status_code
        if status == 304 and request.etag:
            return None
        if status == 200:
            _check_json(response, body)
        if status in _DEFINITIVE:
            return Reply(
                status,
                body,
                etag=response.headers.get("etag"),
                location=response.headers.get("location"),
                max_age=_max_age(response.headers.get("cache-control", "")),
            )
        if status in (400, 422):
            raise UpstreamParameterError("GOV.UK does not take these parameters")
        wait = _retry_after(response.headers.get("retry-after"))
        if status == 429:
            self._resume_at = max(self._resume_at, self._now() + (wait or 0.0))
            hint = {} if wait is None else {"retry_after": round(wait, 1)}
            raise _Transient(
                "429", UpstreamRateLimited("GOV.UK asked us to slow down", **hint), wait
            )
        error = UpstreamUnavailable(f"GOV.UK answered with status {status}")
        if status < 500:
            raise error
        raise _Transient(str(status), error, wait)

    def _settle(self, outcome: str) -> None:
        """Tell the breaker. A 429 is a host at work, not one that fails."""
        if outcome in ("timeout", "unreachable", "malformed") or outcome.startswith("5"):
            self.breaker.failed()
        elif outcome == "cancelled":
            self.breaker.abandoned()
        else:
            self.breaker.succeeded()

    def _backoff(self, attempt: int) -> float:
        """Twice as long each time, give or take a half, so that callers do not return together."""
        return _FIRST_WAIT * 2.0**attempt * (0.5 + self._jitter())

    def _record(
        self, request: Request, errand: Errand, outcome: str, size: int, seconds: float
    ) -> None:
        milliseconds = round(seconds * 1000, 3)
        errand.spent(milliseconds)
        self._meter.request(request.endpoint, outcome, seconds)
        fields = {
            "correlation_id": errand.correlation_id,
            "endpoint": request.endpoint,
            "outcome": outcome,
            "upstream_ms": milliseconds,
            "response_bytes": size,
        }
        logger.info("upstream request", extra={"fields": fields})


async def _body(response: httpx2.Response) -> bytes:
    """All of it, decompressed, unless there is too much of it."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_BODY:
            raise UpstreamUnavailable(
                f"GOV.UK sent more than {LARGEST_BODY // 1024 // 1024} MB for one page"
            )
        parts.append(part)
    body = b"".join(parts)
    if logger.isEnabledFor(logging.DEBUG):
        preview = body[:PREVIEW_BYTES].decode("utf-8", "ignore")
        logger.debug("upstream answer", extra={"fields": {"preview": preview}})
    return body


def _check_json(response: httpx2.Response, body: bytes) -> None:
    """A 200 is a JSON object, or it is no answer."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise _Transient("malformed", UpstreamUnavailable("GOV.UK sent something that is not JSON"))
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise _Transient(
            "malformed", UpstreamUnavailable("GOV.UK sent JSON that cannot be read")
        ) from error
    if not isinstance(found, dict):
        raise _Transient("malformed", UpstreamUnavailable("GOV.UK sent JSON that is no object"))


def _max_age(header: str) -> float | None:
    """What Cache-Control allows; 0 where it forbids keeping the answer."""
    rules = {rule.strip().lower() for rule in header.split(",")}
    if rules & {"no-store", "no-cache", "private"}:
        return 0.0
    ages = [rule.removeprefix("max-age=") for rule in rules if rule.startswith("max-age=")]
    return float(ages[0]) if ages and ages[0].isdecimal() else None


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a number or a date; None for what is neither."""
    if header is None:
        return None
    if header.strip().isdecimal():
        wait = float(header)
    else:
        try:
            wait = email.utils.parsedate_to_datetime(header).timestamp() - clock.seconds()
        except ValueError:
            return None
    return min(max(wait, 0.0), _LONGEST_PAUSE)

"""HTTP as this project speaks it: how clients are made, and how a failed request is retried."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from readingroom import __version__
from readingroom.core import clock
from readingroom.core.imports import LazyModule

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = LazyModule("httpx2")

Result = TypeVar("Result")

MAX_RETRY_AFTER_SECONDS = 3600.0
"""Longest pause in seconds that a host may impose with `Retry-After`."""


def make_client(
    *, timeout: float = 30.0, extra_headers: Mapping[str, str] | None = None, verify: bool = True
) -> httpx2.Client:
    """Return a client that follows no redirects and ignores proxies of the environment."""
    return httpx2.Client(timeout=timeout, verify=verify, **_make_shared_options(extra_headers))


def make_async_client(
    *,
    timeout: float | httpx2.Timeout = 30.0,
    extra_headers: Mapping[str, str] | None = None,
    verify: bool = True,
    max_connections: int = 20,
) -> httpx2.AsyncClient:
    """Return an asynchronous client that follows the same rules as `make_client`."""
    connection_limits = httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_connections // 2
    )
    return httpx2.AsyncClient(
        timeout=timeout,
        verify=verify,
        limits=connection_limits,
        **_make_shared_options(extra_headers),
    )


def _make_shared_options(extra_headers: Mapping[str, str] | None) -> dict[str, Any]:
    return {
        # A redirect could send us anywhere; callers decide what a 3xx means to them.
        "follow_redirects": False,
        # Settings are read in one place, and the proxy variables are not among them.
        "trust_env": False,
        "headers": {"User-Agent": f"readingroom/{__version__}", **(extra_headers or {})},
    }


class TransientError(Exception):
    """An attempt failed in a way that the next one may not."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        """Seconds that the host asked us to wait, if it did."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is attempted, and how long to wait between two attempts."""

    max_attempts: int = 4
    first_wait_seconds: float = 1.0
    max_wait_seconds: float = 60.0
    draw_jitter: Callable[[], float] = lambda: 0.5
    """A number from 0 to 1. Random ones spread the waits from half to one and a half of theirs."""

    def compute_backoff(self, attempt_index: int) -> float:
        """Return the seconds to wait after an attempt, counted from 0; they double each time."""
        # Spread out, so that clients that failed together do not come back together.
        return self.first_wait_seconds * 2.0**attempt_index * (0.5 + self.draw_jitter())

    def compute_wait(
        self, attempt_index: int, transient_error: TransientError, seconds_left: float
    ) -> float:
        """Return the seconds to wait before the next attempt.

        Raise the error itself when there is no attempt left, or no time for one in the
        `seconds_left` seconds.
        """
        # The longer of the two: `Retry-After: 0`, or a date that is past, must not end the backoff.
        wait_seconds = max(
            self.compute_backoff(attempt_index), transient_error.retry_after_seconds or 0.0
        )
        # A host may ask for hours; the policy says how long we are prepared to wait.
        wait_seconds = min(wait_seconds, self.max_wait_seconds)
        if attempt_index + 1 >= self.max_attempts or wait_seconds >= seconds_left:
            raise transient_error
        return wait_seconds


def retry_call(
    make_attempt: Callable[[], Result],
    retry_policy: RetryPolicy,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Return what `make_attempt` returns; repeat it, by the policy, after a `TransientError`."""
    attempt_index = 0
    while True:
        try:
            return make_attempt()
        except TransientError as error:
            wait_seconds = retry_policy.compute_wait(attempt_index, error, seconds_left=math.inf)
        # Outside of the handler, or the next error would carry this one along as its context.
        sleep(wait_seconds)
        attempt_index += 1


async def retry_async(
    make_attempt: Callable[[], Awaitable[Result]],
    retry_policy: RetryPolicy,
    *,
    deadline_at: float = math.inf,
    read_clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Result:
    """Do the same for a coroutine, and start no attempt that would begin after the deadline."""
    attempt_index = 0
    while True:
        try:
            return await make_attempt()
        except TransientError as error:
            wait_seconds = retry_policy.compute_wait(
                attempt_index, error, seconds_left=deadline_at - read_clock()
            )
        await sleep(wait_seconds)
        attempt_index += 1


def parse_retry_after(retry_after_header: str | None) -> float | None:
    """Return the seconds to wait, from a number or a date; None for a header that is neither."""
    if retry_after_header is None:
        return None
    if retry_after_header.strip().isdecimal():
        wait_seconds = float(retry_after_header)
    else:
        try:
            wait_seconds = (
                email.utils.parsedate_to_datetime(retry_after_header).timestamp()
                - clock.read_unix_seconds()
            )
        except (ValueError, OverflowError):
            return None
    return min(max(wait_seconds, 0.0), MAX_RETRY_AFTER_SECONDS)

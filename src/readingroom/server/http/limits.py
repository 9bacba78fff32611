"""Limits of requests: how many a caller may send in a minute, and have open at once."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import anyio.to_thread

from readingroom.server.errors import RateLimited, TooManyOpenRequests
from readingroom.storage.errors import StorageFailed
from readingroom.storage.postgres.buckets import SharedBuckets

logger = logging.getLogger(__name__)

_MAX_REMEMBERED_CALLERS = 10_000
# Shorter asks the database more often; longer lets a caller spend its limit at each process.
_SHARING_PAUSE_SECONDS = 0.25
_SECONDS_BETWEEN_BUCKET_CLEARINGS = 60.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What remains to a caller: `remaining` requests now, `limit` again in `reset_seconds`."""

    limit: int
    remaining: int
    reset_seconds: int

    def to_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the allowance as response headers."""
        return [
            (b"x-ratelimit-limit", b"%d" % self.limit),
            (b"x-ratelimit-remaining", b"%d" % self.remaining),
            (b"x-ratelimit-reset", b"%d" % self.reset_seconds),
        ]


class RateLimiter:
    """Allows each caller `requests_per_minute`, all at once if it likes; 0 is no limit."""

    def __init__(
        self, requests_per_minute: int, read_clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = float(requests_per_minute)
        self._requests_per_second = requests_per_minute / 60
        self._read_clock = read_clock
        self._remaining_by_caller: dict[str, tuple[float, float]] = {}
        """By caller, the requests that remain, and when that was computed."""
        self._unshared_by_caller: Counter[str] = Counter()
        """By caller, the requests that other processes have not heard of; empty with one alone."""
        self._is_shared = False

    def count_request(self, caller_id: str) -> None:
        """Count one request. Raise RateLimited, with the seconds to wait, when none remains."""
        if not self._capacity:
            return
        now_seconds = self._read_clock()
        remaining_request_count = self._compute_remaining_requests(caller_id, now_seconds)
        if remaining_request_count < 1:
            # A refused request is not counted, so whoever waits as long as it says is served.
            wait_seconds = math.ceil((1 - remaining_request_count) / self._requests_per_second)
            raise RateLimited(
                f"Too many requests; try again in {wait_seconds} s", retry_after=wait_seconds
            )
        if (
            caller_id not in self._remaining_by_caller
            and len(self._remaining_by_caller) >= _MAX_REMEMBERED_CALLERS
        ):
            self._forget_callers_with_most_left(now_seconds)
        self._remaining_by_caller[caller_id] = (remaining_request_count - 1, now_seconds)
        if self._is_shared:
            self._unshared_by_caller[caller_id] += 1

    async def share_counts_until_cancelled(self, shared_buckets: SharedBuckets) -> None:
        """Count with the other processes on a database, until this is cancelled.

        A caller can exceed its limit by what it sends to each process within a moment. While the
        database does not answer, each process counts for itself.
        """
        self._is_shared = bool(self._capacity)
        is_sharing_failing, next_clearing_at = False, self._read_clock()
        while self._is_shared:
            try:
                await self.exchange_request_counts(shared_buckets)
                if self._read_clock() >= next_clearing_at:
                    next_clearing_at = self._read_clock() + _SECONDS_BETWEEN_BUCKET_CLEARINGS
                    await anyio.to_thread.run_sync(shared_buckets.forget_full_buckets)
                is_sharing_failing = False
            except StorageFailed as error:
                if not is_sharing_failing:  # once, not at every attempt
                    logger.warning("%s; each process counts for itself", error.message)
                is_sharing_failing = True
            await anyio.sleep(_SHARING_PAUSE_SECONDS)

    async def exchange_request_counts(self, shared_buckets: SharedBuckets) -> None:
        """Take what was spent here out of the shared buckets, and keep what is left in them.

        Raise `StorageFailed`; what was spent is then told the next time.
        """
        self._is_shared = True
        # Swapped before the wait: requests that come during it belong to the next exchange.
        spent_count_by_caller, self._unshared_by_caller = self._unshared_by_caller, Counter()
        if not spent_count_by_caller:
            return
        try:
            remaining_count_by_caller = await anyio.to_thread.run_sync(
                shared_buckets.spend_requests, spent_count_by_caller, int(self._capacity)
            )
        except StorageFailed:
            # A Counter's `update` adds, so those that came meanwhile stay counted.
            self._unshared_by_caller.update(spent_count_by_caller)
            raise
        now_seconds = self._read_clock()
        for caller_id, remaining_request_count in remaining_count_by_caller.items():
            # Those that came meanwhile are told the next time.
            self._remaining_by_caller[caller_id] = (
                remaining_request_count - self._unshared_by_caller[caller_id],
                now_seconds,
            )

    def find_allowance(self, caller_id: str) -> Allowance | None:
        """Return what remains to a caller whose request was counted; None without a limit."""
        if not self._capacity:
            return None
        remaining_request_count = self._compute_remaining_requests(caller_id, self._read_clock())
        reset_seconds = math.ceil(
            (self._capacity - remaining_request_count) / self._requests_per_second
        )
        return Allowance(int(self._capacity), max(0, int(remaining_request_count)), reset_seconds)

    def _compute_remaining_requests(self, caller_id: str, now_seconds: float) -> float:
        """Return how many requests a caller has by now."""
        remaining_request_count, updated_at = self._remaining_by_caller.get(
            caller_id, (self._capacity, now_seconds)
        )
        return min(
            self._capacity,
            remaining_request_count + (now_seconds - updated_at) * self._requests_per_second,
        )

    def _forget_callers_with_most_left(self, now_seconds: float) -> None:
        """Forget a tenth of the callers: those to whom a new bucket gives the least.

        Whoever used up its own would else be served again after a flood of other addresses.
        """
        caller_ids_most_left_first = sorted(
            self._remaining_by_caller,
            key=lambda remembered_caller_id: self._compute_remaining_requests(
                remembered_caller_id, now_seconds
            ),
            reverse=True,
        )
        # A tenth at once: sorting for each new caller would let a flood of them keep us busy.
        for remembered_caller_id in caller_ids_most_left_first[: _MAX_REMEMBERED_CALLERS // 10]:
            del self._remaining_by_caller[remembered_caller_id]


class OpenRequests:
    """Counts the requests of each caller that have no answer yet, event streams among them.

    Each of them holds a connection, and some wait for minutes: one caller must not have them all.
    """

    def __init__(self, max_requests_per_caller: int) -> None:
        self._max_per_caller = max_requests_per_caller
        self._counts_by_caller: Counter[str] = Counter()

    @contextmanager
    def count_open_request(self, caller_id: str) -> Iterator[None]:
        """Count a request while this is entered. Raise TooManyOpenRequests."""
        if self._counts_by_caller[caller_id] >= self._max_per_caller:
            raise TooManyOpenRequests(
                f"{self._max_per_caller} requests of this caller have no answer yet; wait for "
                "some of them before you send more",
                retry_after=1,
            )
        self._counts_by_caller[caller_id] += 1
        try:
            yield
        finally:
            self._counts_by_caller[caller_id] -= 1
            if not self._counts_by_caller[caller_id]:
                del self._counts_by_caller[caller_id]

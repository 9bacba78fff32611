"""How much one caller may ask: a bucket of requests that refills as time passes."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from readingroom.core.lru import LRUCache
from readingroom.server.errors import RateLimited

_MOST_CALLERS = 10_000  # beyond this the caller unseen for longest is forgotten


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a caller may still ask: so many requests now, all of them again in `reset` seconds."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"x-ratelimit-limit", b"%d" % self.limit),
            (b"x-ratelimit-remaining", b"%d" % self.remaining),
            (b"x-ratelimit-reset", b"%d" % self.reset),
        ]


class RateLimiter:
    """Allows each caller `per_minute` requests a minute, as many as that at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(_MOST_CALLERS)

    def spend(self, caller: str) -> None:
        """Count one request, or say when the next one is welcome."""
        if not self._capacity:
            return
        now = self._clock()
        left, seen = self._buckets.get(caller) or (self._capacity, now)
        left = min(self._capacity, left + (now - seen) * self._per_second)
        if left < 1:
            self._buckets.put(caller, (left, now))
            wait = math.ceil((1 - left) / self._per_second)
            raise RateLimited(f"Too many requests; try again in {wait} s", retry_after=wait)
        self._buckets.put(caller, (left - 1, now))

    def allowance(self, caller: str) -> Allowance | None:
        """What is left to a caller that was counted; None where nothing is limited."""
        if not self._capacity:
            return None
        left, _ = self._buckets.get(caller) or (self._capacity, 0.0)
        full = math.ceil((self._capacity - left) / self._per_second)
        return Allowance(int(self._capacity), int(left), full)

"""Cache of a remote API's replies: explicit TTLs, stale replies only while it fails, single flight.

An entry is fresh for its TTL. After that it is fetched again, with its ETag where it has one. If
the upstream fails then, the old entry is served, marked as stale, for a bounded time.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio

from readingroom.core import clock
from readingroom.core.lru import LRUCache
from readingroom.net.errors import UpstreamError, UpstreamRateLimited, UpstreamUnavailable


@dataclass(frozen=True, slots=True)
class Reply:
    """A definitive answer of the upstream: a page, moved, gone or missing. Failures are raised."""

    status: int
    body: bytes
    etag: str | None = None
    location: str | None = None
    max_age: float | None = None
    """Seconds for which it may be stored, where the upstream states them."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A reply, when it was fetched and for how many seconds it is fresh.

    Times are those of the wall clock, which processes share.
    """

    reply: Reply
    fetched_at: float
    ttl_seconds: float


@dataclass(frozen=True, slots=True)
class ServedReply:
    """A reply as it was served: from the cache or fetched, and how old it is."""

    entry: CacheEntry
    is_from_cache: bool
    age_seconds: float
    failure: UpstreamError | None = None
    """Why a stale entry was served; None when the entry is not stale."""

    @property
    def reply(self) -> Reply:
        return self.entry.reply

    @property
    def outcome(self) -> str:
        """`hit`, `miss` or `stale`, for logs and metrics."""
        if self.failure:
            return "stale"
        return "hit" if self.is_from_cache else "miss"


class CacheBackend(Protocol):
    """Storage of entries. It never raises: while it fails, it is empty and stores nothing."""

    async def find_entry(self, cache_key: str) -> CacheEntry | None: ...

    async def find_last_known_entry(self, cache_key: str) -> CacheEntry | None:
        """Return an entry for when the upstream fails: while the storage fails too, the copy that
        this process last had. How old it may be is for the caller to judge.
        """

    async def put_entry(self, cache_key: str, cache_entry: CacheEntry, kept_seconds: float) -> None:
        """Store an entry for that many seconds; after that it is never returned."""


class MemoryCacheBackend:
    """Entries in this process; the least recently used leave first when they take too much."""

    def __init__(
        self,
        max_bytes: int = 64 * 1024 * 1024,
        read_clock: Callable[[], float] = clock.read_unix_seconds,
    ) -> None:
        self._read_clock = read_clock
        self._entries: LRUCache[str, tuple[CacheEntry, float]] = LRUCache(
            max_bytes, _estimate_entry_and_key_bytes
        )

    async def find_entry(self, cache_key: str) -> CacheEntry | None:
        cache_entry, expires_at = self._entries.get(cache_key) or (None, 0.0)
        # Deleted when it is next read; until then the bound on size limits what old entries take.
        if self._read_clock() >= expires_at:
            self._entries.discard(cache_key)
            return None
        return cache_entry

    async def find_last_known_entry(self, cache_key: str) -> CacheEntry | None:
        return await self.find_entry(cache_key)

    async def put_entry(self, cache_key: str, cache_entry: CacheEntry, kept_seconds: float) -> None:
        self._entries.put(cache_key, (cache_entry, self._read_clock() + kept_seconds))


def _estimate_entry_and_key_bytes(
    cache_key: str, entry_and_expiry: tuple[CacheEntry, float]
) -> int:
    cache_entry, _ = entry_and_expiry
    return len(cache_key) + estimate_entry_bytes(cache_entry)


def estimate_entry_bytes(cache_entry: CacheEntry) -> int:
    """Return roughly how much memory an entry takes."""
    return len(cache_entry.reply.body) + 500  # of the objects around it


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """What a fetch may know about the entry that it is to renew."""

    etag: str | None = None
    is_served_if_fetch_fails: bool = False
    """Whether the entry is served if the fetch fails; then retries are not worth their time."""


FetchReply = Callable[[StoredVersion], Awaitable[Reply | None]]
"""Asks the upstream; returns None when nothing has changed since the stored version's ETag."""


class Cache:
    """Serves replies from its backend while they are fresh, and from the upstream otherwise."""

    def __init__(
        self,
        cache_backend: CacheBackend,
        stale_seconds: float,
        read_clock: Callable[[], float] = clock.read_unix_seconds,
    ) -> None:
        self._backend = cache_backend
        self._stale_seconds = stale_seconds
        self._read_clock = read_clock
        self._flights: SingleFlight[ServedReply] = SingleFlight()

    async def get_reply(
        self, cache_key: str, ttl_seconds: float, fetch_reply: FetchReply
    ) -> ServedReply:
        """Return the reply, fetched once however many callers want it at the same time."""
        fresh_reply = self._serve_if_fresh(await self._backend.find_entry(cache_key))
        return fresh_reply or await self._flights.run_once(
            cache_key, lambda: self._renew_entry(cache_key, ttl_seconds, fetch_reply)
        )

    async def fetch_fresh_reply(
        self, cache_key: str, ttl_seconds: float, fetch_reply: FetchReply
    ) -> ServedReply:
        """Return the reply fetched anew, without its ETag, even if the stored one is fresh."""
        # A key of its own: a caller who wants a fresh copy must not share a read that sends the
        # ETag.
        return await self._flights.run_once(
            f"refresh {cache_key}", lambda: self._fetch_anew(cache_key, ttl_seconds, fetch_reply)
        )

    async def peek_entry(self, cache_key: str) -> CacheEntry | None:
        """Return the stored entry, fresh or not; nothing is fetched."""
        return await self._backend.find_entry(cache_key)

    async def _renew_entry(
        self, cache_key: str, ttl_seconds: float, fetch_reply: FetchReply
    ) -> ServedReply:
        # Read again: another fetch may have finished between the first read and this one's start.
        stored_entry = await self._backend.find_entry(cache_key)
        fresh_reply = self._serve_if_fresh(stored_entry)
        if fresh_reply:
            return fresh_reply
        try:
            return await self._fetch_and_store(cache_key, ttl_seconds, fetch_reply, stored_entry)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            return self._serve_stale_or_raise(
                stored_entry or await self._backend.find_last_known_entry(cache_key), failure
            )

    async def _fetch_anew(
        self, cache_key: str, ttl_seconds: float, fetch_reply: FetchReply
    ) -> ServedReply:
        try:
            return await self._fetch_and_store(cache_key, ttl_seconds, fetch_reply, None)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            return self._serve_stale_or_raise(
                await self._backend.find_last_known_entry(cache_key), failure
            )

    async def _fetch_and_store(
        self,
        cache_key: str,
        ttl_seconds: float,
        fetch_reply: FetchReply,
        stored_entry: CacheEntry | None,
    ) -> ServedReply:
        stored_version = (
            StoredVersion(stored_entry.reply.etag, self._can_be_served(stored_entry))
            if stored_entry
            else StoredVersion()
        )
        upstream_reply = await fetch_reply(stored_version)
        if upstream_reply is None:
            assert stored_entry is not None, "only a stored entry can be unchanged"
            upstream_reply = stored_entry.reply
        cache_entry = CacheEntry(
            upstream_reply, self._read_clock(), _limit_ttl(ttl_seconds, upstream_reply.max_age)
        )
        # A reply that may not be stored still replaces the older one, which no longer holds.
        await self._backend.put_entry(
            cache_key,
            cache_entry,
            cache_entry.ttl_seconds + self._stale_seconds if cache_entry.ttl_seconds > 0 else 0.0,
        )
        return ServedReply(cache_entry, is_from_cache=False, age_seconds=0.0)

    def _serve_stale_or_raise(
        self, stored_entry: CacheEntry | None, upstream_error: UpstreamError
    ) -> ServedReply:
        if stored_entry is None or not self._can_be_served(stored_entry):
            raise upstream_error
        return ServedReply(
            stored_entry,
            is_from_cache=True,
            age_seconds=self._compute_age(stored_entry),
            failure=upstream_error,
        )

    def _can_be_served(self, cache_entry: CacheEntry) -> bool:
        # Only pages: that one was missing a while ago says nothing about now.
        return (
            cache_entry.reply.status == 200
            and self._compute_age(cache_entry) < cache_entry.ttl_seconds + self._stale_seconds
        )

    def _serve_if_fresh(self, cache_entry: CacheEntry | None) -> ServedReply | None:
        if cache_entry is None or self._compute_age(cache_entry) >= cache_entry.ttl_seconds:
            return None
        return ServedReply(
            cache_entry, is_from_cache=True, age_seconds=self._compute_age(cache_entry)
        )

    def _compute_age(self, cache_entry: CacheEntry) -> float:
        # Another machine's clock may be ahead of ours.
        return max(0.0, self._read_clock() - cache_entry.fetched_at)


def _limit_ttl(ttl_seconds: float, max_age: float | None) -> float:
    return ttl_seconds if max_age is None else min(ttl_seconds, max_age)


Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Callers that want the same at the same time share one fetch, and its result or failure."""

    def __init__(self) -> None:
        self._fetches_by_key: dict[str, _SharedFetch[Result]] = {}

    async def run_once(
        self, work_key: str, fetch_result: Callable[[], Awaitable[Result]]
    ) -> Result:
        while work_key in self._fetches_by_key:
            shared_fetch = self._fetches_by_key[work_key]
            await shared_fetch.landed_event.wait()
            if shared_fetch.failure is not None:
                raise shared_fetch.failure
            if shared_fetch.result is not None:
                return shared_fetch.result
            # The leader was cancelled: the first to notice leads the next flight.
        return await self._run_as_leader(work_key, fetch_result)

    async def _run_as_leader(
        self, work_key: str, fetch_result: Callable[[], Awaitable[Result]]
    ) -> Result:
        shared_fetch: _SharedFetch[Result] = _SharedFetch()
        self._fetches_by_key[work_key] = shared_fetch
        try:
            shared_fetch.result = await fetch_result()
            return shared_fetch.result
        # Not BaseException: cancelling the leader must not fail those who wait with it.
        except Exception as failure:
            shared_fetch.failure = failure
            raise
        finally:
            del self._fetches_by_key[work_key]
            shared_fetch.landed_event.set()


class _SharedFetch(Generic[Result]):
    def __init__(self) -> None:
        self.landed_event = anyio.Event()
        self.result: Result | None = None
        self.failure: Exception | None = None

"""Keeps what a remote API answered: explicit TTLs, stale only while it fails, one fetch at a time.

An entry is fresh for its TTL. After that it is asked for again, with its ETag where it has one. If
the upstream fails then, the old entry is served as stale, for a bounded time and marked.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio

from readingroom.core import clock
from readingroom.net.errors import GuidanceError, UpstreamRateLimited, UpstreamUnavailable


@dataclass(frozen=True, slots=True)
class Reply:
    """What the upstream said for good: found, moved, gone or not there. Failures are raised."""

    status: int
    body: bytes
    etag: str | None = None
    location: str | None = None
    max_age: float | None = None
    """How long it may be kept, where the upstream says so."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A reply, when it was fetched and how long it is fresh. Times are the wall clock's, which
    processes share.
    """

    reply: Reply
    fetched_at: float
    ttl: float


@dataclass(frozen=True, slots=True)
class Cached:
    """An entry as it was served."""

    entry: Entry
    hit: bool
    age: float
    failure: GuidanceError | None = None
    """Why a stale entry was served; None when it is not stale."""

    @property
    def reply(self) -> Reply:
        return self.entry.reply

    @property
    def outcome(self) -> str:
        """For logs and metrics."""
        if self.failure:
            return "stale"
        return "hit" if self.hit else "miss"


class Shelf(Protocol):
    """Where entries are kept. A shelf that fails has nothing and keeps nothing: it never raises."""

    async def get(self, key: str) -> Entry | None: ...

    async def put(self, key: str, entry: Entry, seconds: float) -> None:
        """Keep it for so long; after that it must not come back."""


class MemoryShelf:
    """Entries of this process, the least used leaving first when there are too many bytes."""

    def __init__(
        self, most_bytes: int = 64 * 1024 * 1024, clock: Callable[[], float] = clock.seconds
    ) -> None:
        self._most = most_bytes
        self._clock = clock
        self._held = 0
        self._entries: OrderedDict[str, tuple[Entry, float]] = OrderedDict()

    async def get(self, key: str) -> Entry | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if self._clock() >= found[1]:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return found[0]

    async def put(self, key: str, entry: Entry, seconds: float) -> None:
        self._drop(key)
        self._entries[key] = (entry, self._clock() + seconds)
        self._held += _weight(key, entry)
        while self._held > self._most:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        dropped = self._entries.pop(key, None)
        if dropped:
            self._held -= _weight(key, dropped[0])


def _weight(key: str, entry: Entry) -> int:
    return len(key) + len(entry.reply.body) + 500  # the objects around them


@dataclass(frozen=True, slots=True)
class Held:
    """What a fetch may know of the entry it is to renew."""

    etag: str | None = None
    is_spare: bool = False
    """Whether it can be served should the fetch fail; then nobody needs to wait for retries."""


Fetch = Callable[[Held], Awaitable[Reply | None]]
"""Asks the upstream; None means that it has not changed since the ETag of what is held."""


class Cache:
    """Answers from the shelf when it can, from the upstream when it must."""

    def __init__(
        self, shelf: Shelf, stale_seconds: float, clock: Callable[[], float] = clock.seconds
    ) -> None:
        self._shelf = shelf
        self._stale = stale_seconds
        self._clock = clock
        self._flights: SingleFlight[Cached] = SingleFlight()

    async def read(self, key: str, ttl: float, fetch: Fetch) -> Cached:
        """The entry, fetched by one caller however many ask for it at once."""
        fresh = self._fresh(await self._shelf.get(key))
        return fresh or await self._flights.run(key, lambda: self._renewed(key, ttl, fetch))

    async def refresh(self, key: str, ttl: float, fetch: Fetch) -> Cached:
        """The same past the cache: asked for anew, whole, also when the held entry is fresh."""
        return await self._flights.run(f"refresh {key}", lambda: self._anew(key, ttl, fetch))

    async def held(self, key: str) -> Entry | None:
        """What is on the shelf, fresh or not; nothing is fetched."""
        return await self._shelf.get(key)

    async def _renewed(self, key: str, ttl: float, fetch: Fetch) -> Cached:
        # Looked at again: a flight may have landed between the first look and this one's start.
        held = await self._shelf.get(key)
        fresh = self._fresh(held)
        if fresh:
            return fresh
        try:
            return await self._fetched(key, ttl, fetch, held)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            return self._spare_or_raise(held, failure)

    async def _anew(self, key: str, ttl: float, fetch: Fetch) -> Cached:
        try:
            return await self._fetched(key, ttl, fetch, None)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            return self._spare_or_raise(await self._shelf.get(key), failure)

    async def _fetched(self, key: str, ttl: float, fetch: Fetch, held: Entry | None) -> Cached:
        reply = await fetch(Held(held.reply.etag, self._is_spare(held)) if held else Held())
        if reply is None:
            assert held is not None, "only a held entry can be unchanged"
            reply = held.reply
        entry = Entry(reply, self._clock(), _bounded(ttl, reply.max_age))
        # What may not be kept still takes the place of what was, which is no longer true.
        await self._shelf.put(key, entry, entry.ttl + self._stale if entry.ttl > 0 else 0.0)
        return Cached(entry, hit=False, age=0.0)

    def _spare_or_raise(self, held: Entry | None, failure: GuidanceError) -> Cached:
        if held is None or not self._is_spare(held):
            raise failure
        return Cached(held, hit=True, age=self._age(held), failure=failure)

    def _is_spare(self, entry: Entry) -> bool:
        # A page that was missing is no answer to hold on to; only what was there is worth it.
        return entry.reply.status == 200 and self._age(entry) < entry.ttl + self._stale

    def _fresh(self, entry: Entry | None) -> Cached | None:
        if entry is None or self._age(entry) >= entry.ttl:
            return None
        return Cached(entry, hit=True, age=self._age(entry))

    def _age(self, entry: Entry) -> float:
        return max(0.0, self._clock() - entry.fetched_at)


def _bounded(ttl: float, max_age: float | None) -> float:
    return ttl if max_age is None else min(ttl, max_age)


T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Those who ask for the same at the same time share one fetch and what comes of it."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        while key in self._flights:
            flight = self._flights[key]
            await flight.landed.wait()
            if flight.failure is not None:
                raise flight.failure
            if flight.result is not None:
                return flight.result
            # Whoever led was cancelled: the first to notice leads the next flight.
        return await self._lead(key, work)

    async def _lead(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        flight: _Flight[T] = _Flight()
        self._flights[key] = flight
        try:
            flight.result = await work()
            return flight.result
        except Exception as failure:
            flight.failure = failure
            raise
        finally:
            del self._flights[key]
            flight.landed.set()


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.result: T | None = None
        self.failure: Exception | None = None

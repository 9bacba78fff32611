"""The cache's shelf and the limiter's window in Redis, so that several processes share them.

When Redis fails, calls go on: nothing is found in the cache, and each process counts for itself. A
circuit breaker keeps a dead Redis from costing every call its timeout. No text of a caller is
stored: keys are digests.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from valkey.asyncio import Valkey
from valkey.exceptions import ValkeyError

from readingroom.core.errors import InvalidSetting
from readingroom.net.breaker import CircuitBreaker, State
from readingroom.net.cache import Entry, Reply
from readingroom.net.limiter import SlidingWindow

logger = logging.getLogger(__name__)

_TIMEOUT = 0.5
_CONNECTIONS = 8  # a burst waits here for its turn, not in Redis's queue of new connections
_PREFIX = "readingroom:upstream:"

# Times are microseconds of Redis's own clock, which all processes share. The list holds the last
# `limit` turns; a turn that would come too late is not taken.
_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, window, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local before = redis.call('LINDEX', KEYS[1], -limit)
local turn = now
if before and tonumber(before) + window > now then turn = tonumber(before) + window end
if turn - now > patience then return {0, turn - now} end
redis.call('RPUSH', KEYS[1], string.format('%.0f', turn))
redis.call('LTRIM', KEYS[1], -limit, -1)
redis.call('PEXPIRE', KEYS[1], math.ceil((turn - now + window) / 1000) + 1000)
return {1, turn - now}
"""

T = TypeVar("T")


class SharedRedis:
    """A connection that may be down: `ask` gives what Redis says, or nothing."""

    def __init__(self, url: str, breaker: CircuitBreaker | None = None) -> None:
        try:
            self.client: Any = Valkey.from_url(
                url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT
            )
        except ValueError as error:  # told without the address, which may hold a password
            raise InvalidSetting(
                "REDIS_URL: write it as redis://host:port/0, rediss://… or unix://path"
            ) from error
        self._breaker = breaker or CircuitBreaker(threshold=2, pause_seconds=5.0)
        self._free = anyio.Semaphore(_CONNECTIONS)

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T | None:
        async with self._free:
            return await self._answer(question) if self._breaker.admits() else None

    async def _answer(self, question: Callable[[], Awaitable[T]]) -> T | None:
        try:
            answer = await question()
        except (ValkeyError, OSError) as error:
            self._fail(error)
            return None
        except BaseException:
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()
        return answer

    async def close(self) -> None:
        await self.client.aclose()

    def _fail(self, error: Exception) -> None:
        self._breaker.failed()
        if self._breaker.state is State.OPEN:
            # Only its kind: the text may hold the address with its password.
            fields = {"error": type(error).__name__}
            logger.warning("Redis fails; going on without it", extra={"fields": fields})


class SharedShelf:
    """Entries that every process on the same Redis sees."""

    def __init__(self, redis: SharedRedis) -> None:
        self._redis = redis

    async def get(self, key: str) -> Entry | None:
        raw = await self._redis.ask(lambda: self._redis.client.get(_name("entry", key)))
        return _unpacked(raw) if raw else None

    async def put(self, key: str, entry: Entry, seconds: float) -> None:
        life = max(1, int(seconds * 1000))
        await self._redis.ask(
            lambda: self._redis.client.set(_name("entry", key), _packed(entry), px=life)
        )


class SharedWindow:
    """Turns that every process on the same Redis counts; each for itself while Redis is away."""

    def __init__(self, redis: SharedRedis, limit: int, window: float = 1.0) -> None:
        self._redis = redis
        self._limit = limit
        self._window = window
        self._alone = SlidingWindow(limit, window)
        self._script = redis.client.register_script(_TAKE)

    async def take(self, client: str, patience: float) -> float | None:
        arguments = [self._limit, int(self._window * 1e6), int(patience * 1e6)]
        answer = await self._redis.ask(
            lambda: self._script(keys=[_name("turns", client)], args=arguments)
        )
        if answer is None:
            return await self._alone.take(client, patience)
        granted, microseconds = answer
        wait = float(microseconds) / 1e6
        if not granted:
            return wait
        if wait > 0:
            await anyio.sleep(wait)
        return None


def _name(kind: str, key: str) -> str:
    return f"{_PREFIX}{kind}:{hashlib.sha256(key.encode()).hexdigest()}"


def _packed(entry: Entry) -> bytes:
    reply = entry.reply
    facts = [entry.fetched_at, entry.ttl, reply.status, reply.etag, reply.location, reply.max_age]
    return json.dumps(facts).encode() + b"\n" + reply.body


def _unpacked(raw: bytes) -> Entry | None:
    """The entry; None for bytes that another version, or somebody else, wrote there."""
    head, _, body = raw.partition(b"\n")
    try:
        fetched_at, ttl, status, etag, location, max_age = json.loads(head)
        reply = Reply(int(status), body, etag, location, max_age)
        return Entry(reply, float(fetched_at), float(ttl))
    except (ValueError, TypeError):
        return None

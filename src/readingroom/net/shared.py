"""Cache backend and rate limiter in Redis, so that several processes share them.

When Redis fails, calls go on: the cache is empty, and each process limits its own requests. Only
when the upstream fails too, a process serves the copy that it last had. A circuit breaker keeps a
dead Redis from costing every call its timeout. No text of a caller is stored: keys are digests.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from valkey.asyncio import Valkey
from valkey.exceptions import ResponseError, ValkeyError

from readingroom.core.errors import InvalidSetting
from readingroom.core.lru import LRUCache
from readingroom.net.breaker import BreakerState, CircuitBreaker
from readingroom.net.cache import CacheEntry, Reply, estimate_entry_bytes
from readingroom.net.limiter import SlidingWindow

logger = logging.getLogger(__name__)

# Redis is there to save time: when it is slow, going on without it is faster.
_REDIS_TIMEOUT_SECONDS = 0.5
_MAX_REDIS_CONNECTIONS = 8  # a burst queues here, not for new connections to Redis
_MAX_LOCAL_COPY_BYTES = 64 * 1024 * 1024
_REDIS_KEY_PREFIX = "readingroom:upstream:"

# Times are microseconds of Redis's own clock, which all processes share. The list holds the last
# `limit` turns; a turn that would come too late is not taken.
# Times are written with `%.0f`: Lua itself gives a number fourteen digits, and these have sixteen.
_ACQUIRE_TURN_LUA = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, window, max_wait = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local before = redis.call('LINDEX', KEYS[1], -limit)
local turn = now
if before and tonumber(before) + window > now then turn = tonumber(before) + window end
if turn - now > max_wait then return {0, turn - now} end
redis.call('RPUSH', KEYS[1], string.format('%.0f', turn))
redis.call('LTRIM', KEYS[1], -limit, -1)
redis.call('PEXPIRE', KEYS[1], math.ceil((turn - now + window) / 1000) + 1000)
return {1, turn - now}
"""

Result = TypeVar("Result")
_REDIS_FAILURE_MARKER: Any = object()


class RedisConnection:
    """A connection to Redis that may be down."""

    def __init__(self, url: str, circuit_breaker: CircuitBreaker | None = None) -> None:
        try:
            self.client: Any = Valkey.from_url(
                url,
                socket_timeout=_REDIS_TIMEOUT_SECONDS,
                socket_connect_timeout=_REDIS_TIMEOUT_SECONDS,
            )
        except ValueError as error:  # the message leaves out the address, which may hold a password
            raise InvalidSetting(
                "REDIS_URL: write it as redis://host:port/0, rediss://… or unix://path"
            ) from error
        # Each failure may cost a caller the whole timeout, so two in a row are enough.
        self._breaker = circuit_breaker or CircuitBreaker(failure_threshold=2, pause_seconds=5.0)
        self._connection_slots = anyio.Semaphore(_MAX_REDIS_CONNECTIONS)

    async def try_command(
        self, send_command: Callable[[], Awaitable[Result]], value_on_failure: Result | None = None
    ) -> Result | None:
        """Return what Redis answers to a command; `value_on_failure` while it fails."""
        async with self._connection_slots:
            return (
                await self._send_command_or_give_up(send_command, value_on_failure)
                if self._breaker.allow_request()
                else value_on_failure
            )

    async def _send_command_or_give_up(
        self, send_command: Callable[[], Awaitable[Result]], value_on_failure: Result | None
    ) -> Result | None:
        try:
            redis_answer = await send_command()
        except (ValkeyError, OSError) as error:
            self._record_failure(error)
            return value_on_failure
        except BaseException:
            self._breaker.record_cancelled()
            raise
        self._breaker.record_success()
        return redis_answer

    async def close(self) -> None:
        await self.client.aclose()

    def _record_failure(self, redis_error: Exception) -> None:
        self._breaker.record_failure()
        if self._breaker.state is BreakerState.OPEN:
            # The class name only: the message may hold the address with its password.
            log_fields = {"error": type(redis_error).__name__}
            logger.warning("Redis fails; continuing without it", extra={"fields": log_fields})


class RedisCacheBackend:
    """Cache backend that every process on the same Redis shares.

    What this process last put there or got from there is kept in memory too, as a last resort.
    """

    def __init__(self, redis_connection: RedisConnection) -> None:
        self._redis = redis_connection
        self._own_copies: LRUCache[str, CacheEntry] = LRUCache(
            _MAX_LOCAL_COPY_BYTES, _estimate_entry_bytes
        )

    async def find_entry(self, cache_key: str) -> CacheEntry | None:
        _, cache_entry = await self._read_redis_entry(_make_redis_key("entry", cache_key))
        return cache_entry

    async def find_last_known_entry(self, cache_key: str) -> CacheEntry | None:
        redis_key = _make_redis_key("entry", cache_key)
        is_redis_answering, cache_entry = await self._read_redis_entry(redis_key)
        return cache_entry if is_redis_answering else self._own_copies.get(redis_key)

    async def put_entry(self, cache_key: str, cache_entry: CacheEntry, kept_seconds: float) -> None:
        redis_key = _make_redis_key("entry", cache_key)
        self._keep_local_copy(redis_key, cache_entry if kept_seconds > 0 else None)
        # Redis takes no expiry of zero; after a millisecond the older entry is gone all the same.
        kept_milliseconds = max(1, int(kept_seconds * 1000))
        await self._redis.try_command(
            lambda: self._redis.client.set(
                redis_key, _encode_entry(cache_entry), px=kept_milliseconds
            )
        )

    async def _read_redis_entry(self, redis_key: str) -> tuple[bool, CacheEntry | None]:
        """Return whether Redis answers, and the entry that it has."""
        encoded_entry = await self._redis.try_command(
            lambda: self._read_redis_bytes(redis_key), value_on_failure=_REDIS_FAILURE_MARKER
        )
        if encoded_entry is _REDIS_FAILURE_MARKER:
            return False, None
        cache_entry = _decode_entry(encoded_entry) if encoded_entry else None
        self._keep_local_copy(redis_key, cache_entry)
        return True, cache_entry

    async def _read_redis_bytes(self, redis_key: str) -> bytes | None:
        try:
            encoded_entry: bytes | None = await self._redis.client.get(redis_key)
        except ResponseError as error:
            # Another program's list or set under our key: Redis is well, and has no entry of ours.
            if str(error).startswith("WRONGTYPE"):
                return None
            raise
        return encoded_entry

    def _keep_local_copy(self, redis_key: str, cache_entry: CacheEntry | None) -> None:
        # What Redis no longer has, another process may have replaced: it is no last resort either.
        if cache_entry is None:
            self._own_copies.discard(redis_key)
        else:
            self._own_copies.put(redis_key, cache_entry)


class RedisLimiter:
    """Limiter that every process on the same Redis shares; local while Redis is down."""

    def __init__(
        self, redis_connection: RedisConnection, max_requests: int, window_seconds: float = 1.0
    ) -> None:
        self._redis = redis_connection
        self._max_requests = max_requests
        self._window_seconds = window_seconds
        self._local_limiter = SlidingWindow(max_requests, window_seconds)
        self._acquire_script = redis_connection.client.register_script(_ACQUIRE_TURN_LUA)

    async def acquire_turn(self, client_id: str, max_wait_seconds: float) -> float | None:
        script_arguments = [
            self._max_requests,
            int(self._window_seconds * 1e6),
            int(max_wait_seconds * 1e6),
        ]
        script_answer = await self._redis.try_command(
            lambda: self._acquire_script(
                keys=[_make_redis_key("turns", client_id)], args=script_arguments
            )
        )
        if script_answer is None:
            return await self._local_limiter.acquire_turn(client_id, max_wait_seconds)
        is_granted, wait_microseconds = script_answer
        wait_seconds = float(wait_microseconds) / 1e6
        if not is_granted:
            return wait_seconds
        if wait_seconds > 0:
            await anyio.sleep(wait_seconds)
        return None


def _estimate_entry_bytes(redis_key: str, cache_entry: CacheEntry) -> int:
    return len(redis_key) + estimate_entry_bytes(cache_entry)


def _make_redis_key(key_kind: str, cache_key: str) -> str:
    return f"{_REDIS_KEY_PREFIX}{key_kind}:{hashlib.sha256(cache_key.encode()).hexdigest()}"


def _encode_entry(cache_entry: CacheEntry) -> bytes:
    upstream_reply = cache_entry.reply
    header_values = [
        cache_entry.fetched_at,
        cache_entry.ttl_seconds,
        upstream_reply.status,
        upstream_reply.etag,
        upstream_reply.location,
        upstream_reply.max_age,
    ]
    return json.dumps(header_values).encode() + b"\n" + upstream_reply.body


def _decode_entry(encoded_entry: bytes) -> CacheEntry | None:
    """Return the entry; None for bytes that another version, or another program, wrote."""
    header_line, _, reply_body = encoded_entry.partition(b"\n")
    try:
        fetched_at, ttl_seconds, http_status, etag, redirect_location, max_age = json.loads(
            header_line
        )
        upstream_reply = Reply(int(http_status), reply_body, etag, redirect_location, max_age)
        return CacheEntry(upstream_reply, float(fetched_at), float(ttl_seconds))
    except (ValueError, TypeError):
        return None

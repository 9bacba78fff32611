"""The polite client and its cache, part by part, with clocks that stand still."""

import contextlib
import random
import socket
from collections.abc import Callable
from itertools import pairwise

import anyio
import httpx2
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from readingroom.bases.guidance.errors import NotFoundOrRedirected
from readingroom.net.breaker import BreakerState, CircuitBreaker
from readingroom.net.cache import (
    Cache,
    CacheEntry,
    MemoryCacheBackend,
    Reply,
    SingleFlight,
    StoredVersion,
)
from readingroom.net.errors import UpstreamError, UpstreamRateLimited, UpstreamUnavailable
from readingroom.net.http import RetryPolicy
from readingroom.net.limiter import SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.shared import RedisCacheBackend, RedisConnection
from readingroom.net.upstream import MAX_BODY_BYTES, CallContext, Request, UpstreamClient
from tests.requirements import requirement
from tests.support.govuk import PLENTY, RETURN, Clock, run_emulator

pytestmark = pytest.mark.anyio


# --- the breaker ---


@requirement("guidance:breaker")
def test_the_breaker_opens_after_failures_in_a_row_and_a_success_starts_the_count_anew() -> None:
    breaker = CircuitBreaker(failure_threshold=3, read_clock=Clock())
    for outcome in (
        breaker.record_failure,
        breaker.record_failure,
        breaker.record_success,
        breaker.record_failure,
    ):
        outcome()
    assert breaker.allow_request()
    breaker.record_failure()
    breaker.record_failure()
    assert not breaker.allow_request()
    assert breaker.state is BreakerState.OPEN


@requirement("guidance:breaker")
def test_after_its_pause_the_breaker_lets_one_through_and_its_outcome_decides() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failure_threshold=1, pause_seconds=10, read_clock=clock)
    breaker.record_failure()
    clock.now += 9
    assert (breaker.allow_request(), breaker.wait_seconds) == (False, 1)
    clock.now += 1
    assert [breaker.allow_request(), breaker.allow_request()] == [True, False]
    breaker.record_failure()
    assert not breaker.allow_request()
    clock.now += 10
    assert breaker.allow_request()
    breaker.record_success()
    assert breaker.state is BreakerState.CLOSED


@requirement("guidance:breaker")
def test_a_probe_whose_caller_left_does_not_keep_the_breaker_shut() -> None:
    clock = Clock()
    breaker = CircuitBreaker(failure_threshold=1, pause_seconds=10, read_clock=clock)
    breaker.record_failure()
    clock.now += 10
    assert breaker.allow_request()
    breaker.record_cancelled()
    assert breaker.allow_request()


# --- the limiter ---


@requirement("guidance:limit")
@settings(deadline=None)
@given(
    limit=st.integers(1, 12),
    arrivals=st.lists(st.tuples(st.floats(0, 0.7), st.floats(0, 3)), max_size=60),
)
def test_no_window_ever_holds_more_turns_than_the_limit(
    limit: int, arrivals: list[tuple[float, float]]
) -> None:
    clock = Clock(0.0)
    limiter = SlidingWindow(limit, read_clock=clock, sleep=clock.sleep)
    taken: list[float] = []

    async def all_come() -> None:
        for pause, patience in arrivals:
            clock.now += pause
            if await limiter.acquire_turn("ann", patience) is None:
                taken.append(clock.now)

    anyio.run(all_come)
    rounding = 1e-9
    spans = zip(taken, taken[limit:], strict=False)
    assert all(last - first >= 1.0 - rounding for first, last in spans)


@requirement("guidance:limit")
async def test_of_a_burst_of_500_ten_go_ten_wait_and_the_rest_hear_at_once_when_to_come() -> None:
    limiter = SlidingWindow(10)
    times: list[float] = []
    refused: list[float] = []
    started = anyio.current_time()

    async def one() -> None:
        missing = await limiter.acquire_turn("ann", 1.0)
        if missing is None:
            times.append(anyio.current_time() - started)
        else:
            refused.append(missing)

    async with anyio.create_task_group() as burst:
        for _ in range(500):
            burst.start_soon(one)
    times.sort()
    assert 10 < len(times) <= 20
    assert len(times) + len(refused) == 500
    assert min(refused) > 1.0
    assert all(later - earlier >= 1.0 for earlier, later in zip(times, times[10:], strict=False))


@requirement("guidance:limit")
async def test_clients_do_not_share_their_turns() -> None:
    clock = Clock()
    limiter = SlidingWindow(1, read_clock=clock, sleep=clock.sleep)
    assert await limiter.acquire_turn("ann", 0) is None
    assert await limiter.acquire_turn("ann", 0) == 1.0
    assert await limiter.acquire_turn("bob", 0) is None


@requirement("guidance:limit")
async def test_who_wakes_late_moves_those_after_him() -> None:
    clock = Clock(0.0)

    async def oversleep(seconds: float) -> None:
        clock.now += seconds + 0.3

    limiter = SlidingWindow(1, read_clock=clock, sleep=oversleep)
    taken = []
    for _ in range(3):
        assert await limiter.acquire_turn("ann", 5) is None
        taken.append(clock.now)
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(taken))


class CountingLimiter:
    """Grants every turn, and keeps whose it was."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    async def acquire_turn(self, client: str, max_wait: float) -> float | None:
        self.turns.append(client)
        return None


@requirement("guidance:limit")
async def test_the_budget_is_counted_when_a_request_is_sent() -> None:
    """Those who had their turn and then waited for a connection do not leave together."""
    clock = Clock(0.0)
    sent_at: list[float] = []
    connection_is_free = anyio.Event()

    class OneConnection(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await connection_is_free.wait()
            await request.extensions["trace"]("http11.send_request_headers.started", {})
            sent_at.append(clock.now)
            return httpx2.Response(200, json={})

    limiter = SlidingWindow(2, read_clock=clock, sleep=clock.sleep)
    client = UpstreamClient(
        "http://govuk.example",
        limiter,
        UpstreamMetrics(),
        timeout_seconds=600.0,
        read_clock=clock,
        sleep=clock.sleep,
    )
    client.__dict__["_http_client"] = httpx2.AsyncClient(transport=OneConnection())
    async with anyio.create_task_group() as burst:
        for number in range(12):
            request = Request("content", f"/api/content/{number}")
            burst.start_soon(client.send_get, request, CallContext("ann", "1"))
        await anyio.wait_all_tasks_blocked()
        connection_is_free.set()
    await client.close()
    assert len(sent_at) == 12
    rounding = 1e-9
    spans = zip(sent_at, sent_at[2:], strict=False)
    assert all(later - earlier >= 1.0 - rounding for earlier, later in spans)


async def test_every_request_takes_a_turn_on_its_open_connection() -> None:
    limiter = CountingLimiter()
    with run_emulator() as upstream:
        client = UpstreamClient(upstream.url, limiter, UpstreamMetrics())
        for _ in range(3):
            await client.send_get(
                Request("content", f"/api/content{RETURN}"), CallContext("ann", "1")
            )
        await client.close()
    assert [turn.split()[0] for turn in limiter.turns] == ["to", "sent"] * 3


# --- the cache ---


class Source:
    """Counts how often it is asked, and answers or fails as told."""

    def __init__(self, reply: Reply | None) -> None:
        self.reply = reply
        self.failure: Exception | None = None
        self.etags: list[str | None] = []
        self.spare = False

    async def fetch(self, held: StoredVersion) -> Reply | None:
        self.etags.append(held.etag)
        self.spare = held.is_served_if_fetch_fails
        await checkpoint()
        if self.failure:
            raise self.failure
        return self.reply


PAGE = Reply(200, b"{}", etag='"1"')


def make_cache(clock: Clock, stale: float = 100.0) -> Cache:
    return Cache(MemoryCacheBackend(read_clock=clock), stale, read_clock=clock)


@requirement("guidance:cache")
async def test_an_entry_is_fresh_for_its_ttl_and_then_asked_for_with_its_etag() -> None:
    clock, source = Clock(), Source(PAGE)
    cache = make_cache(clock)
    assert not (await cache.get_reply("k", 60, source.fetch)).is_from_cache
    clock.now += 59.9
    kept = await cache.get_reply("k", 60, source.fetch)
    assert (kept.is_from_cache, round(kept.age_seconds, 1)) == (True, 59.9)
    clock.now += 0.1
    source.reply = None  # not changed
    renewed = await cache.get_reply("k", 60, source.fetch)
    assert (renewed.is_from_cache, renewed.age_seconds, renewed.reply) == (False, 0.0, PAGE)
    assert source.etags == [None, '"1"']


@requirement("guidance:cache")
@pytest.mark.parametrize(("max_age", "ttl"), [(None, 60), (300, 60), (5, 5), (0, 0)])
async def test_the_upstreams_max_age_shortens_a_ttl_and_never_lengthens_it(
    max_age: float | None, ttl: float
) -> None:
    source = Source(Reply(200, b"{}", max_age=max_age))
    cached = await make_cache(Clock()).get_reply("k", 60, source.fetch)
    assert cached.entry.ttl_seconds == ttl


@requirement("guidance:cache")
async def test_what_may_not_be_kept_is_asked_for_each_time() -> None:
    source = Source(Reply(200, b"{}", max_age=0))
    cache = make_cache(Clock())
    for _ in range(3):
        await cache.get_reply("k", 60, source.fetch)
    assert len(source.etags) == 3


@requirement("guidance:stale")
async def test_a_page_that_was_there_before_is_not_served_once_it_is_known_to_be_gone() -> None:
    clock, source = Clock(), Source(PAGE)
    cache = make_cache(clock)
    await cache.get_reply("k", 60, source.fetch)
    clock.now += 60
    source.reply = Reply(404, b"", max_age=0)
    await cache.get_reply("k", 60, source.fetch)
    source.failure = UpstreamUnavailable("down")
    with pytest.raises(UpstreamUnavailable):
        await cache.get_reply("k", 60, source.fetch)


@requirement("guidance:cache", "guidance:stale")
@pytest.mark.parametrize(("age", "served"), [(60, True), (159.9, True), (160, False), (500, False)])
async def test_a_stale_entry_is_served_only_while_the_upstream_fails_and_only_so_long(
    age: float, served: bool
) -> None:
    clock, source = Clock(), Source(PAGE)
    cache = make_cache(clock, stale=100)
    await cache.get_reply("k", 60, source.fetch)
    clock.now += age
    source.failure = UpstreamUnavailable("down")
    if served:
        stale = await cache.get_reply("k", 60, source.fetch)
        assert (stale.outcome, round(stale.age_seconds, 1)) == ("stale", age)
        assert source.spare, "the fetch should know that there is something to serve"
    else:
        with pytest.raises(UpstreamUnavailable):
            await cache.get_reply("k", 60, source.fetch)
        assert not source.spare


@requirement("guidance:stale")
async def test_neither_a_missing_page_nor_an_error_of_ours_is_answered_stale() -> None:
    clock, source = Clock(), Source(Reply(404, b""))
    cache = make_cache(clock)
    await cache.get_reply("k", 60, source.fetch)
    clock.now += 61
    source.failure = UpstreamUnavailable("down")
    with pytest.raises(UpstreamUnavailable):
        await cache.get_reply("k", 60, source.fetch)
    source.failure = NotFoundOrRedirected("a bug would be told, not hidden")
    with pytest.raises(NotFoundOrRedirected):
        await cache.get_reply("k", 60, source.fetch)


@requirement("guidance:refresh")
async def test_a_refresh_goes_past_a_fresh_entry_without_its_etag() -> None:
    source = Source(PAGE)
    cache = make_cache(Clock())
    await cache.get_reply("k", 60, source.fetch)
    source.reply = Reply(200, b'{"new": 1}')
    await cache.fetch_fresh_reply("k", 60, source.fetch)
    kept = await cache.get_reply("k", 60, source.fetch)
    assert (kept.is_from_cache, kept.reply.body) == (True, b'{"new": 1}')
    assert source.etags == [None, None]


@requirement("guidance:cache")
async def test_a_shelf_forgets_the_least_used_and_what_is_over_its_time() -> None:
    clock = Clock()
    shelf = MemoryCacheBackend(max_bytes=3000, read_clock=clock)
    entry = CacheEntry(Reply(200, b"x" * 300), clock.now, 60)
    for key in "abc":
        await shelf.put_entry(key, entry, 10)
    await shelf.find_entry("a")
    await shelf.put_entry("d", entry, 10)
    assert [bool(await shelf.find_entry(key)) for key in "abcd"] == [True, False, True, True]
    clock.now += 10.1
    assert not any([await shelf.find_entry(key) for key in "abcd"])


@requirement("guidance:cache")
async def test_those_who_ask_together_share_one_fetch_and_also_its_failure() -> None:
    source = Source(PAGE)
    cache = make_cache(Clock())
    outcomes: list[object] = []

    async def one() -> None:
        try:
            outcomes.append((await cache.get_reply("k", 60, source.fetch)).reply)
        except UpstreamUnavailable as failure:
            outcomes.append(failure)

    for failure in (None, UpstreamUnavailable("down")):
        source.failure, source.etags = failure, []
        cache = make_cache(Clock())
        outcomes.clear()
        async with anyio.create_task_group() as stampede:
            for _ in range(200):
                stampede.start_soon(one)
        assert outcomes == [failure or PAGE] * 200
        assert len(source.etags) == 1


@requirement("guidance:cache")
async def test_when_the_one_who_fetches_leaves_another_takes_over() -> None:
    flights: SingleFlight[str] = SingleFlight()
    started = anyio.Event()
    results: list[str] = []

    async def never() -> str:
        started.set()
        await anyio.sleep_forever()
        return "never"

    async def at_once() -> str:
        return "other"

    async def follow() -> None:
        results.append(await flights.run_once("k", at_once))

    async with anyio.create_task_group() as tasks:
        leader = anyio.CancelScope()

        async def lead() -> None:
            with leader:
                await flights.run_once("k", never)

        tasks.start_soon(lead)
        await started.wait()
        tasks.start_soon(follow)
        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        leader.cancel()
    assert results == ["other", "other"]


# --- the client ---

Handler = Callable[[httpx2.Request], httpx2.Response]


def make_client(handler: Handler, clock: Clock) -> UpstreamClient:
    """A client whose network is a function."""
    client = UpstreamClient(
        "https://host.example",
        SlidingWindow(PLENTY),
        UpstreamMetrics(),
        circuit_breaker=CircuitBreaker(failure_threshold=5, pause_seconds=15, read_clock=clock),
        read_clock=clock,
        sleep=clock.sleep,
        draw_jitter=lambda: 0.5,
    )
    client._http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    return client


def make_answering_handler(
    *responses: httpx2.Response | Exception,
) -> tuple[Handler, list[httpx2.Request]]:
    """Gives these in turn, the last for ever."""
    asked: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        given = responses[min(len(asked), len(responses)) - 1]
        if isinstance(given, Exception):
            raise given
        return given

    return handler, asked


ASKED = Request("content", "/api/content/x")
CONTEXT = CallContext("ann", "corr-1")
GOOD = httpx2.Response(200, json={"ok": True})


@requirement("guidance:backoff")
@pytest.mark.parametrize(
    "fault",
    [
        httpx2.Response(500),
        httpx2.Response(503),
        httpx2.Response(429),
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("cut off"),
        httpx2.Response(200, text="<html>", headers={"Content-Type": "text/html"}),
        httpx2.Response(200, text='{"cut":', headers={"Content-Type": "application/json"}),
        httpx2.Response(200, json=["no object"]),
        httpx2.Response(200, text="NaN", headers={"Content-Type": "application/json"}),
    ],
    ids=str,
)
async def test_a_passing_fault_is_tried_again_after_a_wait_that_doubles(
    fault: httpx2.Response | Exception,
) -> None:
    clock = Clock()
    handler, asked = make_answering_handler(fault, fault, GOOD)
    reply = await make_client(handler, clock).send_get(ASKED, CONTEXT)
    assert reply is not None
    assert reply.status == 200
    assert len(asked) == 3
    assert [round(wait, 6) for wait in clock.slept] == [0.2, 0.4]


@requirement("guidance:backoff")
def test_the_jitter_spreads_the_waits() -> None:
    policy = RetryPolicy(first_wait_seconds=0.2, draw_jitter=random.Random(1).random)
    for attempt, middle in enumerate((0.2, 0.4, 0.8)):
        waits = [policy.compute_backoff(attempt) for _ in range(200)]
        assert middle * 0.5 <= min(waits) < middle * 0.6
        assert middle * 1.4 < max(waits) <= middle * 1.5


@requirement("guidance:backoff")
async def test_four_attempts_are_the_most_and_the_deadline_bounds_them() -> None:
    clock = Clock()
    handler, asked = make_answering_handler(httpx2.Response(500))
    client = make_client(handler, clock)
    with pytest.raises(UpstreamUnavailable, match="500"):
        await client.send_get(ASKED, CONTEXT)
    assert len(asked) == 4
    handler, asked = make_answering_handler(httpx2.Response(503, headers={"Retry-After": "11"}))
    with pytest.raises(UpstreamUnavailable):
        await make_client(handler, Clock()).send_get(ASKED, CONTEXT)
    assert len(asked) == 1


@requirement("guidance:stale")
async def test_with_a_copy_to_serve_there_is_one_short_attempt() -> None:
    clock = Clock()
    handler, asked = make_answering_handler(httpx2.Response(500))
    with pytest.raises(UpstreamUnavailable):
        await make_client(handler, clock).send_get(
            Request("content", "/api/content/x", fail_fast=True), CONTEXT
        )
    assert (len(asked), clock.slept) == (1, [])


@requirement("guidance:backoff", "guidance:rate-limited")
@pytest.mark.parametrize("told", ["3", "Sun, 15 Nov 2026 08:00:03 GMT"])
async def test_retry_after_is_kept_as_a_number_and_as_a_date(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readingroom.net.http.clock.read_unix_seconds", lambda: 1794729600.0)
    clock = Clock()
    handler, _ = make_answering_handler(httpx2.Response(429, headers={"Retry-After": told}), GOOD)
    await make_client(handler, clock).send_get(ASKED, CONTEXT)
    assert clock.slept == [3.0]


@requirement("guidance:rate-limited")
async def test_while_the_host_wants_to_be_left_alone_nobody_asks_it() -> None:
    clock = Clock()
    handler, asked = make_answering_handler(
        httpx2.Response(429, headers={"Retry-After": "60"}), GOOD
    )
    client = make_client(handler, clock)
    for _ in range(3):
        with pytest.raises(UpstreamRateLimited) as refused:
            await client.send_get(ASKED, CONTEXT)
    assert len(asked) == 1
    assert refused.value.hint["retry_after"] == 60
    clock.now += 60
    assert await client.send_get(ASKED, CONTEXT)


@requirement("guidance:breaker")
async def test_a_host_that_keeps_failing_is_left_alone_and_then_found_again() -> None:
    clock = Clock()
    handler, asked = make_answering_handler(*[httpx2.Response(500)] * 6, GOOD)
    client = make_client(handler, clock)
    for _ in range(4):
        with pytest.raises(UpstreamUnavailable):
            await client.send_get(ASKED, CONTEXT)
    assert len(asked) == 5
    clock.now += 15
    with pytest.raises(UpstreamUnavailable):
        await client.send_get(ASKED, CONTEXT)  # the probe fails: one request, no retries
    assert len(asked) == 6
    clock.now += 15
    assert await client.send_get(ASKED, CONTEXT)
    assert client.breaker.state is BreakerState.CLOSED


@requirement("guidance:breaker")
async def test_a_caller_who_leaves_during_the_probe_does_not_keep_the_breaker_shut() -> None:
    clock = Clock()
    client = make_client(make_answering_handler(GOOD)[0], clock)
    for _ in range(5):
        client.breaker.record_failure()
    clock.now += 15

    async def slowly(request: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()
        return GOOD

    good = client._http_client
    client._http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(slowly))
    with anyio.move_on_after(0.05):
        await client.send_get(ASKED, CONTEXT)
    client._http_client = good
    assert await client.send_get(ASKED, CONTEXT)


@requirement("guidance:breaker", "guidance:rate-limited")
async def test_a_pause_that_begins_while_the_breaker_is_open_leaves_room_for_a_probe() -> None:
    clock = Clock()
    client = make_client(make_answering_handler(GOOD)[0], clock)
    for _ in range(5):
        client.breaker.record_failure()
    client._resume_at = clock.now + 20
    clock.now += 15
    with pytest.raises(UpstreamRateLimited):
        await client.send_get(ASKED, CONTEXT)
    clock.now += 5
    assert await client.send_get(ASKED, CONTEXT)


async def test_a_304_that_nobody_asked_for_is_a_fault() -> None:
    with pytest.raises(UpstreamUnavailable):
        await make_client(make_answering_handler(httpx2.Response(304))[0], Clock()).send_get(
            ASKED, CONTEXT
        )


async def test_no_cookie_is_carried_from_one_request_to_the_next() -> None:
    handler, asked = make_answering_handler(
        httpx2.Response(200, json={}, headers={"Set-Cookie": "ab=1"})
    )
    client = make_client(handler, Clock())
    await client.send_get(ASKED, CONTEXT)
    await client.send_get(ASKED, CONTEXT)
    assert "cookie" not in asked[1].headers


@requirement("guidance:breaker")
@pytest.mark.parametrize("status", [404, 410, 422, 403, 429])
async def test_a_host_that_refuses_is_a_host_at_work(status: int) -> None:
    clock = Clock()
    client = make_client(make_answering_handler(httpx2.Response(status))[0], clock)
    for _ in range(10):
        with contextlib.suppress(UpstreamError):
            await client.send_get(ASKED, CONTEXT)
    assert client.breaker.state is BreakerState.CLOSED


async def test_a_body_without_end_is_not_read_to_the_end() -> None:
    read = 0

    async def endless() -> object:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 65536

    def handler(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=endless())

    with pytest.raises(UpstreamUnavailable, match="5 MB"):
        await make_client(handler, Clock()).send_get(ASKED, CONTEXT)
    assert read * 65536 <= MAX_BODY_BYTES + 2 * 65536


@requirement("guidance:readonly")
async def test_only_get_is_ever_sent_and_the_correlation_id_goes_with_it() -> None:
    handler, asked = make_answering_handler(GOOD)
    client = make_client(handler, Clock())
    await client.send_get(Request("content", "/api/content/x", etag='"1"'), CONTEXT)
    await client.send_get(Request("search", "/api/search.json", (("q", "a&b=c d"),)), CONTEXT)
    assert [request.method for request in asked] == ["GET", "GET"]
    assert asked[0].headers["x-correlation-id"] == "corr-1"
    assert asked[0].headers["if-none-match"] == '"1"'
    assert asked[1].url.params["q"] == "a&b=c d"


def test_a_meter_has_its_collectors_to_show() -> None:
    assert len(UpstreamMetrics().collectors) == 4


def answer_by_path(failing: str) -> tuple[Handler, list[str]]:
    """Gives 500 for paths that begin like this, else a page; lists what was asked."""
    asked: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return httpx2.Response(500) if request.url.path.startswith(failing) else GOOD

    return handler, asked


@requirement("guidance:breaker")
async def test_one_page_that_keeps_failing_closes_no_other() -> None:
    clock = Clock()
    handler, asked = answer_by_path("/api/content/bad")
    client = make_client(handler, clock)
    bad, good = (Request("content", f"/api/content/{name}") for name in ("bad", "good"))
    for _ in range(3):
        with pytest.raises(UpstreamUnavailable):
            await client.send_get(bad, CONTEXT)
    assert asked.count("/api/content/bad") == 5
    with pytest.raises(UpstreamUnavailable, match="this page") as refused:
        await client.send_get(bad, CONTEXT)
    assert refused.value.hint["retry_after"] > 0
    assert await client.send_get(good, CONTEXT)
    assert asked.count("/api/content/bad") == 5


@requirement("guidance:breaker")
async def test_a_host_whose_pages_fail_one_after_the_other_is_left_alone() -> None:
    handler, asked = answer_by_path("/api/content/bad")
    client = make_client(handler, Clock())
    for number in range(5):
        with pytest.raises(UpstreamUnavailable):
            await client.send_get(Request("content", f"/api/content/bad{number}"), CONTEXT)
    count = len(asked)
    with pytest.raises(UpstreamUnavailable, match="no request is sent"):
        await client.send_get(Request("content", "/api/content/good"), CONTEXT)
    assert len(asked) == count


@requirement("guidance:backoff")
@pytest.mark.parametrize("retry_after", ["0", "Mon, 01 Jan 2001 00:00:00 GMT"])
async def test_a_host_cannot_switch_the_backoff_off(retry_after: str) -> None:
    clock = Clock()
    refusal = httpx2.Response(429, headers={"Retry-After": retry_after})
    client = make_client(make_answering_handler(refusal, refusal, GOOD)[0], clock)
    assert await client.send_get(ASKED, CONTEXT)
    assert clock.slept == [0.2, 0.4]


async def test_while_redis_and_the_upstream_fail_what_this_process_had_is_the_last_resort() -> None:
    clock, source = Clock(), Source(PAGE)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        redis = RedisConnection(f"redis://127.0.0.1:{held.getsockname()[1]}/0")
        cache = Cache(RedisCacheBackend(redis), 100.0, read_clock=clock)
        for _ in range(2):
            assert not (
                await cache.get_reply("k", 60, source.fetch)
            ).is_from_cache  # live, while it can be had
        source.failure = UpstreamUnavailable("down")
        clock.now += 30
        for ask in (cache.get_reply, cache.fetch_fresh_reply):
            served = await ask("k", 60, source.fetch)
            assert (served.reply, served.outcome, served.age_seconds) == (PAGE, "stale", 30)
        clock.now += 130
        with pytest.raises(UpstreamUnavailable):
            await cache.get_reply("k", 60, source.fetch)
        await redis.close()

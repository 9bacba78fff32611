"""A GOV.UK of our own for tests: the emulator on a real socket, and the base in front of it."""

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp import Client

from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.store import CacheLifetimes, GovukReader
from readingroom.bases.guidance.tools import open_guidance_base
from readingroom.demo.govuk import GovukEmulator, make_sample_content_items, serve_on_loopback
from readingroom.demo.govuk_search import ContentItem
from readingroom.net.breaker import CircuitBreaker
from readingroom.net.cache import Cache, MemoryCacheBackend
from readingroom.net.limiter import SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import CallContext, UpstreamClient
from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server

RETURN = "/guidance/prepare-a-charity-annual-return"
PLENTY = 1000  # calls a second, where the limit is not what is tested


@dataclass
class Upstream:
    """An emulator that answers at `url`."""

    url: str
    emulator: GovukEmulator

    def reset(self) -> "Upstream":
        """As new, on the same socket."""
        self.emulator.items_by_path = make_sample_content_items()
        self.emulator.apply_fault = None
        self.emulator.lists_total = self.emulator.lists_withdrawn = True
        self.emulator.seen_requests.clear()
        return self

    def paths(self) -> list[str]:
        return [seen.path for seen in self.emulator.seen_requests]


@contextlib.contextmanager
def run_emulator(items: dict[str, ContentItem] | None = None) -> Iterator[Upstream]:
    """The emulator on a free port of loopback, in a thread."""
    emulator = GovukEmulator(make_sample_content_items() if items is None else items)
    with serve_on_loopback(emulator) as url:
        yield Upstream(url, emulator)


@contextlib.contextmanager
def reserve_dead_address() -> Iterator[str]:
    """An address where nobody listens, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@contextlib.asynccontextmanager
async def connect_client(url: str, **options: Any) -> AsyncIterator[Client]:
    """A client of the guidance base in front of `url`."""
    base = open_guidance_base(url, **{"requests_per_second": PLENTY, **options})
    async with base.lifespan(), Client(build_mcp_server(make_face(base), [])) as client:
        yield client


@dataclass
class Clock:
    """A clock that stands still until it is moved; who sleeps by it moves it."""

    now: float = 1_000_000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Rig:
    """The base's parts, with clocks that a test holds."""

    service: GuidanceService
    client: UpstreamClient
    wall: Clock
    steady: Clock

    def context(self) -> CallContext:
        return CallContext("tester", "corr-1")


@contextlib.asynccontextmanager
async def rigged(
    url: str,
    *,
    lifetimes: CacheLifetimes | None = None,
    stale_seconds: float = 100.0,
    per_second: int = PLENTY,
    has_real_time: bool = False,
) -> AsyncIterator[Rig]:
    wall, steady = Clock(), Clock()
    meter = UpstreamMetrics()
    client = UpstreamClient(
        url,
        SlidingWindow(per_second),
        meter,
        timeout_seconds=5.0,
        circuit_breaker=CircuitBreaker(read_clock=steady),
        # The budget is counted in real time.
        read_clock=time.monotonic if has_real_time else steady,
        sleep=anyio.sleep if has_real_time else steady.sleep,
        draw_jitter=lambda: 0.5,
    )
    cache = Cache(MemoryCacheBackend(read_clock=wall), stale_seconds, read_clock=wall)
    store = GovukReader(url, client, cache, meter, lifetimes or CacheLifetimes())
    try:
        yield Rig(GuidanceService(store, SlidingWindow(PLENTY)), client, wall, steady)
    finally:
        await client.close()

"""The guidance base's service levels under 50 callers, each with a key of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2

from benchmarks.server.wires import MODERN, Message, call_tool
from benchmarks.table import Table
from readingroom.demo import govuk
from readingroom.storage.keys import KeyRing
from tests.support import faults

CACHED_MS = 300
LIVE_MS = 1000

_CALLERS = 50
_PAGE = "/guidance/prepare-a-charity-annual-return"
_SETTINGS = ("READINGROOM_", "MCP_", "OTEL_", "GOVUK_", "CACHE_", "RATE_", "REDIS_")
_NOTE = (
    "`readingroom serve guidance` in a process of its own with its default limits, 50 callers in "
    "another, 2026-07-28 wire, over real sockets; the emulator answers after 200 ms. Wall time of "
    'a call, callers and emulator included: all share the machine. "At once" is a burst in which '
    "every caller calls at the same moment, {bursts} times. Live calls are `force_refresh` of "
    "pages in turn, {rate} a second by callers in turn: the budget to GOV.UK is 10 a second, "
    "whoever asks. The last row asks for 50 searches at the same moment: five times that budget, "
    "so callers wait their turn."
)


@dataclass(frozen=True)
class Seen:
    """One call: how long it took, and whether it was answered."""

    seconds: float
    error: str | None


def measure(bursts: int, live: int) -> Table:
    """So many bursts of cached calls, so many live ones."""
    rate = 8
    rows = anyio.run(_measure, bursts, live, rate)
    header = ("calls", "count", "answered", "median ms", "p95 ms", "target")
    note = _NOTE.format(bursts=bursts, rate=rate)
    return Table("Guidance: service levels under 50 callers", header, tuple(rows), note)


async def _measure(bursts: int, live: int, rate: int) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        emulator = govuk.Emulator(govuk.sample_items(), fault=faults.slow(0.2))
        keys = [KeyRing(Path(folder)).add(f"caller-{number}") for number in range(_CALLERS)]
        with govuk.on_loopback(emulator) as upstream, _server(folder, upstream) as url:
            async with _callers(url, keys) as callers:
                taxonomy = call_tool("get_error_taxonomy", {})
                page = call_tool("get_content_by_path", {"path": _PAGE})
                await callers.bursts(2, page)  # connections are made, the page is in the cache
                floor = await callers.bursts(bursts, taxonomy)
                cached = await callers.bursts(bursts, page)
                lives = await callers.steadily(live, rate, _pages(emulator))
                over = await callers.searches()
    return [
        _row("`get_error_taxonomy`, 50 at once (the floor)", floor),
        _row("cached page, 50 at once", cached, CACHED_MS),
        _row("live page, within the budget", lives, LIVE_MS),
        _row("live searches, 50 different at once", over),
    ]


@contextlib.contextmanager
def _server(folder: str, upstream: str) -> Iterator[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)}
    # A day, so that "cached" means cached throughout; live calls go past the cache anyway.
    own = {
        "GOVUK_BASE_URL": upstream,
        "CACHE_TTL_CONTENT_SECONDS": "86400",
        "READINGROOM_RATE_LIMIT": "0",
    }
    command = [sys.executable, "-m", "readingroom", "serve", "guidance"]
    with subprocess.Popen(
        [*command, "--port", "0", "--json", "--data", folder],
        env=kept | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["listening"]
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.asynccontextmanager
async def _callers(url: str, keys: list[str]) -> AsyncIterator["Callers"]:
    limits = httpx2.Limits(max_connections=_CALLERS, max_keepalive_connections=_CALLERS)
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as web:
        yield Callers(web, url, keys)


@dataclass
class Callers:
    """Fifty callers, each known by its key."""

    web: httpx2.AsyncClient
    url: str
    keys: list[str]

    async def bursts(self, bursts: int, message: Message) -> list[Seen]:
        """Everybody at the same moment, again and again."""
        seen: list[Seen] = []
        for _ in range(bursts):
            await self._together([message] * len(self.keys), seen)
            await anyio.sleep(0.3)
        return seen

    async def searches(self) -> list[Seen]:
        """Everybody at the same moment, everybody something else."""
        seen: list[Seen] = []
        asked = [
            call_tool("search_guidance", {"query": f"charity {number}"})
            for number in range(len(self.keys))
        ]
        await anyio.sleep(2)
        await self._together(asked, seen)
        return seen

    async def steadily(self, count: int, rate: int, pages: list[str]) -> list[Seen]:
        """One call after the other at a steady rate, by callers and for pages in turn."""
        seen: list[Seen] = []
        async with anyio.create_task_group() as calls:
            for number in range(count):
                message = call_tool("force_refresh", {"path": pages[number % len(pages)]})
                calls.start_soon(self._call, number % len(self.keys), message, seen)
                await anyio.sleep(1 / rate)
        return seen

    async def _together(self, messages: list[Message], seen: list[Seen]) -> None:
        async with anyio.create_task_group() as calls:
            for number, message in enumerate(messages):
                calls.start_soon(self._call, number, message, seen)

    async def _call(self, number: int, message: Message, seen: list[Seen]) -> None:
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "authorization": f"Bearer {self.keys[number]}",
            **message.headers(MODERN),
        }
        started = time.perf_counter()
        response = await self.web.post(
            f"{self.url}/mcp", content=message.on(MODERN), headers=headers
        )
        took = time.perf_counter() - started
        answer: Any = response.json()["result"]["structuredContent"]
        seen.append(Seen(took, answer["error"]["code"] if "error" in answer else None))


def _pages(emulator: govuk.Emulator) -> list[str]:
    """Pages of the Commission; the others would be refused."""
    ours = "charity-commission"
    return [
        path
        for path, item in emulator.items.items()
        if any(
            organisation["base_path"].endswith(ours)
            for organisation in item["links"].get("organisations", [])
        )
    ]


def _row(name: str, seen: list[Seen], target: int | None = None) -> tuple[str, ...]:
    took = sorted(reply.seconds * 1000 for reply in seen)
    p95 = took[int(len(took) * 0.95)]
    answered = sum(reply.error is None for reply in seen)
    verdict = ""
    if target:
        verdict = f"{'met' if p95 < target else '**missed**'} (p95 under {target})"
    middle = took[len(took) // 2]
    return (name, str(len(took)), str(answered), f"{middle:.0f}", f"{p95:.0f}", verdict)

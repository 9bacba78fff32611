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
class TimedReply:
    """One call: how long it took, and whether it was answered."""

    seconds: float
    error: str | None


def measure(bursts: int, live: int) -> Table:
    """So many bursts of cached calls, so many live ones."""
    rate = 8
    rows = anyio.run(_measure_rows, bursts, live, rate)
    header = ("calls", "count", "answered", "median ms", "p95 ms", "target")
    note = _NOTE.format(bursts=bursts, rate=rate)
    return Table("Guidance: service levels under 50 callers", header, tuple(rows), note)


async def _measure_rows(bursts: int, live: int, rate: int) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        emulator = govuk.GovukEmulator(
            govuk.make_sample_content_items(), apply_fault=faults.slow(0.2)
        )
        keys = [KeyRing(Path(folder)).add_key(f"caller-{number}") for number in range(_CALLERS)]
        with govuk.serve_on_loopback(emulator) as upstream, _run_server(folder, upstream) as url:
            async with _open_callers(url, keys) as callers:
                taxonomy = call_tool("get_error_taxonomy", {})
                page = call_tool("get_content_by_path", {"path": _PAGE})
                await callers.call_in_bursts(
                    2, page
                )  # connections are made, the page is in the cache
                floor_replies = await callers.call_in_bursts(bursts, taxonomy)
                cached_replies = await callers.call_in_bursts(bursts, page)
                live_replies = await callers.call_steadily(live, rate, _list_pages(emulator))
                search_replies = await callers.search_at_once()
    return [
        _render_row("`get_error_taxonomy`, 50 at once (the floor)", floor_replies),
        _render_row("cached page, 50 at once", cached_replies, CACHED_MS),
        _render_row("live page, within the budget", live_replies, LIVE_MS),
        _render_row("live searches, 50 different at once", search_replies),
    ]


@contextlib.contextmanager
def _run_server(folder: str, upstream: str) -> Iterator[str]:
    other_variables = {
        key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)
    }
    # A day, so that "cached" means cached throughout; live calls go past the cache anyway.
    own_variables = {
        "GOVUK_BASE_URL": upstream,
        "CACHE_TTL_CONTENT_SECONDS": "86400",
        "READINGROOM_RATE_LIMIT": "0",
    }
    command = [sys.executable, "-m", "readingroom", "serve", "guidance"]
    with subprocess.Popen(
        [*command, "--port", "0", "--json", "--data", folder],
        env=other_variables | own_variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["listening"]
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.asynccontextmanager
async def _open_callers(url: str, keys: list[str]) -> AsyncIterator["Callers"]:
    limits = httpx2.Limits(max_connections=_CALLERS, max_keepalive_connections=_CALLERS)
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as http_client:
        yield Callers(http_client, url, keys)


@dataclass
class Callers:
    """Fifty callers, each known by its key."""

    http_client: httpx2.AsyncClient
    url: str
    keys: list[str]

    async def call_in_bursts(self, bursts: int, message: Message) -> list[TimedReply]:
        """Everybody at the same moment, again and again."""
        replies: list[TimedReply] = []
        for _ in range(bursts):
            await self._call_together([message] * len(self.keys), replies)
            await anyio.sleep(0.3)
        return replies

    async def search_at_once(self) -> list[TimedReply]:
        """Everybody at the same moment, everybody something else."""
        replies: list[TimedReply] = []
        asked = [
            call_tool("search_guidance", {"query": f"charity {number}"})
            for number in range(len(self.keys))
        ]
        await anyio.sleep(2)
        await self._call_together(asked, replies)
        return replies

    async def call_steadily(self, count: int, rate: int, pages: list[str]) -> list[TimedReply]:
        """One call after the other at a steady rate, by callers and for pages in turn."""
        replies: list[TimedReply] = []
        async with anyio.create_task_group() as calls:
            for number in range(count):
                message = call_tool("force_refresh", {"path": pages[number % len(pages)]})
                calls.start_soon(self._call, number % len(self.keys), message, replies)
                await anyio.sleep(1 / rate)
        return replies

    async def _call_together(self, messages: list[Message], replies: list[TimedReply]) -> None:
        async with anyio.create_task_group() as calls:
            for number, message in enumerate(messages):
                calls.start_soon(self._call, number, message, replies)

    async def _call(self, number: int, message: Message, replies: list[TimedReply]) -> None:
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "authorization": f"Bearer {self.keys[number]}",
            **message.headers(MODERN),
        }
        started = time.perf_counter()
        response = await self.http_client.post(
            f"{self.url}/mcp", content=message.encode(MODERN), headers=headers
        )
        milliseconds = time.perf_counter() - started
        answer: Any = response.json()["result"]["structuredContent"]
        replies.append(
            TimedReply(milliseconds, answer["error"]["code"] if "error" in answer else None)
        )


def _list_pages(emulator: govuk.GovukEmulator) -> list[str]:
    """Pages of the Commission; the others would be refused."""
    ours = "charity-commission"
    return [
        path
        for path, item in emulator.items_by_path.items()
        if any(
            organisation["base_path"].endswith(ours)
            for organisation in item["links"].get("organisations", [])
        )
    ]


def _render_row(name: str, replies: list[TimedReply], target: int | None = None) -> tuple[str, ...]:
    milliseconds = sorted(reply.seconds * 1000 for reply in replies)
    p95 = milliseconds[int(len(milliseconds) * 0.95)]
    answered = sum(reply.error is None for reply in replies)
    verdict = ""
    if target:
        verdict = f"{'met' if p95 < target else '**missed**'} (p95 under {target})"
    median_ms = milliseconds[len(milliseconds) // 2]
    return (name, str(len(milliseconds)), str(answered), f"{median_ms:.0f}", f"{p95:.0f}", verdict)

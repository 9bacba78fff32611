"""What a caller sees when GOV.UK misbehaves, and how many requests it was spared."""

import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import anyio
from mcp import Client

from benchmarks.table import Table
from readingroom.bases.guidance.store import CacheLifetimes
from readingroom.bases.guidance.tools import open_guidance
from readingroom.demo import govuk
from readingroom.server.faces import face_of
from readingroom.server.mcp.handlers import build_mcp_server
from tests.support import faults

_PAGE = "/guidance/prepare-a-charity-annual-return"
_PLENTY = 1000
_DEADLINE = 2.0
_NOTE = (
    "Each row on a base just opened, in front of the emulator on loopback, called through an MCP "
    "client in the same process; the deadline of a call "
    "(`READINGROOM_GOVUK_TIMEOUT_SECONDS`) is 2 s here. Nobody was answered wrongly: every "
    "answer was compared with the page."
)


@dataclass
class Trial:
    """A base in front of an emulator that a row may spoil; what was asked is counted."""

    client: Client
    emulator: govuk.Emulator

    async def call(self, tool: str = "get_content_by_path") -> tuple[str, float]:
        """What the caller saw, and how many seconds it took."""
        started = time.perf_counter()
        result = await self.client.call_tool(tool, {"path": _PAGE})
        return self._seen(json.loads(result.content[0].text)), time.perf_counter() - started

    def _seen(self, answer: Any) -> str:
        if "error" in answer:
            return f"`{answer['error']['code']}`"
        assert answer["content"] == self.emulator.items[_PAGE]
        return f"answer, `{answer['warnings'][0]['code']}`" if answer["warnings"] else "answer"


Row = Callable[[Trial], Awaitable[list[tuple[str, float]]]]


def measure() -> Table:
    """Every fault once."""
    # The emulator's connections are broken on purpose; uvicorn would tell of each.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    rows = tuple(anyio.run(_row, name, row, options) for name, row, options in _ROWS)
    header = ("GOV.UK", "calls", "what the callers saw", "requests made", "median ms a call")
    return Table("Guidance: faults of the upstream", header, rows, _NOTE)


async def _row(name: str, row: Row, options: dict[str, Any]) -> tuple[str, ...]:
    async with _trial(**options) as trial:
        seen = await row(trial)
    counted = Counter(outcome for outcome, _ in seen)
    outcomes = ", ".join(f"{count}: {outcome}" for outcome, count in counted.items())
    spent = median(seconds for _, seconds in seen) * 1000
    return (name, str(len(seen)), outcomes, str(len(trial.emulator.seen)), f"{spent:.0f}")


@contextlib.asynccontextmanager
async def _trial(down: bool = False, **options: Any) -> AsyncIterator[Trial]:
    emulator = govuk.Emulator(govuk.sample_items())
    with _address(emulator, down) as url:
        base = open_guidance(url, timeout=_DEADLINE, per_second=_PLENTY, **options)
        async with base.lifespan(), Client(build_mcp_server(face_of(base), [])) as client:
            await client.call_tool(
                "get_error_taxonomy"
            )  # what the client loads with its first call
            yield Trial(client, emulator)


@contextlib.contextmanager
def _address(emulator: govuk.Emulator, down: bool) -> Iterator[str]:
    """Where the emulator answers, or answered until a moment ago."""
    if not down:
        with govuk.on_loopback(emulator) as url:
            yield url
        return
    with govuk.on_loopback(emulator) as url:
        pass
    yield url


def _spoiled(fault: govuk.Fault | None, calls: int = 1) -> Row:
    async def row(trial: Trial) -> list[tuple[str, float]]:
        trial.emulator.fault = fault
        return [await trial.call() for _ in range(calls)]

    return row


def _after_a_good_call(wait: float) -> Row:
    """A copy is held; then GOV.UK fails."""

    async def row(trial: Trial) -> list[tuple[str, float]]:
        await trial.call()
        trial.emulator.seen.clear()
        trial.emulator.fault = faults.failing(500)
        await anyio.sleep(wait)
        return [await trial.call()]

    return row


async def _stampede(trial: Trial) -> list[tuple[str, float]]:
    trial.emulator.fault = faults.slow(0.2)
    seen: list[tuple[str, float]] = []

    async def call_once() -> None:
        seen.append(await trial.call())

    async with anyio.create_task_group() as callers:
        for _ in range(200):
            callers.start_soon(call_once)
    return seen


async def _breaker(trial: Trial) -> list[tuple[str, float]]:
    """Twenty calls while it is down; then it is back, and the pause of 15 s is over."""
    trial.emulator.fault = faults.failing(500)
    seen = [await trial.call() for _ in range(20)]
    trial.emulator.fault = None
    await anyio.sleep(15)
    return [*seen, await trial.call(), await trial.call()]


_SHORT = CacheLifetimes(0.2, 0.2)
_NONE = CacheLifetimes(0, 0)
_BUSY = faults.failing(429, retry_after="30")
_BUSY_ONCE = faults.first(1, faults.failing(429, retry_after="1"))
_FLAPPING = faults.every_other(faults.failing(500))

_ROWS: tuple[tuple[str, Row, dict[str, Any]], ...] = (
    ("well", _spoiled(None), {}),
    ("slow: 200 ms", _spoiled(faults.slow(0.2)), {}),
    ("stalls", _spoiled(faults.slow(60)), {}),
    ("sends a byte every 0.2 s", _spoiled(faults.drip(0.2)), {}),
    ("429, `Retry-After: 30`", _spoiled(_BUSY, 4), {}),
    ("429, `Retry-After: 1`, once", _spoiled(_BUSY_ONCE), {}),
    ("500, always", _spoiled(faults.failing(500)), {}),
    ("500, twice", _spoiled(faults.first(2, faults.failing(500))), {}),
    ("down, so nobody counts", _spoiled(None), {"down": True}),
    ("flaps: 500 at every other request; no cache", _spoiled(_FLAPPING, 5), {"fresh": _NONE}),
    ("truncated JSON", _spoiled(faults.truncated), {}),
    ("connection cut in the middle", _spoiled(faults.cut_off), {}),
    ("HTML with status 200", _spoiled(faults.as_html), {}),
    ("a body of 10 MB", _spoiled(faults.huge), {}),
    (
        "500; a copy 1 s past its time, limit 10 s",
        _after_a_good_call(1.2),
        {"fresh": _SHORT, "stale_seconds": 10.0},
    ),
    (
        "500; a copy 1 s past its time, limit 0.5 s",
        _after_a_good_call(1.2),
        {"fresh": _SHORT, "stale_seconds": 0.5},
    ),
    ("200 callers miss one page at once", _stampede, {}),
    ("500 for 20 calls, then well: the breaker opens, and closes", _breaker, {}),
)

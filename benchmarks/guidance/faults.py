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
from readingroom.bases.guidance.tools import open_guidance_base
from readingroom.demo import govuk
from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server
from tests.support import faults

_PAGE = "/guidance/prepare-a-charity-annual-return"
_NO_LIMIT = 1000
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
    emulator: govuk.GovukEmulator

    async def call(self, tool: str = "get_content_by_path") -> tuple[str, float]:
        """What the caller saw, and how many seconds it took."""
        started = time.perf_counter()
        result = await self.client.call_tool(tool, {"path": _PAGE})
        return self._describe_outcome(
            json.loads(result.content[0].text)
        ), time.perf_counter() - started

    def _describe_outcome(self, answer: Any) -> str:
        if "error" in answer:
            return f"`{answer['error']['code']}`"
        assert answer["content"] == self.emulator.items_by_path[_PAGE]
        return f"answer, `{answer['warnings'][0]['code']}`" if answer["warnings"] else "answer"


RunTrial = Callable[[Trial], Awaitable[list[tuple[str, float]]]]


def measure() -> Table:
    """Every fault once."""
    # The emulator's connections are broken on purpose; uvicorn would tell of each.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    rows = tuple(
        anyio.run(_measure_row, name, run_trial, options) for name, run_trial, options in _ROWS
    )
    header = ("GOV.UK", "calls", "what the callers saw", "requests made", "median ms a call")
    return Table("Guidance: faults of the upstream", header, rows, _NOTE)


async def _measure_row(name: str, run_trial: RunTrial, options: dict[str, Any]) -> tuple[str, ...]:
    async with _open_trial(**options) as trial:
        outcomes_and_seconds = await run_trial(trial)
    counts = Counter(outcome for outcome, _ in outcomes_and_seconds)
    outcomes = ", ".join(f"{count}: {outcome}" for outcome, count in counts.items())
    milliseconds = median(seconds for _, seconds in outcomes_and_seconds) * 1000
    return (
        name,
        str(len(outcomes_and_seconds)),
        outcomes,
        str(len(trial.emulator.seen_requests)),
        f"{milliseconds:.0f}",
    )


@contextlib.asynccontextmanager
async def _open_trial(down: bool = False, **options: Any) -> AsyncIterator[Trial]:
    emulator = govuk.GovukEmulator(govuk.make_sample_content_items())
    with _run_emulator(emulator, down) as url:
        base = open_guidance_base(
            url, timeout_seconds=_DEADLINE, requests_per_second=_NO_LIMIT, **options
        )
        async with base.lifespan(), Client(build_mcp_server(make_face(base), [])) as client:
            await client.call_tool(
                "get_error_taxonomy"
            )  # what the client loads with its first call
            yield Trial(client, emulator)


@contextlib.contextmanager
def _run_emulator(emulator: govuk.GovukEmulator, down: bool) -> Iterator[str]:
    """Where the emulator answers, or answered until a moment ago."""
    if not down:
        with govuk.serve_on_loopback(emulator) as url:
            yield url
        return
    with govuk.serve_on_loopback(emulator) as url:
        pass
    yield url


def _call_under_fault(fault: govuk.ApplyFault | None, calls: int = 1) -> RunTrial:
    async def run_trial(trial: Trial) -> list[tuple[str, float]]:
        trial.emulator.apply_fault = fault
        return [await trial.call() for _ in range(calls)]

    return run_trial


def _fail_after_one_call(wait_seconds: float) -> RunTrial:
    """A copy is held; then GOV.UK fails."""

    async def run_trial(trial: Trial) -> list[tuple[str, float]]:
        await trial.call()
        trial.emulator.seen_requests.clear()
        trial.emulator.apply_fault = faults.failing(500)
        await anyio.sleep(wait_seconds)
        return [await trial.call()]

    return run_trial


async def _call_all_at_once(trial: Trial) -> list[tuple[str, float]]:
    trial.emulator.apply_fault = faults.slow(0.2)
    outcomes_and_seconds: list[tuple[str, float]] = []

    async def call_once() -> None:
        outcomes_and_seconds.append(await trial.call())

    async with anyio.create_task_group() as callers:
        for _ in range(200):
            callers.start_soon(call_once)
    return outcomes_and_seconds


async def _trip_breaker(trial: Trial) -> list[tuple[str, float]]:
    """Twenty calls while it is down; then it is back, and the pause of 15 s is over."""
    trial.emulator.apply_fault = faults.failing(500)
    outcomes_and_seconds = [await trial.call() for _ in range(20)]
    trial.emulator.apply_fault = None
    await anyio.sleep(15)
    return [*outcomes_and_seconds, await trial.call(), await trial.call()]


_SHORT_LIFETIMES = CacheLifetimes(0.2, 0.2)
_NO_LIFETIMES = CacheLifetimes(0, 0)
_TOO_MANY = faults.failing(429, retry_after="30")
_TOO_MANY_ONCE = faults.first(1, faults.failing(429, retry_after="1"))
_FLAPPING = faults.every_other(faults.failing(500))

_ROWS: tuple[tuple[str, RunTrial, dict[str, Any]], ...] = (
    ("well", _call_under_fault(None), {}),
    ("slow: 200 ms", _call_under_fault(faults.slow(0.2)), {}),
    ("stalls", _call_under_fault(faults.slow(60)), {}),
    ("sends a byte every 0.2 s", _call_under_fault(faults.drip(0.2)), {}),
    ("429, `Retry-After: 30`", _call_under_fault(_TOO_MANY, 4), {}),
    ("429, `Retry-After: 1`, once", _call_under_fault(_TOO_MANY_ONCE), {}),
    ("500, always", _call_under_fault(faults.failing(500)), {}),
    ("500, twice", _call_under_fault(faults.first(2, faults.failing(500))), {}),
    ("down, so nobody counts", _call_under_fault(None), {"down": True}),
    (
        "flaps: 500 at every other request; no cache",
        _call_under_fault(_FLAPPING, 5),
        {"fresh": _NO_LIFETIMES},
    ),
    ("truncated JSON", _call_under_fault(faults.truncated), {}),
    ("connection cut in the middle", _call_under_fault(faults.cut_off), {}),
    ("HTML with status 200", _call_under_fault(faults.as_html), {}),
    ("a body of 10 MB", _call_under_fault(faults.huge), {}),
    (
        "500; a copy 1 s past its time, limit 10 s",
        _fail_after_one_call(1.2),
        {"fresh": _SHORT_LIFETIMES, "stale_seconds": 10.0},
    ),
    (
        "500; a copy 1 s past its time, limit 0.5 s",
        _fail_after_one_call(1.2),
        {"fresh": _SHORT_LIFETIMES, "stale_seconds": 0.5},
    ),
    ("200 callers miss one page at once", _call_all_at_once, {}),
    ("500 for 20 calls, then well: the breaker opens, and closes", _trip_breaker, {}),
)

"""People beside agents: 32 browsers with a page each every ten seconds, and what agents notice."""

import itertools
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import linear_regression, median, quantiles
from typing import Any

import anyio
import anyio.to_thread
import httpx2

from benchmarks.load.load import wait_for_sample
from benchmarks.table import Ratio, Table
from tests.support.kit import Served, connect_http, serve_room
from tests.support.model import link_model
from tests.support.processes import read_resident_mb

BROWSERS = 32
_AGENTS = 4
_PAGE_SECONDS = 10.0
_SLICE_SECONDS = 30.0
_WAIT_SECONDS = 120.0
_MAX_RATIO = 1.2
_MAX_GROWTH = 0.01
PAGES = (
    "/",
    "/search?q=cycle+parking+for+new+homes&date=2025-04-14",
    "/read?id=policy:NPPF@rev_NPPF_2024_12%23Chapter%209",
    "/policies?date=2025-03-15",
    "/policies/NPPF",
    "/policies/NPPF/rev_NPPF_2024_12",
    "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01",
    "/policies/NPPF/rev_NPPF_2024_12/history?section=Para%20116",
    "/policies/check?source=NPPF&quote=Development+is+refused&date=2025-03-15",
    "/policies/NPPF/rev_NPPF_2024_12/pages/2.webp",
    "/applications",
    "/applications/view?ref=25/01178/REM",
    "/applications/beside?ref=25/01178/REM&topic=cycle+parking",
    "/records",
    "/records/bills?by=party",
    "/records/bills/series?interval=quarter&group_by=party",
    "/records/view?id=hr:117:95002",
    "/records/text?id=hr:117:95002",
    "/records/view?id=senate:119:2:9902",
    "/records/links?id=hr:119:99001",
    "/guidance?q=annual+return",
    "/operations",
)
_QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "cycle parking for new homes", "limit": 5}),
    ("search_policy", {"query": "flood risk", "effective_date": "2025-03-15"}),
    ("get_policy_section", {"source": "NPPF", "section_ref": "Para 116"}),
    ("search_application_docs", {"query": "travel plan", "application_ref": "25/01178/REM"}),
    ("lexical_search", {"query": "rural hospital"}),
    ("get_bill", {"bill_id": "hr:119:99001"}),
)
_NOTE = (
    "`readingroom serve --demo`; {agents} agents ask one tool after another over `/mcp` all the "
    "time. In turn they are alone for {slice_seconds:g} s, and for as long beside {browsers} "
    "browsers that open a page each every {page_seconds:g} s, all pages of the console in turn, "
    "{minutes:g} minutes in all with browsers. The browsers are a process of their own, so that "
    "the agents do not wait for them in ours. The ratio is that of the agents' p95 in a slice "
    "with browsers to the slice before it without, median (lowest to highest). Memory: resident "
    "set of the server at the end of each slice; growth is that of a line through the second half "
    "of the slices, as a share of what is resident. It is flat below {max_growth:.0%}."
)


@dataclass
class Slice:
    """What happened in one stretch of time."""

    agent_seconds: list[float] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def agent_p95(self) -> float:
        return quantiles(self.agent_seconds, n=20)[-1]


def measure(minutes: float) -> Table:
    """Return errors, memory and what the agents notice, for that many minutes with browsers."""
    rounds = max(2, round(minutes * 60 / _SLICE_SECONDS))
    with _serve_sample() as served:
        alone, beside, resident = anyio.run(_run, served, rounds)
    errors = [error for part in (*alone, *beside) for error in part.errors]
    ratio = Ratio([part.agent_p95 for part in beside], [part.agent_p95 for part in alone])
    page_seconds = [seconds for part in beside for seconds in part.page_seconds]
    second_half = resident[len(resident) // 2 :]
    slope = linear_regression(range(len(second_half)), second_half).slope
    growth = slope * (len(second_half) - 1) / second_half[0]
    verdict = "met" if growth <= _MAX_GROWTH else "**missed**"
    rows = (
        ("pages opened", f"{len(page_seconds):,}", ""),
        ("tool calls of agents", f"{sum(len(part.agent_seconds) for part in beside):,}", ""),
        ("errors", str(len(errors)), "met (0)" if not errors else f"**missed**: {errors[0]}"),
        ("agents' p95, with browsers to alone", str(ratio), ratio.against(_MAX_RATIO)),
        ("a page, median ms", f"{1000 * median(page_seconds):.0f}", ""),
        (
            "memory, MB",
            f"{resident[0]:.0f} at first, {resident[-1]:.0f} at the end",
            f"{verdict}: {growth:+.1%} over the second half",
        ),
    )
    return Table(
        f"{BROWSERS} browsers beside agents, {minutes:g} minutes",
        ("what", "measured", "wanted"),
        rows,
        _NOTE.format(
            agents=_AGENTS,
            slice_seconds=_SLICE_SECONDS,
            browsers=BROWSERS,
            page_seconds=_PAGE_SECONDS,
            minutes=minutes,
            max_growth=_MAX_GROWTH,
        ),
    )


@contextmanager
def _serve_sample() -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        with serve_room("--demo", data=data, env={"READINGROOM_RATE_LIMIT": "60000"}) as served:
            wait_for_sample(served)
            yield served


async def _run(served: Served, rounds: int) -> tuple[list[Slice], list[Slice], list[float]]:
    alone, beside, resident = [], [], []
    with _start_browsers(served.url) as browsers:
        # Whatever is loaded at first use, and not measured.
        await _run_slice(served, browsers)
        for _ in range(rounds):
            alone.append(await _run_slice(served, None))
            beside.append(await _run_slice(served, browsers))
            resident.append(read_resident_mb(served.process.pid))
    return alone, beside, resident


@contextmanager
def _start_browsers(address: str) -> Iterator[Connection]:
    """A process with the browsers: told how long to go on, it returns what happened."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_browsers, args=(theirs, address))
    process.start()
    try:
        yield ours
    finally:
        ours.send(None)
        process.join()


async def _run_slice(served: Served, browsers: Connection | None) -> Slice:
    measured = Slice()
    if browsers:
        browsers.send(_SLICE_SECONDS)
    until = time.monotonic() + _SLICE_SECONDS
    async with anyio.create_task_group() as tasks:
        for number in range(_AGENTS):
            tasks.start_soon(_run_agent, served, number, until, measured)
    if browsers:
        of_browsers: Slice = await anyio.to_thread.run_sync(browsers.recv)
        measured.page_seconds, measured.errors = (
            of_browsers.page_seconds,
            measured.errors + of_browsers.errors,
        )
    return measured


async def _run_agent(served: Served, number: int, until: float, measured: Slice) -> None:
    async with connect_http(f"{served.url}/mcp") as client:
        for tool, arguments in itertools.islice(itertools.cycle(_QUESTIONS), number, None):
            if time.monotonic() >= until:
                return
            started = time.perf_counter()
            result = await client.call_tool(tool, arguments)
            measured.agent_seconds.append(time.perf_counter() - started)
            if result.is_error:
                measured.errors.append(f"{tool}: {result.content}"[:200])
            await anyio.sleep(0.2)


def _serve_browsers(connection: Connection, address: str) -> None:
    """Open pages for as long as each message says, until there is none."""
    anyio.run(_open_pages_when_told, connection, address)


async def _open_pages_when_told(connection: Connection, address: str) -> None:
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=address, headers=headers, timeout=_WAIT_SECONDS, trust_env=False
                )
            )
            for _ in range(BROWSERS)
        ]
        paths_of_clients = [
            itertools.islice(itertools.cycle(PAGES), number * 7 % len(PAGES), None)
            for number in range(BROWSERS)
        ]
        while seconds := await anyio.to_thread.run_sync(connection.recv):
            measured = Slice()
            until = time.monotonic() + seconds
            async with anyio.create_task_group() as tasks:
                for client, paths in zip(clients, paths_of_clients, strict=True):
                    tasks.start_soon(_run_browser, client, paths, until, measured)
            connection.send(measured)


async def _run_browser(
    client: httpx2.AsyncClient, paths: Iterator[str], until: float, measured: Slice
) -> None:
    await anyio.sleep(random.uniform(0, _PAGE_SECONDS))
    for path in paths:
        if time.monotonic() >= until:
            return
        started = time.perf_counter()
        try:
            response = await client.get(path)
            if response.status_code != 200:
                measured.errors.append(f"{path}: {response.status_code}")
        except httpx2.HTTPError as error:
            measured.errors.append(f"{path}: {type(error).__name__}")
        measured.page_seconds.append(time.perf_counter() - started)
        await anyio.sleep(max(0.0, _PAGE_SECONDS - (time.perf_counter() - started)))

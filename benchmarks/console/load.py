"""People beside agents: 32 browsers with a page each every ten seconds, and what agents notice."""

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median, quantiles
from typing import Any

import anyio
import httpx2

from benchmarks.load.load import wait_for_sample
from benchmarks.table import Ratio, Table
from tests.support.kit import Served, http, serving
from tests.support.model import with_model
from tests.support.processes import resident_mb

BROWSERS = 32
_AGENTS = 4
_PAGE_SECONDS = 10.0
_SLICE_SECONDS = 30.0
_WAIT_SECONDS = 120.0
_MAX_RATIO = 1.2
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
    "{minutes:g} minutes in all with browsers. The ratio is that of the agents' p95 in a slice "
    "with browsers to the slice before it without, median (lowest to highest): the machine was "
    "shared with others' work, which neighbouring slices share. Memory: resident set of the "
    "server at the end of each slice; growth is that of a line through its second half."
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
    growth = linear_regression(range(len(second_half)), second_half).slope
    rows = (
        ("pages opened", f"{len(page_seconds):,}", ""),
        ("tool calls of agents", f"{sum(len(part.agent_seconds) for part in beside):,}", ""),
        ("errors", str(len(errors)), "met (0)" if not errors else f"**missed**: {errors[0]}"),
        ("agents' p95, with browsers to alone", str(ratio), ratio.against(_MAX_RATIO)),
        ("a page, median ms", f"{1000 * median(page_seconds):.0f}", ""),
        (
            "memory, MB",
            f"{resident[0]:.0f} at first, {resident[-1]:.0f} at the end",
            f"{growth:+.2f} MB a slice in the second half",
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
        ),
    )


@contextmanager
def _serve_sample() -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        data = with_model(Path(folder) / "data")
        with serving("--demo", data=data, env={"READINGROOM_RATE_LIMIT": "60000"}) as served:
            wait_for_sample(served)
            yield served


async def _run(served: Served, rounds: int) -> tuple[list[Slice], list[Slice], list[float]]:
    alone, beside, resident = [], [], []
    await _run_slice(served, 0)  # whatever is loaded at first use, and not measured
    for _ in range(rounds):
        alone.append(await _run_slice(served, 0))
        beside.append(await _run_slice(served, BROWSERS))
        resident.append(resident_mb(served.process.pid))
    return alone, beside, resident


async def _run_slice(served: Served, browsers: int) -> Slice:
    measured = Slice()
    until = time.monotonic() + _SLICE_SECONDS
    async with anyio.create_task_group() as tasks:
        for number in range(_AGENTS):
            tasks.start_soon(_run_agent, served, number, until, measured)
        for number in range(browsers):
            tasks.start_soon(_run_browser, served, number, until, measured)
    return measured


async def _run_agent(served: Served, number: int, until: float, measured: Slice) -> None:
    async with http(f"{served.url}/mcp") as client:
        for tool, arguments in itertools.islice(itertools.cycle(_QUESTIONS), number, None):
            if time.monotonic() >= until:
                return
            started = time.perf_counter()
            result = await client.call_tool(tool, arguments)
            measured.agent_seconds.append(time.perf_counter() - started)
            if result.is_error:
                measured.errors.append(f"{tool}: {result.content}"[:200])
            await anyio.sleep(0.2)


async def _run_browser(served: Served, number: int, until: float, measured: Slice) -> None:
    chance = random.Random(number)
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
    async with httpx2.AsyncClient(
        base_url=served.url, headers=headers, timeout=_WAIT_SECONDS, trust_env=False
    ) as client:
        await anyio.sleep(chance.uniform(0, _PAGE_SECONDS))
        for path in itertools.islice(itertools.cycle(PAGES), chance.randrange(len(PAGES)), None):
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

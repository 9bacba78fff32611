"""What a page costs beyond the service call that answers it, in processor time."""

import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import httpx2
from mcp import Client

from benchmarks.beside.rounds import ProcessorClock
from benchmarks.load.load import wait_for_sample
from benchmarks.table import Table
from tests.support.kit import Served, connect_http, serve_room
from tests.support.model import link_model

_MAX_EXTRA_MS = 20.0
_CALLS = 10
_WAIT_SECONDS = 120.0
# A page, and the tool call that answers the same question.
_PAIRS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "/search?q=cycle+parking+for+new+homes",
        "search",
        {"query": "cycle parking for new homes"},
    ),
    (
        "/read?id=policy:NPPF@rev_NPPF_2024_12%23Para%20116",
        "fetch",
        {"id": "policy:NPPF@rev_NPPF_2024_12#Para 116"},
    ),
    ("/policies?date=2025-03-15", "policy_snapshot", {"date": "2025-03-15"}),
    ("/policies/NPPF", "list_policy_revisions", {"source": "NPPF"}),
    (
        "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01",
        "compare_policy_revisions",
        {"source": "NPPF", "from_date": "2024-03-01", "to_date": "2025-03-01"},
    ),
    (
        "/policies/check?source=NPPF&quote=Development+is+refused+on+highway&date=2025-03-15",
        "verify_policy_quote",
        {
            "source": "NPPF",
            "quote": "Development is refused on highway",
            "date": "2025-03-15",
        },
    ),
    (
        "/applications/view?ref=25/01178/REM",
        "application_overview",
        {"application_ref": "25/01178/REM"},
    ),
    ("/records/view?id=hr:117:95002", "get_bill_dossier", {"bill_id": "hr:117:95002"}),
    (
        "/records/bills/series?interval=quarter",
        "time_series",
        {"resource": "bills", "time_field": "published_at", "interval": "quarter"},
    ),
    ("/guidance?q=annual+return", "search_guidance", {"query": "annual return"}),
)
_NOTE = (
    "Processor milliseconds of the server for one request: the page, compressed, and the tool call "
    "over MCP that answers the same question. Median of {rounds} rounds of {calls} requests of "
    "each, in turn, after a round that is not counted. The last row is the median over the pages."
)


def measure(quick: bool) -> Table:
    """Return what each page costs more than its tool call."""
    rounds = 2 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        with serve_room("--demo", data=data, env={"READINGROOM_RATE_LIMIT": "60000"}) as served:
            wait_for_sample(served)
            time.sleep(2)
            rows, extras = anyio.run(_measure_pairs, served, rounds)
    verdict = "met" if median(extras) <= _MAX_EXTRA_MS else "**missed**"
    total = ("median", "", "", f"{median(extras):.1f}", f"{verdict} (at most {_MAX_EXTRA_MS:g})")
    note = _NOTE.format(rounds=rounds, calls=_CALLS)
    header = ("page", "median ms, page", "median ms, tool", "median ms more", "wanted")
    return Table("A page beside its service call", header, (*rows, total), note)


async def _measure_pairs(served: Served, rounds: int) -> tuple[list[tuple[str, ...]], list[float]]:
    clock = ProcessorClock(served.process.pid)
    rows, extras = [], []
    async with (
        httpx2.AsyncClient(
            base_url=served.url, timeout=_WAIT_SECONDS, trust_env=False
        ) as http_client,
        connect_http(f"{served.url}/mcp") as mcp_client,
    ):
        for path, tool, arguments in _PAIRS:
            ask_page = partial(_open_page, http_client, path)
            ask_tool = partial(_call_tool, mcp_client, tool, arguments)
            page_ms, tool_ms = [], []
            for number in range(rounds + 1):
                costs = await _measure_cost(clock, ask_page), await _measure_cost(clock, ask_tool)
                if number:
                    page_ms.append(costs[0])
                    tool_ms.append(costs[1])
            extra = median(page - call for page, call in zip(page_ms, tool_ms, strict=True))
            extras.append(extra)
            name = re.sub(r"\?.*", "", path)
            cells = (f"{value:.1f}" for value in (median(page_ms), median(tool_ms), extra))
            rows.append((f"`{name}`", *cells, ""))
    return rows, extras


async def _measure_cost(clock: ProcessorClock, ask: Callable[[], Awaitable[None]]) -> float:
    before = clock.read_seconds()
    for _ in range(_CALLS):
        await ask()
    return 1000 * (clock.read_seconds() - before) / _CALLS


async def _open_page(client: httpx2.AsyncClient, path: str) -> None:
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
    response = await client.get(path, headers=headers)
    assert response.status_code == 200, (path, response.status_code)


async def _call_tool(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.content)

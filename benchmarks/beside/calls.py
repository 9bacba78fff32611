"""Both versions answering: every transport, and the tools and REST addresses of each base."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.beside.client import HttpClient
from benchmarks.beside.rounds import (
    ROUNDS,
    Costs,
    ProcessorClock,
    add_cost,
    compare,
    open_versions,
)
from benchmarks.redesign.tables import Version, load_sample, serve
from benchmarks.server.wires import LEGACY, LIST_TOOLS, call_tool
from benchmarks.table import Table
from tests.support.processes import read_resident_mb

_SETTINGS = "rate_limit = 0\nrate_limit_per_second = 1000\n"
_CLIENTS = 8
_TEXT = call_tool("get_kb_info", {})
_REFERENCE = "25/01178/REM"
_BILL = "hr:119:99001"
_GUIDE = "/guidance/prepare-a-charity-annual-return"

# A tool, how often it is called, and its arguments; `#` becomes the number of the call, so that
# no answer comes from a cache that a caller with new questions would not meet.
_TOOLS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("search_policy", 20, {"query": "cycle parking #", "effective_date": "2024-06-01"}),
    ("search_policy", 20, {"query": "cycle parking #", "mode": "hybrid"}),
    ("search_policy", 40, {"query": "cycle parking #", "mode": "lexical"}),
    ("get_policy_section", 40, {"source": "NPPF", "section_ref": "Para 116"}),
    ("policy_snapshot", 40, {"date": "2024-06-01"}),
    ("compare_policy_revisions", 15, {"source": "NPPF", "from_date": "2024-03-15",
                                      "to_date": "2025-03-15"}),
    ("verify_policy_quote", 20, {"source": "NPPF", "quote": "cycle parking", "date": "2025-03-15"}),
    ("search_application_docs", 20, {"query": "noise # at night", "application_ref": _REFERENCE}),
    ("search_application_docs", 20, {"query": "noise # at night", "mode": "hybrid"}),
    ("list_ingested_documents", 40, {"application_ref": _REFERENCE}),
    ("application_overview", 40, {"application_ref": _REFERENCE}),
    ("lexical_search", 40, {"query": "raised crossing #"}),
    ("semantic_search", 20, {"query": "safer crossings #"}),
    ("resolve_entity", 40, {"query": "House Transportation Committee",
                             "entity_type": "committee"}),
    ("get_bill", 40, {"bill_id": _BILL}),
    ("get_bill_dossier", 20, {"bill_id": _BILL}),
    ("count", 40, {"resource": "bills", "group_by": "chamber"}),
    ("get_content_by_path", 40, {"path": _GUIDE}),
    ("get_content_by_path", 40, {"path": _GUIDE, "text_only": True}),
    ("force_refresh", 15, {"path": _GUIDE}),
    ("search_guidance", 15, {"query": "annual return #"}),
    ("get_error_taxonomy", 40, {}),
    ("search", 15, {"query": "cycle parking #", "limit": 5}),
    ("fetch", 40, {"id": _BILL}),
)  # fmt: skip
# Those that change nothing and wait for nobody outside.
_SHARED_TOOLS = _TOOLS[:18]
_ADDRESSES: tuple[tuple[str, int, dict[str, Any]], ...] = (
    (f"/v1/bills/{_BILL}", 40, {}),
    ("/v1/search", 20, {"q": "raised crossing #"}),
    ("/v1/legislators", 40, {"q": "Birchwel of Oregon"}),
    ("/api/v1/policies", 40, {}),
    ("/api/v1/applications", 40, {"reference": _REFERENCE}),
    ("/health", 40, {}),
)


def tables(quick: bool) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        versions = open_versions(Path(folder))
        for version in versions:
            load_sample(version)
            (version.sample / "readingroom.toml").write_text(_SETTINGS, "utf-8")
        yield compare(
            "Beside 0.1.0: answering",
            "beside-calls",
            versions,
            [measure_answers],
            1 if quick else ROUNDS,
        )


def measure_answers(version: Version) -> Costs:
    """Return what one call of each kind costs a server of the sample."""
    costs: Costs = {}
    with serve(version, version.sample, "--demo") as (process, address):
        clock, client = ProcessorClock(process.pid), HttpClient(address)
        _measure_transports(costs, clock, client)
        for tool, calls, arguments in _TOOLS:
            row = f"`{tool}`{_describe_arguments(arguments)}"

            def call(number: int, tool: str = tool, arguments: dict[str, Any] = arguments) -> Any:
                return client.send_message("/mcp", call_tool(tool, _fill_in(arguments, number)))

            _repeat(costs, row, clock, calls, call)
        for path, calls, parameters in _ADDRESSES:

            def get(number: int, path: str = path, parameters: dict[str, Any] = parameters) -> Any:
                return client.get(path, _fill_in(parameters, number))

            _repeat(costs, f"`GET {path}`", clock, calls, get)
        _measure_crowd(costs, clock, address)
        costs["memory of the server after all that, MB"] = read_resident_mb(process.pid)
        client.close()
    return costs


def _measure_transports(costs: Costs, clock: ProcessorClock, client: HttpClient) -> None:
    session = client.open_session("/mcp")
    sent: tuple[tuple[str, Callable[[int], Any]], ...] = (
        ("`tools/list` of all, 2026-07-28", lambda _: client.send_message("/mcp", LIST_TOOLS)),
        (
            "`tools/list` of all, 2025-11-25, session",
            lambda _: client.send_message("/mcp", LIST_TOOLS, LEGACY, session),
        ),
        ("`get_kb_info`, 2026-07-28", lambda _: client.send_message("/text/mcp", _TEXT)),
        (
            "`get_kb_info`, 2026-07-28, face with sessions",
            lambda _: client.send_message("/mcp", _TEXT),
        ),
        (
            "`get_kb_info`, 2025-11-25, stateless",
            lambda _: client.send_message("/text/mcp", _TEXT, LEGACY),
        ),
        (
            "`get_kb_info`, 2025-11-25, session, SSE reply",
            lambda _: client.send_message("/mcp", _TEXT, LEGACY, session),
        ),
    )
    for row, send in sent:
        _repeat(costs, row, clock, 60, send)


def _measure_crowd(costs: Costs, clock: ProcessorClock, address: str) -> None:
    """Several clients at once, each calling one tool after another."""

    def visit(number: int) -> None:
        visitor = HttpClient(address)
        for tool, _, arguments in _SHARED_TOOLS:
            visitor.send_message("/mcp", call_tool(tool, _fill_in(arguments, 5000 + number)))
        visitor.close()

    row, calls = f"a call, {_CLIENTS} clients at once", len(_SHARED_TOOLS) * _CLIENTS
    with ThreadPoolExecutor(_CLIENTS) as clients, add_cost(costs, row, clock, calls):
        list(clients.map(visit, range(_CLIENTS)))


def _repeat(
    costs: Costs, row: str, clock: ProcessorClock, calls: int, call: Callable[[int], Any]
) -> None:
    """Add what one call costs to `costs`; the first three, which fill caches, do not count."""
    for number in range(3):
        call(1000 + number)
    with add_cost(costs, row, clock, calls):
        for number in range(calls):
            call(number)


def _fill_in(arguments: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        name: value.replace("#", str(number)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _describe_arguments(arguments: dict[str, Any]) -> str:
    shown = {"effective_date": "on a day", "application_ref": "of an application"}
    words = [arguments["mode"]] if "mode" in arguments else []
    words += ["text only"] if "text_only" in arguments else []
    words += [shown[name] for name in shown if name in arguments]
    return f", {', '.join(words)}" if words else ""

"""Protocol cost per tool call: processor time beside the bare SDK server and a plain route."""

import contextlib
import gc
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median

import anyio

from benchmarks.server.contender import ECHO_CALL, WIRES, Contender, Wire, open_call
from benchmarks.server.echo import build_our_app, build_peer_app, build_plain_app
from benchmarks.server.exchange import Exchange
from benchmarks.table import Ratio, Table
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.observe.logging import configure_logging
from readingroom.storage.keys import KeyRing

TARGET = 1.3

_SLICES_PER_ROUND = 8  # of a round: all take turns within it, so that noise falls on all of them
_API_KEY = "a key such as MCP_API_KEY holds"

_NOTE = (
    "Processor time of this process (user and system) per call, the ASGI apps called directly: no "
    "socket, no HTTP parser, no client. All get the same request; every answer is checked, and "
    "those of the SDK server and of Reading Room are equal. Reading Room runs with validation, a "
    "key, a rate limit that counts, metrics, and JSON log lines written to a file; a named key is "
    "looked up at each request. The lean SDK server gives the SDK a schema lookup, without which "
    "it lists its tools at each call on the 2026-07-28 wire. Median of {rounds} rounds of {calls} "
    "calls in which all take turns. Ratio: to the bare SDK server of the same round, median "
    "(lowest to highest)."
)


def measure(rounds: int, calls: int) -> Table:
    """So many rounds of so many calls on every wire."""
    calls -= calls % _SLICES_PER_ROUND
    return Table(
        "Protocol cost of one tool call",
        ("wire", "server", "median µs", "ratio", "target"),
        tuple(anyio.run(_measure_wires, rounds, calls)),
        _NOTE.format(rounds=rounds, calls=calls),
    )


async def _measure_wires(rounds: int, calls: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for wire in WIRES:
        with tempfile.TemporaryDirectory() as folder, _log_to(Path(folder, "log")) as log:
            rows += await _measure_wire(wire, rounds, calls, log)
    return rows


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[Path]:
    """The log as a server configures it, into a file instead of standard error."""
    with path.open("w", encoding="utf-8") as file, contextlib.redirect_stderr(file):
        configure_logging("info")
        yield path
    configure_logging("warning")


async def _measure_wire(wire: Wire, rounds: int, calls: int, log: Path) -> list[tuple[str, ...]]:
    async with _open_contenders(wire, log.parent) as (plain, peer, lean, *ours):
        contenders = (plain, peer, lean, *ours)
        for contender in contenders:
            await contender.run_calls(calls)
        with _keep_collections_short():
            for number in range(rounds):
                await _run_round(contenders, number, calls)
        await _check_that_nothing_was_off(wire, peer, ours, log)
    return [
        _render_row(wire, plain, peer),
        _render_row(wire, peer, peer),
        _render_row(wire, lean, peer),
        *(_render_row(wire, contender, peer, TARGET) for contender in ours),
    ]


@contextlib.asynccontextmanager
async def _open_contenders(wire: Wire, folder: Path) -> AsyncIterator[tuple[Contender, ...]]:
    """The floor, the peer, and ours with either kind of key."""
    key_ring = KeyRing(folder)
    single_key_header, named_key_header = (
        _bearer_header(_API_KEY),
        _bearer_header(key_ring.add_key("benchmarks")),
    )
    plain = build_plain_app()
    peer, lean = build_peer_app(wire.stateful, lean=False), build_peer_app(wire.stateful, lean=True)
    keyed_app = build_our_app(wire.stateful, KeyAuth(_API_KEY, key_ring))
    named_key_app = build_our_app(wire.stateful, KeyAuth(None, key_ring))
    async with contextlib.AsyncExitStack() as running:
        for app in (peer, lean, keyed_app, named_key_app):
            await running.enter_async_context(app.router.lifespan_context(app))
        servers = (
            ("bare SDK server", peer, single_key_header),
            ("bare SDK server, lean", lean, single_key_header),
            ("Reading Room, `MCP_API_KEY`", keyed_app, single_key_header),
            ("Reading Room, a named key", named_key_app, named_key_header),
        )
        floor = wire.prepare(plain, ECHO_CALL, single_key_header)
        yield (
            Contender(
                "plain Starlette route", plain, single_key_header, floor, speaks_json_rpc=False
            ),
            *[Contender(*entry, await open_call(wire, *entry[1:])) for entry in servers],
        )


def _bearer_header(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@contextlib.contextmanager
def _keep_collections_short() -> Iterator[None]:
    """Keep what is there by now out of garbage collections: one of all modules costs as much as a
    hundred calls, and falls on whoever is running.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _run_round(contenders: tuple[Contender, ...], number: int, calls: int) -> None:
    """Every contender's calls, in slices that take turns."""
    seconds = [0.0 for _ in contenders]
    for turn in range(_SLICES_PER_ROUND * len(contenders)):
        contender_index = (turn + number) % len(contenders)
        seconds[contender_index] += await contenders[contender_index].run_calls(
            calls // _SLICES_PER_ROUND
        )
    for contender, seconds_taken in zip(contenders, seconds, strict=True):
        contender.microseconds.append(seconds_taken / calls * 1e6)


async def _check_that_nothing_was_off(
    wire: Wire, peer: Contender, ours: list[Contender], log: Path
) -> None:
    """Nothing was measured with something switched off."""
    logged_calls, calls_made = (
        _count_logged_calls(log),
        sum(contender.calls_made for contender in ours),
    )
    assert logged_calls == calls_made, f"{logged_calls} of {calls_made} calls are in the log"
    for contender in ours:
        assert contender.answer == peer.answer, (contender.answer, peer.answer)
        counted_calls = await _count_metric_calls(contender)
        assert counted_calls == contender.calls_made, (
            f"{counted_calls} of {contender.calls_made} calls are in the metrics"
        )
        refused = await wire.prepare(contender.app, ECHO_CALL, {}).send()
        assert refused.status == 401, f"a call without a key got {refused.status}"


def _count_logged_calls(log: Path) -> int:
    return len(re.findall(r'"logger": ?"readingroom.calls"', log.read_text("utf-8")))


async def _count_metric_calls(contender: Contender) -> int:
    page = (
        await Exchange(contender.app, "/metrics", contender.headers, method="GET").send()
    ).body.decode()
    (count,) = re.findall(r'^readingroom_tool_calls_total\{.*status="ok".*\} (\S+)$', page, re.M)
    return int(float(count))


def _render_row(
    wire: Wire, contender: Contender, peer: Contender, target: float | None = None
) -> tuple[str, ...]:
    ratio = Ratio(contender.microseconds, peer.microseconds)
    verdict = ratio.against(target) if target else ""
    return (wire.name, contender.name, f"{median(contender.microseconds):.0f}", str(ratio), verdict)

"""Protocol cost per tool call: processor time beside the bare SDK server and a plain route."""

import contextlib
import gc
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median

import anyio

from benchmarks.server.contender import CALL, WIRES, Contender, Wire, open_call
from benchmarks.server.echo import our_app, peer_app, plain_app
from benchmarks.server.exchange import Exchange
from benchmarks.table import Ratio, Table
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.observe.logging import configure
from readingroom.storage.keys import KeyRing

TARGET = 1.3

_SLICES = 8  # of a round: all take turns within it, so that noise falls on all of them
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
    calls -= calls % _SLICES
    return Table(
        "Protocol cost of one tool call",
        ("wire", "server", "median µs", "ratio", "target"),
        tuple(anyio.run(_measure, rounds, calls)),
        _NOTE.format(rounds=rounds, calls=calls),
    )


async def _measure(rounds: int, calls: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for wire in WIRES:
        with tempfile.TemporaryDirectory() as folder, _logging_to(Path(folder, "log")) as log:
            rows += await _rows(wire, rounds, calls, log)
    return rows


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[Path]:
    """The log as a server configures it, into a file instead of standard error."""
    with path.open("w", encoding="utf-8") as file, contextlib.redirect_stderr(file):
        configure("info")
        yield path
    configure("warning")


async def _rows(wire: Wire, rounds: int, calls: int, log: Path) -> list[tuple[str, ...]]:
    async with _contenders(wire, log.parent) as (plain, peer, lean, *ours):
        everybody = (plain, peer, lean, *ours)
        for contender in everybody:
            await contender.run(calls)
        with _quick_collections():
            for number in range(rounds):
                await _round(everybody, number, calls)
        await _check_that_all_is_on(wire, peer, ours, log)
    return [
        _row(wire, plain, peer),
        _row(wire, peer, peer),
        _row(wire, lean, peer),
        *(_row(wire, contender, peer, TARGET) for contender in ours),
    ]


@contextlib.asynccontextmanager
async def _contenders(wire: Wire, folder: Path) -> AsyncIterator[tuple[Contender, ...]]:
    """The floor, the peer, and ours with either kind of key."""
    ring = KeyRing(folder)
    one_key, named_key = _bearer(_API_KEY), _bearer(ring.add("benchmarks"))
    plain = plain_app()
    peer, lean = peer_app(wire.stateful, lean=False), peer_app(wire.stateful, lean=True)
    keyed_app = our_app(wire.stateful, KeyAuth(_API_KEY, ring))
    several = our_app(wire.stateful, KeyAuth(None, ring))
    async with contextlib.AsyncExitStack() as running:
        for app in (peer, lean, keyed_app, several):
            await running.enter_async_context(app.router.lifespan_context(app))
        served = (
            ("bare SDK server", peer, one_key),
            ("bare SDK server, lean", lean, one_key),
            ("Reading Room, `MCP_API_KEY`", keyed_app, one_key),
            ("Reading Room, a named key", several, named_key),
        )
        floor = wire.exchange(plain, CALL, one_key)
        yield (
            Contender("plain Starlette route", plain, one_key, floor, protocol=False),
            *[Contender(*entry, await open_call(wire, *entry[1:])) for entry in served],
        )


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@contextlib.contextmanager
def _quick_collections() -> Iterator[None]:
    """Keep what is there by now out of garbage collections: one of all modules costs as much as a
    hundred calls, and falls on whoever is running.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _round(contenders: tuple[Contender, ...], number: int, calls: int) -> None:
    """Every contender's calls, in slices that take turns."""
    seconds = [0.0 for _ in contenders]
    for turn in range(_SLICES * len(contenders)):
        which = (turn + number) % len(contenders)
        seconds[which] += await contenders[which].run(calls // _SLICES)
    for contender, took in zip(contenders, seconds, strict=True):
        contender.microseconds.append(took / calls * 1e6)


async def _check_that_all_is_on(
    wire: Wire, peer: Contender, ours: list[Contender], log: Path
) -> None:
    """Nothing was measured with something switched off."""
    logged, made = _calls_logged(log), sum(contender.made for contender in ours)
    assert logged == made, f"{logged} of {made} calls are in the log"
    for contender in ours:
        assert contender.answer == peer.answer, (contender.answer, peer.answer)
        counted = await _calls_counted(contender)
        assert counted == contender.made, f"{counted} of {contender.made} calls are in the metrics"
        refused = await wire.exchange(contender.app, CALL, {}).send()
        assert refused.status == 401, f"a call without a key got {refused.status}"


def _calls_logged(log: Path) -> int:
    return len(re.findall(r'"logger": ?"readingroom.calls"', log.read_text("utf-8")))


async def _calls_counted(contender: Contender) -> int:
    page = (
        await Exchange(contender.app, "/metrics", contender.headers, method="GET").send()
    ).body.decode()
    (count,) = re.findall(r'^readingroom_tool_calls_total\{.*status="ok".*\} (\S+)$', page, re.M)
    return int(float(count))


def _row(
    wire: Wire, contender: Contender, peer: Contender, target: float | None = None
) -> tuple[str, ...]:
    ratio = Ratio(contender.microseconds, peer.microseconds)
    verdict = ratio.against(target) if target else ""
    return (wire.name, contender.name, f"{median(contender.microseconds):.0f}", str(ratio), verdict)

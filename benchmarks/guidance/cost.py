"""What a cached page costs beside a call that reads nothing: processor time of one process."""

import contextlib
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median

import anyio
from starlette.applications import Starlette

from benchmarks.server.exchange import Exchange
from benchmarks.server.wires import LEGACY, MODERN, Message, call_tool
from benchmarks.table import Ratio, Table
from readingroom.bases.guidance.store import CacheLifetimes
from readingroom.bases.guidance.tools import open_guidance_base
from readingroom.demo.govuk import GovukEmulator, make_sample_content_items, serve_on_loopback
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_face
from readingroom.server.observe.logging import configure_logging
from readingroom.settings import Settings
from readingroom.storage.keys import KeyRing

TARGET = 1.5

_PAGE = "/guidance/prepare-a-charity-annual-return"
_KEY = "a key such as MCP_API_KEY holds"
_NO_LIMIT = 10**6  # calls a second: every one is counted, none is refused
_DAY_SECONDS = 86_400  # nothing but the cache answers while it is measured
_FLOOR = "`get_error_taxonomy` (the floor)"
_CALLS = {
    _FLOOR: call_tool("get_error_taxonomy", {}),
    "`get_content_by_path`, cached": call_tool("get_content_by_path", {"path": _PAGE}),
    "the same, `text_only`": call_tool("get_content_by_path", {"path": _PAGE, "text_only": True}),
}

_NOTE = (
    "Processor time of this process (user and system) per call, the ASGI app called directly, with "
    "a key, both limits counting, metrics, and log lines written to a file. The answer of the page "
    "has 7 KB, that of its text 3.5 KB, that of the floor 2.5 KB. Median of {rounds} rounds of "
    "{calls} calls in which all take turns. Ratio: to the floor of the same round, median (lowest "
    "to highest)."
)


def measure(rounds: int, calls: int) -> Table:
    """So many rounds of so many calls on both wires."""
    return Table(
        "Guidance: a cached page beside a call that reads nothing",
        ("wire", "call", "median µs", "ratio", "target"),
        tuple(anyio.run(_measure_wires, rounds, calls)),
        _NOTE.format(rounds=rounds, calls=calls),
    )


async def _measure_wires(rounds: int, calls: int) -> list[tuple[str, ...]]:
    async with _open_app() as app:
        return [
            row
            for revision in (LEGACY, MODERN)
            for row in await _measure_calls(app, revision, rounds, calls)
        ]


@contextlib.asynccontextmanager
async def _open_app() -> AsyncIterator[Starlette]:
    """The base alone, with everything on, in front of the emulator."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _log_to(Path(folder, "log")),
        serve_on_loopback(GovukEmulator(make_sample_content_items(), max_age=_DAY_SECONDS)) as url,
    ):
        base = open_guidance_base(
            url,
            requests_per_second=_NO_LIMIT,
            cache_lifetimes=CacheLifetimes(_DAY_SECONDS, _DAY_SECONDS),
        )
        faces, settings = (make_face(base),), Settings(rate_limit=_NO_LIMIT * 60)
        policies = AuthPolicies(faces, settings, KeyAuth(_KEY, KeyRing(Path(folder))))
        app = build_app(faces, settings, policies)
        async with app.router.lifespan_context(app):
            yield app


async def _measure_calls(
    app: Starlette, revision: str, rounds: int, calls: int
) -> list[tuple[str, ...]]:
    exchanges = {
        name: _prepare_exchange(app, message, revision) for name, message in _CALLS.items()
    }
    microseconds: dict[str, list[float]] = {name: [] for name in _CALLS}
    gc.collect()
    gc.freeze()  # a collection of all modules costs as much as a hundred calls
    for number in range(-1, rounds):
        for name, exchange in exchanges.items():
            seconds = await _measure_run(exchange, calls)
            if number >= 0:  # the first round fills the cache
                microseconds[name].append(seconds / calls * 1e6)
    gc.unfreeze()
    return [_render_row(revision, name, microseconds) for name in _CALLS]


def _prepare_exchange(app: Starlette, message: Message, revision: str) -> Exchange:
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "authorization": f"Bearer {_KEY}",
        **message.headers(revision),
    }
    return Exchange(app, "/mcp", headers, message.encode(revision))


async def _measure_run(exchange: Exchange, calls: int) -> float:
    """The processor's seconds that so many calls took, every answer checked afterwards."""
    began = time.process_time()
    replies = [await exchange.send() for _ in range(calls)]
    microseconds = time.process_time() - began
    for reply in replies:
        result = reply.json["result"]
        assert not result.get("isError"), reply.body
        assert result["structuredContent"].get("cache", {"stale": False})["stale"] is False
    return microseconds


def _render_row(revision: str, name: str, microseconds: dict[str, list[float]]) -> tuple[str, ...]:
    ratio = Ratio(microseconds[name], microseconds[_FLOOR])
    verdict = "" if name == _FLOOR else ratio.against(TARGET)
    return (revision, name, f"{median(microseconds[name]):.0f}", str(ratio), verdict)


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """The log as a server configures it, into a file instead of standard error."""
    with path.open("w", encoding="utf-8") as file, contextlib.redirect_stderr(file):
        configure_logging("info")
        yield
    configure_logging("warning")

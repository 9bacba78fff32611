"""Real servers and real clients for tests: processes that are started, asked and stopped."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from readingroom.cli import main
from readingroom.core.settings import get_variable_name, reveal_secret
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_face
from readingroom.settings import Settings, load_settings
from readingroom.storage.keys import KeyRing
from tests.support.engines import name_database
from tests.support.forks import ForkedProcess, start_fork
from tests.support.processes import HANG_SECONDS

LEGACY = "2025-11-25"
MODERN = "2026-07-28"


@dataclass
class Served:
    """A running `readingroom serve`."""

    url: str
    process: subprocess.Popen[str] | ForkedProcess
    log: Path
    data: Path

    def lines(self) -> list[dict[str, Any]]:
        """The log so far, one object a line."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def calls(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["logger"] == "readingroom.calls"]

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.url + path, headers=headers, timeout=HANG_SECONDS, trust_env=False)


def clean_environment(extra: Mapping[str, str] = {}) -> dict[str, str]:
    """This process's environment without any setting of ours, plus `extra`."""
    ours = _our_variables()
    others = {key: value for key, value in os.environ.items() if key not in ours}
    return {**others, **extra}


@cache
def _our_variables() -> set[str]:
    return {get_variable_name(field) for field in Settings.model_fields.values()}


def make_command(*args: str, program: str = "readingroom") -> list[str]:
    return [sys.executable, "-m", program, *args]


def run(
    *args: str, env: Mapping[str, str] = {}, anew: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a `readingroom` command in a process of its own, to its end.

    With `anew` it gets an interpreter of its own, as from a shell, and not a fork.
    """
    whole = clean_environment(name_database(args, env))
    if anew or not _may_fork(env):
        command = make_command(*args)
        return subprocess.run(
            command, env=whole, capture_output=True, text=True, timeout=HANG_SECONDS
        )
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = start_fork(args, whole, stdout.fileno(), stderr.fileno())
        try:
            status = process.wait(HANG_SECONDS)
        finally:
            process.kill()
        for told in (stdout, stderr):
            told.seek(0)
        return subprocess.CompletedProcess(args, status, stdout.read(), stderr.read())


def _may_fork(env: Mapping[str, str]) -> bool:
    """Whether a fork does: libraries may read other variables while they are imported."""
    return sys.platform == "linux" and env.keys() <= _our_variables()


def invoke(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a `readingroom` command in this process: no interpreter to start, nothing to import."""
    env = {**dict.fromkeys(_our_variables()), **name_database(args, {})}
    result = CliRunner(env=env).invoke(main, args)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(args, result.exit_code, result.stdout, result.stderr)


@contextlib.contextmanager
def serve_room(
    *args: str,
    data: Path,
    env: Mapping[str, str] = {},
    max_descriptors: int | tuple[int, int] | None = None,
    program: str = "readingroom",
    anew: bool = False,
) -> Iterator[Served]:
    """`readingroom serve` on a free port; ready when this is entered, ended when it is left.

    `max_descriptors` is how many files it may open: one limit, or the soft and the hard one.
    With `anew` the server gets an interpreter of its own, as from a shell, and not a fork.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = data.parent / f"{data.name}.log"
    arguments = ("serve", *args, "--port", "0", "--json", "--data", str(data))
    whole = clean_environment(name_database(arguments, env))
    process: subprocess.Popen[str] | ForkedProcess
    with log.open("w", encoding="utf-8") as stderr:
        if anew or max_descriptors or program != "readingroom" or not _may_fork(env):
            process = subprocess.Popen(
                [*_limit_descriptors(max_descriptors), *make_command(*arguments, program=program)],
                env=whole,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        else:
            process = start_fork(arguments, whole, subprocess.PIPE, stderr.fileno())
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise AssertionError(f"the server did not start:\n{log.read_text('utf-8')}")
        yield Served(json.loads(ready)["listening"], process, log, data)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=HANG_SECONDS)
        finally:
            process.kill()
            process.stdout.close()


def _limit_descriptors(limit: int | tuple[int, int] | None) -> list[str]:
    """What stands before a command so that it may open so many files."""
    if limit is None:
        return []
    soft, hard = (limit, limit) if isinstance(limit, int) else limit
    return ["sh", "-c", f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"', "sh"]


@contextlib.asynccontextmanager
async def connect_http(
    url: str, wire: str = MODERN, key: str | None = None, seconds: float = HANG_SECONDS
) -> AsyncIterator[Client]:
    """A client over Streamable HTTP, on either wire."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=seconds, trust_env=False) as web:
        transport = streamable_http_client(url, http_client=web)
        async with Client(transport, mode=choose_mode(wire)) as client:
            yield client


@contextlib.asynccontextmanager
async def connect_sse(url: str, key: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with Client(
        sse_client(url, headers=headers, timeout=HANG_SECONDS), mode="legacy"
    ) as client:
        yield client


@contextlib.asynccontextmanager
async def connect_stdio(
    *args: str, wire: str = MODERN, env: Mapping[str, str] = {}, log: Path | None = None
) -> AsyncIterator[Client]:
    """A client that starts `readingroom stdio …` and talks over its pipes."""
    from mcp import stdio_client

    executable, *rest = make_command("stdio", *args)
    parameters = StdioServerParameters(command=executable, args=rest, env=clean_environment(env))
    with (log or Path(os.devnull)).open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errors), mode=choose_mode(wire)) as client:
            yield client


def choose_mode(wire: str) -> Any:
    return "legacy" if wire == LEGACY else "auto"


def read_body(result: Any) -> Any:
    """A tool result's JSON: of an answer, twice the same; of an error, in the text item alone.

    Links to resources may follow the text.
    """
    item, *links = result.content
    assert all(link.type == "resource_link" for link in links)
    told = json.loads(item.text)
    assert result.structured_content == (None if result.is_error else told)
    return told


@contextlib.asynccontextmanager
async def open_app_client(
    app: Starlette, url: str = "http://127.0.0.1"
) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client on an app that lives in this process, its lifespan entered."""
    transport = httpx2.ASGITransport(app, client=("127.0.0.1", 50000))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=url) as web,
    ):
        yield web


def make_app(*bases: KnowledgeBase, data: Path, **settings: Any) -> Starlette:
    """The app that serves these bases, the first one at `/mcp`."""
    chosen = load_settings({"data": data, **settings}, {})
    first, *rest = bases
    faces = (make_face(first), *(make_face(base, f"/{base.name}") for base in rest))
    return build_app(
        faces,
        chosen,
        AuthPolicies(faces, chosen, KeyAuth(reveal_secret(chosen.api_key), KeyRing(data))),
    )


def make_rpc(method: str, params: dict[str, Any] | None = None, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


POST = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

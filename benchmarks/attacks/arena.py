"""Where attacks are played: one version of Reading Room, its servers, and what they leave."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from readingroom.storage.keys import KeyRing
from tests.server.test_auth import INITIALIZE
from tests.support import kit
from tests.support.kit import LEGACY, POST, Served
from tests.support.model import link_model

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack achieved."""

    gave_way: bool
    seen: str
    """What was seen, in a few words."""

    def __str__(self) -> str:
        return f"{'**gave way**' if self.gave_way else 'held'}: {self.seen}"


@dataclass
class Arena:
    """One version under attack; its servers are started when they are first asked for."""

    folder: Path
    env: Mapping[str, str]
    """`PYTHONPATH` of the version; empty for this one."""
    _exit_stack: ExitStack = field(default_factory=ExitStack)
    _rooms: dict[str, Served] = field(default_factory=dict)
    _folder_count: int = 0

    def make_folder(self) -> Path:
        self._folder_count += 1
        folder = self.folder / str(self._folder_count)
        folder.mkdir()
        return folder

    def make_data(self) -> Path:
        """Return a new data directory that has the embedding model."""
        return link_model(self.make_folder() / "data")

    @contextmanager
    def serve(
        self, *args: str, data: Path | None = None, env: Mapping[str, str] = {}, files: int = 0
    ) -> Iterator[Served]:
        """A server of this version; `files` is how many it may open."""
        with kit.serve_room(
            *args,
            data=data or self.make_data(),
            env={**self.env, **env},
            max_descriptors=files or None,
        ) as served:
            yield served

    @property
    def open_room(self) -> Served:
        """All bases, without a key, and with no limit of requests."""
        return self._start("open", {"READINGROOM_RATE_LIMIT": "0"})

    @property
    def locked_room(self) -> Served:
        """All bases, with a key."""
        return self._start("locked", {"MCP_API_KEY": "a-long-secret-of-the-operator"})

    def _start(self, name: str, env: Mapping[str, str]) -> Served:
        if name not in self._rooms:
            self._rooms[name] = self._exit_stack.enter_context(self.serve(env=env))
        return self._rooms[name]

    def close(self) -> None:
        self._exit_stack.close()

    def run(
        self, *args: str, seconds: float = 300, umask: int = -1
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of this version to its end."""
        return subprocess.run(
            kit.make_command(*args),
            env=kit.clean_environment(self.env),
            capture_output=True,
            text=True,
            timeout=seconds,
            umask=umask,
        )


def make_key(data: Path, name: str = "ann", read_only: bool = False) -> dict[str, str]:
    """Make a key, and return the header that shows it."""
    data.mkdir(mode=0o700, exist_ok=True)
    return {"Authorization": f"Bearer {KeyRing(data).add_key(name, read_only)}"}


def ask(
    room: Served, method: str, path: str, seconds: float = 120, **options: Any
) -> httpx2.Response:
    return httpx2.request(method, room.url + path, timeout=seconds, trust_env=False, **options)


def ask_tool(
    room: Served, face: str, name: str, arguments: Mapping[str, Any], seconds: float = 120
) -> dict[str, Any]:
    """Call a tool over Streamable HTTP with a session of its own; return the whole answer."""
    with httpx2.Client(timeout=seconds, trust_env=False, headers=POST) as web:
        opened = web.post(f"{room.url}{face}/mcp", json=INITIALIZE)
        headers = {"MCP-Protocol-Version": LEGACY}
        if session := opened.headers.get("mcp-session-id"):
            headers["Mcp-Session-Id"] = session
        call = kit.make_rpc("tools/call", {"name": name, "arguments": dict(arguments)})
        return _read_answer(web.post(f"{room.url}{face}/mcp", json=call, headers=headers))


def ask_method(room: Served, face: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send one request over Streamable HTTP with a session of its own; return the whole answer."""
    with httpx2.Client(timeout=120, trust_env=False, headers=POST) as web:
        opened = web.post(f"{room.url}{face}/mcp", json=INITIALIZE)
        if method == "initialize":
            return _read_answer(opened)
        headers = {"MCP-Protocol-Version": LEGACY}
        if session := opened.headers.get("mcp-session-id"):
            headers["Mcp-Session-Id"] = session
        message = kit.make_rpc(method, params)
        return _read_answer(web.post(f"{room.url}{face}/mcp", json=message, headers=headers))


def _read_answer(answer: httpx2.Response) -> dict[str, Any]:

    text = answer.text
    if "text/event-stream" in answer.headers.get("content-type", ""):
        text = [line for line in text.splitlines() if line.startswith("data: {")][-1][6:]
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def connect(room: Served, seconds: float = 60) -> socket.socket:
    host, port = room.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), seconds)


def read_until(connection: socket.socket, mark: bytes, seconds: float) -> bytes | None:
    """Return what came up to a mark, or to the end; None when neither came in time."""
    received, deadline = b"", time.monotonic() + seconds
    while mark not in received:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            block = connection.recv(65536)
        except TimeoutError:
            return None
        except OSError:
            return received
        if not block:
            return received
        received += block
    return received


@contextmanager
def open_stream(
    room: Served, headers: Mapping[str, str] = {}
) -> Iterator[tuple[socket.socket, str]]:
    """The SSE stream of the text base, and the path for its messages."""
    host = room.url.removeprefix("http://")
    lines = [f"GET /text/sse HTTP/1.1\r\nHost: {host}", *(f"{k}: {v}" for k, v in headers.items())]
    with closing(connect(room)) as stream:
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = read_until(stream, b"session_id=", 60) or b""
        time.sleep(0.2)
        head += stream.recv(1024) if not head.endswith(b"\n") else b""
        match = re.search(rb"data: (\S+session_id=\S+)", head)
        yield stream, match[1].decode() if match else ""


# --- processes ---


def list_processes_below(process_id: int) -> list[int]:
    """Return the ids of all processes that one has started, and theirs."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found, wave = [], {process_id}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        found += wave
    return found


def find_valkey(room: Served) -> int:
    """Return the id of the embedded server of the policy registry."""
    for process_id in list_processes_below(room.process.pid):
        name = Path(f"/proc/{process_id}/comm").read_text().strip()
        if name.startswith("valkey"):
            return process_id
    raise LookupError("there is no valkey-server")


def read_processor_seconds(process_id: int) -> float:
    """Return the processor time of a process and of its children that have ended."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


def kill(process_id: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(process_id, number)

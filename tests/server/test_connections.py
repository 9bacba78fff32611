"""Connections that keep the server waiting: closed, while everybody else is served."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from readingroom.server import connections
from readingroom.server.connections import (
    ConnectionGuard,
    ConnectionLimits,
    GuardedProtocol,
    choose_connection_limits,
)
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS, Served, serve_room

HALF_OPEN = 1500
UNFINISHED = b"GET /health HTTP/1.1\r\nX: "
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BODY_TO_COME = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\nsome"


@pytest.fixture(scope="module")
def small_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a key that may open 1,024 files, as most machines have it."""
    env = {"MCP_API_KEY": "sesame", "READINGROOM_RATE_LIMIT": "0"}
    data = tmp_path_factory.mktemp("small") / "data"
    with serve_room("text", data=data, env=env, max_descriptors=1024) as served:
        yield served


@requirement("room:connections")
@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], [f"127.0.0.{number}" for number in range(2, 32)]],
    ids=["from the clients' own address", "from other addresses"],
)
def test_honest_requests_are_served_beside_half_open_connections(
    small_room: Served, addresses: Sequence[str]
) -> None:
    with ExitStack() as held:
        for number in range(HALF_OPEN):
            held.enter_context(_open_half(small_room, addresses[number % len(addresses)]))
        answers = [_ask(small_room) for _ in range(50)]
    assert {answer.status_code for answer in answers} == {200}
    warnings = [line for line in small_room.lines() if "half-open" in line["message"]]
    crowded = [line for line in small_room.lines() if "Too many" in line["message"]]
    assert crowded
    assert len(crowded) <= 2, "one line a minute"
    assert all(line["level"] == "WARNING" for line in warnings)


def test_the_cap_is_below_the_limit_of_open_files() -> None:
    for descriptor_limit in (64, 256, 1024, 4096, 65_536):
        limits = choose_connection_limits(descriptor_limit)
        assert 0 < limits.max_connections <= descriptor_limit // 2 or descriptor_limit > 4096
        assert limits.max_connections < descriptor_limit


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(tmp_path: Path) -> None:
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 2000)
    with serve_room("text", data=tmp_path / "data", max_descriptors=(512, hard)) as served:
        limits = Path(f"/proc/{served.process.pid}/limits").read_text("utf-8")
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    assert line.split()[3:5] == [str(hard), str(hard)]


@requirement("room:connections")
@pytest.mark.parametrize("sent", [b"", b"GET", UNFINISHED])
async def test_headers_that_do_not_come_are_not_waited_for(sent: bytes) -> None:
    async with run_listener(ConnectionLimits(header_seconds=0.5)) as server:
        reader, writer = await server.connect()
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), HANG_SECONDS)
    assert answer.startswith(b"HTTP/1.1 408" if sent else b"")
    assert bool(answer) is bool(sent)


@requirement("room:connections")
async def test_a_second_request_on_a_connection_has_a_deadline_too() -> None:
    async with run_listener(ConnectionLimits(header_seconds=0.5)) as server:
        reader, writer = await server.connect()
        writer.write(REQUEST + UNFINISHED)
        answers = await asyncio.wait_for(reader.read(), HANG_SECONDS)
    assert answers.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in answers


@requirement("room:connections")
async def test_whole_requests_of_one_address_are_not_counted() -> None:
    limits = ConnectionLimits(max_half_open_per_address=5, header_seconds=60)
    async with run_listener(limits, answer_size=None) as server:
        streams = [await server.connect() for _ in range(20)]
        for _, writer in streams:
            writer.write(REQUEST)
        await server.wait_for_calls(20)
        half_open = [await server.connect() for _ in range(20)]
        for reader, _ in half_open[:15]:  # the oldest go, the newest five stay
            assert await asyncio.wait_for(_read_to_end(reader), HANG_SECONDS) == b""
        server.finish.set()
        for reader, _ in streams:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANG_SECONDS)
            assert head.startswith(b"HTTP/1.1 200")
        for _, writer in half_open[15:]:
            assert not writer.is_closing()
            writer.write(REQUEST)
        for reader, _ in half_open[15:]:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@requirement("room:connections")
async def test_over_the_cap_an_idle_connection_makes_room() -> None:
    async with run_listener(ConnectionLimits(max_connections=3)) as server:
        idle = [await server.connect() for _ in range(3)]
        for reader, writer in idle:
            writer.write(REQUEST)
            await reader.readuntil(b"0\r\n\r\n")
        reader, writer = await server.connect()
        writer.write(REQUEST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert await asyncio.wait_for(_read_to_end(idle[0][0]), HANG_SECONDS) == b""


@requirement("room:connections")
async def test_an_answer_that_nobody_reads_is_dropped() -> None:
    limits = ConnectionLimits(unread_seconds=1)
    async with run_listener(limits, answer_size=64 * 2**20) as server:
        with closing(socket.create_connection(server.address)) as reader:
            reader.sendall(REQUEST)
            await asyncio.wait_for(server.left.wait(), HANG_SECONDS)
        assert server.guard._open_connections == set()


@requirement("room:connections")
async def test_an_answer_that_is_read_slowly_is_not_dropped() -> None:
    limits = ConnectionLimits(unread_seconds=1)
    size = 24 * 2**20
    async with run_listener(limits, answer_size=size) as server:
        reader, writer = await server.connect(limit=2**16)
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        received = 0
        while received < size:
            block = await asyncio.wait_for(reader.read(2**20), HANG_SECONDS)
            assert block, "the connection was closed"
            received += len(block)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("request_head", "status"),
    [(b"GET /" + b"a" * 40_000, 414), (b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000, 431)],
    ids=["address", "headers"],
)
async def test_a_head_that_is_too_long_is_told_so(request_head: bytes, status: int) -> None:
    async with run_listener(ConnectionLimits()) as server:
        reader, writer = await server.connect()
        for start in range(0, len(request_head), 10_000):
            writer.write(request_head[start : start + 10_000])
            await writer.drain()
            await asyncio.sleep(0)
        answer = await asyncio.wait_for(reader.read(), HANG_SECONDS)
    assert answer.startswith(b"HTTP/1.1 %d" % status)


@requirement("room:connections")
async def test_a_body_that_comes_too_slowly_is_not_waited_for() -> None:
    limits = ConnectionLimits(body_window_seconds=1, min_body_bytes_per_second=1000)
    async with run_listener(limits, reads_body=True) as server:
        reader, writer = await server.connect()
        writer.write(BODY_TO_COME)
        trickle = asyncio.create_task(_send_for_ever(writer, b"x", 0.05))
        answer = await asyncio.wait_for(reader.read(), HANG_SECONDS)
        trickle.cancel()
        await asyncio.wait_for(server.left.wait(), HANG_SECONDS)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"too slowly" in answer


@requirement("room:connections")
async def test_a_body_that_comes_after_its_answer_has_a_lowest_rate_too() -> None:
    limits = ConnectionLimits(body_window_seconds=1, min_body_bytes_per_second=1000)
    async with run_listener(limits) as server:
        reader, writer = await server.connect()
        writer.write(BODY_TO_COME)
        trickle = asyncio.create_task(_send_for_ever(writer, b"x", 0.05))
        answer = await asyncio.wait_for(_read_to_end(reader), HANG_SECONDS)
        trickle.cancel()
    assert answer.startswith(b"HTTP/1.1 200") or not answer, "reset before it was read"


@requirement("room:connections")
async def test_a_body_that_comes_steadily_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_TICK_SECONDS", 0.05)
    limits = ConnectionLimits(body_window_seconds=1, min_body_bytes_per_second=10)
    async with run_listener(limits, reads_body=True) as server:
        reader, writer = await server.connect()
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n")
        for _ in range(15):  # some four windows
            writer.write(b"0123456789" * 2)
            await server.wait_for_ticks(0.25)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@requirement("room:connections")
async def test_the_time_in_which_we_do_not_read_is_not_the_sender_s() -> None:
    limits = ConnectionLimits(body_window_seconds=0.5, min_body_bytes_per_second=1000)
    async with run_listener(limits, answer_size=None) as server:
        reader, writer = await server.connect()
        writer.write(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 4_000_000
        )
        await server.wait_for_ticks(2)  # the app does not ask for the body meanwhile
        server.finish.set()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@requirement("room:connections")
async def test_over_the_cap_the_slowest_body_makes_room() -> None:
    limits = ConnectionLimits(max_connections=3)
    async with run_listener(limits, reads_body=True) as server:
        bodies = [await server.connect() for _ in range(3)]
        for _, writer in bodies:
            writer.write(BODY_TO_COME)
        await server.wait_for_calls(3)
        bodies[0][1].write(b"x" * 10_000)
        bodies[2][1].write(b"x" * 10_000)
        await server.wait_for_ticks(2)
        reader, writer = await server.connect()
        assert await asyncio.wait_for(_read_to_end(bodies[1][0]), HANG_SECONDS) == b""
        writer.write(REQUEST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@requirement("room:connections")
async def test_all_answers_that_nobody_reads_are_bounded_together() -> None:
    """Of the address that leaves most unread, the fullest connections are closed."""
    limits = ConnectionLimits(max_unread_bytes=20 * 2**20)
    async with run_listener(limits, answer_size=8 * 2**20, in_one_block=True) as server:
        with ExitStack() as held:
            modest = held.enter_context(_connect_from(server.address, "127.0.0.2"))
            modest.sendall(REQUEST)
            await server.wait_for_calls(1)
            greedy = [
                held.enter_context(_connect_from(server.address, "127.0.0.1")) for _ in range(6)
            ]
            for connection in greedy:
                connection.sendall(REQUEST)
            await server.wait_for_calls(7)
            await server.wait_for_ticks(1)
            kept = {connection.client_address for connection in server.guard._unread_answers}
            unread = sum(item.count_unread_bytes() for item in server.guard._unread_answers)
    assert "127.0.0.2" in kept
    assert unread <= 20 * 2**20


pytestmark = pytest.mark.anyio


@dataclass
class Listening:
    """A server in this process whose only page is `answer_size` bytes, or waits for `finish`."""

    address: tuple[str, int]
    guard: ConnectionGuard
    calls: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    called: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address, **options)
        self.writers.append(writer)
        return reader, writer

    async def wait_for_calls(self, count: int) -> None:
        async with self.called:
            await self.called.wait_for(lambda: self.calls >= count)

    async def wait_for_ticks(self, seconds: float) -> None:
        """Wait until the guard has looked at its connections for so long, by its own clock."""
        last_tick = self.guard._current_tick + seconds / connections._TICK_SECONDS
        while self.guard._current_tick < last_tick:
            self.guard._schedule_next_check()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def run_listener(
    limits: ConnectionLimits,
    answer_size: int | None = 5,
    reads_body: bool = False,
    in_one_block: bool = False,
) -> AsyncIterator[Listening]:
    state = Listening(("", 0), ConnectionGuard(limits))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async with state.called:
            state.calls += 1
            state.called.notify_all()
        if answer_size is None:
            await state.finish.wait()
        body = b"hello" if answer_size in (None, 5) else b"x" * answer_size
        block_size = len(body) if in_one_block else 2**20
        try:
            while reads_body and scope["method"] == "POST":
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                if not message["more_body"]:
                    break
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for start in range(0, len(body), block_size):
                block = body[start : start + block_size]
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            state.left.set()

    config = uvicorn.Config(app, log_config=None, ws="none", timeout_keep_alive=75)
    config.load()
    protocol = partial(
        GuardedProtocol, state.guard, config=config, server_state=ServerState(), app_state={}
    )
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    async with server:
        state.address = server.sockets[0].getsockname()
        try:
            yield state
        finally:
            for connection in list(state.guard._open_connections):
                connection.abort_connection()
            for writer in state.writers:
                writer.transport.abort()
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def _send_for_ever(writer: asyncio.StreamWriter, block: bytes, pause: float) -> None:
    while True:
        writer.write(block)
        await asyncio.sleep(pause)


def _connect_from(address: tuple[str, int], source: str) -> socket.socket:
    """A connection that takes next to nothing before it is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.bind((source, 0))
    connection.connect(address)
    return connection


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    """What is still read of a connection until it ends; a reset is an end too."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def _open_half(served: Served, source: str) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), source_address=(source, 0))
    connection.sendall(UNFINISHED)
    return connection


def _ask(served: Served) -> httpx2.Response:
    """A request with the key on a connection of its own, which is not tried a second time."""
    headers = {"Authorization": "Bearer sesame"}
    return httpx2.get(served.url + "/", headers=headers, timeout=HANG_SECONDS, trust_env=False)

"""Memory that one caller makes the server hold: bounded, for bodies and for unread answers."""

import re
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import httpx2
import mcp_types as wire
import pytest
from mcp.shared.message import SessionMessage

from readingroom.server.errors import TooManyBytes
from readingroom.server.http.held_bytes import MemoryCharges
from readingroom.server.mcp.streams import BoundedSendStream, estimate_message_bytes
from tests.requirements import requirement
from tests.server.test_auth import INITIALIZE
from tests.server.test_sessions import open_unread_stream
from tests.support.kit import (
    HANG_SECONDS,
    MODERN,
    POST,
    Served,
    make_app,
    make_rpc,
    open_app_client,
    serve_room,
)
from tests.support.processes import wait_until
from tests.support.specimen import make_specimen

MB = 2**20
BODY_BYTES = 4 * MB - 1

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def text_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of one text of 4 MB, whose answers take twice that."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "notes.txt").write_text("A line of text. " * 2**18, "utf-8")
    env = {"READINGROOM_RATE_LIMIT": "0"}
    file = str(folder / "notes.txt")
    with serve_room("text", "--file", file, data=folder / "data", env=env) as served:
        yield served


@requirement("room:limits")
def test_bodies_that_never_end_are_bounded_for_each_caller(text_room: Served) -> None:
    with ExitStack() as held:
        posts = [held.enter_context(_begin_post(text_room, "127.0.0.2")) for _ in range(250)]
        refusals = _read_answers(posts, 250 - 8)
        other = _ask(text_room, "127.0.0.3")
    assert {refusal.split()[1] for refusal in refusals} == {b"429"}
    assert all(b'"too_many_bytes"' in refusal for refusal in refusals)
    assert other.status_code == 200, "other callers are served"


@requirement("room:limits")
def test_a_caller_is_served_again_when_its_bodies_have_ended(text_room: Served) -> None:
    with ExitStack() as held:
        posts = [held.enter_context(_begin_post(text_room, "127.0.0.4")) for _ in range(9)]
        _read_answers(posts, 1)
        refused = _ask(text_room, "127.0.0.4")
    answers = (_ask(text_room, "127.0.0.4").status_code for _ in range(100))
    assert refused.status_code == 429
    assert 200 in answers, "once the server has noticed that they are gone"


@requirement("room:limits")
def test_unread_sessions_of_one_caller_hold_a_bounded_number_of_answers(
    text_room: Served,
) -> None:
    """Each of these answers takes 8 MB: of 256, without a bound, more than 2 GB would be held."""
    before = _read_peak_memory(text_room)
    call = make_rpc("tools/call", {"name": "get_kb_content", "arguments": {}})
    with ExitStack() as held:
        transport = httpx2.HTTPTransport(local_address="127.0.0.5")
        web = held.enter_context(httpx2.Client(transport=transport, timeout=HANG_SECONDS))
        endpoints = [
            held.enter_context(open_unread_stream(text_room.url, "127.0.0.5")) for _ in range(8)
        ]
        for endpoint in endpoints:
            web.post(text_room.url + endpoint, json=INITIALIZE)
        calls_before = len(text_room.calls())
        accepted = sum(
            web.post(text_room.url + endpoint, json=call).status_code == 202
            for _ in range(32)
            for endpoint in endpoints
        )
        wait_until(lambda: len(text_room.calls()) - calls_before >= accepted)
    growth = _read_peak_memory(text_room) - before
    assert growth < 700 * MB


@requirement("room:limits")
async def test_an_answer_too_many_is_dropped_and_an_error_takes_its_place() -> None:
    held_bytes = MemoryCharges(4 * MB)
    sender, receiver = anyio.create_memory_object_stream[SessionMessage](0)
    answer = SessionMessage(
        wire.JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": "x" * 20 * MB})
    )
    async with sender, receiver, anyio.create_task_group() as tasks:
        stream = BoundedSendStream(sender, held_bytes, "ann", tasks)
        tasks.start_soon(stream.send, answer)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BrokenResourceError):
            await stream.send(answer)
        held_bytes.check_memory_limits("bob", 30 * MB)  # another caller
        received = [await receiver.receive(), await receiver.receive()]
    errors = [item.message for item in received if isinstance(item.message, wire.JSONRPCError)]
    assert [error.id for error in errors] == [7]
    assert errors[0].error.data["code"] == "too_many_bytes"
    held_bytes.check_memory_limits("ann", 30 * MB)


def test_the_largest_answer_can_be_had_alone() -> None:
    held_bytes = MemoryCharges(4 * MB)
    with held_bytes.charge_bytes("ann", 500 * MB), pytest.raises(TooManyBytes):
        held_bytes.check_memory_limits("ann", 1)
    held_bytes.check_memory_limits("ann", 1)


def test_many_callers_together_are_bounded_and_lock_nobody_out() -> None:
    held_bytes = MemoryCharges(4 * MB)
    with ExitStack() as held:
        for number in range(4):
            held.enter_context(held_bytes.charge_bytes(f"greedy {number}", 32 * MB))
        with held_bytes.charge_bytes("modest", 2 * MB), pytest.raises(TooManyBytes):
            held_bytes.check_memory_limits("modest", 2 * MB)
    held_bytes.check_memory_limits("modest", 2 * MB)


def test_a_message_is_measured_by_its_texts() -> None:
    result = {"content": [{"text": "x" * 1000}], "structuredContent": {"y" * 1000: ["z" * 1000]}}
    message = wire.JSONRPCResponse(jsonrpc="2.0", id=1, result=result)
    assert 3000 <= estimate_message_bytes(message) < 3500


@requirement("room:limits")
@pytest.mark.parametrize("size", [64 * 1024 + 1, 4 * MB - 1000])
async def test_what_a_client_says_of_itself_is_short(tmp_path: Path, size: int) -> None:
    """It is kept as long as its session: 100 of them with 4 MB each would be 400 MB."""
    client = {"clientInfo": {"name": "x" * size, "version": "1"}}
    message = {**INITIALIZE, "params": {**INITIALIZE["params"], **client}}
    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        for path in ("/mcp", f"/messages/?session_id={'0' * 32}"):
            refused = await web.post(path, json=message, headers=POST)
            assert refused.status_code == 400
            assert "initialize: at most 65536 bytes" in refused.json()["error"]["message"]


@requirement("room:limits")
async def test_a_long_progress_token_is_refused(tmp_path: Path) -> None:
    """Every report of progress repeats it."""
    call = make_rpc("tools/call", {"name": "echo", "_meta": {"progressToken": "x" * 257}})
    headers = {**POST, "MCP-Protocol-Version": MODERN}
    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        refused = await web.post("/mcp", json=call, headers=headers)
    assert refused.status_code == 400
    assert "progressToken: at most 256 characters" in refused.json()["error"]["message"]


@requirement("room:limits")
async def test_forms_of_pages_are_bounded_too(tmp_path: Path) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    app = make_app(make_specimen(folder=tmp_path), data=tmp_path, max_body_bytes=MB)
    async with open_app_client(app) as web:
        large = await web.post("/sign-in", content=b"key=" + b"x" * MB, headers=kind)
        crowded = await web.post("/sign-in", content=b"a&" * 3000, headers=kind)
        other = await web.post(
            "/sign-in", content=b"key=x", headers={**kind, "Content-Type": "text/plain"}
        )
        wrong = await web.post("/sign-in", content=b"key=x", headers=kind)
    assert [large.status_code, crowded.status_code, other.status_code] == [413, 400, 415]
    assert wrong.status_code == 401


@requirement("room:limits")
def test_one_caller_cannot_have_every_connection(tmp_path: Path) -> None:
    """Requests that wait, here streams, hold a connection each; there are 32 in all here."""
    with (
        serve_room("text", data=tmp_path / "data", max_descriptors=64) as served,
        ExitStack() as held,
    ):
        for _ in range(16):
            held.enter_context(open_unread_stream(served.url, "127.0.0.2"))
        refused = _ask(served, "127.0.0.2")
        other = _ask(served, "127.0.0.3")
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "too_many_open_requests"
    assert other.status_code == 200


@contextmanager
def _begin_post(served: Served, source: str) -> Iterator[socket.socket]:
    """A request whose body is announced, and of which one byte never comes."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), source_address=(source, 0)) as connection:
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
        connection.sendall(head.encode() + b" " * 1000)
        yield connection


def _read_answers(connections: list[socket.socket], count: int) -> list[bytes]:
    """What the first `count` connections with an answer were answered."""
    received = dict.fromkeys(connections, b"")
    answers: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while len(answers) < count:
            ready = selector.select(HANG_SECONDS)
            assert ready, f"only {len(answers)} were answered"
            for connection in [key.fileobj for key, _ in ready]:
                assert isinstance(connection, socket.socket)
                received[connection] += connection.recv(65536)
                if received[connection].endswith(b"}}"):
                    answers.append(received[connection])
                    selector.unregister(connection)
    return answers


def _ask(served: Served, source: str) -> httpx2.Response:
    transport = httpx2.HTTPTransport(local_address=source)
    with httpx2.Client(transport=transport, timeout=HANG_SECONDS) as web:
        return web.post(served.url + "/mcp", json=INITIALIZE, headers=POST)


def _read_peak_memory(served: Served) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text("utf-8")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) * 1024

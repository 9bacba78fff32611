"""Sessions of both transports: how much one may leave unread, whose it is, when it ends."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from readingroom.server.http import security
from readingroom.storage.errors import StorageFailed
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.server.test_auth import INITIALIZE
from tests.support.kit import (
    HANG_SECONDS,
    LEGACY,
    MODERN,
    POST,
    make_app,
    make_rpc,
    open_app_client,
    serve_room,
)
from tests.support.specimen import make_specimen

pytestmark = pytest.mark.anyio

LONG_ID = "x" * 257


@requirement("room:limits")
async def test_a_stream_that_nobody_reads_takes_a_bounded_number_of_messages(
    tmp_path: Path,
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("A line of text. " * 65_536, "utf-8")
    env = {"READINGROOM_RATE_LIMIT": "0"}
    with serve_room("text", "--file", str(text), data=tmp_path / "data", env=env) as served:
        with (
            open_unread_stream(served.url) as endpoint,
            httpx2.Client(timeout=HANG_SECONDS, trust_env=False) as web,
        ):
            web.post(served.url + endpoint, json=INITIALIZE)
            web.post(served.url + endpoint, json=_make_notice("initialized"))
            statuses: list[int] = []
            while statuses[-5:] != [429] * 5 and len(statuses) < 300:
                call = make_rpc("tools/call", {"name": "get_kb_content", "arguments": {}})
                answer = web.post(served.url + endpoint, json=call)
                statuses.append(answer.status_code)
            spelled = endpoint.replace("session_id=", "session_id=urn:uuid:")
            disguised = web.post(served.url + spelled, json=make_rpc("ping"))
        assert (answer.status_code, disguised.status_code) == (429, 429)
        assert statuses.count(202) < 100
        assert answer.json()["error"]["code"] == "too_many_messages"
        assert answer.headers["retry-after"]
        assert served.get("/health").status_code == 200
        assert not [line for line in served.lines() if line["level"] == "ERROR"]


@requirement("room:limits")
async def test_a_request_that_was_cancelled_is_not_waited_for(tmp_path: Path) -> None:
    async with _open_sse_session(tmp_path) as (post, events):
        for number in range(80):
            waiting = make_rpc("tools/call", {"name": "wait_for_ever", "arguments": {}}, id=number)
            assert await post(waiting) == 202
            assert await post(_make_notice("cancelled", requestId=number)) == 202
        assert await post(make_rpc("ping", id=1000)) == 202
        async for event in events:
            if event.get("id") == 1000:
                break


@requirement("room:limits")
@pytest.mark.parametrize(
    "field", [{"id": LONG_ID}, {"id": 10**300}, {"method": LONG_ID}], ids=["id", "number", "method"]
)
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_a_long_id_or_method_is_refused(
    tmp_path: Path, field: dict[str, Any], wire: str
) -> None:
    """An answer repeats the id, and a method that nobody knows."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}, **field}
    headers = {**POST, "MCP-Protocol-Version": wire}
    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        for path in ("/mcp", f"/messages/?session_id={'0' * 32}"):
            refused = await web.post(path, json=message, headers=headers)
            assert refused.status_code == 400
            assert refused.json()["error"]["code"] == -32600
            assert "256 characters" in refused.json()["error"]["message"]
            assert len(refused.content) < 300


async def test_an_id_of_256_characters_is_answered(tmp_path: Path) -> None:
    async with _open_sse_session(tmp_path) as (post, events):
        assert await post(make_rpc("ping") | {"id": "x" * 256}) == 202
        async for event in events:
            if event.get("id") == "x" * 256:
                break


@requirement("room:limits")
async def test_one_caller_cannot_take_every_session(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    ann, bob = ring.add_key("ann", False), ring.add_key("bob", False)
    app = make_app(make_specimen(), data=tmp_path, max_sessions_per_caller=2)
    async with open_app_client(app) as web:

        async def open_session(key: str) -> httpx2.Response:
            headers = {**POST, "Authorization": f"Bearer {key}"}
            return await web.post("/mcp", json=INITIALIZE, headers=headers)

        first, second = [await open_session(ann) for _ in range(2)]
        refused, other = await open_session(ann), await open_session(bob)
        session = {"Mcp-Session-Id": first.headers["mcp-session-id"]}
        await web.delete("/mcp", headers={"Authorization": f"Bearer {ann}", **session})
        again = await open_session(ann)
        modern = {**POST, "Authorization": f"Bearer {ann}", "MCP-Protocol-Version": MODERN}
        stateless = await web.post("/mcp", json=make_rpc("tools/list"), headers=modern)
    assert [second.status_code, other.status_code, again.status_code] == [200, 200, 200]
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "too_many_sessions"
    assert "READINGROOM_MAX_SESSIONS_PER_CALLER" in refused.json()["error"]["message"]
    assert stateless.status_code != 503


@requirement("room:limits")
async def test_one_caller_cannot_take_every_sse_session(tmp_path: Path) -> None:
    env = {"READINGROOM_MAX_SESSIONS_PER_CALLER": "1"}
    with serve_room("text", data=tmp_path / "data", env=env) as served:
        with open_unread_stream(served.url):
            refused = served.get("/sse", Accept="text/event-stream")
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "too_many_sessions"
        with open_unread_stream(served.url, source="127.0.0.2"):
            pass


@requirement("room:keys")
@pytest.mark.parametrize(
    ("path", "accepted"),
    [
        ("/sse", "text/event-stream"),
        ("/mcp", "text/event-stream"),
        ("/sse", "*/*"),
        ("/sse", "TEXT/Event-Stream"),
        ("/sse", "application/json"),
    ],
)
async def test_the_stream_of_a_revoked_key_is_closed(
    tmp_path: Path, path: str, accepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "SECONDS_BETWEEN_KEY_CHECKS", 0.01)
    ring = KeyRing(tmp_path)
    ring.add_key("other", False)
    headers = {**POST, "Authorization": f"Bearer {ring.add_key('ann', False)}"}
    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        if path == "/mcp":
            opened = await web.post("/mcp", json=INITIALIZE, headers=headers)
            headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        events = {**headers, "Accept": accepted}
        # Over this transport a GET returns when its stream has ended.
        stream = asyncio.create_task(web.get(path, headers=events))
        done, _ = await asyncio.wait([stream], timeout=0.5)
        assert not done, "the stream of a good key stays open"
        ring.revoke_key("ann")
        answer = await asyncio.wait_for(stream, HANG_SECONDS)
    assert answer.status_code == 200


async def test_a_stream_goes_on_while_its_key_cannot_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "SECONDS_BETWEEN_KEY_CHECKS", 0.01)
    ring = KeyRing(tmp_path)
    ring.add_key("other", False)
    headers = {"Authorization": f"Bearer {ring.add_key('ann', False)}"}
    check_count = 0
    was_checked_often = asyncio.Event()

    def fail_to_find(ring: KeyRing, secret: bytes) -> None:
        nonlocal check_count
        check_count += 1
        if check_count == 3:
            was_checked_often.set()
        raise StorageFailed("The database with the keys does not answer")

    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        stream = asyncio.create_task(web.get("/sse", headers=headers))
        done, _ = await asyncio.wait([stream], timeout=0.5)
        with monkeypatch.context() as patch:
            patch.setattr(KeyRing, "find_holder", fail_to_find)
            waiting = asyncio.create_task(was_checked_often.wait())
            await asyncio.wait(
                [stream, waiting], timeout=HANG_SECONDS, return_when="FIRST_COMPLETED"
            )
        assert waiting.done() and not done and not stream.done()
        ring.revoke_key("ann")
        answer = await asyncio.wait_for(stream, HANG_SECONDS)
    assert answer.status_code == 200


@contextmanager
def open_unread_stream(url: str, source: str = "127.0.0.1") -> Iterator[str]:
    """An SSE stream of which only the address for messages is read."""
    host, port = url.removeprefix("http://").split(":")
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with stream:
        stream.bind((source, 0))
        stream.connect((host, int(port)))
        stream.sendall(f"GET /sse HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        received = b""
        while b"session_id=" not in received or not received.endswith(b"\r\n\r\n"):
            block = stream.recv(1024)
            assert block, received
            received += block
        yield received.decode().partition("data: ")[2].split()[0]


@asynccontextmanager
async def _open_sse_session(data: Path) -> AsyncIterator[tuple[Any, AsyncIterator[dict[str, Any]]]]:
    """A session on the specimen in this process: how to post to it, and what its stream says."""
    app = make_app(make_specimen(folder=data), data=data, rate_limit=0)
    sent, received = anyio.create_memory_object_stream[bytes](1000)
    connected = {"type": "http", "method": "GET", "path": "/sse", "raw_path": b"/sse"}
    scope: dict[str, Any] = {
        **connected,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"accept", b"text/event-stream")],
        "client": ("127.0.0.1", 1),
        "state": {},
    }

    async def send(message: Any) -> None:
        await sent.send(message.get("body", b""))

    left = anyio.Event()

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def read_events() -> AsyncIterator[dict[str, Any]]:
        async for block in received:
            for line in block.decode().splitlines():
                if line.startswith("data: {"):
                    yield json.loads(line.removeprefix("data: "))

    async with open_app_client(app) as web, sent, received, anyio.create_task_group() as tasks:
        tasks.start_soon(app, scope, receive, send)
        endpoint = ""
        while "session_id" not in endpoint:
            endpoint = (await received.receive()).decode()
        address = endpoint.partition("data: ")[2].split()[0]

        async def post(message: Any) -> int:
            return (await web.post(address, json=message)).status_code

        assert await post(INITIALIZE) == 202
        assert await post(_make_notice("initialized")) == 202
        yield post, read_events()
        left.set()


def _make_notice(name: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}

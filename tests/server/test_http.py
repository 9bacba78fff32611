"""What surrounds the tools over HTTP: pages, request ids, log lines, metrics, limits, sessions."""

import json
import re
import select
import socket
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import anyio
import httpx2
import pytest

from readingroom.bases import BASES
from readingroom.server.errors import RateLimited
from readingroom.server.http.addresses import get_address_group
from readingroom.server.http.limits import RateLimiter
from readingroom.server.run import bind_listener
from tests.requirements import requirement
from tests.server.test_auth import INITIALIZE
from tests.support.kit import (
    HANG_SECONDS,
    LEGACY,
    MODERN,
    POST,
    Served,
    connect_http,
    connect_sse,
    make_app,
    make_rpc,
    open_app_client,
    serve_room,
)
from tests.support.specimen import SECRET, make_specimen

pytestmark = pytest.mark.anyio

WIRES = pytest.mark.parametrize("wire", [LEGACY, MODERN])


@requirement("room:landing")
@pytest.mark.parametrize("path", ["/mcp", "/text/mcp"])
async def test_a_browser_at_mcp_sees_a_page_that_says_how_to_connect(
    room: Served, path: str
) -> None:
    page = room.get(path, Accept="text/html,application/xhtml+xml")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for word in ("Claude", "ChatGPT", "Cursor", "VS Code", ".mcp.json", f"{room.url}{path}"):
        assert word in page.text


@requirement("room:landing")
async def test_the_index_is_a_page_for_people_and_json_for_machines(room: Served) -> None:
    page = room.get("/", Accept="text/html")
    listed = room.get("/").json()
    assert "/text/mcp" in page.text
    whole, *faces = listed["servers"]
    urls = {face["name"]: face.get("sse") for face in faces}
    assert whole["name"] == "reading-room"
    assert whole["bases"] == sorted(BASES)
    assert urls.keys() >= {"ccew-mcp", "kb-mcp"}
    assert (urls["ccew-mcp"], urls["kb-mcp"]) == (None, f"{room.url}/text/sse")


async def test_a_stateless_face_has_no_event_stream_to_get(room: Served) -> None:
    refused = room.get("/text/mcp", Accept="text/event-stream")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "POST"


async def test_one_base_alone_is_at_the_bare_paths_under_its_own_name(tmp_path: Path) -> None:
    with serve_room("text", data=tmp_path / "data") as served:
        async with connect_http(served.url + "/mcp") as client:
            assert client.server_info.name == "kb-mcp"
            assert len((await client.list_tools()).tools) == 2
        async with connect_sse(served.url + "/sse") as client:
            assert len((await client.list_tools()).tools) == 2
        assert served.get("/text/mcp").status_code == 404


def test_a_kept_connection_answers_without_delay() -> None:
    with (
        bind_listener("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        accepted, _ = listener.accept()
        with accepted:
            # Nagle's algorithm is off: it would hold each body back until its head is acknowledged.
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_idle_connection_is_for_the_client_to_close(room: Served) -> None:
    connection = HTTPConnection(room.url.removeprefix("http://"), timeout=300)
    with closing(connection):
        connection.request("GET", "/health")
        connection.getresponse().read()
        # Our own client gives up an idle connection after five seconds.
        assert select.select([connection.sock], [], [], 6) == ([], [], [])
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


@requirement("room:request-id")
async def test_a_request_id_is_echoed_or_made(room: Served) -> None:
    assert room.get("/health", **{"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = room.get("/health").headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{32}", made)


@requirement("room:request-id")
@pytest.mark.parametrize("offered", ["", "a b", "x" * 129, "<script>", "café"])
async def test_an_unsafe_request_id_is_replaced(room: Served, offered: str) -> None:
    headers = [(b"x-request-id", offered.encode())]
    given = httpx2.get(room.url + "/health", headers=headers, timeout=HANG_SECONDS, trust_env=False)
    assert re.fullmatch(r"[0-9a-f]{32}", given.headers["x-request-id"])


@requirement("room:log")
@WIRES
async def test_a_call_leaves_one_line_with_the_five_fields(room: Served, wire: str) -> None:
    before = len(room.calls())
    async with connect_http(room.url + "/text/mcp", wire) as client:
        await client.call_tool("get_kb_content")
        await client.call_tool("get_kb_info", {"surplus": SECRET})
    good, bad = room.calls()[before:]
    assert good.keys() >= {"tool_name", "request_id", "duration_ms", "result_status", "caller_kind"}
    assert (good["tool_name"], good["result_status"]) == ("get_kb_content", "ok")
    assert good["caller_kind"] == "anonymous"
    assert "error_code" not in good
    assert (bad["result_status"], bad["error_code"]) == ("error", "invalid_arguments")
    assert SECRET not in room.log.read_text("utf-8")


@requirement("room:log", "room:request-id")
async def test_the_line_carries_the_request_id_of_the_request(room: Served) -> None:
    message = make_rpc("tools/call", {"name": "get_kb_info", "arguments": {}})
    headers = {**POST, "X-Request-ID": "find-me"}
    httpx2.post(
        room.url + "/text/mcp", json=message, headers=headers, timeout=HANG_SECONDS, trust_env=False
    )
    assert room.calls()[-1]["request_id"] == "find-me"


@requirement("room:log")
async def test_even_the_debug_log_has_no_payload(tmp_path: Path) -> None:
    with serve_room("--log-level", "debug", data=tmp_path / "data") as served:
        async with connect_sse(served.url + "/text/sse") as client:
            await client.call_tool("get_kb_info", {"x": "a-payload"})
        async with connect_http(served.url + "/mcp", LEGACY) as client:
            await client.call_tool("get_kb_info", {"x": "a-payload"})
        broken = {**POST, "MCP-Protocol-Version": LEGACY}
        httpx2.post(
            served.url + "/mcp",
            content=b"a-payload",
            headers=broken,
            timeout=HANG_SECONDS,
            trust_env=False,
        )
    assert served.calls()
    assert "a-payload" not in served.log.read_text("utf-8")


@requirement("room:metrics")
async def test_metrics_count_calls_errors_and_latency_per_tool(tmp_path: Path) -> None:
    app = make_app(make_specimen(), data=tmp_path)
    async with open_app_client(app) as web:
        session = await open_session(web)
        for name in ("echo", "echo", "fail", "nothing_like_it"):
            params = {"name": name, "arguments": {"text": "x"} if name == "echo" else {}}
            await web.post("/mcp", json=make_rpc("tools/call", params), headers=session)
        page = (await web.get("/metrics")).text
    assert 'readingroom_tool_calls_total{status="ok",tool="echo"} 2.0' in page
    assert 'readingroom_tool_calls_total{status="error",tool="fail"} 1.0' in page
    assert 'readingroom_tool_errors_total{code="text_unreadable",tool="fail"} 1.0' in page
    assert 'readingroom_tool_errors_total{code="unknown_tool",tool="unknown"} 1.0' in page
    assert 'readingroom_tool_seconds_bucket{le="0.001",tool="echo"}' in page
    assert "nothing_like_it" not in page


@requirement("room:metrics")
async def test_metrics_are_behind_the_key_when_there_is_one(locked_room: Served) -> None:
    assert locked_room.get("/metrics").status_code == 401
    assert locked_room.get("/metrics", Authorization="Bearer sesame").status_code == 200


@requirement("room:internal")
async def test_a_crash_outside_a_tool_is_told_as_internal_with_the_request_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(make_specimen(), data=tmp_path)

    def crash(*args: object) -> bytes:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("readingroom.server.observe.metrics.generate_latest", crash)
    async with open_app_client(app) as web:
        answer = await web.get("/metrics", headers={"X-Request-ID": "r-1"})
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert answer.json()["error"]["request_id"] == "r-1"
    assert SECRET not in answer.text
    assert SECRET in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "path_not_found"),
        ("GET", "/mcp/", 404, "path_not_found"),
        ("GET", "/health/", 404, "path_not_found"),
        ("POST", "/health", 405, "method_not_allowed"),
        ("GET", "/text/messages/", 405, "method_not_allowed"),
    ],
)
async def test_what_the_router_refuses_comes_in_the_same_envelope(
    room: Served, method: str, path: str, status: int, code: str
) -> None:
    refused = httpx2.request(method, room.url + path, timeout=HANG_SECONDS, trust_env=False)
    assert refused.status_code == status
    error = refused.json()["error"]
    assert error["code"] == code
    assert error["request_id"] == refused.headers["x-request-id"]
    assert error.keys() == {"type", "code", "message", "request_id"}


def test_a_browser_at_an_address_of_nothing_gets_a_page_and_a_program_the_envelope(
    room: Served,
) -> None:
    page = room.get("/nowhere", Accept="text/html,application/xhtml+xml")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is no page at this address." in page.text and 'href="/"' in page.text
    assert room.get("/nowhere", Accept="application/json").json()["error"]["type"] == "not_found"


@requirement("room:limits")
@pytest.mark.usefixtures("stopped_limits")
async def test_a_caller_over_its_rate_is_told_when_to_come_back(tmp_path: Path) -> None:
    async with open_app_client(make_app(make_specimen(), data=tmp_path, rate_limit=3)) as web:
        answers = [await web.get("/") for _ in range(3)]
        refused = await web.get("/")
        health = await web.get("/health")
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [answer.headers["x-ratelimit-limit"] for answer in answers] == ["3"] * 3
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0"]
    assert 1 <= int(answers[-1].headers["x-ratelimit-reset"]) <= 60
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 20
    assert refused.json()["error"].keys() == {"code", "message"}
    assert refused.json()["error"]["code"] == "rate_limited"
    assert health.status_code == 200


@requirement("room:limits")
def test_the_bucket_refills_with_time_and_callers_do_not_share_it() -> None:
    now = [0.0]
    limiter = RateLimiter(60, read_clock=lambda: now[0])
    for _ in range(60):
        limiter.count_request("ann")
    with pytest.raises(RateLimited) as refused:
        limiter.count_request("ann")
    limiter.count_request("bob")
    now[0] = 1.0
    limiter.count_request("ann")
    assert refused.value.hint["retry_after"] == 1


@requirement("room:limits")
def test_a_flood_of_other_callers_gives_nobody_a_new_allowance() -> None:
    limiter = RateLimiter(600, read_clock=lambda: 0.0)
    for _ in range(600):
        limiter.count_request("ann")
    for number in range(25_000):
        limiter.count_request(f"ip:{number}")
    with pytest.raises(RateLimited):
        limiter.count_request("ann")
    assert len(limiter._remaining_by_caller) <= 10_000


@requirement("room:limits")
@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_an_address_is_counted_with_all_that_its_owner_has(address: str, counted_as: str) -> None:
    assert get_address_group(address) == counted_as


@requirement("room:limits")
@pytest.mark.usefixtures("stopped_limits")
async def test_one_network_of_ipv6_is_one_caller(tmp_path: Path) -> None:
    app = make_app(make_specimen(), data=tmp_path, rate_limit=5)
    statuses = []
    async with app.router.lifespan_context(app):
        for number in range(8):
            transport = httpx2.ASGITransport(app, client=(f"2001:db8::{number}", 50000))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web:
                statuses.append((await web.get("/")).status_code)
    assert statuses == [200] * 5 + [429] * 3


async def open_session(web: httpx2.AsyncClient) -> dict[str, str]:
    """The headers of a session that was just opened at `/mcp`."""
    answer = await web.post("/mcp", json=INITIALIZE, headers=POST)
    return {**POST, "Mcp-Session-Id": answer.headers["mcp-session-id"]}


@requirement("room:limits")
async def test_sessions_are_capped_and_a_deleted_one_makes_room(tmp_path: Path) -> None:
    async with open_app_client(make_app(make_specimen(), data=tmp_path, max_sessions=2)) as web:
        first = await open_session(web)
        await open_session(web)
        full = await web.post("/mcp", json=INITIALIZE, headers=POST)
        ended = await web.delete("/mcp", headers=first)
        again = await web.post("/mcp", json=INITIALIZE, headers=POST)
        gone = await web.post("/mcp", json=make_rpc("tools/list"), headers=first)
    assert (full.status_code, ended.status_code, again.status_code) == (503, 200, 200)
    assert gone.status_code == 404


@requirement("room:limits")
async def test_an_idle_session_ends(tmp_path: Path) -> None:
    app = make_app(make_specimen(), data=tmp_path, session_idle_seconds=0.2)
    async with open_app_client(app) as web:
        session = await open_session(web)
        with anyio.fail_after(HANG_SECONDS):
            while True:
                await anyio.sleep(0.6)  # longer than it may be idle: asking keeps it alive
                answer = await web.post("/mcp", json=make_rpc("tools/list"), headers=session)
                if answer.status_code == 404:
                    break


@requirement("room:limits")
async def test_sse_sessions_are_capped_and_idle_ones_end(tmp_path: Path) -> None:
    env = {"READINGROOM_MAX_SESSIONS": "1", "READINGROOM_SESSION_IDLE_SECONDS": "3"}
    with serve_room("text", data=tmp_path / "data", env=env) as served:
        for _ in range(5):  # on a busy machine a session may be over before the other is asked for
            with httpx2.stream("GET", served.url + "/sse", timeout=300, trust_env=False) as stream:
                lines = stream.iter_lines()
                assert next(lines) == "event: endpoint"
                refused = served.get("/sse")
                rest = list(lines)  # ends by itself, or the read times out
            if refused.status_code == 503:
                break
        async with connect_sse(served.url + "/sse") as client:
            assert len((await client.list_tools()).tools) == 2
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "too_many_sessions"
    assert not any("tools" in line for line in rest)


@requirement("room:handshake")
@WIRES
async def test_the_answer_says_who_asked(tmp_path: Path, wire: str) -> None:
    data = tmp_path / "data"
    with serve_room("text", data=data, env={"MCP_API_KEY": "sesame"}) as served:
        async with connect_http(served.url + "/mcp", wire, key="sesame") as client:
            await client.call_tool("get_kb_info")
        assert served.calls()[-1]["caller_kind"] == "api_key:env"


async def test_forwarded_addresses_are_believed_only_from_a_trusted_proxy(tmp_path: Path) -> None:
    for trusted, told in (("", "127.0.0.1"), ("127.0.0.1", "203.0.113.9")):
        env = {"MCP_API_KEY": "sesame", "READINGROOM_TRUSTED_PROXIES": trusted}
        with serve_room("text", data=tmp_path / (trusted or "none"), env=env) as served:
            served.get("/", **{"X-Forwarded-For": "203.0.113.9"})
            assert served.lines()[-1]["client_ip"] == told


@requirement("room:host")
async def test_names_the_operator_adds_are_answered(tmp_path: Path) -> None:
    env = {
        "READINGROOM_ALLOWED_HOSTS": "room.example.org, other.example:8443",
        "READINGROOM_PUBLIC_URL": "https://public.example",
    }
    with serve_room("text", "--insecure", data=tmp_path / "data", env=env) as served:
        hosts = ["room.example.org", "room.example.org:80", "other.example:8443", "public.example"]
        assert [served.get("/", Host=host).status_code for host in hosts] == [200] * 4
        assert served.get("/", Host="other.example:1").status_code == 421
        assert served.get("/").json()["servers"][0]["mcp"] == "https://public.example/mcp"


async def test_the_log_is_one_json_object_a_line(room: Served) -> None:
    for line in room.log.read_text("utf-8").splitlines():
        assert json.loads(line).keys() >= {"time", "level", "logger", "message"}

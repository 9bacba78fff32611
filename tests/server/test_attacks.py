"""What a hostile client sends: refused with the right code, and the server goes on serving."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.requirements import requirement
from tests.support.kit import (
    LEGACY,
    MODERN,
    POST,
    Served,
    make_app,
    make_rpc,
    open_app_client,
    run,
    serve_room,
)
from tests.support.processes import HANG_SECONDS
from tests.support.specimen import make_specimen


@pytest.fixture(autouse=True)
def still_serving(room: Served) -> Any:
    """After every attack an honest call is answered."""
    yield
    honest = make_rpc("tools/call", {"name": "get_kb_info", "arguments": {}})
    answer = post(room, "/text/mcp", honest).json()["result"]
    assert answer["structuredContent"]["status"] == "available"
    assert room.process.poll() is None


def post(room: Served, path: str, message: Any, **headers: str) -> httpx2.Response:
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    with httpx2.Client(trust_env=False, timeout=300) as web:
        return web.post(room.url + path, content=raw, headers={**POST, **headers})


ROOMS = pytest.mark.parametrize("path", ["/mcp", "/text/mcp"])
WIRES = pytest.mark.parametrize("wire", [LEGACY, MODERN])


@requirement("room:host")
@pytest.mark.parametrize(
    "path", ["/", "/mcp", "/text/mcp", "/text/sse", "/text/messages/", "/metrics", "/admin/x"]
)
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost:*"]
)
def test_an_evil_host_is_misdirected(room: Served, path: str, host: str) -> None:
    refused = room.get(path, Host=host, Accept="text/event-stream")
    assert refused.status_code == 421
    assert refused.json()["error"]["code"] == "misdirected"


@requirement("room:origin")
@ROOMS
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "http://localhost:x", "x"],
)
def test_an_evil_origin_is_forbidden(room: Served, path: str, origin: str) -> None:
    refused = post(room, path, make_rpc("tools/list"), Origin=origin)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "forbidden_origin"


ENDPOINTS = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/text/mcp"),
    ("GET", "/text/sse"),
    ("POST", f"/text/messages/?session_id={'0' * 32}"),
]


@requirement("room:host", "room:origin")
@WIRES
@pytest.mark.parametrize(
    ("names", "status"),
    [
        ({"Host": "rebound.example:8000"}, 421),
        ({"Host": "127.0.0.1.rebound.example"}, 421),
        ({"Host": "127.0.0.1:x"}, 421),
        ({"Origin": "http://rebound.example:8000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:8000.rebound.example"}, 403),
    ],
)
@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_a_page_that_was_rebound_to_this_address_reaches_no_transport(
    room: Served, method: str, path: str, names: dict[str, str], status: int, wire: str
) -> None:
    # Ours is the only check: the SDK's own is off, and its are the same cases.
    sent = {**POST, "MCP-Protocol-Version": wire, **names}
    body = json.dumps(make_rpc("tools/list")).encode() if method == "POST" else None
    refused = httpx2.request(
        method, room.url + path, content=body, headers=sent, timeout=300, trust_env=False
    )
    assert refused.status_code == status


@requirement("room:origin")
def test_every_origin_of_a_request_must_be_allowed(room: Served) -> None:
    origins = [("Origin", "https://evil.example"), ("Origin", "http://localhost")]
    refused = httpx2.get(room.url + "/", headers=origins, timeout=HANG_SECONDS, trust_env=False)
    assert refused.status_code == 403


EMBEDDED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
LINKED = EMBEDDED | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@requirement("room:origin", "room:limits")
@pytest.mark.anyio
@pytest.mark.usefixtures("stopped_limits")
async def test_what_a_page_elsewhere_embeds_is_refused_and_spends_nothing(tmp_path: Path) -> None:
    async with open_app_client(make_app(make_specimen(), data=tmp_path, rate_limit=5)) as web:
        for path in ("/", "/nowhere", "/mcp", "/metrics", "/sse") * 4:
            refused = await web.get(path, headers=EMBEDDED)
            assert refused.status_code == 403
            assert "x-ratelimit-remaining" not in refused.headers
        framed = await web.get("/", headers=LINKED | {"Sec-Fetch-Dest": "iframe"})
        assert framed.status_code == 403
        assert (await web.get("/")).headers["x-ratelimit-remaining"] == "4"
        own_page = {"Sec-Fetch-Site": "same-origin"}
        inspector = EMBEDDED | {"Origin": "http://localhost:6274"}
        for headers in (LINKED, own_page, inspector):
            assert (await web.get("/", headers=headers)).status_code == 200


@pytest.mark.anyio
@pytest.mark.usefixtures("stopped_limits")
async def test_what_a_page_elsewhere_opens_spends_nothing_of_this_machine_s(tmp_path: Path) -> None:
    """Navigations are allowed, but a page can make hundreds of them, and have more prefetched."""
    async with open_app_client(make_app(make_specimen(), data=tmp_path, rate_limit=5)) as web:
        opened = [(await web.get("/", headers=LINKED)).status_code for _ in range(7)]
        prefetched = await web.get("/", headers=LINKED | {"Sec-Purpose": "prefetch;prerender"})
        old_prefetch = await web.get("/", headers=LINKED | {"Purpose": "prefetch"})
        own = await web.get("/")
    assert opened == [200] * 5 + [429] * 2, "a flood is limited all the same"
    assert (prefetched.status_code, old_prefetch.status_code) == (403, 403)
    assert own.status_code == 200
    assert own.headers["x-ratelimit-remaining"] == "4"


@requirement("room:admin", "room:limits")
def test_a_flood_of_this_machine_does_not_lock_the_shell_out(tmp_path: Path) -> None:
    env = {"MCP_API_KEY": "sesame", "READINGROOM_RATE_LIMIT": "3"}
    with serve_room("documents", data=tmp_path, env=env) as served:
        # Three a minute: so many that a busy machine cannot give back one for each.
        statuses = [served.get("/nowhere").status_code for _ in range(30)]
        listed = run("documents", "list", "25/01178/REM", "--data", str(tmp_path))
        guessed = [
            post(served, "/admin/documents.list", {}, Authorization="Bearer x").status_code
            for _ in range(30)
        ]
    assert statuses[-1] == 429
    assert "Too many requests" not in listed.stderr
    assert guessed[-1] == 429


@requirement("room:pages")
@pytest.mark.parametrize(
    "path", ["/", "/health", "/docs", "/nowhere", "/v1/bills", "/openapi.json", "/metrics"]
)
def test_every_response_tells_browsers_to_keep_their_hands_off(room: Served, path: str) -> None:
    told = room.get(path).headers
    assert told["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in told["content-security-policy"]
    assert told["cross-origin-resource-policy"] == "same-origin"
    # A page says to itself where its forms come from; nothing leaves this server.
    assert told["referrer-policy"] == ("same-origin" if path == "/docs" else "no-referrer")


@requirement("room:origin", "room:host")
@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1", "http://[::1]:80"])
def test_a_page_on_this_machine_may_call(room: Served, origin: str) -> None:
    assert post(room, "/text/mcp", make_rpc("tools/list"), Origin=origin).status_code == 200


@requirement("room:origin")
@pytest.mark.parametrize(
    ("origin", "allowed"), [("http://localhost:6274", True), ("https://evil.example", False)]
)
def test_a_browser_is_given_leave_for_allowed_pages_only(
    locked_room: Served, origin: str, allowed: bool
) -> None:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-session-id",
    }
    leave = httpx2.options(
        locked_room.url + "/mcp", headers=asked, timeout=HANG_SECONDS, trust_env=False
    )
    assert (leave.status_code == 200) is allowed
    assert (leave.headers.get("access-control-allow-origin") == origin) is allowed
    called = post(locked_room, "/mcp", make_rpc("tools/list"), Origin=origin)
    assert called.status_code == (401 if allowed else 403)
    assert ("access-control-allow-origin" in called.headers) is allowed


@requirement("room:limits")
@WIRES
@ROOMS
def test_a_body_of_five_megabytes_is_too_large(room: Served, path: str, wire: str) -> None:
    large = make_rpc("tools/call", {"name": "get_kb_info", "arguments": {"x": "x" * 5_000_000}})
    assert post(room, path, large, **{"MCP-Protocol-Version": wire}).status_code == 413


@requirement("room:limits")
def test_a_body_of_five_megabytes_is_too_large_for_sse(room: Served) -> None:
    assert post(room, "/text/messages/?session_id=0", b"x" * 5_000_000).status_code == 413


@requirement("room:limits")
def test_a_body_that_never_says_its_length_is_cut_off(room: Served) -> None:
    endless = (b"x" * 65536 for _ in range(100))
    with httpx2.Client(trust_env=False, timeout=300) as web:
        assert web.post(room.url + "/mcp", content=endless, headers=POST).status_code == 413


@requirement("room:bounds")
@WIRES
@ROOMS
@pytest.mark.parametrize("shape", ["[", '{"a":'])
def test_json_of_a_hundred_thousand_levels_is_a_parse_error(
    room: Served, path: str, wire: str, shape: str
) -> None:
    close = {"[": "]", '{"a":': "}"}[shape]
    deep = (shape * 100_000 + "0" + close * 100_000).encode()
    refused = post(room, path, deep, **{"MCP-Protocol-Version": wire})
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == -32700


@requirement("room:bounds")
@WIRES
@pytest.mark.parametrize("levels", [150, 190, 230, 300])
def test_arguments_nested_deep_are_refused(room: Served, wire: str, levels: int) -> None:
    nested: Any = 0
    for _ in range(levels):
        nested = [nested]
    refused = post(
        room, "/text/mcp", call(wire, "get_kb_info", {"x": nested}), **make_headers(wire)
    )
    assert refused.status_code in (200, 400)
    assert "result" not in refused.json() or refused.json()["result"]["isError"]


@requirement("room:unknown-tool")
@WIRES
@pytest.mark.parametrize(
    "name", ["no_such_tool", "", "../get_kb_info", "x" * 100_000, "get_kb_info "]
)
def test_an_unknown_tool_is_invalid_params(room: Served, wire: str, name: str) -> None:
    refused = post(room, "/text/mcp", call(wire, name, {}), **make_headers(wire, name))
    assert refused.json()["error"]["code"] in (-32602, -32020)
    assert len(refused.content) < 2000


@requirement("room:invalid-arguments", "room:bounds")
@WIRES
@pytest.mark.parametrize("arguments", [{"x": 1}, {"path": "/etc/passwd"}, {"": None}])
def test_an_unknown_argument_is_an_error_that_names_it(
    room: Served, wire: str, arguments: dict[str, Any]
) -> None:
    answered = post(room, "/text/mcp", call(wire, "get_kb_info", arguments), **make_headers(wire))
    result = answered.json()["result"]
    assert result["isError"]
    (field,) = arguments
    told = json.loads(result["content"][0]["text"])["error"]
    assert told == f"Invalid arguments: {field or 'arguments'}: Extra inputs are not permitted"


@requirement("room:bounds")
def test_thousands_of_unknown_arguments_are_told_in_a_few(room: Served) -> None:
    many = {f"argument_{n}": n for n in range(50_000)}
    answered = post(room, "/text/mcp", call(LEGACY, "get_kb_info", many), **make_headers(LEGACY))
    assert answered.json()["result"]["isError"]
    assert "49980 more" in answered.text
    assert len(answered.content) < 10_000


@requirement("room:host")
def test_names_are_the_same_in_upper_case(room: Served) -> None:
    host = {"Host": room.url.removeprefix("http://127.0.0.1").join(["LOCALHOST", ""])}
    upper = {**host, "Origin": "HTTP://LOCALHOST:1"}
    assert post(room, "/text/mcp", make_rpc("tools/list"), **upper).status_code == 200


@requirement("room:bounds")
@WIRES
@pytest.mark.parametrize("arguments", [[], "text", 5, True])
def test_arguments_that_are_no_object_are_refused(room: Served, wire: str, arguments: Any) -> None:
    refused = post(room, "/text/mcp", call(wire, "get_kb_info", arguments), **make_headers(wire))
    assert refused.json()["error"]["code"] == -32602


@requirement("room:bounds")
@ROOMS
@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00", b"null", b"[]", b"{}", b'{"jsonrpc":"1.0"}', b"\xff\xfe", b'"\\ud800"', b"NaN"],
)
def test_what_is_no_request_is_refused(room: Served, path: str, raw: bytes) -> None:
    assert 400 <= post(room, path, raw).status_code < 500


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "DELETE", "BREW"])
@pytest.mark.parametrize("path", ["/health", "/text/mcp", "/text/sse", "/metrics", "/"])
def test_an_unfitting_method_is_refused(room: Served, path: str, method: str) -> None:
    refused = httpx2.request(method, room.url + path, timeout=HANG_SECONDS, trust_env=False)
    assert 400 <= refused.status_code < 500


@pytest.mark.parametrize("session", ["nonsense", "0" * 32, "../x", "x" * 10_000])
def test_a_made_up_session_is_not_found(room: Served, session: str) -> None:
    refused = post(room, "/mcp", make_rpc("tools/list"), **{"Mcp-Session-Id": session})
    assert refused.status_code == 404


@pytest.mark.parametrize(
    "query", ["", "?session_id=", "?session_id=xyz", f"?session_id={'0' * 32}"]
)
def test_a_made_up_sse_session_is_refused(room: Served, query: str) -> None:
    assert post(room, f"/text/messages/{query}", make_rpc("tools/list")).status_code in (400, 404)


def call(wire: str, name: str, arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if wire == MODERN:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return make_rpc("tools/call", params)


def make_headers(wire: str, name: str = "get_kb_info") -> dict[str, str]:
    if wire == LEGACY:
        return {"MCP-Protocol-Version": wire}
    return {
        "MCP-Protocol-Version": wire,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name[:1000].strip(),
    }

"""Who may come in: keys, the three refusals, the one open path, and sessions that stay apart."""

import hmac
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from readingroom.server.auth import bearer as auth
from readingroom.storage.errors import KeyExists
from readingroom.storage.keys import KeyRing, WorkerKeys
from tests.requirements import requirement
from tests.support.kit import (
    LEGACY,
    MODERN,
    POST,
    Served,
    connect_http,
    connect_sse,
    invoke,
    make_app,
    make_rpc,
    open_app_client,
    read_body,
    run,
    serve_room,
)
from tests.support.processes import HANG_SECONDS
from tests.support.specimen import make_specimen

INITIALIZE = make_rpc(
    "initialize",
    {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
)


def read_refusal(response: httpx2.Response) -> tuple[int, dict[str, Any]]:
    return response.status_code, response.json()


def raw_get(room: Served, path: str, headers: dict[str, str]) -> tuple[int, Any]:
    """A request as it stands: no client tidies the path or the header."""
    connection = HTTPConnection(urlsplit(room.url).netloc, timeout=300)
    with closing(connection):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, json.load(response)


def make_unauthorized_answer(message: str) -> tuple[int, dict[str, Any]]:
    return 401, {"error": {"code": "unauthorized", "message": message}}


@requirement("policy:FR-010:missing")
@pytest.mark.parametrize(
    "path", ["/", "/policy/mcp", "/text/mcp", "/text/sse", "/docs", "/metrics", "/nowhere"]
)
def test_without_a_header_every_path_is_refused(locked_room: Served, path: str) -> None:
    assert read_refusal(locked_room.get(path)) == make_unauthorized_answer(
        "Missing Authorization header"
    )


@requirement("policy:FR-010:invalid")
@pytest.mark.parametrize("token", ["wrong", "sesam", "sesame1", "SESAME", "s\xe9same", "a" * 5000])
def test_a_wrong_token_is_refused(locked_room: Served, token: str) -> None:
    response = httpx2.get(
        locked_room.url + "/text/mcp",
        headers=[(b"authorization", b"Bearer " + token.encode("latin-1"))],
        timeout=HANG_SECONDS,
        trust_env=False,
    )
    assert read_refusal(response) == make_unauthorized_answer("Invalid bearer token")


@requirement("policy:FR-010:scheme")
@pytest.mark.parametrize(
    "header",
    ["Basic c2VzYW1l", "sesame", "Bearer", "Bearer ", "Token sesame", "Bearersesame", ",Bearer x"],
)
def test_another_scheme_or_an_empty_token_is_refused(locked_room: Served, header: str) -> None:
    refused = raw_get(locked_room, "/text/mcp", {"Authorization": header})
    assert refused == make_unauthorized_answer(
        "Invalid Authorization header format. Expected: Bearer <token>"
    )


@requirement("policy:FR-010:scheme")
def test_two_authorization_headers_are_refused(locked_room: Served) -> None:
    twice = [("Authorization", "Bearer sesame"), ("Authorization", "Bearer wrong")]
    response = httpx2.get(
        locked_room.url + "/", headers=twice, timeout=HANG_SECONDS, trust_env=False
    )
    assert response.status_code == 401


@requirement("policy:FR-010:health", "room:auth:open-paths")
def test_health_needs_no_key(locked_room: Served) -> None:
    response = locked_room.get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


PATHS_AROUND_HEALTH = [
    "/health/",
    "//health",
    "/health//",
    "/./health",
    "/health/.",
    "/health/../mcp",
    "/health/..%2fmcp",
    "/health%2f..%2fmcp",
    "/%68ealth",
    "/HEALTH",
    "/health;x=1",
    "/health%00",
    "/health%20",
    "/health.json",
    "/healthz",
    "/mcp/health",
    "/text/mcp?path=/health",
    "/text/../health",
]


@requirement("room:auth:open-paths")
def test_readiness_needs_no_key_and_paths_around_it_do(locked_room: Served) -> None:
    assert locked_room.get("/ready").json() == {"status": "ready"}
    for path in ("/ready/", "//ready", "/ready/../mcp", "/%72eady", "/ready;x=1"):
        assert raw_get(locked_room, path, {}) == make_unauthorized_answer(
            "Missing Authorization header"
        )


@requirement("room:auth:open-paths")
@pytest.mark.parametrize("path", PATHS_AROUND_HEALTH)
def test_no_path_around_health_is_open(locked_room: Served, path: str) -> None:
    assert raw_get(locked_room, path, {}) == make_unauthorized_answer(
        "Missing Authorization header"
    )


@requirement("policy:FR-010:off")
def test_without_a_key_set_nobody_is_asked(room: Served) -> None:
    assert room.get("/").status_code == 200
    assert room.get("/", Authorization="Basic anything").status_code == 200


@requirement("policy:FR-010:off")
def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    with serve_room("text", data=tmp_path / "data", env={"MCP_API_KEY": ""}) as served:
        assert served.get("/").status_code == 200


@requirement("policy:FR-010:log")
def test_a_refusal_is_logged_with_address_endpoint_and_method(locked_room: Served) -> None:
    locked_room.get("/text/sse", Authorization="Bearer a-guess-at-the-key")
    line = [line for line in locked_room.lines() if line["level"] == "WARNING"][-1]
    assert line["client_ip"] == "127.0.0.1"
    assert (line["endpoint"], line["method"]) == ("/text/sse", "GET")
    assert "a-guess-at-the-key" not in locked_room.log.read_text("utf-8")


@requirement("policy:FR-010:constant-time")
@pytest.mark.anyio
async def test_keys_are_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from readingroom.server.errors import Unauthorized

    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest

    def watched(given: bytes, expected: bytes) -> bool:
        compared.append((given, expected))
        return compare(given, expected)

    monkeypatch.setattr(auth.hmac, "compare_digest", watched)
    key_auth = auth.KeyAuth("sesame", KeyRing(tmp_path))
    scope = {
        "type": "http",
        "path": "/",
        "method": "GET",
        "headers": [(b"authorization", b"Bearer s")],
        "state": {"request_id": "r-1"},
    }
    with pytest.raises(Unauthorized):
        await key_auth.authenticate(scope)
    assert compared == [(b"s", b"sesame")]


@requirement("room:keys")
@pytest.mark.anyio
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_the_right_key_opens_every_transport(locked_room: Served, wire: str) -> None:
    async with connect_http(locked_room.url + "/mcp", wire, key="sesame") as client:
        assert read_body(await client.call_tool("get_kb_info"))["status"] == "available"
    async with connect_sse(locked_room.url + "/text/sse", key="sesame") as client:
        assert read_body(await client.call_tool("get_kb_info"))["status"] == "available"
    assert locked_room.calls()[-1]["caller_kind"] == "api_key:env"


@pytest.fixture(scope="module")
def two_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str, str]]:
    """A server with the named keys `ann` and `bob`."""
    data = tmp_path_factory.mktemp("data")
    secrets = []
    for name in ("ann", "bob"):
        added = invoke("keys", "add", name, "--data", str(data), "--json")
        secrets.append(json.loads(added.stdout)["key"])
    with serve_room(data=data) as served:
        yield served, secrets[0], secrets[1]


def make_bearer_header(key: str) -> dict[str, str]:
    return {**POST, "Authorization": f"Bearer {key}"}


@requirement("room:sessions", "room:keys")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_key_cannot_enter_anothers_streamable_session(
    two_keys: tuple[Served, str, str], method: str
) -> None:
    served, ann, bob = two_keys
    with httpx2.Client(base_url=served.url, timeout=300, trust_env=False) as web:
        opened = web.post("/mcp", json=INITIALIZE, headers=make_bearer_header(ann))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        listing = make_rpc("tools/list")
        sent = {"json": listing} if method == "POST" else {}
        intruder = web.request(method, "/mcp", headers=make_bearer_header(bob) | session, **sent)
        owner = web.post("/mcp", json=listing, headers=make_bearer_header(ann) | session)
    assert intruder.status_code == 404
    assert owner.status_code == 200


@requirement("room:sessions")
def test_a_key_cannot_post_into_anothers_sse_session(two_keys: tuple[Served, str, str]) -> None:
    served, ann, bob = two_keys
    with (
        httpx2.Client(base_url=served.url, timeout=300, trust_env=False) as web,
        web.stream("GET", "/text/sse", headers=make_bearer_header(ann)) as stream,
    ):
        lines = stream.iter_lines()
        endpoint = next(line for line in lines if line.startswith("data:"))[5:].strip()
        intruder = web.post(endpoint, json=INITIALIZE, headers=make_bearer_header(bob))
        owner = web.post(endpoint, json=INITIALIZE, headers=make_bearer_header(ann))
    assert intruder.status_code == 404
    assert owner.status_code == 202


@requirement("room:sessions", "room:keys")
def test_a_session_does_not_pass_to_a_later_key_of_the_same_name(
    two_keys: tuple[Served, str, str],
) -> None:
    served, _, _ = two_keys
    data = str(served.data)
    first = json.loads(invoke("keys", "add", "dora", "--data", data, "--json").stdout)["key"]
    with httpx2.Client(base_url=served.url, timeout=300, trust_env=False) as web:
        opened = web.post("/mcp", json=INITIALIZE, headers=make_bearer_header(first))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        invoke("keys", "revoke", "dora", "--data", data)
        second = json.loads(invoke("keys", "add", "dora", "--data", data, "--json").stdout)["key"]
        answer = web.post(
            "/mcp", json=make_rpc("tools/list"), headers=make_bearer_header(second) | session
        )
    assert answer.status_code == 404


@requirement("room:keys")
@pytest.mark.parametrize(("key", "sent"), [("abc\n", b"abc"), ("clé", "clé".encode())])
def test_a_key_matches_what_a_header_can_carry(tmp_path: Path, key: str, sent: bytes) -> None:
    with serve_room("text", data=tmp_path / "data", env={"MCP_API_KEY": key}) as served:
        headers = [(b"authorization", b"Bearer " + sent)]
        assert (
            httpx2.get(
                served.url, headers=headers, timeout=HANG_SECONDS, trust_env=False
            ).status_code
            == 200
        )


def test_a_key_of_blanks_is_refused(tmp_path: Path) -> None:
    result = run("serve", "--port", "0", "--data", str(tmp_path), env={"MCP_API_KEY": "  "})
    assert result.returncode == 2
    assert "MCP_API_KEY" in result.stderr


@requirement("room:keys")
def test_a_key_works_at_once_and_is_refused_at_once_when_revoked(
    two_keys: tuple[Served, str, str],
) -> None:
    served, _, _ = two_keys
    data = str(served.data)
    key = json.loads(invoke("keys", "add", "carl", "--data", data, "--json").stdout)["key"]
    assert served.get("/", Authorization=f"Bearer {key}").status_code == 200
    invoke("keys", "revoke", "carl", "--data", data)
    assert served.get("/", Authorization=f"Bearer {key}").status_code == 401


@requirement("room:keys")
def test_the_first_key_closes_an_open_server_and_revoking_it_does_not_open_it(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with serve_room("text", data=data) as served:
        assert served.get("/").status_code == 200
        invoke("keys", "add", "ann", "--data", str(data))
        assert served.get("/").status_code == 401
        invoke("keys", "revoke", "ann", "--data", str(data))
        assert served.get("/").status_code == 401


@requirement("room:auth:bind")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_public_address_without_a_key_is_refused(host: str, tmp_path: Path) -> None:
    result = run("serve", "--host", host, "--port", "0", "--data", str(tmp_path))
    assert result.returncode == 1
    assert "--insecure" in result.stderr
    assert "MCP_API_KEY" in result.stderr


@requirement("room:auth:bind")
def test_a_public_url_without_a_key_is_refused_too(tmp_path: Path) -> None:
    env = {"READINGROOM_PUBLIC_URL": "https://room.example.org"}
    result = run("serve", "--port", "0", "--data", str(tmp_path), env=env)
    assert result.returncode == 1
    assert "https://room.example.org can be reached" in result.stderr


@requirement("room:auth:bind")
@pytest.mark.parametrize("safe", [True, False])
def test_a_public_address_is_served_with_a_key_or_with_insecure(tmp_path: Path, safe: bool) -> None:
    env = {"MCP_API_KEY": "sesame"} if safe else {}
    flags = [] if safe else ["--insecure"]
    with serve_room("text", "--host", "0.0.0.0", *flags, data=tmp_path / "data", env=env) as served:
        assert served.get("/").status_code == (401 if safe else 200)


@requirement("room:limits")
@pytest.mark.anyio
@pytest.mark.usefixtures("stopped_limits")
async def test_guessing_keys_is_rate_limited(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(make_specimen(), data=tmp_path, rate_limit=5, api_key="sesame")
    keys = [*map(str, range(7)), "sesame"]
    async with open_app_client(app) as web:
        answers = [await web.get("/", headers={"Authorization": f"Bearer {key}"}) for key in keys]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2 + [200]
    refusals = [record for record in caplog.records if record.message == "Invalid bearer token"]
    assert [record.levelname for record in refusals] == ["WARNING"] * 5


@requirement("room:keys")
@pytest.mark.parametrize(("key", "is_warned"), [("k", True), ("x" * 19, True), ("x" * 20, False)])
def test_a_key_that_can_be_guessed_is_warned_of(tmp_path: Path, key: str, is_warned: bool) -> None:
    with serve_room("text", data=tmp_path / "data", env={"MCP_API_KEY": key}) as served:
        warnings = [line for line in served.lines() if "can be guessed" in line["message"]]
    assert bool(warnings) is is_warned
    assert key == "k" or not any(key in line["message"] for line in warnings)


@requirement("policy:FR-010:log")
def test_a_refusal_leaves_a_short_line(locked_room: Served) -> None:
    locked_room.get("/" + "a" * 5_000)
    line = [line for line in locked_room.lines() if line["level"] == "WARNING"][-1]
    assert len(line["endpoint"]) == 200


@requirement("room:read-only", "room:keys")
@pytest.mark.anyio
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_a_key_for_reading_sees_and_calls_nothing_that_writes(
    two_keys: tuple[Served, str, str], wire: str
) -> None:
    served, ann, _ = two_keys
    name = f"reader-{wire}"
    added = invoke("keys", "add", name, "--read-only", "--data", str(served.data), "--json")
    reader = json.loads(added.stdout)["key"]
    async with connect_http(served.url + "/mcp", wire, key=reader) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert "list_policy_documents" in listed
        assert "remove_policy_revision" not in listed
        with pytest.raises(MCPError, match="may only read"):
            await client.call_tool(
                "remove_policy_revision", {"source": "NPPF", "revision_id": "rev_NPPF_2024_12"}
            )
    async with connect_http(served.url + "/mcp", wire, key=ann) as client:
        assert "remove_policy_revision" in {tool.name for tool in (await client.list_tools()).tools}


@requirement("room:read-only", "room:keys")
def test_a_key_for_reading_changes_nothing_over_rest(two_keys: tuple[Served, str, str]) -> None:
    served, _, _ = two_keys
    added = invoke(
        "keys", "add", "rest-reader", "--read-only", "--data", str(served.data), "--json"
    )
    reader = json.loads(added.stdout)["key"]
    new = {"source": "LTN", "title": "Cycle infrastructure", "category": "national_guidance"}
    with httpx2.Client(base_url=served.url, timeout=300, trust_env=False) as web:
        refused = web.post("/api/v1/policies", json=new, headers=make_bearer_header(reader))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "read_only_key")
        listed = web.get("/api/v1/policies", headers=make_bearer_header(reader))
        assert (listed.status_code, listed.json()["policies"]) == (200, [])
    shown = invoke("keys", "list", "--data", str(served.data))
    assert "rest-reader" in shown.stdout
    assert "read-only" in shown.stdout


def test_the_key_of_a_worker_is_no_key_of_a_caller_and_names_are_shared(tmp_path: Path) -> None:
    key_ring, worker_keys = KeyRing(tmp_path), WorkerKeys(tmp_path)
    secret = worker_keys.add_key("box").encode()

    assert worker_keys.find_worker_name(secret) == "box"
    assert key_ring.find_holder(secret) is None
    assert not key_ring.has_keys()
    assert [(key.name, key.worker) for key in worker_keys.list_keys()] == [("box", True)]
    key_ring.add_key("me")
    for taken_name in ("me", "box"):
        with pytest.raises(KeyExists):
            worker_keys.add_key(taken_name)
    assert worker_keys.revoke_key("box")
    assert not worker_keys.revoke_key("box")
    assert worker_keys.find_worker_name(secret) is None


def test_the_ring_is_read_from_any_thread_also_while_only_workers_have_keys(tmp_path: Path) -> None:
    WorkerKeys(tmp_path).add_key("box")
    key_ring = KeyRing(tmp_path)
    assert not key_ring.has_keys()
    with ThreadPoolExecutor(1) as executor:
        assert not executor.submit(key_ring.has_keys).result()

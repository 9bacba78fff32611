"""The guidance base as it is served: faces, transports, clients, log lines, metrics, limits."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from readingroom.bases.guidance.tools import SCHEMA_VERSION
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.server.test_inspector import inspect, read_result
from tests.support import faults
from tests.support.govuk import RETURN, Upstream
from tests.support.kit import (
    LEGACY,
    MODERN,
    POST,
    Served,
    connect_http,
    connect_stdio,
    make_rpc,
    read_body,
    run,
    serve_room,
)
from tests.support.processes import read_cpu_seconds

pytestmark = pytest.mark.anyio

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE_ID = TRACE.split("-")[1]
TOOLS = [
    "force_refresh",
    "get_content_by_id",
    "get_content_by_path",
    "get_error_taxonomy",
    "get_source_metadata",
    "recent_changes",
    "search_guidance",
    "search_in_page",
    "verify_guidance_quote",
]


@pytest.fixture(scope="module")
def served(emulated: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    env = {"GOVUK_BASE_URL": emulated.url, "RATE_LIMIT_PER_SECOND": "1000"}
    with serve_room("guidance", data=tmp_path_factory.mktemp("data"), env=env) as server:
        yield server


def call(served: Served, tool: str, path: str = "/mcp", **headers: str) -> httpx2.Response:
    message = make_rpc("tools/call", {"name": tool, "arguments": {"path": RETURN}})
    return httpx2.post(
        served.url + path, json=message, headers={**POST, **headers}, trust_env=False, timeout=300
    )


@requirement("guidance:clients", "guidance:tools")
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_alone_it_is_at_mcp_under_its_contracts_name(
    served: Served, upstream: Upstream, wire: str
) -> None:
    async with connect_http(served.url + "/mcp", wire) as client:
        assert client.server_info.name == "ccew-mcp"
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        page = read_body(await client.call_tool("get_content_by_path", {"path": RETURN}))
    assert page["url"] == f"https://www.gov.uk{RETURN}"
    assert served.get("/sse").status_code == 404
    assert served.get("/mcp", Accept="text/event-stream").status_code == 405


@requirement("guidance:clients")
async def test_among_all_bases_it_has_a_face_and_its_tools_are_with_the_others(
    upstream: Upstream, tmp_path: Path
) -> None:
    with serve_room(data=tmp_path / "data", env={"GOVUK_BASE_URL": upstream.url}) as room:
        for face in ("/guidance/mcp", "/mcp"):
            async with connect_http(room.url + face) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                page = read_body(await client.call_tool("get_content_by_path", {"path": RETURN}))
            assert set(TOOLS) <= set(names)
            assert page["id"] == f"guidance:{RETURN}"
    assert page["cache"]["hit"] is True  # the faces share one base


@requirement("guidance:clients")
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_over_stdio_it_answers_the_same(upstream: Upstream, wire: str) -> None:
    env = {"GOVUK_BASE_URL": upstream.url}
    async with connect_stdio("guidance", wire=wire, env=env) as client:
        page = read_body(await client.call_tool("get_content_by_path", {"path": RETURN}))
        told = read_body(await client.call_tool("get_content_by_path", {"path": "/guidance/none"}))
    assert page["content"] == upstream.emulator.items_by_path[RETURN]
    assert told["error"]["code"] == "NOT_FOUND_OR_REDIRECTED"


@requirement("guidance:clients")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_typescript_inspector_sees_the_same(
    served: Served, upstream: Upstream, tmp_path: Path, era: str
) -> None:
    target = (served.url + "/mcp", "--transport", "http", "--protocol-era", era)
    asked = ("--tool-name", "get_content_by_path", "--tool-arg", f"path={RETURN}")
    listed = read_result(inspect(tmp_path, *target, "--method", "tools/list"))
    called = read_result(inspect(tmp_path, *target, "--method", "tools/call", *asked))
    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    assert called["structuredContent"]["content"] == upstream.emulator.items_by_path[RETURN]
    assert called["_meta"]["schemaVersion"] == SCHEMA_VERSION


@requirement("guidance:logs")
async def test_the_correlation_id_is_echoed_logged_and_sent_upstream(
    served: Served, upstream: Upstream
) -> None:
    given = call(served, "force_refresh", **{"X-Correlation-ID": "chain-7"})
    made = call(served, "force_refresh")
    unsafe = call(served, "force_refresh", **{"X-Correlation-ID": "a b"})
    assert given.headers["x-correlation-id"] == "chain-7"
    assert "x-correlation-id" not in made.headers
    assert re.fullmatch(r"[0-9a-f]{32}", unsafe.headers["x-correlation-id"])
    sent = [seen.headers["x-correlation-id"] for seen in upstream.emulator.seen_requests]
    assert sent == ["chain-7", made.headers["x-request-id"], unsafe.headers["x-correlation-id"]]
    assert [line["correlation_id"] for line in served.calls()[-3:]] == sent


@requirement("guidance:logs")
async def test_a_line_says_hit_or_miss_how_long_the_upstream_took_and_the_sizes(
    served: Served, upstream: Upstream
) -> None:
    upstream.emulator.apply_fault = faults.slow(0.05)
    call(served, "force_refresh")
    call(served, "get_content_by_path")
    asked = [line for line in served.lines() if line["logger"] == "readingroom.net"][-1]
    fetched, read = served.calls()[-2:]
    assert (fetched["cache"], fetched["upstream_requests"]) == ("miss", 1)
    assert fetched["upstream_ms"] >= 50
    assert (read["cache"], "upstream_ms" in read) == ("hit", False)
    assert read["request_bytes"] > 50  # a number, as the sizes beside it
    assert read["answer_chars"] > 1000
    assert (asked["endpoint"], asked["outcome"]) == ("content", "200")
    assert asked["response_bytes"] > 1000
    assert asked["upstream_ms"] >= 50


@requirement("guidance:logs", "guidance:no-pii")
async def test_no_argument_and_no_payload_is_logged(served: Served, upstream: Upstream) -> None:
    async with connect_http(served.url + "/mcp") as client:
        await client.call_tool("search_guidance", {"query": "my neighbour Ann Smith"})
        await client.call_tool("search_guidance", {"query": "x", "filters": {"Smith": "Ann"}})
        await client.call_tool("get_content_by_path", {"path": "/guidance/ann-smith"})
        await client.call_tool("get_content_by_path", {"path": RETURN})
    written = served.log.read_text("utf-8")
    assert "mith" not in written
    assert "Every registered charity" not in written


@requirement("guidance:logs")
async def test_under_debug_a_preview_of_an_answer_has_at_most_4_kb(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.emulator.items_by_path[RETURN]["details"]["body"] = "é" * 20_000
    env = {"GOVUK_BASE_URL": upstream.url}
    with serve_room("guidance", "--log-level", "debug", data=tmp_path / "d", env=env) as server:
        call(server, "get_content_by_path")
        call(server, "get_content_by_path")
        previews = [line["preview"] for line in server.lines() if "preview" in line]
    assert len(previews) == 1
    assert 4000 < len(previews[0].encode()) <= 4096


@requirement("guidance:trace")
async def test_the_callers_trace_is_passed_on_from_the_message_or_the_request(
    served: Served, upstream: Upstream
) -> None:
    call(served, "force_refresh", traceparent=TRACE)
    async with connect_http(served.url + "/mcp") as client:
        meta = {"traceparent": TRACE, "baggage": "user=ann"}
        await client.call_tool("force_refresh", {"path": RETURN}, meta=meta)
    call(served, "force_refresh", traceparent="00-nonsense")
    sent = [seen.headers.get("traceparent") for seen in upstream.emulator.seen_requests]
    assert sent[0] == TRACE
    assert sent[1] is not None
    assert TRACE_ID in sent[1]
    assert sent[2] is None
    assert not any("baggage" in seen.headers for seen in upstream.emulator.seen_requests)


async def test_metrics_tell_upstream_requests_cache_reads_and_the_breaker(
    served: Served, upstream: Upstream
) -> None:
    call(served, "force_refresh")
    call(served, "get_content_by_path")
    page = served.get("/metrics").text
    assert re.search(
        r'readingroom_upstream_requests_total\{endpoint="content",outcome="200"\}', page
    )
    assert (
        'readingroom_cache_read_seconds_bucket{endpoint="content",le="0.3",outcome="hit"}' in page
    )
    assert 'readingroom_upstream_seconds_bucket{endpoint="content",le="1.0"}' in page
    assert "readingroom_upstream_breaker_open 0.0" in page


@requirement("guidance:limit")
async def test_each_key_has_ten_calls_a_second_of_its_own(
    upstream: Upstream, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    ring = KeyRing(data)
    keys = [ring.add_key("ann"), ring.add_key("bob")]
    with serve_room("guidance", data=data, env={"GOVUK_BASE_URL": upstream.url}) as server:
        served_to: dict[str, int] = dict.fromkeys(keys, 0)
        async with httpx2.AsyncClient(trust_env=False, timeout=300) as web:

            async def one(key: str) -> None:
                message = make_rpc("tools/call", {"name": "get_error_taxonomy", "arguments": {}})
                headers = {**POST, "Authorization": f"Bearer {key}"}
                answer = (await web.post(server.url + "/mcp", json=message, headers=headers)).json()
                served_to[key] += not answer["result"]["isError"]

            started = time.monotonic()
            async with anyio.create_task_group() as burst:
                for _ in range(60):
                    for key in keys:
                        burst.start_soon(one, key)
            seconds = int(time.monotonic() - started) + 1
    assert all(10 <= count <= 10 * seconds for count in served_to.values()), (served_to, seconds)


@requirement("guidance:config")
async def test_the_upstream_is_a_setting_and_anything_but_an_address_is_refused(
    tmp_path: Path,
) -> None:
    for bad in ("ftp://x", "https://user:password@x.example", "https://x.example/path", "x"):
        refused = run(
            "guidance", "search", "x", "--data", str(tmp_path), env={"GOVUK_BASE_URL": bad}
        )
        assert refused.returncode == 2
        assert "GOVUK_BASE_URL" in refused.stderr
        assert "password" not in refused.stderr


@pytest.mark.parametrize("bad", ["nonsense", "http://:hunter2@x.example", "redis://x:hunter2/0"])
def test_a_redis_address_that_is_none_is_told_without_its_password(bad: str) -> None:
    refused = run("guidance", "search", "x", env={"REDIS_URL": bad})
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: REDIS_URL: ")
    assert "hunter2" not in refused.stderr


def ask(upstream: Upstream, *args: str) -> subprocess.CompletedProcess[str]:
    return run("guidance", *args, env={"GOVUK_BASE_URL": upstream.url})


@requirement("guidance:attribution", "guidance:disclaimer")
def test_the_command_line_reads_searches_and_refreshes(upstream: Upstream) -> None:
    page = ask(upstream, "get", RETURN)
    found = ask(upstream, "search", "annual return")
    done = ask(upstream, "refresh", RETURN)
    for shown in (page, found, done):
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.endswith(
            "Source: GOV.UK, Charity Commission guidance, OGL v3.0\n"
            "This is guidance, not legal advice.\n"
        )
    assert "## Before you start" in page.stdout
    assert f"{RETURN}\n    Prepare a charity annual return" in found.stdout
    assert "fetched " in done.stdout


def test_the_command_line_speaks_json_and_fails_with_the_same_codes(upstream: Upstream) -> None:
    page: dict[str, Any] = json.loads(ask(upstream, "get", RETURN, "--json").stdout)
    newest = json.loads(ask(upstream, "search", "charity", "--newest", "--json").stdout)
    gone = ask(upstream, "get", "/guidance/a-page-taken-down", "--json")
    assert page["content"] == upstream.emulator.items_by_path[RETURN]
    dates = [hit["public_updated_at"] for hit in newest["results"]]
    assert dates == sorted(dates, reverse=True)
    assert gone.returncode == 1
    assert json.loads(gone.stderr)["error"]["code"] == "not_found_or_redirected"


@requirement("guidance:slo")
async def test_cached_and_live_calls_keep_to_the_objectives(
    served: Served, upstream: Upstream
) -> None:
    """In processor time, with what is asked of the upstream: a busy machine changes neither.

    Times on the clock, also under load, are in benchmarks/RESULTS.md.
    """
    upstream.emulator.apply_fault = faults.slow(0.2)
    seconds: dict[str, float] = {}
    requests: dict[str, int] = {}
    async with connect_http(served.url + "/mcp") as client:
        for tool in ("force_refresh", "get_content_by_path"):
            upstream.emulator.seen_requests.clear()
            before = read_cpu_seconds(served.process.pid)
            for _ in range(20):
                await client.call_tool(tool, {"path": RETURN})
            seconds[tool] = (read_cpu_seconds(served.process.pid) - before) / 20
            requests[tool] = len(upstream.emulator.seen_requests)
    assert requests == {"force_refresh": 20, "get_content_by_path": 0}
    assert seconds["force_refresh"] + 0.2 < 1.0
    assert seconds["get_content_by_path"] < 0.3

"""Spans reach a collector when one is configured, and only then."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.kit import connect_http, serve_room


class Collector(BaseHTTPRequestHandler):
    """Takes what an OTLP exporter posts."""

    received: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.path, raw))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[HTTPServer]:
    Collector.received = []
    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@requirement("room:otel")
@pytest.mark.anyio
async def test_a_tool_call_becomes_a_span_at_the_collector(
    collector: HTTPServer, tmp_path: Path
) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    with serve_room("text", data=tmp_path / "data", env=env) as served:
        async with connect_http(served.url + "/mcp") as client:
            await client.call_tool("get_kb_info")
    paths = {path for path, _ in Collector.received}
    spans = b"".join(raw for _, raw in Collector.received)
    assert paths == {"/v1/traces"}
    assert b"tools/call get_kb_info" in spans
    assert b"readingroom" in spans


@requirement("room:otel", "room:shutdown")
@pytest.mark.anyio
async def test_a_collector_that_does_not_answer_delays_nothing(tmp_path: Path) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with serve_room("text", data=tmp_path / "data", env=env) as served:
        async with connect_http(served.url + "/mcp") as client:
            await client.call_tool("get_kb_info")
    told = [line["message"] for line in served.lines() if "opentelemetry" in line["logger"]]
    assert any("Failed to export" in message for message in told)
    # Its second is over after one more attempt; with a library's own time it makes several.
    assert len([message for message in told if "retrying" in message]) <= 1

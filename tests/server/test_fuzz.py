"""Every REST route and every MCP tool under random calls: nothing breaks, and nothing is costly.

One server with something in each base gets all calls, one after the other, so that the processor
time of each is known. The values come from one seed, so that a call that failed can be made again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.bases.policy.test_rest import POLICY, post, upload, wait_until_settled
from tests.requirements import requirement
from tests.server.test_attacks import call as make_call
from tests.server.test_attacks import make_headers as make_headers
from tests.support.effort import choose_example_count
from tests.support.federal.base import load_files, write_world
from tests.support.govuk import Upstream
from tests.support.hostile_values import KNOWN, ValueMaker
from tests.support.kit import HANG_SECONDS, MODERN, POST, Served, make_rpc, serve_room
from tests.support.model import link_model
from tests.support.policy.base import make_policy_pdf

SEED = 20261116
MAX_SECONDS = 2.0
MAX_GROWTH = 100 * 2**20
_TICK = os.sysconf("SC_CLK_TCK")
# These would take away, call by call, what the other calls look at.
_DELETING = ("remove_document", "remove_policy_revision")


@dataclass(frozen=True)
class Request:
    """One call as it goes over the wire."""

    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, emulated: Upstream) -> Iterator[Served]:
    with serve_filled(tmp_path_factory.mktemp("fuzz"), emulated) as served:
        yield served


@contextmanager
def serve_filled(folder: Path, upstream: Upstream) -> Iterator[Served]:
    """All bases in one process, each with something to find, and no limit of calls."""
    data = link_model(folder / "data")
    write_world(folder / "world", bills=5)
    load_files(data, folder / "world", embed=False)
    env = {
        "GOVUK_BASE_URL": upstream.url,
        "RATE_LIMIT_PER_SECOND": "1000",
        "READINGROOM_RATE_LIMIT": "0",
    }
    with serve_room(data=data, env=env) as served:
        post(served, "/policies", json=POLICY).raise_for_status()
        revised = upload(served, "December 2024", "2024-12-12").json()
        wait_until_settled(served, revised["links"]["status"])
        statement = make_policy_pdf(
            [("Cycling", ["The scheme provides 200 covered cycle parking spaces."])]
        )
        files = {"file": ("Transport_Statement.pdf", statement, "application/pdf")}
        ingested = post(served, "/documents?application_ref=25/01178/REM", files=files)
        ingested.raise_for_status()
        yield served


@requirement("room:fuzz")
@pytest.mark.slow
def test_no_call_breaks_the_server_or_is_costly(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOWN, "document_id", (find_document(served),))
    maker = ValueMaker(SEED)
    pid = served.process.pid
    with closing(HTTPConnection(served.url.removeprefix("http://"), timeout=HANG_SECONDS)) as web:
        _check_calls(web, maker, pid)
    errors = [line for line in served.lines() if line["level"] in ("ERROR", "CRITICAL")]
    assert errors == []


def find_document(served: Served) -> str:
    """Return the id of the one document."""
    listed = served.get("/api/v1/documents?application_ref=25/01178/REM").json()
    document_id: str = listed["documents"][0]["document_id"]
    return document_id


def _check_calls(connection: HTTPConnection, maker: ValueMaker, pid: int) -> None:
    """Make every call and assert that each is answered, none is costly, and memory stays."""
    for request in make_honest_calls():  # what is loaded at its first use is not growth
        assert send(connection, request)[0] == 200
    memory_before = read_memory(pid)

    failures: list[str] = []
    number = 0
    each = choose_example_count(full=4, quick=1)
    for number, request in enumerate(make_requests(connection, maker, each), 1):
        seconds_before = read_processor_seconds(pid)
        status, answer = send(connection, request)
        seconds = read_processor_seconds(pid) - seconds_before
        if is_broken(status, answer):
            failures.append(f"{number} {describe(request)}: {status} {answer[:300]!r}")
        if seconds > MAX_SECONDS:
            failures.append(f"{number} {describe(request)}: {seconds:.1f} s of the processor")

    assert failures == []
    assert number >= 5000
    assert read_memory(pid) - memory_before < MAX_GROWTH


def is_broken(status: int, answer: bytes) -> bool:
    """Whether an answer says that something went wrong on our side."""
    return status >= 500 or b'"code":-32603' in answer or b"Something went wrong" in answer


def make_honest_calls() -> Iterator[Request]:
    for name, arguments in (
        ("search", {"query": "cycle parking"}),
        ("fetch", {"id": "hr:119:1"}),
        ("search_policy", {"query": "cycle parking"}),
        ("search_application_docs", {"query": "cycle parking"}),
        ("get_kb_content", {}),
    ):
        yield _make_tool_call(name, arguments)
    yield Request("GET", "/v1/bills", None, {})
    yield Request("GET", "/docs", None, {})


def make_requests(connection: HTTPConnection, maker: ValueMaker, each: int) -> Iterator[Request]:
    """Yield calls of every tool in turn, then requests of every operation, then other messages;
    `each` times 5,100 of them.
    """
    tools = _list_tools(connection)
    for tool in islice(cycle(tools), 2600 * each):
        arguments = maker.make_object(tool["inputSchema"], tool["inputSchema"].get("$defs", {}))
        if tool["name"] in _DELETING:
            arguments = {name: maker.make_hostile() for name in arguments}
        yield _make_tool_call(tool["name"], arguments)
    document = json.loads(send(connection, Request("GET", "/openapi.json", None, {}))[1])
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    for method, path, operation in islice(cycle(operations), 2200 * each):
        yield _make_rest_request(maker, method, path, operation, document["components"]["schemas"])
    for _ in range(300 * each):
        yield _make_other_message(maker)


def _list_tools(connection: HTTPConnection) -> list[dict[str, Any]]:
    message = make_call(MODERN, "", {})
    message["method"] = "tools/list"
    del message["params"]["name"], message["params"]["arguments"]
    headers = {**POST, **make_headers(MODERN), "Mcp-Method": "tools/list"}
    del headers["Mcp-Name"]
    status, answer = send(
        connection, Request("POST", "/mcp", json.dumps(message).encode(), headers)
    )
    assert status == 200, answer
    tools: list[dict[str, Any]] = json.loads(answer)["result"]["tools"]
    return tools


def _make_tool_call(name: str, arguments: dict[str, Any]) -> Request:
    body = json.dumps(make_call(MODERN, name, arguments)).encode()
    return Request("POST", "/mcp", body, {**POST, **make_headers(MODERN, name)})


def _make_rest_request(
    maker: ValueMaker, method: str, path: str, operation: Any, schemas: Any
) -> Request:
    query = []
    for parameter in operation.get("parameters", []):
        value = maker.make_value(parameter["name"], parameter["schema"], schemas)
        written = _write_parameter(value)
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", quote(written, safe="") or "x")
        elif parameter.get("required") or maker.random.random() < 0.4:
            query.append((parameter["name"], written))
    if query:
        path += "?" + urlencode(query)
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        body = json.dumps(maker.make_object(schema, schemas)).encode()
        return Request(method, path, body, {"Content-Type": "application/json"})
    if "multipart/form-data" in content:
        return Request(method, path, *_make_form(maker, content["multipart/form-data"]["schema"]))
    return Request(method, path, None, {})


def _make_form(maker: ValueMaker, schema: Any) -> tuple[bytes, dict[str, str]]:
    """Return a form with fields and a file that is none of the formats that are read."""
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        f"{_write_parameter(maker.make_value(name, field, {}))}\r\n"
        for name, field in schema["properties"].items()
        if name != "file"
    ]
    file_name = maker.random.choice(("a.pdf", "../a.pdf", "", "a" * 300, "a.exe"))
    head = f'Content-Disposition: form-data; name="file"; filename="{file_name}"'
    parts.append(f"--x\r\n{head}\r\n\r\n{'%PDF-1.4 ' * maker.random.randint(0, 50)}\r\n--x--\r\n")
    body = "".join(parts).encode("utf-8", "surrogatepass")
    return body, {"Content-Type": "multipart/form-data; boundary=x"}


def _make_other_message(maker: ValueMaker) -> Request:
    """Return a message that is no tool call: resources, prompts, completion, anything."""
    argument = {"name": maker.make_hostile(), "value": maker.make_hostile()}
    method, params = maker.random.choice(
        (
            ("resources/read", {"uri": f"readingroom://{maker.make_hostile()}"}),
            ("resources/read", {"uri": f"readingroom://policy/NPPF/{maker.make_hostile()}/x"}),
            ("resources/list", {"cursor": maker.make_hostile()}),
            ("prompts/get", {"name": "brief_on_bill", "arguments": {"bill_id": "x" * 5000}}),
            ("prompts/get", {"name": maker.make_hostile(), "arguments": maker.make_hostile()}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "x"}, "argument": argument},
            ),
            (str(maker.make_hostile()), {"a": maker.make_hostile()}),
        )
    )
    message = make_rpc(method, params) | {"id": maker.make_hostile()}
    params["_meta"] = make_call(MODERN, "x", {})["params"]["_meta"]
    headers = {**POST, "MCP-Protocol-Version": MODERN}
    return Request("POST", "/mcp", json.dumps(message).encode(), headers)


def _write_parameter(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()[:2000]


def send(connection: HTTPConnection, request: Request) -> tuple[int, bytes]:
    connection.request(request.method, request.path, request.body, request.headers)
    response = connection.getresponse()
    return response.status, response.read()


def describe(request: Request) -> str:
    return f"{request.method} {request.path[:300]} {(request.body or b'')[:500]!r}"


def read_processor_seconds(pid: int) -> float:
    """The processor time of the server itself, without the processes that read files for it."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def read_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024

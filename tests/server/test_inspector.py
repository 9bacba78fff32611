"""The TypeScript inspector, as people use it: lists and calls over HTTP, SSE and stdio."""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import node
from tests.requirements import requirement
from tests.support.kit import Served, clean_environment, make_command

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def inspect(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    options = ("--stored-auth-only", "-q", "--format", "json")
    return subprocess.run(
        node.make_command(node.INSPECTOR, "--cli", *options, *args),
        env=clean_environment({"HOME": str(home)}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def read_result(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["result"]


CALL = ("--method", "tools/call", "--tool-name", "get_kb_info")


@requirement("room:clients")
@ERAS
@pytest.mark.parametrize(
    ("path", "transport"), [("/mcp", "http"), ("/text/mcp", "http"), ("/text/sse", "sse")]
)
def test_it_lists_and_calls_over_http_and_sse(
    room: Served, tmp_path: Path, path: str, transport: str, era: str
) -> None:
    target = (room.url + path, "--transport", transport, "--protocol-era", era)
    listed = read_result(inspect(tmp_path, *target, "--method", "tools/list"))
    called = read_result(inspect(tmp_path, *target, *CALL))
    names = [tool["name"] for tool in listed["tools"]]
    assert names == sorted(names)
    assert {"get_kb_content", "get_kb_info"} <= set(names)
    assert (len(names) == 2) is (path != "/mcp")
    assert called["structuredContent"]["status"] == "available"


@pytest.fixture(scope="module")
def policy(room: Served) -> str:
    """A policy without a revision, registered over REST; its slug."""
    new = {"source": "NPPF", "title": "The Framework", "category": "national_policy"}
    post = httpx2.post(f"{room.url}/api/v1/policies", json=new, timeout=300, trust_env=False)
    assert post.status_code in (201, 409)
    return "NPPF"


@requirement("room:clients", "policy:tools", "policy:FR-009:endpoints")
@ERAS
@pytest.mark.parametrize(("path", "transport"), [("/policy/mcp", "http"), ("/policy/sse", "sse")])
def test_it_asks_the_policy_base_over_http_and_sse(
    room: Served, tmp_path: Path, policy: str, path: str, transport: str, era: str
) -> None:
    target = (room.url + path, "--transport", transport, "--protocol-era", era)
    listed = read_result(inspect(tmp_path, *target, "--method", "tools/list"))
    call = ("--method", "tools/call", "--tool-name")
    day = ("--tool-arg", "date=2024-12-12")
    snapshot = read_result(inspect(tmp_path, *target, *call, "policy_snapshot", *day))
    assert len(listed["tools"]) == 10
    (entry,) = snapshot["structuredContent"]["policies"]
    assert (entry["source"], entry["reason"]) == (policy, "no_active_revision")


@requirement("room:clients")
@ERAS
def test_it_lists_and_calls_over_stdio(tmp_path: Path, era: str) -> None:
    target = ("--transport", "stdio", "--protocol-era", era)
    program = ("--", *make_command("stdio", "text"))
    listed = read_result(inspect(tmp_path, *target, "--method", "tools/list", *program))
    called = read_result(inspect(tmp_path, *target, *CALL, *program))
    assert len(listed["tools"]) == 2
    assert called["structuredContent"]["status"] == "available"


@requirement("room:clients")
def test_it_is_let_in_with_a_key_and_told_without_one(locked_room: Served, tmp_path: Path) -> None:
    target = (locked_room.url + "/mcp", "--transport", "http")
    key = ("--header", "Authorization: Bearer sesame")
    assert read_result(inspect(tmp_path, *target, *key, *CALL))["structuredContent"]
    assert inspect(tmp_path, *target, *CALL).returncode == 3

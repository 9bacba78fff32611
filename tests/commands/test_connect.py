"""The configuration that clients are given: what they need, and nothing of theirs is lost."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from readingroom.cli import main
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.kit import Served, connect_http, read_body


def connect(*args: str, data: Path) -> Result:
    return CliRunner().invoke(main, ["connect", *args, "--data", str(data)])


def read_configuration(*args: str, data: Path) -> Any:
    outcome = connect(*args, "--json", data=data)
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


@requirement("room:connect")
@pytest.mark.parametrize(
    ("client", "place", "section", "entry"),
    [
        ("claude-code", ".mcp.json", "mcpServers", {"type": "http"}),
        ("cursor", ".cursor/mcp.json", "mcpServers", {}),
        ("vscode", ".vscode/mcp.json", "servers", {"type": "http"}),
    ],
)
def test_each_client_gets_its_own_form(
    tmp_path: Path, client: str, place: str, section: str, entry: dict[str, str]
) -> None:
    answer = read_configuration(client, "--folder", str(tmp_path), data=tmp_path)
    expected = {**entry, "url": "http://127.0.0.1:8000/mcp"}
    assert answer["configuration"] == {section: {"reading-room": expected}}
    assert answer["file"] == str(tmp_path / place)
    assert not (tmp_path / place).exists()


@requirement("room:connect")
@pytest.mark.anyio
async def test_what_is_written_leads_to_the_server(room: Served, tmp_path: Path) -> None:
    read_configuration(
        "claude-code", "--url", room.url, "--folder", str(tmp_path), "--write", data=tmp_path
    )
    written = json.loads((tmp_path / ".mcp.json").read_text())
    async with connect_http(written["mcpServers"]["reading-room"]["url"]) as client:
        assert "get_kb_info" in {tool.name for tool in (await client.list_tools()).tools}


@requirement("room:connect")
@pytest.mark.anyio
async def test_a_command_that_is_written_can_be_started(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    file = tmp_path / "claude_desktop_config.json"
    read_configuration("claude", "--base", "text", "--file", str(file), "--write", data=tmp_path)
    entry = json.loads(file.read_text())["mcpServers"]["reading-room-text"]
    started = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with Client(stdio_client(started)) as client:
        assert read_body(await client.call_tool("get_kb_info", {}))["status"] == "available"


@requirement("room:connect")
def test_a_file_keeps_everything_it_had_and_a_copy_of_it(tmp_path: Path) -> None:
    before = {"theme": "dark", "mcpServers": {"other": {"command": "x", "args": ["é"]}}}
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps(before))
    answer = read_configuration("claude-code", "--folder", str(tmp_path), "--write", data=tmp_path)
    after = json.loads(file.read_text())
    assert json.loads(Path(answer["copy"]).read_text()) == before
    added = after["mcpServers"].pop("reading-room")
    assert added["url"] == "http://127.0.0.1:8000/mcp"
    assert after == before


@requirement("room:connect")
@pytest.mark.parametrize("content", ["// comment\n{}", "[]", '{"mcpServers": []}', "{"])
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(content)
    outcome = connect("claude-code", "--folder", str(tmp_path), "--write", data=tmp_path)
    assert outcome.exit_code == 1
    assert file.read_text() == content


@requirement("room:connect")
def test_a_key_is_written_only_when_it_is_given(tmp_path: Path) -> None:
    secret = KeyRing(tmp_path).add_key("reader")
    answer = read_configuration("cursor", "--folder", str(tmp_path), "--write", data=tmp_path)
    entry = answer["configuration"]["mcpServers"]["reading-room"]
    assert entry["headers"] == {"Authorization": "Bearer ${env:READING_ROOM_KEY}"}
    read_configuration(
        "cursor", "--folder", str(tmp_path), "--key", secret, "--write", data=tmp_path
    )
    file = tmp_path / ".cursor" / "mcp.json"
    assert secret in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@requirement("room:connect")
def test_chatgpt_gets_steps_and_a_base_without_stdio_is_refused(tmp_path: Path) -> None:
    answer = read_configuration("chatgpt", data=tmp_path)
    assert any("public https address" in step for step in answer["steps"])
    public = read_configuration("chatgpt", "--url", "https://room.example.org", data=tmp_path)
    assert "https://room.example.org/mcp" in public["steps"][1]
    refused = connect("claude", "--base", "policy", data=tmp_path)
    assert (refused.exit_code, "connector" in refused.output) == (2, True)

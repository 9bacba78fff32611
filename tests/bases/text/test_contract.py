"""The text base's contract: scenarios, statuses and edge cases, through a real client."""

import json
import os
import resource
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from readingroom.bases.text.errors import TextUnreadable
from readingroom.bases.text.models import KbContent
from readingroom.bases.text.service import TextService
from readingroom.bases.text.store import MAX_TEXT_BYTES, SAMPLE_FILE, TextFile
from readingroom.bases.text.tools import open_text
from readingroom.core import clock
from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server
from tests.requirements import requirement
from tests.support.kit import connect_http, connect_stdio, read_body, run, serve_room

pytestmark = pytest.mark.anyio


async def ask(file: Path | None, tool: str, description: str | None = None) -> Any:
    """One call on a base that was just opened on `file`."""
    server = build_mcp_server(make_face(open_text(file, description)), [])
    async with Client(server) as client:
        return await client.call_tool(tool)


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return tmp_path / "kb.txt"


@requirement("text:AS-1", "text:FR-2")
async def test_info_of_a_readable_file_tells_sizes_time_and_description(kb: Path) -> None:
    kb.write_bytes("Grafana – Überblick\n".encode())
    os.utime(kb, (1_700_000_000, 1_700_000_000))

    info = read_body(await ask(kb, "get_kb_info", "About Grafana"))

    assert info == {
        "status": "available",
        "fileSizeBytes": 23,
        "contentLength": 20,
        "lastModified": "2023-11-14T22:13:20Z",
        "description": "About Grafana",
    }
    assert datetime.fromisoformat(info["lastModified"]).tzinfo == UTC


@requirement("text:AS-2", "text:FR-3")
async def test_content_of_a_readable_file_is_all_of_it(kb: Path) -> None:
    kb.write_text("All there is.", "utf-8")
    assert read_body(await ask(kb, "get_kb_content")) == {
        "status": "ok",
        "contentLength": 13,
        "content": "All there is.",
    }


@requirement("text:AS-3", "text:edge")
async def test_an_empty_file_is_empty_not_an_error(kb: Path) -> None:
    kb.touch()
    content = await ask(kb, "get_kb_content")
    assert not content.is_error
    assert read_body(content) == {"status": "empty", "contentLength": 0, "content": ""}
    info = read_body(await ask(kb, "get_kb_info"))
    assert (info["status"], info["fileSizeBytes"], info["contentLength"]) == ("available", 0, 0)


@requirement("text:AS-4", "text:FR-2")
async def test_info_of_a_missing_file_is_unavailable_with_no_more_than_a_reason(kb: Path) -> None:
    result = await ask(kb, "get_kb_info", "About Grafana")
    assert not result.is_error
    assert read_body(result) == {
        "status": "unavailable",
        "description": "About Grafana",
        "reason": "The file 'kb.txt' does not exist.",
    }


@requirement("text:AS-5", "text:FR-3", "text:FR-6", "room:error-shape")
async def test_content_of_a_missing_file_is_an_error_with_a_message(kb: Path) -> None:
    result = await ask(kb, "get_kb_content")
    assert result.is_error
    assert read_body(result) == {"status": "error", "error": "The file 'kb.txt' does not exist."}


def make_unreadable(kb: Path, kind: str) -> None:
    match kind:
        case "a directory":
            kb.mkdir()
        case "not UTF-8":
            kb.write_bytes(b"good \xff bad")
        case "larger than 64 MB":
            with kb.open("wb") as file:
                file.truncate(MAX_TEXT_BYTES + 1)
        case "not a regular file":
            os.mkfifo(kb)
        case "cannot be read":
            kb.symlink_to(kb)  # a loop: the read itself fails


def is_open(path: Path) -> bool:
    """Whether this process holds the file open. Other files come and go beside a test: they are
    not counted."""
    descriptors = Path("/proc/self/fd").iterdir()
    return any(os.path.realpath(descriptor) == str(path) for descriptor in descriptors)


def test_an_open_file_is_noticed(kb: Path) -> None:
    kb.touch()
    with kb.open():
        assert is_open(kb)
    assert not is_open(kb)


@requirement("text:edge", "text:FR-1", "text:FR-6")
@pytest.mark.parametrize(
    "kind",
    ["a directory", "not UTF-8", "larger than 64 MB", "not a regular file", "cannot be read"],
)
async def test_a_file_that_cannot_be_served_says_why(kb: Path, kind: str) -> None:
    make_unreadable(kb, kind)
    content = await ask(kb, "get_kb_content")
    assert content.is_error
    assert f" {kind}" in read_body(content)["error"]
    assert not is_open(kb)
    assert read_body(await ask(kb, "get_kb_info"))["status"] == "unavailable"


@requirement("text:AS-5")
async def test_a_failed_read_is_tried_again_and_a_good_one_is_kept(kb: Path) -> None:
    now = [0.0]
    service = TextService(TextFile(kb, read_clock=lambda: now[0]), "")
    service.load_and_log()
    with pytest.raises(TextUnreadable):
        await service.read_content()

    kb.write_text("back", "utf-8")
    now[0] += 1
    assert (await service.read_content()).content == "back"

    kb.unlink()
    assert (await service.read_content()).content == "back"


@requirement("text:edge")
async def test_a_stampede_on_a_bad_file_reads_it_once(
    kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def failing(path: Path) -> None:
        reads.append(path)
        raise TextUnreadable("bad")

    monkeypatch.setattr("readingroom.bases.text.store._read_text_file", failing)
    service = TextService(TextFile(kb), "")
    async with anyio.create_task_group() as callers:
        for _ in range(30):
            callers.start_soon(service.read_file_info)
    assert reads == [kb]


@requirement("text:edge")
@pytest.mark.parametrize("seconds", [-(10**12), 10**14])
async def test_a_file_from_no_calendar_year_is_served(kb: Path, seconds: int) -> None:
    kb.write_text("old", "utf-8")
    status = os.stat_result((0o100644, 0, 0, 0, 0, 0, 3, 0, seconds, 0))
    assert clock.from_timestamp(status.st_mtime).tzinfo == UTC


@requirement("text:AS-5")
async def test_a_locked_file_is_told_without_crashing(
    kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.write_text("here", "utf-8")

    def locked(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", locked)
    result = await ask(kb, "get_kb_content")
    assert result.is_error
    assert "locked" in read_body(result)["error"]


@requirement("text:FR-5", "text:plain")
@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfwith a byte order mark",
        b"line\r\nline\rline\n\n",
        b'{"looks": "like JSON"} <b>and HTML</b> # and Markdown\n',
        b"nul \x00 and bell \x07",
        "Ünïcödé, 漢字, 🙂".encode(),
        b"   \n\t\n",
    ],
    ids=["bom", "crlf", "markup", "control", "unicode", "blank"],
)
async def test_the_text_is_returned_byte_for_byte(kb: Path, raw: bytes) -> None:
    kb.write_bytes(raw)
    content = read_body(await ask(kb, "get_kb_content"))
    assert content["content"].encode() == raw
    assert content["status"] == "ok"


@requirement("text:FR-5", "text:edge")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_ten_megabytes_arrive_whole(kb: Path, tmp_path: Path, transport: str) -> None:
    raw = "0123456789abcdé\n".encode() * (10 * 1024 * 1024 // 17)
    kb.write_bytes(raw)
    if transport == "stdio":
        async with connect_stdio("text", "--file", str(kb)) as client:
            result = await client.call_tool("get_kb_content")
    else:
        with serve_room("text", "--file", str(kb), data=tmp_path / "data") as served:
            async with connect_http(f"{served.url}/mcp") as client:
                result = await client.call_tool("get_kb_content")
    assert result.structured_content["content"].encode() == raw


@requirement("text:names")
async def test_the_tools_keep_their_names() -> None:
    server = build_mcp_server(make_face(open_text(None, None)), [])
    async with Client(server) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["get_kb_content", "get_kb_info"]


@requirement("text:edge", "text:config")
async def test_without_a_path_the_packaged_sample_is_served() -> None:
    content = read_body(await ask(None, "get_kb_content"))
    assert content["content"].encode() == SAMPLE_FILE.read_bytes()
    assert "Azure Managed Grafana" in read_body(await ask(None, "get_kb_info"))["description"]


@requirement("text:config")
@pytest.mark.parametrize("how", ["argument", "variable"])
async def test_the_path_comes_by_argument_or_by_variable(kb: Path, how: str) -> None:
    kb.write_text(how, "utf-8")
    args = ["--file", str(kb)] if how == "argument" else []
    env = {} if how == "argument" else {"KB_FILE": str(kb)}
    async with connect_stdio("text", *args, env=env) as client:
        assert read_body(await client.call_tool("get_kb_content"))["content"] == how


@requirement("text:config-file")
async def test_path_description_and_log_level_come_from_the_config_file(
    kb: Path, tmp_path: Path
) -> None:
    kb.write_text("configured", "utf-8")
    (tmp_path / "readingroom.toml").write_text(
        f'kb_file = "{kb}"\nkb_description = "From the file"\nlog_level = "error"\n'
    )
    log = tmp_path / "log"
    async with connect_stdio("text", "--data", str(tmp_path), log=log) as client:
        assert read_body(await client.call_tool("get_kb_info"))["description"] == "From the file"
        assert read_body(await client.call_tool("get_kb_content"))["content"] == "configured"
    assert log.read_text("utf-8") == ""


@requirement("text:FR-1", "text:FR-6", "text:log")
@pytest.mark.parametrize("there", [True, False])
async def test_the_start_and_each_call_are_logged_with_their_size(
    kb: Path, tmp_path: Path, there: bool
) -> None:
    if there:
        kb.write_text("x" * 100, "utf-8")
    log = tmp_path / "log"
    async with connect_stdio("text", "--file", str(kb), log=log) as client:
        result = await client.call_tool("get_kb_content")
    started, called = log.read_text("utf-8").splitlines()
    assert ("Knowledge base ready" if there else "Knowledge base unavailable") in started
    assert str(kb) in started
    assert json.loads(called)["answer_chars"] == len(result.content[0].text)
    assert "xxx" not in called


@requirement("text:start")
async def test_it_answers_within_five_seconds_of_its_start() -> None:
    """In processor time: on a busy machine the clock says more about the others."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    async with connect_stdio("text") as client:
        await client.list_tools()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5


@requirement("text:FR-3")
async def test_a_message_for_people_names_the_file_but_not_its_folder(kb: Path) -> None:
    told = read_body(await ask(kb, "get_kb_content"))["error"]
    assert str(kb.parent) not in told


@requirement("text:FR-6")
def test_a_base_that_is_not_there_is_refused_with_the_known_ones() -> None:
    result = run("stdio", "nothing")
    assert result.returncode == 2
    assert "'text'" in result.stderr


@pytest.mark.data
@requirement("text:plain", "text:FR-5")
@pytest.mark.parametrize(
    "name",
    ["NPPF_December_2024.txt", "azure_managed_grafana_sdk_reference.txt"],
)
async def test_real_texts_are_served_whole(shared_data: Path, name: str) -> None:
    file = shared_data / "text" / name
    content = await TextService(TextFile(file), "").read_content()
    assert isinstance(content, KbContent)
    assert content.content.encode() == file.read_bytes()

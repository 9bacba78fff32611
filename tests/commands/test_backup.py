"""A backup taken while everything is busy, restored elsewhere, answers the same."""

import io
import json
import sqlite3
import stat
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner

from readingroom.bases.federal.load.loading import load
from readingroom.bases.federal.store import connect, get_database_path, prepare_records
from readingroom.cli import main
from readingroom.storage.archive import copy_database
from readingroom.storage.changes import ReadWriteLock
from readingroom.storage.keys import KeyRing
from readingroom.storage.lock import FolderLock, FolderOwner
from tests.requirements import requirement
from tests.support.documents.base import open_documents_base
from tests.support.federal.base import write_world
from tests.support.federal.world import World
from tests.support.kit import (
    HANG_SECONDS,
    Served,
    clean_environment,
    connect_http,
    make_command,
    read_body,
    run,
    serve_room,
)
from tests.support.model import link_model
from tests.support.policy.base import make_brief_pdf, open_library

pytestmark = pytest.mark.anyio

QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("policy", "search_policy", {"query": "cycle parking", "sources": ["NPPF", "LTN_1_20"]}),
    ("policy", "search_policy", {"query": "highway safety", "effective_date": "2024-03-15",
                                 "sources": ["NPPF"], "mode": "hybrid"}),
    ("policy", "get_policy_section", {"source": "NPPF", "section_ref": "Para 2"}),
    ("policy", "list_policy_revisions", {"source": "NPPF"}),
    ("policy", "compare_policy_revisions", {"source": "NPPF", "from_date": "2024-01-01",
                                            "to_date": "2025-01-01"}),
    ("documents", "search_application_docs", {"query": "cycle parking", "mode": "hybrid"}),
    ("documents", "application_overview", {"application_ref": "25/01178/REM"}),
    ("federal", "get_bill", {"bill_id": "hr:119:2"}),
    ("federal", "lexical_search", {"query": "rural broadband"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies, some federal records and a key."""
    data = link_model(tmp_path_factory.mktemp("from") / "room")
    anyio.run(_write_papers, data)
    write_world(data.parent / "world", bills=40, votes=4)
    load(get_database_path(data), [data.parent / "world"], None)
    KeyRing(data).add_key("reader")
    return data


async def _write_papers(data: Path) -> None:
    async with open_library(data / "policy") as library:
        for source in ("NPPF", "LTN_1_20"):
            await library.add(source)
            for label, day in (("September 2023", "2023-09-05"), ("December 2024", "2024-12-12")):
                await library.revise(source, label, day)
    async with open_documents_base(data / "documents") as room:
        for name in ("Transport_Assessment.pdf", "Flood_Risk_Assessment.pdf"):
            await room.ingest(name, make_brief_pdf(name))


@pytest.fixture(scope="module")
def packed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that nobody disturbed."""
    file = tmp_path_factory.mktemp("backup") / "room.backup"
    run_backup_command("backup", str(file), at=data)
    return file


def run_backup_command(*args: str, at: Path, **variables: str) -> Any:
    ended = run(*args, "--data", str(at), "--json", env=variables)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def run_refused_command(*args: str, at: Path) -> str:
    ended = run(*args, "--data", str(at), "--json")
    assert ended.returncode == 1, ended.stdout
    return str(json.loads(ended.stderr.splitlines()[-1])["error"]["code"])


async def ask_everything(served: Served, key: str) -> list[Any]:
    found = []
    for base in ("policy", "documents", "federal"):
        async with connect_http(f"{served.url}/{base}/mcp", key=key) as client:
            for of, tool, arguments in QUESTIONS:
                if of == base:
                    found.append(read_body(await client.call_tool(tool, arguments)))
    return _without_scores(found)


def _without_scores(value: Any) -> Any:
    """What does not depend on the other policies: those go on coming after the backup."""
    if isinstance(value, list):
        return [_without_scores(item) for item in value]
    if isinstance(value, dict):
        left_out = {"took_ms", "score", "parts"}
        return {name: _without_scores(item) for name, item in value.items() if name not in left_out}
    return value


@contextmanager
def keep_server_busy(served: Served, key: str, world: Path) -> Iterator[list[str]]:
    """Revisions uploaded, searches asked and federal files loaded, again and again until left."""
    world.mkdir()
    over = threading.Event()
    uploaded: list[str] = []
    failures: list[str] = []

    def repeat(work: Callable[[int], None]) -> None:
        turn = 0
        while not over.is_set() and not failures:
            turn += 1
            try:
                work(turn)
            except Exception as error:
                failures.append(repr(error))

    with httpx2.Client(
        base_url=served.url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=300,
        trust_env=False,
    ) as web:

        def upload(turn: int) -> None:
            source = f"BUSY_{turn}"
            policy = {"source": source, "title": source, "category": "supplementary"}
            web.post("/api/v1/policies", json=policy).raise_for_status()
            web.post(
                f"/api/v1/policies/{source}/revisions",
                data={"version_label": "First", "effective_from": "2025-01-01"},
                files={"file": ("a.pdf", make_brief_pdf(source), "application/pdf")},
            ).raise_for_status()
            uploaded.append(source)

        def ask(turn: int) -> None:
            call = {"jsonrpc": "2.0", "id": turn, "method": "tools/call"}
            asked = {"name": "lexical_search", "arguments": {"query": "grid resilience"}}
            web.post(
                "/federal/mcp",
                json=call | {"params": asked},
                headers={"Accept": "application/json, text/event-stream"},
            ).raise_for_status()

        def vote(turn: int) -> None:
            # Votes of another Congress: they change no answer about bills.
            for name, text in World(turn).votes(5, congress=117):
                (world / f"{turn}-{name}").write_text(text, "utf-8")
            load(get_database_path(served.data), [world], None)

        threads = [threading.Thread(target=repeat, args=(work,)) for work in (upload, ask, vote)]
        for thread in threads:
            thread.start()
        try:
            yield uploaded
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert failures == []


@requirement("room:backup")
@pytest.mark.slow
async def test_a_backup_under_load_restores_elsewhere_to_equal_answers(
    data: Path, tmp_path: Path
) -> None:
    key = KeyRing(data).add_key("visitor")
    file = tmp_path / "room.backup"
    with serve_room(data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as served:
        with keep_server_busy(served, key, tmp_path / "worlds") as uploaded:
            # Without a timing: the backup begins when changes flow, and they flow while it runs.
            with anyio.fail_after(HANG_SECONDS):
                while len(uploaded) < 2:  # noqa: ASYNC110 - threads tell
                    await anyio.sleep(0.05)
            made = await anyio.to_thread.run_sync(
                lambda: run_backup_command("backup", str(file), at=data)
            )
        before = await ask_everything(served, key)
    elsewhere = link_model(tmp_path / "elsewhere" / "room")
    restored = run_backup_command("restore", str(file), at=elsewhere)
    with serve_room(data=elsewhere) as served:
        after = await ask_everything(served, key)
        checked = run("doctor", "--data", str(elsewhere), "--json")
    assert after == before
    assert json.loads(checked.stdout)["complaints"] == []
    assert restored["bases"] == made["bases"]
    assert made["bases"]["documents"] == {"documents": 2, "chunks": 2}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list((data / "policy" / "handover").iterdir()) == []


@requirement("room:backup")
def test_a_restore_covers_nothing_unless_forced_and_then_keeps_it(
    packed: Path, tmp_path: Path
) -> None:
    there = link_model(tmp_path / "there")
    KeyRing(there).add_key("stays")
    assert run_refused_command("restore", str(packed), at=there) == "data_not_empty"
    run_backup_command(
        "restore", str(packed), "--force", at=there, CHROMA_PERSIST_DIR=str(there / "chroma")
    )
    (kept,) = (there / ".replaced").iterdir()
    restored, replaced = (
        [key.name for key in ring.list_keys()] for ring in (KeyRing(there), KeyRing(kept))
    )
    assert "reader" in restored and "stays" not in restored
    assert replaced == ["stays"]
    assert (there / "models").is_symlink()
    # A store that was placed elsewhere in the directory, as the image does, comes back there.
    assert (there / "chroma" / "chroma.sqlite3").exists()
    assert not (there / "documents" / "chroma").exists()
    assert not (there / ".restoring").exists()


@requirement("room:backup")
@pytest.mark.parametrize("base", ["policy", "federal"])
def test_nothing_is_restored_under_a_running_server(
    packed: Path, tmp_path: Path, base: str
) -> None:
    lock, path = FolderLock(tmp_path / "policy"), get_database_path(tmp_path)
    if base == "policy":
        lock.acquire()
    prepare_records(path)
    with closing(connect(path)) as reader:
        if base == "federal":
            reader.execute("SELECT count(*) FROM bills").fetchone()
        else:
            reader.close()
        outcome = CliRunner().invoke(
            main, ["restore", str(packed), "--force", f"--data={tmp_path}"]
        )
    lock.release()
    assert (outcome.exit_code, "in use" in outcome.output) == (1, True)


@requirement("room:backup")
@pytest.mark.parametrize("harm", ["cut", "flipped", "swapped", "newer", "outside", "other"])
def test_a_backup_that_is_not_whole_or_not_ours_restores_nothing(
    packed: Path, tmp_path: Path, harm: str
) -> None:
    file, target = tmp_path / "room.backup", tmp_path / "room"
    file.write_bytes(HARMS[harm](packed.read_bytes()))
    outcome = CliRunner().invoke(main, ["restore", str(file), f"--data={target}", "--json"])
    assert json.loads(outcome.stderr.splitlines()[-1])["error"]["code"] == "backup_unusable"
    assert list(target.iterdir()) == []


def rewrite_backup(packed: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The backup with other contents, packed as well as the true one."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    change(files)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def make_backup_newer(files: dict[str, bytes]) -> None:
    files["manifest.json"] = json.dumps(
        json.loads(files["manifest.json"]) | {"format": 2, "version": "9.0"}
    ).encode()


def add_file_outside(files: dict[str, bytes]) -> None:
    manifest = json.loads(files["manifest.json"])
    manifest["files"]["../outside"] = {"bytes": 0, "sha256": ""}
    files["manifest.json"] = json.dumps(manifest).encode()


def swap_contents(files: dict[str, bytes]) -> None:
    files["policy/registry.json"] = files["policy/registry.json"].replace(b"NPPF", b"FPPN")


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda packed: packed[: len(packed) // 2],
    "flipped": lambda packed: packed[:5000] + bytes([packed[5000] ^ 255]) + packed[5001:],
    "swapped": lambda packed: rewrite_backup(packed, swap_contents),
    "newer": lambda packed: rewrite_backup(packed, make_backup_newer),
    "outside": lambda packed: rewrite_backup(packed, add_file_outside),
    "other": lambda packed: b"no backup at all",
}


@requirement("room:backup")
async def test_what_a_killed_backup_left_goes_with_the_next_one_and_nothing_else_does(
    data: Path, tmp_path: Path
) -> None:
    await anyio.to_thread.run_sync(kill_a_backup, data, tmp_path)
    (left,) = tmp_path.iterdir()
    own, busy = tmp_path / ".backup-of-mine", tmp_path / ".backup-busy"
    own.mkdir()
    lock = FolderLock(busy)
    lock.acquire()
    lock.write_folder_owner(FolderOwner(url="", key="", pid=1))
    file = str(tmp_path / "room.backup")
    await anyio.to_thread.run_sync(lambda: run_backup_command("backup", file, at=data))
    lock.release()
    assert not left.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"room.backup", own.name, busy.name}


def kill_a_backup(data: Path, folder: Path) -> None:
    """Killed when it says that it copies: by then its folder is there."""
    backup = subprocess.Popen(
        make_command("backup", str(folder / "first.backup"), "--data", str(data)),
        env=clean_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert backup.stderr is not None
    backup.stderr.readline()
    backup.kill()
    backup.communicate()


@requirement("room:backup")
def test_a_database_is_copied_as_it_was_at_one_moment(tmp_path: Path) -> None:
    """Each transaction adds a pair; a copy that saw half of one would hold an odd number."""
    path = tmp_path / "pairs.db"
    with closing(sqlite3.connect(path, timeout=300)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE pairs (text TEXT)")
    over = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=300)) as db:
            while not over.is_set():
                with db:
                    db.executemany("INSERT INTO pairs VALUES (?)", [("x" * 9000,)] * 2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        counts = [_count_rows(path, tmp_path / f"copy-{turn}.db") for turn in range(5)]
    finally:
        over.set()
        writer.join()
    assert all(count % 2 == 0 for count in counts)
    assert counts == sorted(counts)


def _count_rows(path: Path, copy: Path) -> int:
    copy_database(path, copy)
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(db.execute("SELECT count(*) FROM pairs").fetchone()[0])


@requirement("room:backup")
async def test_changes_wait_while_the_lock_is_exclusive_and_not_for_each_other() -> None:
    lock, seen = ReadWriteLock(), []

    async def change(name: str, begun: anyio.Event, go_on: anyio.Event) -> None:
        async with lock.acquire_shared():
            seen.append(f"{name} begins")
            begun.set()
            await go_on.wait()
            seen.append(f"{name} ends")

    async with anyio.create_task_group() as tasks:
        events = [anyio.Event() for _ in range(5)]
        tasks.start_soon(change, "first", events[0], events[1])
        tasks.start_soon(change, "second", events[2], events[1])
        await events[0].wait()
        await events[2].wait()
        tasks.start_soon(_let_go, events[1])
        async with lock.acquire_exclusive():
            seen.append("closed")
            tasks.start_soon(change, "third", events[3], events[4])
            await anyio.wait_all_tasks_blocked()
            events[4].set()
            seen.append("open")
    assert seen[:2] == ["first begins", "second begins"]
    assert seen[4:] == ["closed", "open", "third begins", "third ends"]


async def _let_go(event: anyio.Event) -> None:
    await anyio.wait_all_tasks_blocked()
    event.set()

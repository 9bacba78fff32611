"""Reading files ahead of their turn: what is loaded is the same, whoever reads it."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import parent_process
from multiprocessing.context import ForkContext, SpawnContext
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.formats import Loader
from readingroom.bases.federal.formats.parts.files import FileRef, RawFile
from readingroom.bases.federal.load import loading, read_ahead
from readingroom.bases.federal.store import get_database_path
from tests.support.federal.base import load_files, read_all_tables, write_world
from tests.support.kit import clean_environment
from tests.support.processes import is_alive, list_descendants, wait_until


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_world(tmp_path / "files", bills=40)
    return tmp_path / "files"


@pytest.fixture
def worthwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A second process from the first byte on, as a large load has it."""
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 0)
    monkeypatch.setattr(read_ahead, "count_cores", lambda: 2)
    before = list_descendants()
    yield
    wait_until(lambda: not any(map(_is_reading_process, list_descendants() - before)))


def _is_reading_process(process: int) -> bool:
    """Whether it lives, and is not the one that Python starts beside the first and keeps."""
    try:
        line = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return is_alive(process) and b"resource_tracker" not in line


@pytest.mark.usefixtures("worthwhile")
@pytest.mark.parametrize("context", [ForkContext, SpawnContext])
def test_what_is_read_ahead_is_what_would_be_read_in_turn(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, context: type
) -> None:
    monkeypatch.setattr(read_ahead, "_choose_process_context", context)
    ahead = load_files(tmp_path / "ahead", files, embed=False)
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 1 << 40)
    in_turn = load_files(tmp_path / "turn", files, embed=False)
    assert vars(ahead) == vars(in_turn)
    assert read_all_tables(tmp_path / "ahead") == read_all_tables(tmp_path / "turn")


_parse_all = read_ahead._parse_in_worker
_parsed_here: list[str] = []
"""The files that the two functions below have parsed in this process; a worker has its own list."""


def die_at_the_third(
    loader: Loader, raw: RawFile, with_columns: bool
) -> read_ahead.FileContents | str:
    """Stands in for `_parse_in_worker`; a function of a module, so that a worker can find it."""
    _parsed_here.append(raw.name)
    if parent_process() and len(_parsed_here) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return _parse_all(loader, raw, with_columns)


def fail_by_our_mistake(
    loader: Loader, raw: RawFile, with_columns: bool
) -> read_ahead.FileContents | str:
    raise AssertionError("a mistake of ours")


@pytest.mark.usefixtures("worthwhile")
def test_a_worker_that_is_killed_leaves_its_files_to_us(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _parsed_here.clear()
    monkeypatch.setattr(read_ahead, "_choose_process_context", ForkContext)
    monkeypatch.setattr(read_ahead, "_parse_in_worker", die_at_the_third)
    killed = load_files(tmp_path / "killed", files, embed=False)
    assert _parsed_here, "the worker was not killed"
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 1 << 40)
    assert vars(killed) == vars(load_files(tmp_path / "turn", files, embed=False))
    assert read_all_tables(tmp_path / "killed") == read_all_tables(tmp_path / "turn")


@pytest.mark.usefixtures("worthwhile")
def test_without_room_for_another_process_everything_is_read_here(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(read_ahead, "_choose_process_context", SpawnContext)
    monkeypatch.setattr(SpawnContext.Process, "start", refuse)
    summary = load_files(tmp_path / "data", files, embed=False)
    assert (summary.failed, summary.loaded) == (0, summary.files)


@pytest.mark.usefixtures("worthwhile")
def test_files_that_cannot_be_read_are_told_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "BILLSTATUS-119hr1.xml").write_text("<billStatus><bill>", "utf-8")
    (files / "BILLSTATUS-119hr2.xml").write_text("<billStatus></billStatus>", "utf-8")
    (files / "rule.json").write_text('{"document_number": "no id", "title": "x"}', "utf-8")
    (files / "odd.json").write_text('{"document_number": [1], "title": {"x": 2}}', "utf-8")
    ahead = load_files(tmp_path / "ahead", files, embed=False)
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 1 << 40)
    in_turn = load_files(tmp_path / "turn", files, embed=False)
    assert ahead.failed == in_turn.failed >= 3
    assert ahead.errors == in_turn.errors


@pytest.mark.usefixtures("worthwhile")
def test_only_so_many_bytes_are_read_before_their_turn(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead: list[int] = []
    look_ahead = read_ahead._ReadAhead._queue_next_files

    def watch(self: read_ahead._ReadAhead, index: int) -> None:
        look_ahead(self, index)
        ahead.append(len(self._ahead_by_index))

    monkeypatch.setattr(read_ahead, "_MAX_BYTES_AHEAD", 4 * read_ahead._MIN_COUNTED_BYTES)
    monkeypatch.setattr(read_ahead, "_choose_process_context", ForkContext)
    monkeypatch.setattr(read_ahead._ReadAhead, "_queue_next_files", watch)
    assert load_files(tmp_path / "data", files, embed=False).failed == 0
    assert max(ahead) == 4


@pytest.mark.usefixtures("worthwhile")
def test_a_file_is_read_and_hashed_once(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    read_file = FileRef.read_file

    def note(self: FileRef) -> RawFile:
        read.append(self.path)
        return read_file(self)

    monkeypatch.setattr(FileRef, "read_file", note)
    summary = load_files(tmp_path / "data", files, embed=False)
    assert len(read) == len(set(read)) == summary.files
    read.clear()
    assert load_files(tmp_path / "data", files, embed=False).unchanged == summary.files
    assert len(read) == len(set(read)) == summary.files


def test_a_reader_that_dies_as_it_starts_is_not_waited_for(tmp_path: Path) -> None:
    """Started anew it looks for the program it belongs to; one from standard input lies nowhere."""
    write_world(tmp_path / "files", bills=400)
    program = f"""
import sys, threading
from pathlib import Path
from readingroom.bases.federal.load import loading, read_ahead

def load():
    read_ahead._MIN_LOAD_BYTES, read_ahead.count_cores = 0, lambda: 2
    folder = Path({str(tmp_path)!r})
    summary = loading.load(folder / "federal.db", [folder / "files"], None)
    print(summary.files == summary.loaded > 400)

thread = threading.Thread(target=load)
thread.start()
thread.join()
"""
    done = subprocess.run(
        [sys.executable], input=program, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "True"


@pytest.mark.usefixtures("worthwhile")
def test_what_is_no_fault_of_a_file_ends_the_load_and_is_told_once(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(read_ahead, "_choose_process_context", ForkContext)
    monkeypatch.setattr(read_ahead, "_parse_in_worker", fail_by_our_mistake)
    with pytest.raises(AssertionError, match="ours"):
        load_files(tmp_path / "data", files, embed=False)
    assert capfd.readouterr().err == ""


def test_a_zip_whose_content_is_damaged_is_skipped(tmp_path: Path, files: Path) -> None:
    whole = tmp_path / "bills.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files.glob("BILLSTATUS*"))[:5]:
            archive.write(path, path.name)
    damaged = bytearray(whole.read_bytes())
    damaged[200:400] = bytes(200)
    (tmp_path / "damaged.zip").write_bytes(damaged)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole.read_bytes()[:-300])
    summary = load_files(tmp_path / "data", tmp_path / "damaged.zip", cut, embed=False)
    assert (summary.failed, summary.loaded) == (2, 4)


def test_only_a_process_without_threads_is_copied() -> None:
    chosen: list[object] = []
    thread = threading.Thread(target=lambda: chosen.append(read_ahead._choose_process_context()))
    thread.start()
    thread.join()
    assert isinstance(chosen[0], SpawnContext)
    program = (
        "from readingroom.bases.federal.load import read_ahead; "
        "print(type(read_ahead._choose_process_context()).__name__)"
    )
    alone = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert alone.stdout.strip() == "ForkContext"


def test_a_file_that_fails_at_its_end_takes_nothing_of_the_others_with_it(tmp_path: Path) -> None:
    """They are committed together; the index of words must know of the rest alone."""
    world = write_world(tmp_path / "files", bills=0)
    for place, (name, text) in enumerate(world.bills(9)):
        bad = text.replace("</bill>", "<amendments><amendment/></amendments></bill>")
        (tmp_path / "files" / name).write_text(bad if place % 3 == 1 else text, "utf-8")
    summary = load_files(tmp_path, tmp_path / "files", embed=False)
    assert summary.failed == 3
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        assert db.execute("SELECT count(*) FROM bills WHERE loader <> 'partial'").fetchone()[0] == 6
        db.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)")
        (passages,) = db.execute("SELECT count(*) FROM passages").fetchone()
        (indexed,) = db.execute("SELECT count(*) FROM passages_fts_docsize").fetchone()
        assert passages == indexed


def test_others_can_write_while_files_are_passed_over(tmp_path: Path) -> None:
    """What was loaded before them is committed first: a load holds the file only as it writes."""
    world = write_world(tmp_path / "files", bills=12)
    load_files(tmp_path, tmp_path / "files", embed=False)
    ((name, text),) = world.bills(1)
    newer = tmp_path / "newer" / name
    newer.parent.mkdir()
    newer.write_text(text.replace("T05:", "T06:"), "utf-8")
    path = get_database_path(tmp_path)
    written: list[str] = []

    def told(done: int, of: int, name: str) -> None:
        if done > 3:
            with closing(sqlite3.connect(path, timeout=2, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
            written.append(name)

    bills = sorted((tmp_path / "files").glob("BILLSTATUS*"))
    loading.load(path, [newer, *bills], None, told)
    assert len(written) == len(bills) - 2


PAUSING_LOAD = """
import sqlite3, sys, time
from contextlib import closing, suppress
from pathlib import Path
from readingroom.__main__ import main
from readingroom.bases.federal.load import loading

database, paused = sys.argv.pop(), Path(sys.argv.pop())
read_in_order = loading.read_in_order

def count_bills():
    with suppress(sqlite3.OperationalError):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM bills WHERE loader <> 'partial'").fetchone()[0]
    return 0

def pause_after_twenty_bills(*args, **options):
    for reading in read_in_order(*args, **options):
        if count_bills() > 20:
            paused.touch()
            time.sleep(3600)
        yield reading

loading.read_in_order = pause_after_twenty_bills
main()
"""
"""`readingroom federal load` that stops by itself in the middle, and waits to be interrupted."""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_load_keeps_whole_files_and_leaves_no_reader(
    tmp_path: Path, sent: signal.Signals
) -> None:
    write_world(tmp_path / "files", bills=150)
    for path in (tmp_path / "files").glob("*.xml"):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"<!--{'x' * 100_000}-->")
    data, paused = tmp_path / "data", tmp_path / "paused"
    arguments = ("federal", "load", str(tmp_path / "files"), "--data", str(data))
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSING_LOAD, *arguments, str(paused), str(get_database_path(data))],
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: paused.exists() or process.poll() is not None)
    readers = list_descendants(process.pid)
    os.killpg(process.pid, sent) if sent == signal.SIGINT else process.kill()
    _, stderr = process.communicate(timeout=300)
    assert paused.exists() and readers
    assert b"Traceback" not in stderr
    wait_until(lambda: not any(map(is_alive, readers)))
    assert 20 < _count_bills(data) < 150
    again = load_files(data, tmp_path / "files", embed=False)
    assert again.failed == 0
    assert _count_bills(data) == 150


def _count_bills(data: Path) -> int:
    with closing(sqlite3.connect(f"file:{get_database_path(data)}?mode=ro", uri=True)) as db:
        counted = "SELECT count(*) FROM bills WHERE loader <> 'partial'"
        return int(db.execute(counted).fetchone()[0])

"""The sandbox: whatever the process inside does, the server gets data or a typed error."""

import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from readingroom.core.ids import current_caller_id
from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions, SkippedFile
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS
from tests.support.papers import make_paper
from tests.support.processes import is_alive, list_descendants, wait_until

pytestmark = pytest.mark.anyio

# Long enough for a busy machine: what a test waits for is the failure, which comes at once.
GENEROUS = ReadingLimits(wall_seconds=120, silent_seconds=120, cpu_seconds=60)


def make_reader_running(code: str, limits: ReadingLimits = GENEROUS) -> ConfinedReader:
    """A sandbox whose process, once confined, does this instead of reading."""
    confined = "import sys\nfrom readingroom.ingest.read.job import Job\n"
    confined += "from readingroom.ingest.confine.process import confine_process\n"
    confined += "confine_process(Job.from_json(sys.argv[1]).confinement)\n"
    return ConfinedReader(
        limits, worker_command=(sys.executable, "-c", confined + textwrap.dedent(code))
    )


async def read(
    confined_reader: ConfinedReader, data: bytes = b"%PDF-1.7"
) -> Document | SkippedFile:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        return await confined_reader.read_document(file, "paper.pdf", ReadOptions(), no_progress)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = list_descendants()
    yield
    assert list_descendants() == before


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(127)", "exit status 127"),
        ("hoard = bytearray(2**32)", "log has the reason"),
        ("raise KeyError('unforeseen')", "log has the reason"),
        ("open('full', 'wb').truncate(2**30)", "log has the reason"),
        ('print(\'{"document": {"text": 1}}\')', "no sensible answer"),
        ("print('not JSON')", "no sensible answer"),
        ("print('{}')", "no answer"),
    ],
)
@requirement("ingest:sandbox:failures")
async def test_a_process_that_fails_is_told_as_extraction_failed(does: str, told: str) -> None:
    with pytest.raises(ExtractionFailed, match=told):
        await read(make_reader_running(does))


@requirement("ingest:sandbox:failures")
async def test_processor_time_is_held_to_its_limit() -> None:
    limits = ReadingLimits(cpu_seconds=3, wall_seconds=120, silent_seconds=120)

    with pytest.raises(ExtractionFailed, match="processor seconds"):
        await read(make_reader_running("while True: pass", limits))


@requirement("ingest:sandbox:failures")
async def test_memory_is_held_to_its_limit() -> None:
    modest = ReadingLimits(memory_bytes=256 * 2**20, wall_seconds=300, silent_seconds=300)

    with pytest.raises(ExtractionFailed, match="too much memory"):
        await read(ConfinedReader(modest), make_paper("A page.") + bytes(300 * 2**20))


@requirement("ingest:sandbox:time")
async def test_a_hang_ends_at_the_wall_limit_or_after_a_long_silence() -> None:
    for limits in (ReadingLimits(wall_seconds=0.5), ReadingLimits(silent_seconds=0.5)):
        with pytest.raises(ExtractionFailed, match=r"took more than"):
            await read(make_reader_running("import time; time.sleep(3600)", limits))


@requirement("ingest:sandbox:time")
async def test_a_flood_of_output_is_cut_off() -> None:
    limits = ReadingLimits(answer_bytes=2**20, wall_seconds=300)

    with pytest.raises(ExtractionFailed, match="more text than is accepted"):
        await read(make_reader_running("while True: print('x' * 65536, end='')", limits))


@requirement("ingest:sandbox:group")
async def test_what_the_process_started_dies_with_it() -> None:
    does = """
        import json, os, subprocess, time
        child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
        print(json.dumps({"progress": [child.pid, 0, ""]}), flush=True)
        os.abort()
    """
    children: list[int] = []

    async def note(process_id: float, total: float | None, message: str | None) -> None:
        children.append(int(process_id))

    with tempfile.TemporaryFile(buffering=0) as file, pytest.raises(ExtractionFailed):
        await make_reader_running(does).read_document(file, "paper.pdf", ReadOptions(), note)

    (child,) = children
    wait_until(lambda: not is_alive(child))


@requirement("ingest:sandbox:group")
async def test_a_caller_who_gives_up_leaves_no_process_behind() -> None:
    before = list_descendants()

    with anyio.move_on_after(0.5) as patience:
        await read(make_reader_running("import time; time.sleep(60)"))

    assert patience.cancelled_caught
    assert list_descendants() == before


@requirement("ingest:sandbox:group")
def test_a_process_ends_when_the_server_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    server = tmp_path / "server.py"
    server.write_text(
        textwrap.dedent(f"""
            import os, pathlib, subprocess, sys
            inside = '''
            import os, sys, time, threading, pathlib
            from readingroom.ingest.read.worker import kill_group_after_parent
            pathlib.Path({str(note)!r}).write_text(str(os.getpid()))
            threading.Thread(target=kill_group_after_parent, args=(int(sys.argv[1]),)).start()
            time.sleep(60)
            '''
            import textwrap
            command = [sys.executable, "-c", textwrap.dedent(inside), str(os.getpid())]
            subprocess.run(command, start_new_session=True)
        """)
    )
    process = subprocess.Popen([sys.executable, str(server)])
    wait_until(lambda: note.exists() and bool(note.read_text()))

    process.kill()
    process.wait()

    wait_until(lambda: not is_alive(int(note.read_text())))


def make_waiting_code(file: Path) -> str:
    """What a process does that reports its start and ends when the file is there."""
    return f"""
        import os, time
        print('{{"progress": [{{}}, 0, ""]}}'.replace("{{}}", str(os.getpid())), flush=True)
        while not os.path.exists({str(file)!r}):
            time.sleep(0.01)
        skipped = '{{"image_ratio": 1.0, "total_pages": 1, "reason": "image_based"}}'
        print('{{"skipped_file": ' + skipped + '}}')
    """


@requirement("ingest:sandbox:seats")
async def test_no_more_run_at_once_than_there_are_seats(tmp_path: Path) -> None:
    before = list_descendants()
    everybody_may_end = tmp_path / "end"
    command = make_reader_running(make_waiting_code(everybody_may_end))._worker_command
    confined_reader = ConfinedReader(GENEROUS, processes_per_caller=2, worker_command=command)
    started: list[int] = []
    two_run = anyio.Event()

    async def note(process_id: float, total: float | None, message: str | None) -> None:
        started.append(int(process_id))
        if len(started) == 2:
            two_run.set()

    async def read_one() -> None:
        with tempfile.TemporaryFile(buffering=0) as file:
            await confined_reader.read_document(file, "paper.pdf", ReadOptions(), note)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(read_one)
        await two_run.wait()
        await anyio.wait_all_tasks_blocked()
        assert list_descendants() - before == {*started}
        assert len(started) == 2
        everybody_may_end.touch()

    assert len(started) == 5


@requirement("ingest:sandbox:callers")
async def test_a_caller_whose_files_never_end_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    everybody_may_end = tmp_path / "end"
    command = make_reader_running(make_waiting_code(everybody_may_end))._worker_command
    confined_reader = ConfinedReader(GENEROUS, processes_per_caller=2, worker_command=command)
    started: list[str] = []
    greedy_runs, modest_runs = anyio.Event(), anyio.Event()

    async def note(process_id: float, total: float | None, message: str | None) -> None:
        started.append(current_caller_id.get())
        if started == ["greedy", "greedy"]:
            greedy_runs.set()
        if "modest" in started:
            modest_runs.set()

    async def read_as(caller: str) -> None:
        current_caller_id.set(caller)
        with tempfile.TemporaryFile(buffering=0) as file:
            await confined_reader.read_document(file, "paper.pdf", ReadOptions(), note)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(read_as, "greedy")
        await greedy_runs.wait()
        tasks.start_soon(read_as, "modest")
        with anyio.fail_after(HANG_SECONDS):
            await modest_runs.wait()
        assert started == ["greedy", "greedy", "modest"]
        everybody_may_end.touch()

    assert len(started) == 11
    assert confined_reader._work_slots._slots_by_caller == {}


@requirement("ingest:sandbox:secrets")
async def test_the_process_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_API_KEY", "sesame")
    monkeypatch.setenv("REDIS_URL", "redis://:sesame@example.org")
    does = """
        import os
        assert "sesame" not in " ".join(os.environ.values())
        print('{"skipped_file": {"image_ratio": 1.0, "total_pages": 1, "reason": "image_based"}}')
    """

    assert await read(make_reader_running(does)) == SkippedFile(1.0, 1)


@requirement("ingest:sandbox:progress")
async def test_progress_passes_through() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(make_paper(*["A page with enough words on it."] * 45))
        await ConfinedReader().read_document(file, "paper.pdf", ReadOptions(), listen)

    assert heard == [(n, 45, f"page {n} of 45") for n in (20, 40, 45)]


@requirement("ingest:sandbox:failures")
async def test_a_reason_nobody_foresaw_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ExtractionFailed):
        await read(make_reader_running("raise KeyError('unforeseen')"))

    (record,) = caplog.records
    assert "KeyError: 'unforeseen'" in record.getMessage()


@requirement("ingest:sandbox:group")
async def test_nothing_stays_in_the_temporary_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    does = "import os, pathlib; pathlib.Path(os.environ['TMPDIR'], 'page').touch(); os.abort()"

    with pytest.raises(ExtractionFailed):
        await read(make_reader_running(does))

    assert not [*tmp_path.iterdir()]

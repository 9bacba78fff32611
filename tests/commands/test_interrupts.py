"""Ctrl-C at any moment, once or twice, ends a command in one line, with 130 and no traceback."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from readingroom.interrupts import (
    CHANGES_KEPT_SENTENCE,
    INTERRUPTED_STATUS,
    NOTHING_CHANGED_SENTENCE,
)
from tests.support.federal.base import write_world
from tests.support.kit import clean_environment
from tests.support.processes import HANG_SECONDS

NEXT_STEPS = (
    "run the same command again",
    "`readingroom federal embed` goes on",
    "--force",
    "check it with `readingroom doctor`",
)
PROGRAM = """
from readingroom.__main__ import main
print("begun", flush=True)
main()
"""
"""The program, which tells when it heeds signals.

Before its first line Ctrl-C finds the interpreter, which ends with a traceback or with the signal:
nothing of ours can change that, and nothing of ours has run.
"""
PROGRAM_PRESSED_AT_A_LINE = """
import os, signal, sys
from readingroom.__main__ import main
from readingroom import interrupts

lines_left = int(sys.argv.pop(1))
names = (interrupts.__file__, interrupts.__file__.replace("interrupts.py", "cli.py"))

def trace(frame, event, argument):
    global lines_left
    if frame.f_code.co_filename not in names:
        return None
    if event == "line":
        lines_left -= 1
        if lines_left == 0:
            os.kill(os.getpid(), signal.SIGINT)
    return trace

sys.settrace(trace)
main()
"""
"""The program, with Ctrl-C before so many lines that it runs of what handles it."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_world(tmp_path / "files", bills=120, votes=20)
    for path in (tmp_path / "files").glob("BILLSTATUS*.xml"):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"<!--{'x' * 100_000}-->")  # so much that a second process parses
    return tmp_path / "files"


def interrupt(
    arguments: tuple[str, ...], moments: list[float], env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Press Ctrl-C so many seconds after one another; return the status and what is told."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=clean_environment(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    for moment in moments:
        time.sleep(moment)
        # A terminal sends it to all processes of the command.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, told


def assert_told_in_one_line(
    status: int, told: str, statuses_of_end: tuple[int, ...] = (0,)
) -> None:
    """Assert that the interrupt ended the command so, or that the command had ended before."""
    for foreign in ("Traceback", "Aborted", "ignored", "Warning", "Exception"):
        assert foreign not in told, told
    if status in statuses_of_end:
        assert "Stopped" not in told, told
        return
    assert status == 130, (status, told)
    line = told.splitlines()[-1]
    assert line.startswith("Stopped. ") and line.endswith("."), told
    assert any(next_step in line for next_step in NEXT_STEPS), told
    assert told.count("Stopped") == 1 and "Error" not in told, told


def draw_moments(count: int, most: float) -> list[list[float]]:
    """Moments over so many seconds; after every other press comes a second one, soon."""
    drawn = random.Random(7)
    firsts = [most * (number + drawn.random()) / count for number in range(count)]
    return [
        [first] if number % 2 else [first, drawn.choice([0.0, 0.002, 0.02, 0.2])]
        for number, first in enumerate(firsts)
    ]


@pytest.mark.parametrize("engine", ["embedded", "postgres"])
def test_a_load_is_interrupted_at_many_moments(
    engine: str, request: pytest.FixtureRequest, files: Path, tmp_path: Path
) -> None:
    is_full = request.config.getoption("--full")
    env = {}
    if engine == "postgres":
        env = {"READINGROOM_DATABASE_URL": request.getfixturevalue("url")}
    arguments = ("federal", "load", str(files), "--data", str(tmp_path / "data"))
    for moments in draw_moments(40 if is_full else 6, 5.0):
        assert_told_in_one_line(*interrupt(arguments, moments, env))
    ended = subprocess.run(
        [sys.executable, "-m", "readingroom", *arguments],
        env=clean_environment(env),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert ended.returncode == 0 and ", 0 failed;" in ended.stdout, ended.stdout + ended.stderr


def test_other_commands_are_interrupted_while_they_start(url: str, tmp_path: Path) -> None:
    (tmp_path / "policies.json").write_text('{"policies": []}')
    (tmp_path / "some.txt").write_text("Some text.")
    at = ("--data", str(tmp_path / "data"))
    assert run_in_order("policy", "import", str(tmp_path / "policies.json"), *at).returncode == 0
    assert run_in_order("backup", str(tmp_path / "first.backup"), *at).returncode == 0
    for arguments in (
        ("migrate", "--to", url, *at),
        ("backup", str(tmp_path / "room.backup"), *at),
        ("restore", str(tmp_path / "first.backup"), "--data", str(tmp_path / "other"), "--force"),
        ("policy", "import", str(tmp_path / "policies.json"), *at),
        ("documents", "ingest", str(tmp_path / "some.txt"), "--application", "25/0001/FUL", *at),
        ("federal", "embed", *at),
        ("embed-worker", "--once", "--url", url, *at),
        ("doctor", *at),
    ):
        for moment in (0.0, 0.5):
            # What one of them leaves behind may be an error to the next.
            assert_told_in_one_line(*interrupt(arguments, [moment]), statuses_of_end=(0, 1, 2))


@pytest.mark.parametrize(("argument", "status"), [("--version", 0), ("--nothing", 2)])
def test_an_interrupt_before_any_line_of_what_handles_it(
    argument: str, status: int, request: pytest.FixtureRequest
) -> None:
    """A command ends as if nothing had been pressed, or in the one line and nothing else."""

    def run_pressed(line: int) -> tuple[int, str]:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM_PRESSED_AT_A_LINE, str(line), argument],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )
        return ended.returncode, ended.stderr

    unpressed = run_pressed(0)
    interrupted = (INTERRUPTED_STATUS, f"Stopped. {NOTHING_CHANGED_SENTENCE}.\n")
    assert unpressed[0] == status
    step = 1 if request.config.getoption("--full") else 5
    outcomes = [run_pressed(line) for line in range(1, 81, step)]
    assert set(outcomes) == {unpressed, interrupted}
    # Once it has ended, it stays so.
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome == unpressed)
    assert outcomes[-1] == unpressed


def test_a_statement_that_the_interrupt_cancels_blames_no_database(
    url: str, files: Path, tmp_path: Path
) -> None:
    """The load waits for a lock that another session holds."""
    env = {"READINGROOM_DATABASE_URL": url}
    at = ("--data", str(tmp_path / "data"))
    assert run_in_order("federal", "status", *at, env=env).returncode == 0
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE readingroom_federal.generation IN ACCESS EXCLUSIVE MODE")
        process_moments = [4.0]
        status, told = interrupt(("federal", "load", str(files), *at), process_moments, env)
    assert_told_in_one_line(status, told)
    assert status == 130 and "Files that were in are kept" in told


@pytest.mark.parametrize(
    "swallowing",
    [
        "class Lost:\n    def __del__(self): os.kill(os.getpid(), signal.SIGINT); sum(range(9))\n"
        "def work():\n    Lost(); time.sleep(60)",
        "def work():\n"
        "    try: os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "    except BaseException: raise ValueError('the database has gone away') from None",
        "def fail(): time.sleep(0.2); raise ValueError('a thread lost its connection')\n"
        "def work():\n"
        "    threading.Thread(target=fail).start()\n"
        "    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
        # As in the import of every dataclass; the interpreter remembers that one left it.
        "def work(): exec('os.kill(os.getpid(), signal.SIGINT); time.sleep(60)')",
    ],
    ids=["in a destructor", "as another error", "with a thread that fails", "in an exec"],
)
def test_an_interrupt_that_is_lost_on_its_way_is_told_all_the_same(
    swallowing: str, tmp_path: Path
) -> None:
    program = (
        "from readingroom.interrupts import begin_changes, run_program\n"
        "from readingroom import cli\n"
        "cli.main.callback = None\n"
        "import click\n"
        "def begin_and_work(): begin_changes(); work()\n"
        "cli._LazyGroup.get_command = lambda *a: click.Command('work', callback=begin_and_work)\n"
        "run_program(lambda: cli.main(['work']))\n"
    )
    ended = run_module(tmp_path, f"{swallowing}\n{program}")
    assert (ended.returncode, ended.stderr) == (130, f"Stopped. {CHANGES_KEPT_SENTENCE}.\n")


@pytest.mark.parametrize("has_begun", [False, True], ids=["import", "command"])
def test_an_interrupt_that_a_library_drops(has_begun: bool, tmp_path: Path) -> None:
    """While a command is imported it counts all the same; afterwards the command may end."""
    ended = run_module(
        tmp_path,
        "from readingroom.interrupts import begin_changes, run_program\n"
        "def run():\n"
        f"    if {has_begun}: begin_changes()\n"
        "    try: exec('os.kill(os.getpid(), signal.SIGINT); time.sleep(60)')\n"
        "    except BaseException: print('dropped')\n"
        "run_program(run)\n",
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        (0, "dropped\n", "")
        if has_begun
        else (INTERRUPTED_STATUS, "", f"Stopped. {NOTHING_CHANGED_SENTENCE}.\n")
    )


@pytest.mark.parametrize(
    "closing", ["os.close(2)", "sys.stderr.close()", "sys.stderr = None"], ids=["2", "file", "none"]
)
@pytest.mark.parametrize("begin", ["", "begin_changes()", "begin_changes_and_press()"])
def test_an_interrupt_ends_a_command_whose_terminal_has_gone_away(
    begin: str, closing: str, tmp_path: Path
) -> None:
    ended = run_module(
        tmp_path,
        "import sys\n"
        "from readingroom import cli\n"
        "from readingroom.interrupts import begin_changes, run_program\n"
        "import click\n"
        "cli.main.callback = None\n"
        "def begin_changes_and_press():\n"
        "    begin_changes()\n"
        "    try: os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "    except KeyboardInterrupt: pass\n"
        "def work():\n"
        f"    {closing}\n"
        f"    {begin or 'pass'}\n"
        "    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "cli._LazyGroup.get_command = lambda *a: click.Command('work', callback=work)\n"
        "run_program(lambda: cli.main(['work']))\n",
    )
    assert (ended.returncode, ended.stderr) == (INTERRUPTED_STATUS, "")


def run_module(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(f"import os, signal, sys, threading, time\n{program}")
    return subprocess.run(
        [sys.executable, "-m", "program"],
        env=clean_environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )


def run_in_order(
    *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "readingroom", *arguments],
        env=clean_environment(env or {}),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )

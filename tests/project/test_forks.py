"""The processes that tests start: each is the one that was asked for, and heeds an interrupt."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from tests.support.forks import ForkedProcess, start_fork
from tests.support.kit import clean_environment
from tests.support.processes import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]


def test_threads_that_ask_at_once_get_a_process_each_of_its_own(tmp_path: Path) -> None:
    env = clean_environment()
    barrier = Barrier(8)

    def start(number: int) -> ForkedProcess:
        barrier.wait()
        arguments = ("serve", "text", "--port", "0", "--data", str(tmp_path / f"{number}"))
        return start_fork(arguments, env, subprocess.PIPE, log.fileno())

    with (tmp_path / "log").open("w") as log, ThreadPoolExecutor(8) as threads:
        processes = list(threads.map(start, range(8)))
    # By its output: what one prints is what the test reads that started it.
    asked = {process.pid: _identify_output(process) for process in processes}
    try:
        wait_until(lambda: all(_find_output(pid) in asked.values() for pid in asked))
        assert {pid: _find_output(pid) for pid in asked} == asked
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            assert process.wait(HANG_SECONDS) != 0
            assert process.stdout is not None
            process.stdout.close()


def test_what_a_run_in_the_background_starts_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "test_inside.py").write_text(INSIDE, "utf-8")
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest")
    inside = [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)]
    # As a shell without job control starts what it does not wait for.
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    done = subprocess.run(
        [*ignoring, *inside], cwd=ROOT, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


INSIDE = """
import signal, subprocess, sys
below = "import signal, sys; sys.exit(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
assert subprocess.run([sys.executable, "-c", below]).returncode == 0
def test_nothing(): ...
"""
"""A module of tests whose import fails where SIGINT is ignored."""


def _identify_output(process: ForkedProcess) -> int:
    assert process.stdout is not None
    return os.fstat(process.stdout.fileno()).st_ino


def _find_output(pid: int) -> int:
    return Path(f"/proc/{pid}/fd/1").stat().st_ino

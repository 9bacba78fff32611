"""The newcomer's path: from `git clone` to a cited answer, step by step, with nothing prepared."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.table import Table

ROOT = Path(__file__).parents[2]
_PORT = 8799
_QUESTION = "when may development be refused on highway grounds"
_NOTE = (
    "One run, wall time, the commands of the README: `git clone`, `make serve`, and in another "
    "terminal the question, asked again and again until it is answered with a citation. Packages "
    "come from the machine's package index, so the second row is mostly the network's."
)


def measure(quick: bool) -> Table:
    """Every step once; `quick` leaves out the clone and the packages."""
    steps: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="newcomer-") as home:
        tree = ROOT
        if not quick:
            tree = Path(home, "reading-room")
            clone = ["git", "clone", "-q", str(ROOT), str(tree)]
            steps.append(("`git clone`", _measure_seconds(lambda: _run_command(clone))))
            install = ["make", "-s", "-C", str(tree), ".venv/project.stamp"]
            steps.append(
                ("`make serve`: packages", _measure_seconds(lambda: _run_command(install)))
            )
        started = time.perf_counter()
        with _serve(tree, home) as output:
            _wait_for_line(output, "is answering on")
            steps.append(("`make serve`: it answers", time.perf_counter() - started))
            answered = _measure_seconds(lambda: _ask_until_answered(tree, home))
            steps.append(("the question is answered, with its citation", answered))
            _wait_for_line(output, "sample: everything is loaded")
            steps.append(("the whole sample is loaded", time.perf_counter() - started))
    total_seconds = sum(seconds for _, seconds in steps[:-1])
    rows = [(name, f"{seconds:.1f}") for name, seconds in steps]
    rows.insert(-1, ("**from clone to a cited answer**", f"**{total_seconds:.1f}**"))
    return Table("From `git clone` to a cited answer", ("step", "seconds"), tuple(rows), _NOTE)


def _measure_seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _run_command(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_make_environment())


@contextmanager
def _serve(tree: Path, home: str) -> Iterator[Iterator[str]]:
    """What `make serve` says, line by line; the sample lies in the newcomer's own home."""
    command = ["make", "-s", "-C", str(tree), "serve", f"ARGS=--port {_PORT}"]
    process = subprocess.Popen(
        command,
        env=_make_environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield iter(process.stdout.readline, "")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()


def _wait_for_line(output: Iterator[str], words: str) -> None:
    if not any(words in line for line in output):
        raise RuntimeError(f"`make serve` ended before it said {words!r}")


def _ask_until_answered(tree: Path, home: str) -> None:
    command_line = [str(tree / ".venv/bin/readingroom"), "policy", "search", _QUESTION]
    command_line += ["--on", "2024-03-15", "--source", "NPPF", "-n", "1", "--demo"]
    while True:
        answer = subprocess.run(
            command_line, env=_make_environment(home), capture_output=True, text=True
        )
        if "[sample] NPPF (September 2023)" in answer.stdout:
            return


def _make_environment(home: str | None = None) -> dict[str, str]:
    other_variables = {
        name: value for name, value in os.environ.items() if not name.startswith("XDG_")
    }
    # Unbuffered, so that each line is told when it is said.
    added_variables = {"PYTHONUNBUFFERED": "1"}
    return other_variables | added_variables | ({"XDG_DATA_HOME": home} if home else {})

"""From `git clone` to a cited answer, step by step, as the README tells it."""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from benchmarks.table import Table
from tests.kit import clean_environment

_ROOT = Path(__file__).parents[1]
_QUESTION = "when may development be refused on highway grounds"
_NOTE = (
    "An empty folder, the commands of the README and nothing else; packages come from the registry "
    "or pip's cache. Seconds since the step before. The answer: {answer}"
)


def measure() -> Table:
    """Clone, serve, ask."""
    rows: list[tuple[str, str, str]] = []
    began = last = time.perf_counter()

    def step(title: str) -> None:
        nonlocal last
        now = time.perf_counter()
        rows.append((title, f"{now - last:.1f}", f"{now - began:.1f}"))
        last = now

    with tempfile.TemporaryDirectory() as folder:
        clone, data = Path(folder) / "reading-room", Path(folder) / "data"
        subprocess.run(["git", "clone", "-q", str(_ROOT), str(clone)], check=True)
        step("`git clone`")
        serve = subprocess.Popen(
            ["make", "serve", f"ARGS=--port 0 --data {data}"],
            cwd=clone,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert serve.stdout is not None
            _wait_for(serve.stdout, "is answering")
            step("`make serve` answers")
            answer = _first_answer(clone, data)
            step("a cited answer")
            _wait_for(serve.stdout, "everything is loaded")
            step("the whole sample is loaded")
        finally:
            os.killpg(serve.pid, signal.SIGINT)
            serve.wait(timeout=30)
    return Table(
        "From clone to a cited answer",
        ("step", "median seconds", "since the clone"),
        tuple(rows),
        _NOTE.format(answer=answer),
    )


def _wait_for(lines: IO[str], words: str) -> None:
    for line in lines:
        if words in line:
            return
    raise RuntimeError(f"the server ended before it said {words!r}")


def _first_answer(clone: Path, data: Path) -> str:
    """Ask until the policy that answers has been loaded."""
    ask = [str(clone / ".venv/bin/readingroom"), "ask", _QUESTION, "--on", "2024-03-15",
           "--demo", "--data", str(data)]  # fmt: skip
    while True:
        told = subprocess.run(ask, capture_output=True, text=True, env=clean_environment())
        found = re.search(r"\[sample\] NPPF \(September 2023\), Para \d+, p\. \d+", told.stdout)
        if found:
            return found[0]
        time.sleep(0.5)

"""What it costs to read a document in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import anyio

from benchmarks.table import Table
from readingroom.ingest import reading
from readingroom.ingest.document import Options
from readingroom.ingest.intake import take
from readingroom.ingest.sandbox import Sandbox
from tests.papers import paper

TARGET_MS = 200

_PAPER = paper("One page, and a sentence on it that is long enough to count as text.")
_NOTE = (
    "Wall time for a PDF of one page, median of {rounds} rounds in which all take turns, after one "
    "that is not counted. The isolation is what the sandbox takes beyond reading in this process, "
    "round by round."
)


def measure(rounds: int) -> Table:
    """Read the page in this process and in one of its own, in turns."""
    ways: dict[str, Callable[[], None]] = {
        "`python -c pass` (the floor)": lambda: _start("pass"),
        "`import pypdfium2` in a new process": lambda: _start("import pypdfium2"),
        "read in this process": _here,
        "read in the sandbox": _apart,
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if number:
                took[name].append((time.perf_counter() - began) * 1000)
    *_, here, apart = took.values()
    isolation = [more - less for more, less in zip(apart, here, strict=True)]
    verdict = "met" if median(isolation) <= TARGET_MS else "**missed**"
    rows = [*((name, times, "") for name, times in took.items())]
    rows.append(("isolation", isolation, f"{verdict} (at most {TARGET_MS} ms)"))
    return Table(
        "Isolation of one document",
        ("way", "median ms", "lowest to highest", "target"),
        tuple(_row(*row) for row in rows),
        _NOTE.format(rounds=rounds),
    )


def _start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _here() -> None:
    reading.read(_PAPER, "paper.pdf", Options(), lambda *_: None)


def _apart() -> None:
    anyio.run(_read_apart)


async def _read_apart() -> None:
    with take(_PAPER, "paper.pdf", len(_PAPER)) as intake:
        await Sandbox().read(intake.file, intake.name, Options(), _quiet)


async def _quiet(done: float, total: float | None, message: str | None) -> None:
    """Progress that nobody follows."""


def _row(name: str, times: list[float], verdict: str) -> tuple[str, ...]:
    return (name, f"{median(times):.0f}", f"{min(times):.0f} to {max(times):.0f}", verdict)

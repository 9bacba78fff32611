"""What it costs to read a document in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import anyio

from benchmarks.table import Table
from readingroom.core.progress import no_progress
from readingroom.ingest.document import ReadOptions
from readingroom.ingest.read import reader
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.support.papers import make_paper, open_private_copy

TARGET_MS = 200

_PDF = make_paper("One page, and a sentence on it that is long enough to count as text.")
_NOTE = (
    "For a PDF of one page, median of {rounds} rounds in which all take turns, after one that is "
    "not counted. Processor time is that of this process and of those it started. The isolation is "
    "what the sandbox takes beyond reading in this process, round by round; its target is held "
    "against processor time, for wall time grows with whatever else the machine does."
)


@dataclass(frozen=True)
class Cost:
    """What one round of something took, in milliseconds."""

    wall: float
    processor: float

    def minus(self, other: "Cost") -> "Cost":
        return Cost(self.wall - other.wall, self.processor - other.processor)


def measure(rounds: int) -> Table:
    """Read the page in this process and in one of its own, in turns."""
    ways_of_reading: dict[str, Callable[[], None]] = {
        "`python -c pass` (the floor)": lambda: _run_python("pass"),
        "`import pypdfium2` in a new process": lambda: _run_python("import pypdfium2"),
        "read in this process": _read_here,
        "read in the sandbox": _read_in_sandbox,
    }
    costs_by_way: dict[str, list[Cost]] = {name: [] for name in ways_of_reading}
    for number in range(rounds + 1):
        for name, work in ways_of_reading.items():
            cost = _measure_cost(work)
            if number:  # the first round fills the file cache
                costs_by_way[name].append(cost)
    *_, here_costs, sandbox_costs = costs_by_way.values()
    isolation = [
        sandbox_cost.minus(here_cost)
        for sandbox_cost, here_cost in zip(sandbox_costs, here_costs, strict=True)
    ]
    is_met = median(cost.processor for cost in isolation) <= TARGET_MS
    verdict = f"{'met' if is_met else '**missed**'} (at most {TARGET_MS} ms)"
    rows = [_render_row(name, costs) for name, costs in costs_by_way.items()]
    return Table(
        "Isolation of one document",
        ("way", "processor ms", "wall ms", "target"),
        (*rows, _render_row("isolation", isolation, verdict)),
        _NOTE.format(rounds=rounds),
    )


def _measure_cost(work: Callable[[], None]) -> Cost:
    before, began = sum(os.times()[:4]), time.perf_counter()
    work()
    wall = time.perf_counter() - began
    return Cost(wall * 1000, (sum(os.times()[:4]) - before) * 1000)


def _run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _read_here() -> None:
    reader.read_file(_PDF, "paper.pdf", ReadOptions(), lambda *_: None)


def _read_in_sandbox() -> None:
    anyio.run(_read_in_sandbox_async)


async def _read_in_sandbox_async() -> None:
    with open_private_copy(_PDF, "paper.pdf", len(_PDF)) as private_copy:
        await ConfinedReader().read_document(
            private_copy.file, private_copy.file_name, ReadOptions(), no_progress
        )


def _render_row(name: str, costs: list[Cost], verdict: str = "") -> tuple[str, ...]:
    return (
        name,
        _render_times([cost.processor for cost in costs]),
        _render_times([cost.wall for cost in costs]),
        verdict,
    )


def _render_times(times: list[float]) -> str:
    return f"{median(times):.0f} ({min(times):.0f} to {max(times):.0f})"

"""The same work done by 0.1.0 and by the present tree in turn, and the table that compares them."""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.redesign.tables import ROOT, Version, find_baseline
from benchmarks.table import Ratio, Table
from tests.support.model import EMBEDDER

KEPT = ROOT / "build" / "beside"
ROUNDS = 9
_WORKLOADS = Path(__file__).with_name("workloads.py")

Costs = dict[str, float]
"""What one process spent, by row: seconds, or what the row's name says."""
Measurement = Callable[[Version], Costs]

_HEADER = ("what", "median of 0.1.0", "median now", "ratio", "inside")
_NOTE = (
    "Processor time in milliseconds (user and system, of all threads and of children that ended) "
    "where the row names no other unit: median (lowest to highest) of {rounds} rounds after one "
    "that is not counted. In each round every row is measured in a new process of either version, "
    "first 0.1.0 and then this tree, in the next round the other way round. Both have the same "
    "interpreter, packages and data. Ratio: now to 0.1.0 in the same round, median (lowest to "
    "highest). Inside: each median lies within the range of the other version. `better`: it does "
    "not, and this tree needs less. {inside} of {rows} rows are inside, {better} better, {worse} "
    "worse. Load average of the machine: {load}; measured with `python -m benchmarks --part {part} "
    "--baseline` and a worktree of 0.1.0."
)


def open_versions(folder: Path) -> list[Version]:
    """Return 0.1.0 and the present tree, each with a folder of its own for its data.

    The graph of the embedding model is built before, once for both.
    """
    EMBEDDER.embed("builds the graph")
    return [
        Version("0.1.0", find_baseline() / "src", folder / "old"),
        Version("now", ROOT / "src", folder / "new"),
    ]


def compare(
    title: str, part: str, versions: list[Version], measurements: list[Measurement], rounds: int
) -> Table:
    """Measure both versions in turn, and tell for each row whether the medians are alike."""
    load = [os.getloadavg()[0]]
    costs: dict[str, dict[str, list[float]]] = {
        version.name: defaultdict(list) for version in versions
    }
    for number in range(rounds + 1):
        for measure in measurements:
            for version in versions if number % 2 else reversed(versions):
                for row, cost in measure(version).items():
                    if number:
                        costs[version.name][row].append(cost)
            load.append(os.getloadavg()[0])
        print(f"  {part}: round {number} of {rounds}", file=sys.stderr, flush=True)
    old, new = (costs[version.name] for version in versions)
    verdicts = {row: judge(old[row], new[row]) for row in old}
    count = list(verdicts.values()).count
    return Table(
        title,
        _HEADER,
        tuple(_render_row(row, old[row], new[row], verdict) for row, verdict in verdicts.items()),
        _NOTE.format(
            rounds=rounds,
            inside=count("yes"),
            rows=len(verdicts),
            better=count("better"),
            worse=count("**no**"),
            load=f"{min(load):.1f} to {max(load):.1f}",
            part=part,
        ),
    )


def judge(old: list[float], new: list[float]) -> str:
    """Return `yes` where each median lies in the other's range, else whether new is less."""
    is_inside = min(new) <= median(old) <= max(new) and min(old) <= median(new) <= max(old)
    if is_inside:
        return "yes"
    return "better" if median(new) < median(old) else "**no**"


def run_workload(name: str, version: Version, *arguments: str) -> Any:
    """Run a workload of `workloads.py` on a version's code, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", str(_WORKLOADS), name, *arguments],
        env=version.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


class ProcessorClock:
    """The processor time of a running process: of all its threads, and of ended children."""

    def __init__(self, process: int) -> None:
        self._process = process
        # As clock_getcpuclockid(3) makes it; the stat file has hundredths of seconds only.
        self._clock = (~process << 3) | 2

    def read_seconds(self) -> float:
        return time.clock_gettime(self._clock) + self._read_children_seconds()

    def _read_children_seconds(self) -> float:
        fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def add_cost(costs: Costs, row: str, clock: ProcessorClock, calls: int = 1) -> Iterator[None]:
    """Add to `costs` what a process spends in the block, for each of so many calls."""
    before = clock.read_seconds()
    yield
    costs[row] = (clock.read_seconds() - before) / calls


def _render_row(row: str, old: list[float], new: list[float], verdict: str) -> tuple[str, ...]:
    scale = 1.0 if row.endswith("MB") else 1000.0
    cells = (_render_spread(series, scale) for series in (old, new))
    return (row, *cells, str(Ratio(new, old)), verdict)


def _render_spread(series: list[float], scale: float) -> str:
    low, middle, high = (value * scale for value in (min(series), median(series), max(series)))
    digits = 3 if middle < 10 else 1
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"

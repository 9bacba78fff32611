"""Both versions' searches by the clock: over all bases, and over 50,000 chunks of one base."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.beside.engine import MODELS_FOLDER, write_texts
from benchmarks.beside.rounds import KEPT, open_versions, run_workload
from benchmarks.engine.corpus import SHARED, make_questions
from benchmarks.engine.desk_latency import AskedServer, find_percentile
from benchmarks.redesign.tables import Version, load_sample, serve
from benchmarks.table import Ratio, Table

_QUESTIONS = 100
_WARM_UP = 5  # questions before those that count
_CHUNKS = 50_000
_SEARCH_ROUNDS = 3
_HEADER = ("what", "0.1.0, ms", "now, ms", "ratio", "target")


def tables(quick: bool) -> Iterator[Table]:
    if not SHARED.is_dir():
        print(f"Searches are not measured: there is no {SHARED}", flush=True)
        return
    yield measure_all_bases(10 if quick else _QUESTIONS)
    yield measure_large_base(2_000 if quick else _CHUNKS, 1 if quick else _SEARCH_ROUNDS)


def measure_all_bases(question_count: int) -> Table:
    """Ask two servers of their samples the same new questions in turn."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        versions = open_versions(Path(folder))
        for version in versions:
            load_sample(version)
        old_version, new_version = versions
        with (
            serve(old_version, old_version.sample, "--demo") as (old_process, old_address),
            serve(new_version, new_version.sample, "--demo") as (new_process, new_address),
        ):
            old = AskedServer(old_address, old_process.pid)
            new = AskedServer(new_address, new_process.pid)
            for question in make_questions(question_count + _WARM_UP):
                old.ask(question)
                new.ask(question)
    series = {
        "wall time": (old.wall_seconds[_WARM_UP:], new.wall_seconds[_WARM_UP:]),
        "processor time": (old.cpu_seconds[_WARM_UP:], new.cpu_seconds[_WARM_UP:]),
    }
    return Table(
        "Beside 0.1.0: a search over all bases",
        _HEADER,
        tuple(
            _render_percentile(f"`search`, p{percent} of the {name}", *both, percent)
            for name, both in series.items()
            for percent in (50, 95)
        ),
        f"{question_count} new questions, each to both servers of their own samples, which were "
        f"loaded anew; load average {load:.1f} before. Ours is the larger sample. "
        "`python -m benchmarks --part beside-desk --baseline` and a worktree of 0.1.0.",
    )


def _render_percentile(
    row: str, old: Sequence[float], new: Sequence[float], percent: int
) -> tuple[str, ...]:
    old_ms, new_ms = find_percentile(old, percent), find_percentile(new, percent)
    ratio = Ratio([new_ms], [max(old_ms, 1e-9)])
    is_target = percent == 95 and "wall" in row
    verdict = ratio.against(0.5) if is_target else ""
    return row, f"{old_ms:,.0f}", f"{new_ms:,.0f}", f"{ratio.middle:.2f}", verdict


def measure_large_base(chunk_count: int, rounds: int) -> Table:
    """Search one base of many chunks, by meaning and by both, a new process in each round."""
    write_texts()
    old_version, new_version = open_versions(KEPT)
    costs: dict[str, list[dict[str, float]]] = {old_version.name: [], new_version.name: []}
    for number in range(rounds):
        in_turn = (old_version, new_version) if number % 2 else (new_version, old_version)
        for version in in_turn:
            costs[version.name].append(_measure_searches(version, chunk_count))
    old, new = costs[old_version.name], costs[new_version.name]
    rows = []
    for row in old[0]:
        old_seconds, new_seconds = ([cost[row] for cost in both] for both in (old, new))
        ratio = Ratio(new_seconds, old_seconds)
        cells = (f"{1000 * sorted(both)[rounds // 2]:,.1f}" for both in (old_seconds, new_seconds))
        rows.append((row, *cells, str(ratio), ratio.against(1.2)))
    return Table(
        f"Beside 0.1.0: a search over {chunk_count:,} chunks",
        _HEADER,
        tuple(rows),
        f"Time of a search, median of 60 questions; {rounds} rounds in turn. Real texts, "
        "repeated with numbers, and random vectors. `python -m benchmarks --part beside-desk "
        "--baseline` and a worktree of 0.1.0.",
    )


def _measure_searches(version: Version, chunk_count: int) -> dict[str, float]:
    costs: dict[str, float] = run_workload(
        "searches", version, str(write_texts()), str(MODELS_FOLDER), str(chunk_count)
    )
    return costs

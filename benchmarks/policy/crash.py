"""`kill -9` at every named step of every change of the policy base, and what a restart finds."""

import tempfile
from pathlib import Path

import anyio

from benchmarks.table import Table
from tests.support.policy.victim import (
    CHANGES,
    STEPS,
    Aftermath,
    examine_aftermath,
    kill_at,
    must_last,
)

_NOTE = (
    "A process makes the change on a base with one or two revisions and kills itself at the step; "
    "then the base is started again and counted. Answers: searches for a day in 2025 that found "
    "no revision of the policy, or more than one. Lost: changes of which the caller could have "
    "been told that they are made, and that were not there. {kills} kills; "
    "`tests/bases/policy/test_crash.py` makes them at every test run."
)


def measure(quick: bool) -> Table:
    """Kill at each step; a smoke run at one of each change."""
    rows = [
        _measure_change(change, steps[:1] if quick else steps) for change, steps in STEPS.items()
    ]
    kills = sum(int(row[1]) for row in rows)
    return Table(
        "Killed in the middle of a change of the policy base",
        (
            *("change", "named steps", "orphan chunks", "wrong counts"),
            *("complaints of `doctor`", "files left over", "wrong answers", "lost"),
        ),
        tuple(rows),
        _NOTE.format(kills=kills),
    )


def _measure_change(change: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    observations = {step: _kill_and_restart(change, step) for step in steps}
    aftermaths = observations.values()
    return (
        CHANGES[change].says,
        str(len(steps)),
        str(sum(observation.orphans for observation in aftermaths)),
        str(sum(observation.wrong_counts for observation in aftermaths)),
        str(sum(len(observation.complaints) for observation in aftermaths)),
        str(sum(len(observation.leftovers) for observation in aftermaths)),
        str(
            sum(observation.in_force not in CHANGES[change].outcomes for observation in aftermaths)
        ),
        str(
            sum(
                must_last(change, step) and not observation.is_kept
                for step, observation in observations.items()
            )
        ),
    )


def _kill_and_restart(change: str, step: str) -> Aftermath:
    with tempfile.TemporaryDirectory() as folder:
        kill_at(Path(folder) / "policy", change, step)
        return anyio.run(examine_aftermath, Path(folder) / "policy", change)

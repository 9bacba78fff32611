"""Killed at any step of any change, the base comes back whole."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from readingroom.bases.policy.checkup import Checkup
from readingroom.bases.policy.models import SearchPolicy
from tests.policies import Shelf, shelf
from tests.policy_victim import CHANGES, STEPS
from tests.requirements import requirement

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CASES = [(change, step) for change, steps in STEPS.items() for step in steps]


def kill_at(folder: Path, change: str, step: str) -> None:
    """Prepare the base and make the change in a process that kills itself at the step."""
    victim = subprocess.run(
        [sys.executable, "-m", "tests.policy_victim", str(folder), change, step],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert victim.returncode == -signal.SIGKILL, victim.stderr[-2000:]


@requirement("policy:NFR-003", "policy:NFR-001", "policy:doctor")
@pytest.mark.parametrize(("change", "step"), CASES)
async def test_a_kill_at_any_step_leaves_nothing_to_repair(
    tmp_path: Path, change: str, step: str
) -> None:
    kill_at(tmp_path / "policy", change, step)
    async with shelf(tmp_path / "policy") as library:
        await library.service.jobs.idle()
        diagnosis = await Checkup(library.service, repair=False).diagnose()
        found = await in_force(library)
    assert diagnosis.complaints == []
    # One policy, one answer: never both revisions, and never none.
    assert found in CHANGES[change].outcomes, (step, found)
    leftovers = [path.name for path in (tmp_path / "policy" / "uploads").glob("*")]
    assert leftovers == []


async def in_force(library: Shelf) -> tuple[str, ...]:
    hits = await library.service.search(
        SearchPolicy(query="cycle parking", effective_date="2025-01-01", n_results=50)
    )
    return tuple(sorted({f"{hit.version_label}" for hit in hits.results}))

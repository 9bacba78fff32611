"""Killed at any step of any change, the base comes back whole."""

import multiprocessing
import signal
from pathlib import Path

import pytest

from readingroom.bases.policy.checkup import Checkup
from readingroom.bases.policy.models import SearchPolicy
from tests.policies import PLAIN, Shelf, shelf
from tests.policy_victim import CHANGES, STEPS, main
from tests.requirements import requirement

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CASES = [(change, step) for change, steps in STEPS.items() for step in steps]


# Processes are forked from one that has imported everything and started nothing.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.policy_victim", "chromadb"])


def kill_at(folder: Path, change: str, step: str) -> None:
    """Prepare the base and make the change in a process that kills itself at the step."""
    victim = FORKS.Process(target=main, args=(folder, change, step))
    victim.start()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL, f"{change} never came to {step}"


@requirement("policy:NFR-003", "policy:NFR-001", "policy:doctor")
@pytest.mark.parametrize(("change", "step"), CASES)
async def test_a_kill_at_any_step_leaves_nothing_to_repair(
    tmp_path: Path, change: str, step: str
) -> None:
    kill_at(tmp_path / "policy", change, step)
    async with shelf(tmp_path / "policy", **PLAIN) as library:
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

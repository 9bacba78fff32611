"""Killed at any step of any change, the base comes back whole."""

from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.policy.victim import (
    CHANGES,
    STEPS,
    aftermath,
    kill_at,
    kill_recovery_at,
    must_last,
    steps_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CASES = [(change, step) for change, steps in STEPS.items() for step in steps]


@requirement("policy:NFR-003", "policy:NFR-001", "policy:doctor", "room:crash")
@pytest.mark.parametrize(("change", "step"), CASES)
async def test_a_kill_at_any_step_leaves_nothing_to_repair(
    tmp_path: Path, change: str, step: str
) -> None:
    kill_at(tmp_path / "policy", change, step)
    found = await aftermath(tmp_path / "policy", change)
    assert found.is_whole, found
    # One policy, one answer: never both revisions, and never none.
    assert found.in_force in CHANGES[change].outcomes
    assert found.is_kept or not must_last(change, step)


@pytest.mark.parametrize("change", CHANGES)
async def test_the_matrix_has_every_step_that_a_change_passes(tmp_path: Path, change: str) -> None:
    assert await steps_of(tmp_path / "policy", change) == STEPS[change]


@requirement("policy:NFR-003", "room:crash")
@pytest.mark.parametrize("again", ["ingest:chunks", "ingest:registry"])
async def test_a_kill_while_an_earlier_kill_is_mended_leaves_nothing_to_repair(
    tmp_path: Path, again: str
) -> None:
    kill_at(tmp_path / "policy", "supersede", "ingest:chunks")
    kill_recovery_at(tmp_path / "policy", again)
    found = await aftermath(tmp_path / "policy", "supersede")
    assert found.is_whole, found
    assert found.is_kept
    assert found.in_force == ("December 2024",)

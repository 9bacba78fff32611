"""Killed at any step of any change, the base comes back whole."""

from pathlib import Path

import anyio
import pytest

from readingroom.bases.policy.doctor import PolicyDoctor
from tests.requirements import requirement
from tests.support.policy.base import PLAIN, open_library
from tests.support.policy.victim import (
    CHANGES,
    STEPS,
    examine_aftermath,
    kill_at,
    kill_recovery_at,
    list_steps,
    must_last,
)
from tests.support.processes import HANG_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.both_engines("full")]

CASES = [(change, step) for change, steps in STEPS.items() for step in steps]


@requirement("policy:NFR-003", "policy:NFR-001", "policy:doctor", "room:crash")
@pytest.mark.parametrize(("change", "step"), CASES)
async def test_a_kill_at_any_step_leaves_nothing_to_repair(
    tmp_path: Path, change: str, step: str
) -> None:
    kill_at(tmp_path / "policy", change, step)
    found = await examine_aftermath(tmp_path / "policy", change)
    assert found.is_whole, found
    # One policy, one answer: never both revisions, and never none.
    assert found.in_force in CHANGES[change].outcomes
    assert found.is_kept or not must_last(change, step)


@pytest.mark.parametrize("change", CHANGES)
async def test_the_matrix_has_every_step_that_a_change_passes(tmp_path: Path, change: str) -> None:
    assert await list_steps(tmp_path / "policy", change) == STEPS[change]


@requirement("policy:NFR-003", "room:crash")
@pytest.mark.parametrize("again", ["ingest:chunks", "ingest:registry"])
async def test_a_kill_while_an_earlier_kill_is_mended_leaves_nothing_to_repair(
    tmp_path: Path, again: str
) -> None:
    kill_at(tmp_path / "policy", "supersede", "ingest:chunks")
    kill_recovery_at(tmp_path / "policy", again)
    found = await examine_aftermath(tmp_path / "policy", "supersede")
    assert found.is_whole, found
    assert found.is_kept
    assert found.in_force == ("December 2024",)


@requirement("room:doctor")
async def test_a_change_that_is_being_made_is_not_reported_as_interrupted(tmp_path: Path) -> None:
    async with open_library(tmp_path / "policy", **PLAIN) as library:
        await library.add("NPPF")
        changes = library.service.ingestion._change_coordinator
        begun, may_end = anyio.Event(), anyio.Event()

        async def change() -> None:
            async with changes.begin_change("NPPF"), changes.record_intent("amend", source="NPPF"):
                begun.set()
                await may_end.wait()

        async def let_it_end_when_the_doctor_waits() -> None:
            with anyio.fail_after(HANG_SECONDS):
                while not changes._pause_lock._entry_lock.locked():  # noqa: ASYNC110 - no event
                    await anyio.sleep(0.01)
            may_end.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            await begun.wait()
            tasks.start_soon(let_it_end_when_the_doctor_waits)
            diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()
    assert diagnosis.complaints == []

"""Callers take turns, so that nobody waits for all that another has put in."""

import anyio
import pytest

from readingroom.core.work_slots import TurnQueue
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


@requirement("room:limits")
async def test_callers_of_a_queue_take_turns() -> None:
    queue: TurnQueue[str] = TurnQueue()
    for item in ("a1", "a2", "a3", "b1", "c1"):
        queue.put_item(item[0], item)
    assert [await queue.take_item() for _ in range(2)] == ["a1", "b1"]
    queue.put_item("d", "d1")
    queue.put_item("b", "b2")
    assert [await queue.take_item() for _ in range(5)] == ["c1", "a2", "d1", "b2", "a3"]


async def test_whoever_takes_waits_until_something_is_put_in() -> None:
    queue: TurnQueue[str] = TurnQueue()
    taken: list[str] = []

    async def take() -> None:
        taken.append(await queue.take_item())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert taken == []
        queue.put_item("a", "a1")
    assert taken == ["a1"]

"""Slots for costly work, of which one caller never takes all."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")


class WorkSlots:
    """A number of slots for each caller, and in all one more than that."""

    def __init__(self, slots_per_caller: int) -> None:
        self._slots_per_caller = slots_per_caller
        self._all_slots = anyio.CapacityLimiter(slots_per_caller + 1)
        self._slots_by_caller: dict[str, anyio.CapacityLimiter] = {}

    @property
    def has_waiting_callers(self) -> bool:
        """Whether somebody waits for a slot that others have, not for one of its own."""
        return self._all_slots.statistics().tasks_waiting > 0

    @asynccontextmanager
    async def hold_slot(self, caller_id: str) -> AsyncIterator[None]:
        """Wait for a slot, and give it back at the end."""
        caller_slot_limiter = self._slots_by_caller.setdefault(
            caller_id, anyio.CapacityLimiter(self._slots_per_caller)
        )
        try:
            # The own ones first: who waits for one of those keeps nobody else waiting.
            async with caller_slot_limiter, self._all_slots:
                yield
        finally:
            slot_statistics = caller_slot_limiter.statistics()
            if not slot_statistics.borrowed_tokens and not slot_statistics.tasks_waiting:
                self._slots_by_caller.pop(caller_id, None)


class TurnQueue(Generic[Item]):
    """A queue whose callers take turns: one that puts in a hundred items waits as long for the
    second as others do for their first.
    """

    def __init__(self) -> None:
        self._items_by_caller: dict[str, deque[Item]] = {}
        """In the order of their turns."""
        self._has_items = anyio.Event()

    def put_item(self, caller_id: str, queued_item: Item) -> None:
        """Add an item of a caller."""
        self._items_by_caller.setdefault(caller_id, deque()).append(queued_item)
        self._has_items.set()

    async def take_item(self) -> Item:
        """Wait for an item, and take the oldest of the caller whose turn it is."""
        while not self._items_by_caller:
            self._has_items = anyio.Event()
            await self._has_items.wait()
        caller_id = next(iter(self._items_by_caller))
        items_of_caller = self._items_by_caller.pop(caller_id)
        queued_item = items_of_caller.popleft()
        if items_of_caller:
            self._items_by_caller[caller_id] = items_of_caller
        return queued_item

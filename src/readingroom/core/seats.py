"""Seats for costly work, of which one caller never takes all."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")


class Seats:
    """A number of seats for each caller, and in all one more than that."""

    def __init__(self, seats_per_caller: int) -> None:
        self._seats_per_caller = seats_per_caller
        self._all_seats = anyio.CapacityLimiter(seats_per_caller + 1)
        self._seats_of_caller: dict[str, anyio.CapacityLimiter] = {}

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a seat that others have, not for one of its own."""
        return self._all_seats.statistics().tasks_waiting > 0

    @asynccontextmanager
    async def take(self, caller: str) -> AsyncIterator[None]:
        """Wait for a seat, and give it back at the end."""
        own_seats = self._seats_of_caller.setdefault(
            caller, anyio.CapacityLimiter(self._seats_per_caller)
        )
        try:
            # The own ones first: who waits for one of those keeps nobody else waiting.
            async with own_seats, self._all_seats:
                yield
        finally:
            seat_statistics = own_seats.statistics()
            if not seat_statistics.borrowed_tokens and not seat_statistics.tasks_waiting:
                self._seats_of_caller.pop(caller, None)


class TurnQueue(Generic[Item]):
    """A queue whose callers take turns: one that puts in a hundred items waits as long for the
    second as others do for their first.
    """

    def __init__(self) -> None:
        self._items_by_caller: dict[str, deque[Item]] = {}
        """In the order of their turns."""
        self._has_items = anyio.Event()

    def put(self, caller: str, item: Item) -> None:
        """Add an item of a caller."""
        self._items_by_caller.setdefault(caller, deque()).append(item)
        self._has_items.set()

    async def get(self) -> Item:
        """Wait for an item, and take the oldest of the caller whose turn it is."""
        while not self._items_by_caller:
            self._has_items = anyio.Event()
            await self._has_items.wait()
        caller = next(iter(self._items_by_caller))
        items_of_caller = self._items_by_caller.pop(caller)
        item = items_of_caller.popleft()
        if items_of_caller:
            self._items_by_caller[caller] = items_of_caller
        return item

"""Lets changes through side by side, and makes them wait for whoever copies everything."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Gate:
    """Any number of changes pass at once; while it is closed none is under way or begins."""

    def __init__(self) -> None:
        self._door = anyio.Lock()
        self._inside = 0
        self._empty = anyio.Event()

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """One change; it waits while the gate is closed."""
        async with self._door:
            if not self._inside:
                self._empty = anyio.Event()
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Nothing changes in here: what had begun has ended, and the rest waits outside."""
        async with self._door:
            if self._inside:
                await self._empty.wait()
            yield

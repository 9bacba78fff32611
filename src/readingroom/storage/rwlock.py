"""A read-write lock for coroutines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class ReadWriteLock:
    """Held by any number of shared holders at once, or by one exclusive holder alone.

    Changes to a base share it; a backup, which copies all the stores of the base, excludes them.
    """

    def __init__(self) -> None:
        self._entry_lock = anyio.Lock()
        self._shared_count = 0
        self._all_released = anyio.Event()

    @asynccontextmanager
    async def acquire_shared(self) -> AsyncIterator[None]:
        """Hold the lock together with others; wait while somebody holds or awaits it alone."""
        async with self._entry_lock:
            if not self._shared_count:
                # An event cannot be cleared, so those who share the lock next get a new one.
                self._all_released = anyio.Event()
            self._shared_count += 1
        try:
            yield
        finally:
            self._shared_count -= 1
            if not self._shared_count:
                self._all_released.set()

    @asynccontextmanager
    async def acquire_exclusive(self) -> AsyncIterator[None]:
        """Hold the lock alone: wait for those who hold it now, and keep later ones waiting."""
        async with self._entry_lock:
            # The entry stays locked while waiting, so that new holders cannot starve this one.
            if self._shared_count:
                await self._all_released.wait()
            yield

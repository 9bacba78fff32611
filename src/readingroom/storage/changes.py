"""Changes that touch several stores: serialized, and recorded as an intent until complete."""

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from readingroom.core.errors import KnowledgeError
from readingroom.storage.intents import Intent, IntentLog

logger = logging.getLogger(__name__)

StepHook = Callable[[str], None]
"""Called with the name of each step of a change once the step is done."""


def ignore_step(step_name: str) -> None:
    """Do nothing at a step. Tests pass a hook that kills the process there instead."""


class StoreChangeCoordinator:
    """The changes of one base; `on_step` is called after every step of each."""

    def __init__(self, intents_path: Path, on_step: StepHook = ignore_step) -> None:
        self.on_step = on_step
        self._intent_log = IntentLog(intents_path)
        self._locks_by_key: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._pause_lock = ReadWriteLock()

    @asynccontextmanager
    async def begin_change(self, lock_key: str) -> AsyncIterator[None]:
        """Enclose a change: one at a time for each key, and never cancelled once it has begun."""
        async with self._locks_by_key[lock_key], self._pause_lock.acquire_shared():
            # A client that hangs up must not leave the stores in disagreement.
            with anyio.CancelScope(shield=True):
                yield

    def pause_changes(self) -> AbstractAsyncContextManager[None]:
        """Keep changes out: inside, none is half done and none begins. For copying the stores."""
        return self._pause_lock.acquire_exclusive()

    @asynccontextmanager
    async def record_intent(self, intent_kind: str, **intent_body: Any) -> AsyncIterator[Intent]:
        """Keep an intent on disk until the change inside is complete.

        A change that is refused has changed nothing, so it counts as complete. After any other
        error the intent stays, and `recover_changes` ends the change.
        """
        change_intent = await anyio.to_thread.run_sync(
            lambda: self._intent_log.begin_intent(intent_kind, **intent_body)
        )
        self.on_step(f"{intent_kind}:begin")
        try:
            yield change_intent
        except KnowledgeError as error:
            if error.http_status < 500:  # a refusal
                await anyio.to_thread.run_sync(self._intent_log.finish_intent, change_intent)
            raise
        await anyio.to_thread.run_sync(self._intent_log.finish_intent, change_intent)
        self.on_step(f"{intent_kind}:end")

    async def list_unfinished(self) -> list[Intent]:
        """Return the changes that were begun and not completed, oldest first."""
        return await anyio.to_thread.run_sync(self._intent_log.list_unfinished)

    async def recover_changes(
        self,
        finish_intent: Callable[[Intent], Awaitable[None]],
        fatal_errors: tuple[type[KnowledgeError], ...] = (),
    ) -> int:
        """Complete every interrupted change with `finish_intent`; return how many there were.

        Errors in `fatal_errors` are raised. Any other is logged, and the change is tried again at
        the next start; until then `doctor` reports it.
        """
        unfinished_intents = await self.list_unfinished()
        for change_intent in unfinished_intents:
            logger.warning(
                "finishing an interrupted %s of %s", change_intent.kind, change_intent.body
            )
            try:
                await finish_intent(change_intent)
            except fatal_errors:
                raise
            except KnowledgeError as error:
                logger.error("the %s cannot be finished: %s", change_intent.kind, error.message)
            else:
                await anyio.to_thread.run_sync(self._intent_log.finish_intent, change_intent)
        return len(unfinished_intents)


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

"""Changes that touch several stores: one at a time, each on disk as an intent until it is whole."""

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
from readingroom.storage.rwlock import Gate

logger = logging.getLogger(__name__)

Step = Callable[[str], None]


def unnoticed(step: str) -> None:
    """Nobody wants to know of steps, except tests, which end the process at one."""


class Changes:
    """The changes of one base; `at` is told of every step that is done."""

    def __init__(self, path: Path, at: Step = unnoticed) -> None:
        self.at = at
        self._intents = IntentLog(path)
        self._locks: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._gate = Gate()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """One change of this at a time; once begun it is not cancelled."""
        async with self._locks[what], self._gate.passing():
            with anyio.CancelScope(shield=True):
                yield

    def standing_still(self) -> AbstractAsyncContextManager[None]:
        """No change is half done in here, and none begins: for whoever copies all the stores."""
        return self._gate.closed()

    @asynccontextmanager
    async def intent(self, kind: str, **body: Any) -> AsyncIterator[Intent]:
        """On disk until the change is complete; an error that undid itself completes it too."""
        intent = await anyio.to_thread.run_sync(lambda: self._intents.begin(kind, **body))
        self.at(f"{kind}:begin")
        try:
            yield intent
        except KnowledgeError as error:
            if error.http_status < 500:  # a refusal: nothing was changed
                await anyio.to_thread.run_sync(self._intents.finish, intent)
            raise
        await anyio.to_thread.run_sync(self._intents.finish, intent)
        self.at(f"{kind}:end")

    async def unfinished(self) -> list[Intent]:
        """What was begun and has not ended, oldest first."""
        return await anyio.to_thread.run_sync(self._intents.unfinished)

    async def recover(
        self,
        finish: Callable[[Intent], Awaitable[None]],
        fatal: tuple[type[KnowledgeError], ...] = (),
    ) -> int:
        """Bring every interrupted change to an end; returns how many there were."""
        unfinished = await self.unfinished()
        for intent in unfinished:
            logger.warning("finishing an interrupted %s of %s", intent.kind, intent.body)
            try:
                await finish(intent)
            except fatal:
                raise
            except KnowledgeError as error:  # tried again at the next start; doctor names it
                logger.error("it cannot be finished: %s", error.message)
            else:
                await anyio.to_thread.run_sync(self._intents.finish, intent)
        return len(unfinished)

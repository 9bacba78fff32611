"""At most so many turns in any second, for each client: exact over a sliding window."""

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

_MOST_CLIENTS = 10_000  # beyond this the client unseen for longest is forgotten


class Limiter(Protocol):
    """Who wants to go takes a turn; where turns are kept is the implementation's business."""

    async def take(self, client: str, patience: float) -> float | None:
        """Wait for a turn, at most `patience` seconds; None when it was had, else how long it
        would have taken. Nobody waits for a turn that would come too late.
        """


@dataclass(slots=True)
class _Turn:
    at: float


class SlidingWindow:
    """Turns kept in this process.

    The turn that is `limit` before mine must lie a whole window back. Who comes early is given a
    moment in the future; who wakes late moves that moment, and those after him with it.
    """

    def __init__(
        self,
        limit: int,
        window: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._limit = limit
        self._window = window
        self._clock = clock
        self._sleep = sleep
        self._turns: OrderedDict[str, deque[_Turn]] = OrderedDict()

    async def take(self, client: str, patience: float) -> float | None:
        turns = self._of(client)
        before = turns[0] if len(turns) == self._limit else None
        now = self._clock()
        mine = _Turn(max(now, before.at + self._window) if before else now)
        if mine.at - now > patience:
            return mine.at - now
        turns.append(mine)
        if before:
            while (wait := before.at + self._window - self._clock()) > 0:
                await self._sleep(wait)
        mine.at = max(mine.at, self._clock())
        return None

    def _of(self, client: str) -> deque[_Turn]:
        turns = self._turns.pop(client, None) or deque(maxlen=self._limit)
        self._turns[client] = turns
        if len(self._turns) > _MOST_CLIENTS:
            self._turns.popitem(last=False)
        return turns

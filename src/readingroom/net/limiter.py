"""Rate limiter: a maximum of turns per client in any second, exact over a sliding window."""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from readingroom.core.lru import LRUCache

_MAX_REMEMBERED_CLIENTS = 10_000  # beyond this the client unseen for longest is forgotten


class Limiter(Protocol):
    """Grants turns to clients."""

    async def acquire_turn(self, client_id: str, max_wait_seconds: float) -> float | None:
        """Wait for a turn. Return None when it was granted, else the seconds it would have taken.

        A turn that would come after more than `max_wait_seconds` seconds is refused at once.
        """


@dataclass(slots=True)
class _Turn:
    starts_at: float


class SlidingWindow:
    """A limiter whose turns are counted in this process.

    Of two turns that are `limit` apart, the later comes at least a window after the earlier. A
    client that comes early is given a time in the future; one that wakes late moves its own time,
    and with it those of the turns that depend on it.
    """

    def __init__(
        self,
        max_requests: int,
        window_seconds: float = 1.0,
        read_clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._max_requests = max_requests
        self._window_seconds = window_seconds
        self._read_clock = read_clock
        self._sleep = sleep
        self._turns_by_client: LRUCache[str, deque[_Turn]] = LRUCache(_MAX_REMEMBERED_CLIENTS)

    async def acquire_turn(self, client_id: str, max_wait_seconds: float) -> float | None:
        client_turns = self._get_turns(client_id)
        earlier_turn = client_turns[0] if len(client_turns) == self._max_requests else None
        now_seconds = self._read_clock()
        own_turn = _Turn(
            max(now_seconds, earlier_turn.starts_at + self._window_seconds)
            if earlier_turn
            else now_seconds
        )
        # Refused before it is queued: a turn that is not taken must not delay others.
        if own_turn.starts_at - now_seconds > max_wait_seconds:
            return own_turn.starts_at - now_seconds
        client_turns.append(own_turn)
        if earlier_turn:
            # Computed anew after each sleep: the earlier turn moves when its client wakes late.
            while (
                wait_seconds := earlier_turn.starts_at + self._window_seconds - self._read_clock()
            ) > 0:
                await self._sleep(wait_seconds)
        # A client that woke late used its turn now, and the next one must keep its distance from
        # now.
        own_turn.starts_at = max(own_turn.starts_at, self._read_clock())
        return None

    def _get_turns(self, client_id: str) -> deque[_Turn]:
        client_turns = self._turns_by_client.get(client_id)
        if client_turns is None:
            # As a turn is added the oldest leaves, so the first is always the one to keep a
            # distance from.
            client_turns = deque(maxlen=self._max_requests)
            self._turns_by_client.put(client_id, client_turns)
        return client_turns

"""Open sessions of a transport: whose they are, and how many one caller may have."""

from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from readingroom.server.errors import TooManySessions
from readingroom.server.http.held_bytes import MemoryCharges


@dataclass(frozen=True)
class SessionLimits:
    """How many sessions there may be, how long one may idle, and how much a caller may send."""

    max_sessions: int
    max_sessions_per_caller: int
    idle_seconds: float
    max_body_bytes: int
    memory_charges: MemoryCharges


class SessionRegistry:
    """The sessions of one transport of a face, each with its caller."""

    def __init__(self, max_sessions_per_caller: int) -> None:
        self._max_per_caller = max_sessions_per_caller
        self._callers_by_session: dict[str, str] = {}
        self._reserved_count_by_caller: Counter[str] = Counter()

    @contextmanager
    def reserve_session_place(self, caller_id: str) -> Iterator[None]:
        """Hold one of the caller's places while this is entered. Raise TooManySessions."""
        owned_session_count = sum(
            owner_caller_id == caller_id for owner_caller_id in self._callers_by_session.values()
        )
        if owned_session_count + self._reserved_count_by_caller[caller_id] >= self._max_per_caller:
            raise TooManySessions(
                f"{self._max_per_caller} sessions of this caller are open; end one, or ask the "
                "operator for more (READINGROOM_MAX_SESSIONS_PER_CALLER)",
                retry_after=30,
            )
        self._reserved_count_by_caller[caller_id] += 1
        try:
            yield
        finally:
            self._reserved_count_by_caller[caller_id] -= 1
            if not self._reserved_count_by_caller[caller_id]:
                del self._reserved_count_by_caller[caller_id]

    def count_reserved_places(self) -> int:
        """Return how many places are held, by all callers together."""
        return self._reserved_count_by_caller.total()

    def add_session(self, session_id: str, caller_id: str) -> None:
        """Note a session that was opened."""
        self._callers_by_session[session_id] = caller_id

    def keep_only_sessions(self, session_ids: Container[str]) -> None:
        """Forget the sessions that are not among these."""
        self._callers_by_session = {
            session_id: owner_caller_id
            for session_id, owner_caller_id in self._callers_by_session.items()
            if session_id in session_ids
        }

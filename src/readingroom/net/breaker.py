"""Stops asking a host that keeps failing, and tries it again with one request at a time."""

import time
from collections.abc import Callable
from enum import Enum


class State(Enum):
    CLOSED = "closed"
    """Requests pass."""
    OPEN = "open"
    """None passes until the pause is over."""
    HALF_OPEN = "half_open"
    """One is on its way, to see whether the host is back."""


class CircuitBreaker:
    """Opens after `threshold` failures in a row; a pause later one success closes it again."""

    def __init__(
        self,
        threshold: int = 5,
        pause_seconds: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._pause = pause_seconds
        self._clock = clock
        self._failures = 0
        self._opened = 0.0
        self.state = State.CLOSED

    def would_admit(self) -> bool:
        """Whether a request could go now; asking changes nothing."""
        return self.state is State.CLOSED or (self.state is State.OPEN and self.wait_seconds <= 0)

    def admits(self) -> bool:
        """Whether a request may go now. Who is admitted must report what came of it."""
        if not self.would_admit():
            return False
        if self.state is State.OPEN:
            self.state = State.HALF_OPEN
        return True

    @property
    def wait_seconds(self) -> float:
        """How long until the host is tried again."""
        if self.state is State.CLOSED:
            return 0.0
        return max(0.0, self._opened + self._pause - self._clock())

    def succeeded(self) -> None:
        self._failures = 0
        self.state = State.CLOSED

    def failed(self) -> None:
        self._failures += 1
        if self.state is State.HALF_OPEN or self._failures >= self._threshold:
            self._open()

    def abandoned(self) -> None:
        """The caller left before there was an outcome; a probe must not block those after it."""
        if self.state is State.HALF_OPEN:
            self.state = State.OPEN  # its pause is over, so the next one is the probe

    def _open(self) -> None:
        self.state = State.OPEN
        self._opened = self._clock()

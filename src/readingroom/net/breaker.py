"""Circuit breaker: no requests to a host that keeps failing, then one at a time as a probe."""

import time
from collections.abc import Callable
from enum import Enum


class BreakerState(Enum):
    CLOSED = "closed"
    """Requests pass."""
    OPEN = "open"
    """No request passes until the pause is over."""
    HALF_OPEN = "half_open"
    """One request is under way, to see whether the host is back."""


class CircuitBreaker:
    """Opens after `threshold` failures in a row; a pause later one success closes it again."""

    def __init__(
        self,
        failure_threshold: int = 5,
        pause_seconds: float = 15.0,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failure_threshold = failure_threshold
        self._pause_seconds = pause_seconds
        self._read_clock = read_clock
        self._failure_count = 0
        self._opened_at = 0.0
        self.state = BreakerState.CLOSED

    def would_allow_request(self) -> bool:
        """Whether a request could be sent now; the state does not change."""
        if self.state is BreakerState.OPEN:
            return self.wait_seconds <= 0
        # While a probe is under way nobody else is let through: one request tells enough.
        return self.state is BreakerState.CLOSED

    def allow_request(self) -> bool:
        """Whether a request may be sent now. If so, the caller must record its outcome."""
        if not self.would_allow_request():
            return False
        if self.state is BreakerState.OPEN:
            self.state = BreakerState.HALF_OPEN
        return True

    @property
    def wait_seconds(self) -> float:
        """Seconds until the host is tried again."""
        if self.state is BreakerState.CLOSED:
            return 0.0
        return max(0.0, self._opened_at + self._pause_seconds - self._read_clock())

    def record_success(self) -> None:
        self._failure_count = 0
        self.state = BreakerState.CLOSED

    def record_failure(self) -> None:
        self._failure_count += 1
        # After a failed probe there is no second try before the next pause.
        if self.state is BreakerState.HALF_OPEN or self._failure_count >= self._failure_threshold:
            self._open_circuit()

    def record_cancelled(self) -> None:
        """Record that the caller left before there was an outcome."""
        # A probe must not block those after it. Its pause is over, so the next one is the probe.
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.OPEN

    def _open_circuit(self) -> None:
        self.state = BreakerState.OPEN
        self._opened_at = self._read_clock()

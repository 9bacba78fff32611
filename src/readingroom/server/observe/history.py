"""What happened in the last hour, kept in memory: calls by minute, their times, the last errors."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from readingroom.core import clock
from readingroom.server.observe.logging import CallRecord

MINUTES = 60
_MAX_NAMES = 300
"""Tools and routes that are followed; more would be made up by callers."""
_TIMES_KEPT = 500
"""Of each tool or route, to tell how long most calls take."""
_ERRORS_KEPT = 200


@dataclass(frozen=True, slots=True)
class RecentError:
    """A call that failed."""

    at: float
    name: str
    code: str
    request_id: str


@dataclass(slots=True)
class _Calls:
    """The calls of one tool or route."""

    by_minute: dict[int, int] = field(default_factory=dict)
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=_TIMES_KEPT))
    milliseconds: deque[tuple[float, float]] = field(
        default_factory=lambda: deque(maxlen=_TIMES_KEPT)
    )


@dataclass(frozen=True, slots=True)
class CallSummary:
    """The last hour of one tool or route."""

    name: str
    by_minute: Sequence[int]
    total: int
    errors: int
    median_ms: float
    p95_ms: float


class CallHistory:
    """The last hour of a process, for whoever runs it."""

    def __init__(self, now: Callable[[], float] = clock.unix_seconds) -> None:
        self._now = now
        self.started_at = now()
        self._calls: dict[str, _Calls] = {}
        self._errors: deque[RecentError] = deque(maxlen=_ERRORS_KEPT)

    def add_call(self, call_record: CallRecord) -> None:
        """Note a tool call."""
        self.add(
            call_record.tool_name,
            call_record.duration_ms,
            call_record.error_code,
            call_record.request_id,
        )

    def add(
        self, call_name: str, duration_ms: float, error_code: str | None, request_id: str
    ) -> None:
        """Note a call of a tool or a route."""
        calls_of_name = self._calls.get(call_name)
        if calls_of_name is None:
            if len(self._calls) >= _MAX_NAMES:
                return
            calls_of_name = self._calls[call_name] = _Calls()
        now = self._now()
        minute = int(now // 60)
        calls_of_name.by_minute[minute] = calls_of_name.by_minute.get(minute, 0) + 1
        for old_minute in [
            kept_minute
            for kept_minute in calls_of_name.by_minute
            if kept_minute <= minute - MINUTES
        ]:
            del calls_of_name.by_minute[old_minute]
        calls_of_name.milliseconds.append((now, duration_ms))
        if error_code is not None:
            calls_of_name.errors.append(now)
            self._errors.append(RecentError(now, call_name, error_code, request_id))

    def summarise(self) -> list[CallSummary]:
        """Return what was called in the last hour, the busiest first."""
        now = self._now()
        minute = int(now // 60)
        summaries = []
        for call_name, calls_of_name in self._calls.items():
            by_minute = [
                calls_of_name.by_minute.get(minute - MINUTES + 1 + n, 0) for n in range(MINUTES)
            ]
            if not any(by_minute):
                continue
            call_times_ms = sorted(
                ms for at, ms in calls_of_name.milliseconds if now - at < 60 * MINUTES
            )
            error_count = sum(1 for at in calls_of_name.errors if now - at < 60 * MINUTES)
            summaries.append(
                CallSummary(
                    call_name,
                    by_minute,
                    sum(by_minute),
                    error_count,
                    _find_percentile(call_times_ms, 0.5),
                    _find_percentile(call_times_ms, 0.95),
                )
            )
        return sorted(summaries, key=lambda summary: -summary.total)

    def list_errors(self) -> list[RecentError]:
        """Return the last errors, newest first."""
        return list(reversed(self._errors))


def _find_percentile(ordered: Sequence[float], share: float) -> float:
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

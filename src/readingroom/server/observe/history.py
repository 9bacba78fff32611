"""What happened in the last hour, kept in memory: calls by minute, their times, the last errors."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from readingroom.core import clock
from readingroom.server.observe.logging import CallRecord

HISTORY_MINUTES = 60
_MAX_CALL_NAMES = 300
"""Tools and routes that are followed; more would be made up by callers."""
_MAX_KEPT_DURATIONS = 500
"""Of each tool or route, to tell how long most calls take."""
_MAX_KEPT_ERRORS = 200


@dataclass(frozen=True, slots=True)
class RecentError:
    """A call that failed."""

    at: float
    name: str
    code: str
    request_id: str


@dataclass(slots=True)
class _CallsOfOneName:
    """The calls of one tool or route."""

    call_count_by_minute: dict[int, int] = field(default_factory=dict)
    error_times: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT_DURATIONS))
    times_and_durations_ms: deque[tuple[float, float]] = field(
        default_factory=lambda: deque(maxlen=_MAX_KEPT_DURATIONS)
    )


@dataclass(frozen=True, slots=True)
class CallSummary:
    """The last hour of one tool or route."""

    name: str
    calls_per_minute: Sequence[int]
    total: int
    errors: int
    median_ms: float
    p95_ms: float


class CallHistory:
    """The last hour of a process, for whoever runs it."""

    def __init__(self, read_clock: Callable[[], float] = clock.read_unix_seconds) -> None:
        self._read_clock = read_clock
        self.started_at = read_clock()
        self._calls_by_name: dict[str, _CallsOfOneName] = {}
        self._recent_errors: deque[RecentError] = deque(maxlen=_MAX_KEPT_ERRORS)

    def add_tool_call(self, call_record: CallRecord) -> None:
        """Note a tool call."""
        self.add_named_call(
            call_record.tool_name,
            call_record.duration_ms,
            call_record.error_code,
            call_record.request_id,
        )

    def add_named_call(
        self, call_name: str, duration_ms: float, error_code: str | None, request_id: str
    ) -> None:
        """Note a call of a tool or a route."""
        calls_of_name = self._calls_by_name.get(call_name)
        if calls_of_name is None:
            if len(self._calls_by_name) >= _MAX_CALL_NAMES:
                return
            calls_of_name = self._calls_by_name[call_name] = _CallsOfOneName()
        now_seconds = self._read_clock()
        current_minute = int(now_seconds // 60)
        calls_of_name.call_count_by_minute[current_minute] = (
            calls_of_name.call_count_by_minute.get(current_minute, 0) + 1
        )
        for old_minute in [
            counted_minute
            for counted_minute in calls_of_name.call_count_by_minute
            if counted_minute <= current_minute - HISTORY_MINUTES
        ]:
            del calls_of_name.call_count_by_minute[old_minute]
        calls_of_name.times_and_durations_ms.append((now_seconds, duration_ms))
        if error_code is not None:
            calls_of_name.error_times.append(now_seconds)
            self._recent_errors.append(RecentError(now_seconds, call_name, error_code, request_id))

    def summarise_calls(self) -> list[CallSummary]:
        """Return what was called in the last hour, the busiest first."""
        now_seconds = self._read_clock()
        current_minute = int(now_seconds // 60)
        call_summaries = []
        for call_name, calls_of_name in self._calls_by_name.items():
            call_counts_of_minutes = [
                calls_of_name.call_count_by_minute.get(
                    current_minute - HISTORY_MINUTES + 1 + minute_offset, 0
                )
                for minute_offset in range(HISTORY_MINUTES)
            ]
            if not any(call_counts_of_minutes):
                continue
            sorted_durations_ms = sorted(
                duration_ms
                for call_time, duration_ms in calls_of_name.times_and_durations_ms
                if now_seconds - call_time < 60 * HISTORY_MINUTES
            )
            error_count = sum(
                1
                for call_time in calls_of_name.error_times
                if now_seconds - call_time < 60 * HISTORY_MINUTES
            )
            call_summaries.append(
                CallSummary(
                    call_name,
                    call_counts_of_minutes,
                    sum(call_counts_of_minutes),
                    error_count,
                    _compute_percentile(sorted_durations_ms, 0.5),
                    _compute_percentile(sorted_durations_ms, 0.95),
                )
            )
        return sorted(call_summaries, key=lambda call_summary: -call_summary.total)

    def list_recent_errors(self) -> list[RecentError]:
        """Return the last errors, newest first."""
        return list(reversed(self._recent_errors))


def _compute_percentile(sorted_durations_ms: Sequence[float], percentile_fraction: float) -> float:
    if not sorted_durations_ms:
        return 0.0
    return sorted_durations_ms[
        min(
            len(sorted_durations_ms) - 1,
            math.ceil(percentile_fraction * len(sorted_durations_ms)) - 1,
        )
    ]

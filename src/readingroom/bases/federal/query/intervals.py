"""Intervals of a time series: days, weeks, months, quarters and years, from start to start."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from readingroom.bases.federal.query.aggregate_models import Interval

INTERVALS: tuple[Interval, ...] = ("day", "week", "month", "quarter", "year")
"""From the shortest to the longest."""
DATE_PREFIX_LENGTH_BY_INTERVAL: dict[Interval, int] = {
    "day": 10,
    "week": 10,
    "month": 7,
    "quarter": 7,
    "year": 4,
}
"""How much of a date SQL groups by; weeks and quarters are summed up from days and months."""
# A year before Python's last: the start of the next interval must be a date as well.
LATEST_BUCKET_START = date(9998, 12, 31)


def parse_first_day(iso_date: str | None) -> date | None:
    """Return the first day of a date that may lack its day, or its month; None if it is not one."""
    if not iso_date:
        return None
    try:
        return date.fromisoformat(
            (iso_date + "-01-01" if len(iso_date) == 4 else f"{iso_date}-01")[:10]
        )
    except ValueError:
        return None


def get_interval_start(time_interval: Interval, calendar_day: date) -> date:
    """Return the first day of the interval that a day is in."""
    if time_interval == "day":
        return calendar_day
    if time_interval == "week":
        return calendar_day - timedelta(days=calendar_day.weekday())
    if time_interval == "year":
        return calendar_day.replace(month=1, day=1)
    start_month = (
        calendar_day.month if time_interval == "month" else (calendar_day.month - 1) // 3 * 3 + 1
    )
    return calendar_day.replace(month=start_month, day=1)


def get_next_interval_start(time_interval: Interval, interval_start: date) -> date:
    # From any start this leads into the next interval, `get_interval_start` back to its first day.
    longest_interval_days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[
        time_interval
    ]
    return get_interval_start(time_interval, interval_start + timedelta(days=longest_interval_days))


def count_intervals_between(time_interval: Interval, first_start: date, last_start: date) -> int:
    """Return how many intervals there are from the first to the last start, without a loop."""
    if time_interval in ("day", "week"):
        interval_count = (last_start - first_start).days // (1 if time_interval == "day" else 7) + 1
    else:
        months_per_interval = {"month": 1, "quarter": 3, "year": 12}[time_interval]
        month_distance = (
            (last_start.year - first_start.year) * 12 + last_start.month - first_start.month
        )
        interval_count = month_distance // months_per_interval + 1
    return max(0, interval_count)


def iterate_interval_starts(
    time_interval: Interval, first_start: date, last_start: date
) -> Iterator[date]:
    """Yield every start from the first to the last; an interval without rows is not left out."""
    while first_start <= last_start:
        yield first_start
        first_start = get_next_interval_start(time_interval, first_start)


def format_interval_label(time_interval: Interval, interval_start: date) -> str:
    if time_interval == "week":
        iso_year, calendar_week, _ = interval_start.isocalendar()
        return f"{iso_year}-W{calendar_week:02}"
    if time_interval == "quarter":
        return f"{interval_start.year}-Q{(interval_start.month + 2) // 3}"
    return interval_start.isoformat()[: DATE_PREFIX_LENGTH_BY_INTERVAL[time_interval]]


def list_largest_group_keys(
    values_by_group: Mapping[Any, Mapping[date, int]], max_groups: int
) -> list[Any]:
    """Return the keys of the series that count most in all, the largest first."""
    total_by_group = {
        group_key: sum(value_by_start.values())
        for group_key, value_by_start in values_by_group.items()
    }
    return sorted(
        total_by_group, key=lambda group_key: (-total_by_group[group_key], str(group_key))
    )[:max_groups]

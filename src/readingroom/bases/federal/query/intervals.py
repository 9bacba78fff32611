"""Intervals of a time series: days, weeks, months, quarters and years, from start to start."""

from collections.abc import Iterator
from datetime import date, timedelta

from readingroom.bases.federal.query.aggregate_models import Interval

INTERVALS: tuple[Interval, ...] = ("day", "week", "month", "quarter", "year")
"""From the shortest to the longest."""
KEY_LENGTHS: dict[Interval, int] = {"day": 10, "week": 10, "month": 7, "quarter": 7, "year": 4}
"""How much of a date SQL groups by; weeks and quarters are summed up from days and months."""
# A year before Python's last: the start of the next interval must be a date as well.
LAST_DAY = date(9998, 12, 31)


def parse_first_day(text: str | None) -> date | None:
    """Return the first day of a date that may lack its day, or its month; None if it is not one."""
    if not text:
        return None
    try:
        return date.fromisoformat((text + "-01-01" if len(text) == 4 else f"{text}-01")[:10])
    except ValueError:
        return None


def start_of(interval: Interval, day: date) -> date:
    """Return the first day of the interval that a day is in."""
    if interval == "day":
        return day
    if interval == "week":
        return day - timedelta(days=day.weekday())
    if interval == "year":
        return day.replace(month=1, day=1)
    month = day.month if interval == "month" else (day.month - 1) // 3 * 3 + 1
    return day.replace(month=month, day=1)


def next_start(interval: Interval, start: date) -> date:
    # From any start this leads into the next interval, and `start_of` back to its first day.
    longest = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[interval]
    return start_of(interval, start + timedelta(days=longest))


def count_intervals(interval: Interval, first: date, last: date) -> int:
    """Return how many intervals there are from the first to the last start, without a loop."""
    if interval in ("day", "week"):
        count = (last - first).days // (1 if interval == "day" else 7) + 1
    else:
        months = {"month": 1, "quarter": 3, "year": 12}[interval]
        apart = (last.year - first.year) * 12 + last.month - first.month
        count = apart // months + 1
    return max(0, count)


def iterate_starts(interval: Interval, first: date, last: date) -> Iterator[date]:
    """Yield every start from the first to the last; an interval without rows is not left out."""
    while first <= last:
        yield first
        first = next_start(interval, first)


def label_of(interval: Interval, start: date) -> str:
    if interval == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02}"
    if interval == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return start.isoformat()[: KEY_LENGTHS[interval]]

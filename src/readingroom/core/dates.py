"""Days: how they are read, written, and kept as numbers."""

import re
from datetime import date, timedelta

from readingroom.core.errors import InvalidDate

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = date(1970, 1, 1)

OPEN_END = 99991231  # how a store writes "still in force"; it never leaves the store


def parse_day(text: str) -> date:
    """A day written YYYY-MM-DD, and in no other way that ISO 8601 would allow."""
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidDate(f"Invalid date format: {text[:40]}. Use YYYY-MM-DD.")


def day_before(day: date) -> date:
    return day - timedelta(days=1)


def number(day: date | None) -> int:
    """A day as the integer YYYYMMDD; no day is the open end."""
    return OPEN_END if day is None else day.year * 10000 + day.month * 100 + day.day


def days_since_epoch(day: date) -> int:
    return (day - _EPOCH).days

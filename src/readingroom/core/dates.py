"""Days: parsing them, and encoding them as the numbers that stores compare."""

import re
from datetime import date, timedelta

from readingroom.core.errors import InvalidDate

_DAY_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = date(1970, 1, 1)

# How a store writes "still in force": later than any real day, so that a range filter needs no
# special case. It never leaves the store.
OPEN_END = 99991231


def parse_day(text: str) -> date:
    """Return a day written YYYY-MM-DD; raise `InvalidDate` for any other form of ISO 8601."""
    try:
        if _DAY_PATTERN.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    # Cut short: the text is the caller's, and of any length.
    raise InvalidDate(f"Invalid date format: {text[:40]}. Use YYYY-MM-DD.")


def day_before(day: date) -> date:
    return day - timedelta(days=1)


def encode_day(day: date | None) -> int:
    """Return a day as the integer YYYYMMDD; None is the open end."""
    return OPEN_END if day is None else day.year * 10000 + day.month * 100 + day.day


def days_since_epoch(day: date) -> int:
    return (day - _EPOCH).days

"""Days: parsing them, and encoding them as the numbers that stores compare."""

import re
from calendar import monthrange
from datetime import date, timedelta

from readingroom.core.errors import InvalidDate

_DAY_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = date(1970, 1, 1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED_DAY = re.compile(
    r"\b(?:(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"|(?:(?:(?P<day>[0-9]{1,2}) )?(?P<month>(?:" + "|".join(_MONTHS) + r")[a-z]*) )?"
    r"(?P<year>(?:19|20)[0-9]{2}))\b",
    re.ASCII | re.IGNORECASE,
)

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


def find_past_day(text: str, today: date) -> date | None:
    """Return the day before `today` that a text names: a date, or the end of a month or a year.

    `the September 2023 edition` names 30 September 2023. None when no such day is named.
    """
    for match in _NAMED_DAY.finditer(text):
        year, month, day = match["year"], match["month"], match["day"]
        if match["iso"]:
            named = _make_day(*map(int, match["iso"].split("-")))
        elif month:
            number = _MONTHS.index(month[:3].lower()) + 1
            named = _make_day(int(year), number, int(day or monthrange(int(year), number)[1]))
        else:
            named = _make_day(int(year), 12, 31)
        if named is not None and named < today:
            return named
    return None


def _make_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None

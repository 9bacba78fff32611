"""Days: parsing them, and encoding them as the numbers that stores compare."""

import re
from calendar import monthrange
from datetime import date, timedelta

from readingroom.core.errors import InvalidDate

_DAY_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_EPOCH = date(1970, 1, 1)
_MONTH_ABBREVIATIONS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_NAMED_DAY_PATTERN = re.compile(
    r"\b(?:(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"|(?:(?:(?P<day>[0-9]{1,2}) )?(?P<month>(?:" + "|".join(_MONTH_ABBREVIATIONS) + r")[a-z]*) )?"
    r"(?P<year>(?:19|20)[0-9]{2}))\b",
    re.ASCII | re.IGNORECASE,
)

# How a store writes "still in force": later than any real day, so that a range filter needs no
# special case. It never leaves the store.
OPEN_END_NUMBER = 99991231


def parse_day(iso_day: str) -> date:
    """Return a day written YYYY-MM-DD; raise `InvalidDate` for any other form of ISO 8601."""
    try:
        if _DAY_PATTERN.fullmatch(iso_day):
            return date.fromisoformat(iso_day)
    except ValueError:
        pass
    # Cut short: the text is the caller's, and of any length. Half a character cannot be sent back.
    shown_day = iso_day[:40].encode("utf-8", "backslashreplace").decode()
    raise InvalidDate(f"Invalid date format: {shown_day}. Use YYYY-MM-DD.")


def format_day_in_words(day: date) -> str:
    """Return a day as people write it: `14 April 2025`."""
    return f"{day.day} {day:%B %Y}"


def get_day_before(day: date) -> date:
    return day - timedelta(days=1)


def encode_day(day: date | None) -> int:
    """Return a day as the integer YYYYMMDD; None is the open end."""
    return OPEN_END_NUMBER if day is None else day.year * 10000 + day.month * 100 + day.day


def count_days_since_epoch(day: date) -> int:
    return (day - _EPOCH).days


def find_past_day(question_text: str, today: date) -> date | None:
    """Return the day before `today` that a text names: a date, or the end of a month or a year.

    `the September 2023 edition` names 30 September 2023. None when no such day is named.
    """
    for day_match in _NAMED_DAY_PATTERN.finditer(question_text):
        year_digits, month_name, day_digits = (
            day_match["year"],
            day_match["month"],
            day_match["day"],
        )
        if day_match["iso"]:
            named_day = _make_day(*map(int, day_match["iso"].split("-")))
        elif month_name:
            month_number = _MONTH_ABBREVIATIONS.index(month_name[:3].lower()) + 1
            named_day = _make_day(
                int(year_digits),
                month_number,
                int(day_digits or monthrange(int(year_digits), month_number)[1]),
            )
        else:
            named_day = _make_day(int(year_digits), 12, 31)
        if named_day is not None and named_day < today:
            return named_day
    return None


def _make_day(year: int, month_number: int, day_number: int) -> date | None:
    try:
        return date(year, month_number, day_number)
    except ValueError:
        return None

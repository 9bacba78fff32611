"""Days that a question names, and days as callers write them."""

from datetime import date

import pytest

from readingroom.core.dates import find_past_day, parse_day
from readingroom.core.errors import InvalidDate
from tests.requirements import requirement

TODAY = date(2026, 11, 16)


@requirement("room:desk")
@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("cycle parking in the September 2023 NPPF", date(2023, 9, 30)),
        ("was the number binding in the 2023 edition?", date(2023, 12, 31)),
        ("as it was on 12 March 2019", date(2019, 3, 12)),
        ("in force on 2024-02-29", date(2024, 2, 29)),
        ("what is to be reached by 2030?", None),
        ("since 2030 or 2021", date(2021, 12, 31)),
        ("on 2023-02-31", None),
        ("25/01178/REM", None),
        ("may we do that?", None),
        ("", None),
    ],
)
def test_a_past_day_is_found_in_a_text(text: str, day: date | None) -> None:
    assert find_past_day(text, TODAY) == day


@requirement("room:fuzz")
def test_half_a_character_is_no_day_and_its_refusal_can_be_sent() -> None:
    with pytest.raises(InvalidDate) as refused:
        parse_day("2024-\ud800")
    assert refused.value.message.encode() == rb"Invalid date format: 2024-\ud800. Use YYYY-MM-DD."

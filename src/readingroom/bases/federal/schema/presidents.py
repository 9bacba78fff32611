"""The presidents of the United States since 1981: their numbers, names and first days in office."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class President:
    """A president's time in office; one who served twice apart is listed twice."""

    number: int
    name: str
    """As the Federal Register writes it."""
    took_office_at: str


PRESIDENTS = (
    President(40, "Ronald Reagan", "1981-01-20"),
    President(41, "George H. W. Bush", "1989-01-20"),
    President(42, "William J. Clinton", "1993-01-20"),
    President(43, "George W. Bush", "2001-01-20"),
    President(44, "Barack Obama", "2009-01-20"),
    President(45, "Donald Trump", "2017-01-20"),
    President(46, "Joe Biden", "2021-01-20"),
    President(47, "Donald Trump", "2025-01-20"),
)
PRESIDENTS_BY_NUMBER = {president.number: president for president in PRESIDENTS}


def find_president_on(iso_date: str) -> President | None:
    """Return who was president on a day, None before 1981."""
    earlier_presidents = [
        president for president in PRESIDENTS if president.took_office_at <= iso_date
    ]
    return earlier_presidents[-1] if earlier_presidents else None

"""Congresses and their bills: when each sat, how bills are cited, where their pages are."""

from collections.abc import Mapping
from datetime import date
from typing import Any

GPO_PUBLISHER = "U.S. Government Publishing Office"
LABEL_BY_BILL_TYPE = {
    "hr": "H.R.",
    "s": "S.",
    "hjres": "H.J.Res.",
    "sjres": "S.J.Res.",
    "hres": "H.Res.",
    "sres": "S.Res.",
    "hconres": "H.Con.Res.",
    "sconres": "S.Con.Res.",
}
_PAGE_NAME_BY_BILL_TYPE = {
    "hr": "house-bill",
    "s": "senate-bill",
    "hjres": "house-joint-resolution",
    "sjres": "senate-joint-resolution",
    "hres": "house-resolution",
    "sres": "senate-resolution",
    "hconres": "house-concurrent-resolution",
    "sconres": "senate-concurrent-resolution",
}


def get_congress_on(iso_moment: str) -> int:
    """Return the number of the Congress on a day. Each begins on 3 January of an odd year."""
    calendar_day = date.fromisoformat(iso_moment[:10])
    start_year = calendar_day.year - (1 if (calendar_day.month, calendar_day.day) < (1, 3) else 0)
    return (start_year - 1789) // 2 + 1


def get_first_day_of_congress(congress: int) -> date:
    """Return the first day of a Congress; its first session lasts until the end of that year."""
    return date(1787 + 2 * congress, 1, 3)


def format_ordinal(ordinal_number: int) -> str:
    ordinal_suffix = (
        "th"
        if ordinal_number % 100 in (11, 12, 13)
        else {1: "st", 2: "nd", 3: "rd"}.get(ordinal_number % 10, "th")
    )
    return f"{ordinal_number}{ordinal_suffix}"


def format_bill_number(congress: int, bill_type: str, bill_number: int) -> str:
    return f"{LABEL_BY_BILL_TYPE[bill_type]} {bill_number}, {format_ordinal(congress)} Congress"


def build_bill_page_url(congress: int, bill_type: str, bill_number: int) -> str:
    """Return the URL of a bill's page at Congress.gov."""
    return f"https://www.congress.gov/bill/{format_ordinal(congress)}-congress/{_PAGE_NAME_BY_BILL_TYPE[bill_type]}/{bill_number}"


def overlaps_congress(period_fields: Mapping[str, Any], congress: int) -> bool:
    """Return whether a period has a day in common with a Congress."""
    first_day_text = get_first_day_of_congress(congress).isoformat()
    next_first_day = get_first_day_of_congress(congress + 1).isoformat()
    # ISO dates compare as text; whoever still serves has no end.
    period_start, period_end = period_fields.get("start") or "", period_fields.get("end") or "9999"
    return bool(period_start < next_first_day and period_end > first_day_text)

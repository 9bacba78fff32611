"""Finds the numbers that are printed on pages, which need not be their order in the file."""

import re
from collections.abc import Sequence

from readingroom.ingest.read.page import RawPage

PAGE_EDGE_SHARE = 0.09
"""Share of a page's height at its top and bottom where headers and footers are."""

_MAX_EDGE_LINE_CHARS = 120
_PRINTED_NUMBER_PATTERN = re.compile(
    r"(?:^|(?<=\s))[-–]?\s?(\d{1,4})\s?[-–]?(?:\s+(?:of|/)\s+\d{1,4})?$"
)
_LEADING_NUMBER_PATTERN = re.compile(r"(\d{1,4})(?=\s|$)")


def find_page_labels(raw_pages: Sequence[RawPage]) -> list[str]:
    """Return for each page the number printed on it, else the label that its file gives it.

    A number counts where the page before or after continues it. Two pages side by side have both:
    `50–51`.
    """
    edge_numbers_of_each_page = [_list_edge_numbers(raw_page) for raw_page in raw_pages]
    page_labels: list[str] = []
    for page_index, raw_page in enumerate(raw_pages):
        numbers_on_neighbouring_pages = (
            edge_numbers_of_each_page[page_index - 1] if page_index else set(),
            edge_numbers_of_each_page[page_index + 1] if page_index + 1 < len(raw_pages) else set(),
        )
        page_labels.append(
            _choose_page_label(
                edge_numbers_of_each_page[page_index], *numbers_on_neighbouring_pages
            )
            or raw_page.label
        )
    return page_labels


def _choose_page_label(
    edge_numbers: set[int], numbers_on_page_before: set[int], numbers_on_page_after: set[int]
) -> str | None:
    left_page_numbers = [
        edge_number
        for edge_number in edge_numbers
        if edge_number + 1 in edge_numbers
        and (edge_number - 1 in numbers_on_page_before or edge_number + 2 in numbers_on_page_after)
    ]
    if left_page_numbers:
        return f"{min(left_page_numbers)}–{min(left_page_numbers) + 1}"
    continued_numbers = [
        edge_number
        for edge_number in edge_numbers
        if edge_number - 1 in numbers_on_page_before or edge_number + 1 in numbers_on_page_after
    ]
    return str(min(continued_numbers)) if len(continued_numbers) == 1 else None


def _list_edge_numbers(raw_page: RawPage) -> set[int]:
    """Return the numbers at the ends of a page's first and last lines."""
    edge_numbers: set[int] = set()
    for line in (*raw_page.lines[:4], *raw_page.lines[-4:]):
        is_at_edge = not (
            PAGE_EDGE_SHARE * raw_page.height
            <= line.bottom
            <= (1 - PAGE_EDGE_SHARE) * raw_page.height
        )
        if not is_at_edge or len(line.text) > _MAX_EDGE_LINE_CHARS:
            continue
        for number_match in (
            _PRINTED_NUMBER_PATTERN.search(line.text),
            _LEADING_NUMBER_PATTERN.match(line.text),
        ):
            if number_match:
                edge_numbers.add(int(number_match[1]))
    return edge_numbers

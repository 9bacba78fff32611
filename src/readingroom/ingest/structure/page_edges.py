"""What stands at the edges of pages: printed numbers, and headers that name the heading below."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from readingroom.ingest.read.page import Line, RawPage

PAGE_EDGE_SHARE = 0.09
"""Share of a page's height at its top and bottom where headers and footers are."""

_MAX_EDGE_LINE_CHARS = 120
_PRINTED_NUMBER_PATTERN = re.compile(
    r"(?:^|(?<=\s))[-–]?\s?(\d{1,4})\s?[-–]?(?:\s+(?:of|/)\s+\d{1,4})?$"
)
_PAGE_NUMBER_PATTERN = re.compile(
    r"(?:page\s*)?[-–]?\s*(?:\d{1,4}|[ivxl]{1,7})\s*[-–]?(?:\s*(?:of|/)\s*\d{1,4})?"
)
_MAX_PAGE_NUMBER_CHARS = 40
_LEADING_NUMBER_PATTERN = re.compile(r"(\d{1,4})(?=\s|$)")
# Letter heights between a header and the text; lines of text are closer to each other.
_MIN_HEADER_DISTANCE = 1.9
# Pages with such a line, and shares of all pages and of those with a line at its height.
_MIN_HEADER_PAGES, _MIN_HEADER_PAGE_SHARE, _MIN_SET_APART_SHARE = 4, 0.5, 0.9
# Share of these lines that repeat a heading nearby.
_MIN_REPEATED_HEADING_SHARE = 0.6
# Pages before and after a page on which the heading that its header names may stand.
_PAGES_SEARCHED_BEFORE, _PAGES_SEARCHED_AFTER = 3, 1
_MIN_HEADING_CHARS, _MAX_HEADING_CHARS = 8, 120
# Of names that differ in more than numbers; headers with fewer are known by being the same.
_MIN_DIFFERENT_HEADERS = 3
_HEADER_SEPARATORS = ("|", " – ", " - ", "•")
_DIGIT_REMOVAL_TABLE = str.maketrans("", "", "0123456789")


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


def is_printed_page_number(line_text: str) -> bool:
    """Return whether a line is only the number of its page: `Page 3 of 20`."""
    return len(line_text) <= _MAX_PAGE_NUMBER_CHARS and bool(
        _PAGE_NUMBER_PATTERN.fullmatch(line_text.lower())
    )


def find_heading_header_keys(raw_pages: Sequence[RawPage]) -> set[tuple[str, int]]:
    """Return keys of the first or last lines of pages that stand apart and repeat a heading.

    They stand at one height of most pages. A heading that begins each page repeats no other line.
    """
    return _find_header_keys_at_edge(raw_pages, max) | _find_header_keys_at_edge(raw_pages, min)


def make_page_row_key(line: Line, page_number: int) -> tuple[str, int]:
    """Return the key of a line's height on one page."""
    return f"\0n{page_number}", round(line.bottom / 6)


def _find_header_keys_at_edge(
    raw_pages: Sequence[RawPage], choose_outermost_line: Callable[..., Line]
) -> set[tuple[str, int]]:
    """Return keys of the lines at one edge of the pages that repeat a heading."""
    heading_header_keys: set[tuple[str, int]] = set()
    for edge_lines in _group_edge_lines_by_height(raw_pages, choose_outermost_line).values():
        page_indexes_and_lines = [
            (page_index, line) for page_index, line, is_set_apart in edge_lines if is_set_apart
        ]
        min_line_count = max(
            _MIN_HEADER_PAGES,
            _MIN_HEADER_PAGE_SHARE * len(raw_pages),
            _MIN_SET_APART_SHARE * len(edge_lines),
        )
        if len(page_indexes_and_lines) >= min_line_count and _are_repeated_headings(
            raw_pages, page_indexes_and_lines
        ):
            heading_header_keys |= {
                make_page_row_key(line, raw_pages[page_index].number)
                for page_index, line in page_indexes_and_lines
            }
    return heading_header_keys


def _group_edge_lines_by_height(
    raw_pages: Sequence[RawPage], choose_outermost_line: Callable[..., Line]
) -> dict[int, list[tuple[int, Line, bool]]]:
    """Return the outermost line of each page, by height: page, line, whether it stands apart."""
    lines_by_height: defaultdict[int, list[tuple[int, Line, bool]]] = defaultdict(list)
    for page_index, raw_page in enumerate(raw_pages):
        page_lines = [line for line in raw_page.lines if not line.text.isdigit()]
        if len(page_lines) < 2:
            continue
        outermost_line = choose_outermost_line(page_lines, key=lambda line: line.bottom)
        edge_height = PAGE_EDGE_SHARE * raw_page.height
        if edge_height <= outermost_line.bottom <= raw_page.height - edge_height:
            continue
        distance_to_text = min(
            abs(line.bottom - outermost_line.bottom)
            for line in page_lines
            if line is not outermost_line
        )
        is_set_apart = distance_to_text > _MIN_HEADER_DISTANCE * outermost_line.letter_height
        lines_by_height[round(outermost_line.bottom / 6)].append(
            (page_index, outermost_line, is_set_apart)
        )
    return lines_by_height


def _are_repeated_headings(
    raw_pages: Sequence[RawPage], page_indexes_and_lines: Sequence[tuple[int, Line]]
) -> bool:
    """Return whether most of these lines, of several texts, repeat a heading of a near page."""
    header_texts = {line.text.translate(_DIGIT_REMOVAL_TABLE) for _, line in page_indexes_and_lines}
    if len(header_texts) < _MIN_DIFFERENT_HEADERS:
        return False
    repeated_heading_count = sum(
        not nearby_headings.isdisjoint(_list_headings_in_header(line.text))
        for (_, line), nearby_headings in zip(
            page_indexes_and_lines,
            _iterate_nearby_headings(raw_pages, page_indexes_and_lines),
            strict=True,
        )
    )
    return repeated_heading_count >= _MIN_REPEATED_HEADING_SHARE * len(page_indexes_and_lines)


def _list_headings_in_header(header_text: str) -> list[str]:
    """Return what a header may name: all of it, or what follows the title of the plan."""
    return [
        header_text,
        *(header_text.rpartition(separator)[2].strip() for separator in _HEADER_SEPARATORS),
    ]


def _iterate_nearby_headings(
    raw_pages: Sequence[RawPage], page_indexes_and_lines: Sequence[tuple[int, Line]]
) -> Iterator[set[str]]:
    """Yield for each header the lines further in on near pages, and what precedes their colon."""
    headings_of_each_page = [
        {
            heading_text
            for line in raw_page.lines
            if _MIN_HEADING_CHARS <= len(line.text) <= _MAX_HEADING_CHARS
            and abs(line.bottom - page_indexes_and_lines[0][1].bottom) > line.letter_height
            for heading_text in (line.text, line.text.partition(":")[0])
        }
        for raw_page in raw_pages
    ]
    for page_index, _ in page_indexes_and_lines:
        first_page_index = max(page_index - _PAGES_SEARCHED_BEFORE, 0)
        yield set().union(
            *headings_of_each_page[first_page_index : page_index + _PAGES_SEARCHED_AFTER + 1]
        )

"""Finds headers and footers in letters of the text that name the heading below: `Policy H3`."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from readingroom.ingest.read.page import Line, RawPage
from readingroom.ingest.structure.page_labels import PAGE_EDGE_SHARE

# Letter heights between a header and the text; lines of text are closer to each other.
_MIN_DISTANCE = 1.9
# Pages with such a line, and shares of all pages and of those with a line at its height.
_MIN_PAGES, _MIN_PAGE_SHARE, _MIN_APART_SHARE = 4, 0.5, 0.9
# Share of these lines that repeat a heading nearby.
_MIN_NAMING_SHARE = 0.6
# Pages before and after a page on which the heading that its header names may stand.
_NEAR_PAGES_BEFORE, _NEAR_PAGES_AFTER = 3, 1
_MIN_NAME_CHARS, _MAX_NAME_CHARS = 8, 120
# Of names that differ in more than numbers; headers with fewer are known by being the same.
_MIN_DIFFERENT_NAMES = 3
_NAME_SEPARATORS = ("|", " – ", " - ", "•")
_DIGIT_REMOVAL_TABLE = str.maketrans("", "", "0123456789")


def find_naming_row_keys(raw_pages: Sequence[RawPage]) -> set[tuple[str, int]]:
    """Return keys of the first or last lines of pages that stand apart and repeat a heading.

    They stand at one height of most pages. A heading that begins each page repeats no other line.
    """
    return _find_row_keys_at_edge(raw_pages, max) | _find_row_keys_at_edge(raw_pages, min)


def make_naming_key(line: Line, page_number: int) -> tuple[str, int]:
    """Return the key of a line's height on one page."""
    return f"\0n{page_number}", round(line.bottom / 6)


def _find_row_keys_at_edge(
    raw_pages: Sequence[RawPage], choose_outermost: Callable[..., Line]
) -> set[tuple[str, int]]:
    """Return keys of the lines at one edge of the pages that repeat a heading."""
    naming_row_keys: set[tuple[str, int]] = set()
    for row_lines in _group_edge_lines(raw_pages, choose_outermost).values():
        apart_lines = [(page_index, line) for page_index, line, is_apart in row_lines if is_apart]
        min_line_count = max(
            _MIN_PAGES, _MIN_PAGE_SHARE * len(raw_pages), _MIN_APART_SHARE * len(row_lines)
        )
        if len(apart_lines) >= min_line_count and _are_repeated_headings(raw_pages, apart_lines):
            naming_row_keys |= {
                make_naming_key(line, raw_pages[page_index].number)
                for page_index, line in apart_lines
            }
    return naming_row_keys


def _group_edge_lines(
    raw_pages: Sequence[RawPage], choose_outermost: Callable[..., Line]
) -> dict[int, list[tuple[int, Line, bool]]]:
    """Return the outermost line of each page, by height: page, line, whether it stands apart."""
    lines_by_row: defaultdict[int, list[tuple[int, Line, bool]]] = defaultdict(list)
    for page_index, raw_page in enumerate(raw_pages):
        page_lines = [line for line in raw_page.lines if not line.text.isdigit()]
        if len(page_lines) < 2:
            continue
        outer_line = choose_outermost(page_lines, key=lambda line: line.bottom)
        edge_height = PAGE_EDGE_SHARE * raw_page.height
        if edge_height <= outer_line.bottom <= raw_page.height - edge_height:
            continue
        distance = min(
            abs(line.bottom - outer_line.bottom) for line in page_lines if line is not outer_line
        )
        is_apart = distance > _MIN_DISTANCE * outer_line.letter_height
        lines_by_row[round(outer_line.bottom / 6)].append((page_index, outer_line, is_apart))
    return lines_by_row


def _are_repeated_headings(
    raw_pages: Sequence[RawPage], apart_lines: Sequence[tuple[int, Line]]
) -> bool:
    """Return whether most of these lines, of several texts, repeat a heading of a near page."""
    row_texts = {line.text.translate(_DIGIT_REMOVAL_TABLE) for _, line in apart_lines}
    if len(row_texts) < _MIN_DIFFERENT_NAMES:
        return False
    naming_count = sum(
        not heading_names.isdisjoint(_list_header_names(line.text))
        for (_, line), heading_names in zip(
            apart_lines, _list_nearby_names(raw_pages, apart_lines), strict=True
        )
    )
    return naming_count >= _MIN_NAMING_SHARE * len(apart_lines)


def _list_header_names(header_text: str) -> list[str]:
    """Return what a header may name: all of it, or what follows the title of the plan."""
    return [
        header_text,
        *(header_text.rpartition(separator)[2].strip() for separator in _NAME_SEPARATORS),
    ]


def _list_nearby_names(
    raw_pages: Sequence[RawPage], header_lines: Sequence[tuple[int, Line]]
) -> Iterator[set[str]]:
    """Yield for each header the lines further in on near pages, and what precedes their colon."""
    names_by_page = [
        {
            name
            for line in raw_page.lines
            if _MIN_NAME_CHARS <= len(line.text) <= _MAX_NAME_CHARS
            and abs(line.bottom - header_lines[0][1].bottom) > line.letter_height
            for name in (line.text, line.text.partition(":")[0])
        }
        for raw_page in raw_pages
    ]
    for page_index, _ in header_lines:
        first_page_index = max(page_index - _NEAR_PAGES_BEFORE, 0)
        yield set().union(*names_by_page[first_page_index : page_index + _NEAR_PAGES_AFTER + 1])

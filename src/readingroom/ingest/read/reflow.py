"""Pages of a file whose text has no fixed layout: paragraphs, headings and rows become lines.

Where the lines would stand is made up, so that the rest of the reading need not know.
"""

from collections.abc import Iterable, Sequence

from readingroom.ingest.read.page import Line, RawPage, normalize_text

CELL_SEPARATOR = " | "

_BODY_LETTER_SIZE = 10.0
# Heights of headings by their level; the sixth level and all below it are alike.
_HEADING_LETTER_SIZES = (18.0, 15.0, 13.0, 12.0, 12.0, 12.0)
_LEFT_MARGIN = 72.0
# In heights of a line's letters.
_LINE_DISTANCE_RATIO = 2.0
# Share of a page's height that its lines take, so that none is taken for a header or footer.
_LINES_HEIGHT_SHARE = 0.75


class PageBuilder:
    """Collects the text of a file, page by page."""

    def __init__(self) -> None:
        self._raw_pages: list[RawPage] = []
        self._page_lines: list[Line] = []

    def add_paragraph(self, paragraph_text: str, heading_level: int = 0) -> None:
        """Add a paragraph with its own line breaks; level 1 is the highest heading, 0 is none."""
        is_heading = heading_level > 0
        letter_size = (
            _HEADING_LETTER_SIZES[min(heading_level, len(_HEADING_LETTER_SIZES)) - 1]
            if is_heading
            else _BODY_LETTER_SIZE
        )
        has_gap_above = True
        for text_line in paragraph_text.splitlines():
            clean_text = " ".join(normalize_text(text_line).split())
            if clean_text:
                self._page_lines.append(
                    Line(clean_text, _LEFT_MARGIN, 0.0, letter_size, is_heading, 0.0, has_gap_above)
                )
                has_gap_above = False

    def add_row(self, cell_texts: Iterable[str], is_first_row: bool = False) -> None:
        """Add a row of a table; empty cells are left out."""
        clean_cell_texts = [" ".join(normalize_text(cell_text).split()) for cell_text in cell_texts]
        row_text = CELL_SEPARATOR.join(cell_text for cell_text in clean_cell_texts if cell_text)
        if row_text:
            self._page_lines.append(
                Line(row_text, _LEFT_MARGIN, 0.0, _BODY_LETTER_SIZE, False, 0.0, is_first_row)
            )

    def end_page(self, page_label: str = "", *, keeps_empty_page: bool = False) -> None:
        """Begin a new page; a page without any text is dropped unless it is to be kept."""
        if not self._page_lines and not keeps_empty_page:
            return
        page_number = len(self._raw_pages) + 1
        page_height = _set_line_positions(self._page_lines)
        clean_label = normalize_text(page_label).strip() or str(page_number)
        self._raw_pages.append(RawPage(page_number, clean_label, page_height, self._page_lines))
        self._page_lines = []

    def finish_pages(self) -> list[RawPage]:
        """Return all pages; a file without text has one empty page."""
        self.end_page(keeps_empty_page=not self._raw_pages)
        return self._raw_pages


def _set_line_positions(page_lines: Sequence[Line]) -> float:
    """Give each line a place below the one before it; return the height of the page."""
    height_of_lines = sum(
        page_line.letter_height * _LINE_DISTANCE_RATIO for page_line in page_lines
    )
    page_height = height_of_lines / _LINES_HEIGHT_SHARE
    line_bottom = page_height * (1 + _LINES_HEIGHT_SHARE) / 2
    for page_line in page_lines:
        line_bottom -= page_line.letter_height * _LINE_DISTANCE_RATIO
        page_line.bottom = page_line.last_bottom = line_bottom
    return page_height

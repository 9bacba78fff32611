"""The look of a document's lines: usual sizes and margins, headings, prose, tables of contents."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby

from readingroom.ingest.structure.layout import FlowLine, TextFlow

MARGIN_TOLERANCE = 6.0
"""Points within which two lines begin at the same margin."""

# Letters this many times the usual height belong to a heading.
_MIN_HEADING_SIZE_RATIO = 1.12
_MAX_HEADING_CHARS = 120
# Share of a document's characters that makes a margin one of its body text.
_MIN_MARGIN_CHAR_SHARE = 0.2
# Of a document whose policies are in italics; with more, italics tell nothing.
_MAX_ITALIC_SHARE = 0.75
# Of a line that shows where a page's margin is; labels beside the text are shorter.
_MIN_MARGIN_LINE_CHARS = 20
_MIN_CONTENTS_LINES = 5
# Lines without a page number that a table of contents may hold: group names, long titles.
_MAX_CONTENTS_LINE_GAP = 3
# Share of a page's lines that makes all of it a table of contents.
_MIN_CONTENTS_LINE_SHARE = 0.5
# Of the usual length of a line; a title that stands on a line of its own is shorter.
_MIN_RUN_IN_LENGTH_SHARE = 0.6
# Of the usual length of a line; a heading that only its place shows is shorter.
_MAX_LONE_HEADING_SHARE = 0.7
# Points by which the text of a paragraph is set in from its number.
_MAX_HANGING_INDENT = 60.0
# Of a title that goes on over several lines.
_MAX_TITLE_CHARS = 500
# Of a heading without a number, which only its place shows to be one.
_MAX_UNNUMBERED_TITLE_CHARS = 90
# Of a line that may be as long as its author likes, a search sees only the end.
_MAX_LINE_END_CHARS = 200

_NUMBER_AT_END_PATTERN = re.compile(r"(?:\.{2,}|\s)\s*(\d{1,3})$")
_CONTENTS_LEADERS_PATTERN = re.compile(r"(?:\.\s?){4,}\s*\d{1,4}$")
_LIST_ITEM_PATTERN = re.compile(r"(?:[^\w\s“‘\"'(]|\(?(?:[a-z]|[ivx]{1,5}|\d{1,2})[.)])\s*\S")
_SENTENCE_ENDS = (".", ";", ":", ",", "!", "?")
FIGURE_CAPTION_PATTERN = re.compile(
    r"(?P<ref>(?i:figure|map|diagram|inset|plan)\s+[A-Z]?\d{1,2}(?:[-.]\d{1,3})?)(?!\w)"
    r"\W*(?P<title>(?s:.*))"
)
# Of the usual length of a line; the labels and the caption of a figure are shorter.
_MAX_FIGURE_LABEL_SHARE = 0.8
# Of a line that ends like a sentence or an item of a list, which a label does not.
_MIN_SENTENCE_END_CHARS = 25


class Typography:
    """The lines of a document, and the sizes and margins that are usual among them."""

    def __init__(self, text_flow: TextFlow) -> None:
        self.lines = text_flow.lines
        self.rules_by_page = text_flow.rules_by_page
        char_counts_by_size: Counter[float] = Counter()
        char_counts_by_margin: Counter[int] = Counter()
        italic_char_count = 0
        for flow_line in text_flow.lines:
            italic_char_count += flow_line.line.is_italic * len(flow_line.line.text)
            char_counts_by_size[_round_size(flow_line.line.letter_height)] += len(
                flow_line.line.text
            )
            char_counts_by_margin[round(flow_line.line.left)] += len(flow_line.line.text)
        self.usual_letter_size = (
            char_counts_by_size.most_common(1)[0][0] if char_counts_by_size else 0.0
        )
        self.usual_margin = (
            char_counts_by_margin.most_common(1)[0][0] if char_counts_by_margin else 0
        )
        self._is_mostly_italic = italic_char_count > _MAX_ITALIC_SHARE * char_counts_by_size.total()
        min_char_count = _MIN_MARGIN_CHAR_SHARE * char_counts_by_margin.total()
        self._usual_margins = [
            margin
            for margin, char_count in char_counts_by_margin.items()
            if char_count >= min_char_count
        ] or [self.usual_margin]
        body_line_lengths = sorted(
            len(flow_line.line.text)
            for flow_line in text_flow.lines
            if self._is_body_line(flow_line)
        )
        self.usual_line_length = (
            body_line_lengths[len(body_line_lengths) * 3 // 4] if body_line_lengths else 0
        )
        self.contents_line_indexes = _find_contents_line_indexes(text_flow.lines)
        self.line_ranges_by_figure_page = _find_line_ranges_of_figure_pages(
            text_flow.lines, self.usual_line_length
        )
        """The lines of pages that hold only a figure, by page."""
        self.usual_lowest_bottom = _measure_usual_lowest_bottom(text_flow.lines)
        self._margin_by_page = _measure_page_margins(text_flow.lines)

    @cached_property
    def is_set_in_one_style(self) -> bool:
        """Whether all is set in one size and weight, so that only its place shows a heading."""
        return not any(map(self.is_emphasised, range(len(self.lines))))

    def is_above_prose(self, line_index: int) -> bool:
        """Whether a short line is a paragraph of its own, and body text begins below it."""
        next_line_index = line_index + 1
        return (
            next_line_index < len(self.lines)
            and len(self.lines[line_index].line.text)
            < _MAX_LONE_HEADING_SHARE * self.usual_line_length
            and self.is_paragraph_of_its_own(line_index)
            and self.is_prose_start(next_line_index)
        )

    def measure_indent(self, line_index: int) -> float:
        """Return how far a line stands in from the margin of its page."""
        flow_line = self.lines[line_index]
        return flow_line.line.left - self._margin_by_page.get(flow_line.page, self.usual_margin)

    def has_same_margin(self, line_index: int, other_line_index: int) -> bool:
        """Whether the pages of two lines have the same margin; facing pages may not."""
        margins_of_pages = [
            self._margin_by_page.get(self.lines[compared_line_index].page, self.usual_margin)
            for compared_line_index in (line_index, other_line_index)
        ]
        return abs(margins_of_pages[0] - margins_of_pages[1]) < MARGIN_TOLERANCE / 2

    def is_on_figure_page(self, line_index: int) -> bool:
        """Whether a line stands on a page that a figure fills."""
        return self.lines[line_index].page in self.line_ranges_by_figure_page

    def is_block_start(self, line_index: int) -> bool:
        """Whether a paragraph begins here, or a page or column, where no gap above can be seen."""
        flow_line = self.lines[line_index]
        if line_index == 0 or flow_line.starts_paragraph:
            return True
        line_above = self.lines[line_index - 1]
        return line_above.page != flow_line.page or (
            flow_line.line.bottom > line_above.line.bottom + flow_line.line.letter_height
        )

    def is_after_sentence(self, line_index: int) -> bool:
        """Whether the line above ends a sentence or is short, as the last one of a paragraph is."""
        text_above = self.lines[line_index - 1].line.text if line_index else ""
        # The number of a footnote may follow the full stop.
        return text_above.rstrip("0123456789 ").endswith((".", "!", "?", ":", ";", "”")) or (
            len(text_above) < 0.7 * self.usual_line_length
        )

    def is_large_line(self, line_index: int) -> bool:
        return (
            self.lines[line_index].line.letter_height
            >= _MIN_HEADING_SIZE_RATIO * self.usual_letter_size
        )

    def is_small_line(self, line_index: int) -> bool:
        return self.lines[line_index].line.letter_height < 0.9 * self.usual_letter_size

    def is_long_line(self, line_index: int) -> bool:
        """Whether a line is about as long as one of the text; cells of tables are shorter."""
        return (
            line_index < len(self.lines)
            and len(self.lines[line_index].line.text)
            >= _MAX_LONE_HEADING_SHARE * self.usual_line_length
        )

    def is_emphasised(self, line_index: int) -> bool:
        return self.lines[line_index].line.is_bold or self.is_large_line(line_index)

    def is_heading(self, line_index: int) -> bool:
        """Whether a line looks like a heading, or is short and alone, which is all a scan shows."""
        line_text = self.lines[line_index].line.text
        if len(line_text) > _MAX_HEADING_CHARS:
            return False
        if self.is_large_line(line_index):
            return True
        if line_text.endswith((",", ";")):
            return False
        return self.is_emphasised(line_index) or (
            not line_text.endswith(".") and self.is_paragraph_of_its_own(line_index)
        )

    def is_paragraph_of_its_own(self, line_index: int) -> bool:
        """Whether a line is a paragraph of its own."""
        is_last_line = line_index + 1 == len(self.lines)
        return self.is_block_start(line_index) and (
            is_last_line or self.is_block_start(line_index + 1)
        )

    def could_be_title(self, line_index: int) -> bool:
        """Whether a line could be a heading without a number: short, and no part of a sentence."""
        line_text = self.lines[line_index].line.text
        return (
            len(line_text) <= _MAX_UNNUMBERED_TITLE_CHARS
            and (line_text[0].isupper() or line_text[0] in "“‘\"'")
            and not line_text.endswith(_SENTENCE_ENDS)
            and not _LIST_ITEM_PATTERN.match(line_text)
            and not self.is_small_line(line_index)
        )

    def is_section_start(self, line_index: int) -> bool:
        """Whether a line reads like a heading and text in other letters follows it."""
        title_end_index = self.get_title_end(line_index, "title")
        is_text_following = title_end_index < len(self.lines) and not self.is_emphasised(
            title_end_index
        )
        return (
            is_text_following
            and self.could_be_title(line_index)
            and (self.is_block_start(line_index) or self.is_after_sentence(line_index))
        )

    def has_same_look(self, line_index: int, other_line_index: int) -> bool:
        """Whether two lines are alike in size and weight."""
        first_line, other_line = self.lines[line_index].line, self.lines[other_line_index].line
        return (
            first_line.is_bold == other_line.is_bold
            and abs(first_line.letter_height - other_line.letter_height) < 0.5
        )

    def get_title_end(self, line_index: int, heading_title: str) -> int:
        """Return the index after the last line of the title that begins on a line."""
        if not heading_title or not self.is_emphasised(line_index):
            return line_index + 1
        title_length = len(heading_title)
        title_end_index = line_index + 1
        while (
            title_end_index < len(self.lines)
            and not self.is_block_start(title_end_index)
            and self.has_same_look(line_index, title_end_index)
            and title_length <= _MAX_TITLE_CHARS
        ):
            title_length += len(self.lines[title_end_index].line.text) + 1
            title_end_index += 1
        return title_end_index

    def join_title_lines(self, first_line_index: int, heading_title: str) -> str:
        """Return a title with the lines on which it continues."""
        title_end_index = self.get_title_end(first_line_index, heading_title)
        return " ".join(
            [
                heading_title,
                *(
                    self.lines[line_index].line.text
                    for line_index in range(first_line_index + 1, title_end_index)
                ),
            ]
        )

    def is_outdented(self, line_index: int) -> bool:
        """Whether a line begins left of the text, as the number of a paragraph does."""
        return self.lines[line_index].line.left < self.usual_margin - MARGIN_TOLERANCE

    def is_run_in_heading(self, line_index: int) -> bool:
        """Whether text in plain letters begins on the line of a heading and goes on below it."""
        next_line_index = line_index + 1
        is_long_line = (
            len(self.lines[line_index].line.text)
            >= _MIN_RUN_IN_LENGTH_SHARE * self.usual_line_length
        )
        return (
            is_long_line
            and self.lines[line_index].line.is_bold
            and next_line_index < len(self.lines)
            and not self.is_block_start(next_line_index)
            and not self.is_emphasised(next_line_index)
        )

    def has_hanging_indent(self, line_index: int) -> bool:
        """Whether the next line is set in from this one, as below the number of a paragraph."""
        next_line_index = line_index + 1
        if next_line_index == len(self.lines) or self.is_block_start(next_line_index):
            return False
        indent_of_next_line = (
            self.lines[next_line_index].line.left - self.lines[line_index].line.left
        )
        return MARGIN_TOLERANCE < indent_of_next_line < _MAX_HANGING_INDENT

    def is_prose_start(self, line_index: int) -> bool:
        """Whether a paragraph of body text begins here."""
        flow_line = self.lines[line_index]
        line_text = flow_line.line.text
        is_like_sentence_start = (
            line_text[0].isupper() and len(line_text) >= 0.7 * self.usual_line_length
        )
        return (
            flow_line.starts_paragraph
            and is_like_sentence_start
            and self._is_body_line(flow_line)
            and not flow_line.line.is_bold
        )

    def is_map_label(self, line_index: int) -> bool:
        """Whether a line is short and in letters of another size, as those on a map are."""
        line = self.lines[line_index].line
        return _round_size(line.letter_height) != self.usual_letter_size and not _is_body_text(
            line.text, self.usual_line_length
        )

    def is_italic_title(self, line_index: int) -> bool:
        """Whether a line in italics begins a block and upright text follows it at once."""
        next_line_index = line_index + 1
        return (
            next_line_index < len(self.lines)
            and self.lines[line_index].line.is_italic
            and not self.lines[next_line_index].line.is_italic
            and not self._is_mostly_italic
            and self.is_block_start(line_index)
        )

    def is_italic_prose(self, line_index: int) -> bool:
        """Whether a line of text is set in italics, where most of the document is not."""
        line = self.lines[line_index].line
        is_long_line = len(line.text) >= 0.5 * self.usual_line_length
        return line.is_italic and is_long_line and not self._is_mostly_italic

    def _is_body_line(self, flow_line: FlowLine) -> bool:
        line = flow_line.line
        is_at_margin = any(
            abs(line.left - margin) < MARGIN_TOLERANCE for margin in self._usual_margins
        )
        return is_at_margin and abs(line.letter_height - self.usual_letter_size) < 0.75


def _round_size(letter_size: float) -> float:
    """Return a size in whole and half points: that of the same letters differs a little."""
    return round(letter_size * 2) / 2


def _measure_page_margins(all_lines: Sequence[FlowLine]) -> dict[int, float]:
    """Return where the leftmost long line of each page begins."""
    margins_by_page: dict[int, float] = {}
    for flow_line in all_lines:
        if len(flow_line.line.text) >= _MIN_MARGIN_LINE_CHARS:
            page_margin = margins_by_page.get(flow_line.page, flow_line.line.left)
            margins_by_page[flow_line.page] = min(page_margin, flow_line.line.left)
    return margins_by_page


def _measure_usual_lowest_bottom(all_lines: Sequence[FlowLine]) -> float:
    """Return where the last line of a full page usually stands."""
    lowest_bottom_by_page: dict[int, float] = {}
    for flow_line in all_lines:
        line_bottom = flow_line.line.bottom
        lowest_bottom_by_page[flow_line.page] = min(
            line_bottom, lowest_bottom_by_page.get(flow_line.page, line_bottom)
        )
    sorted_bottoms = sorted(lowest_bottom_by_page.values())
    return sorted_bottoms[len(sorted_bottoms) // 4] if sorted_bottoms else 0.0


def _find_contents_line_indexes(all_lines: Sequence[FlowLine]) -> set[int]:
    """Return the lines of tables of contents: most of them end in page numbers, which rise."""
    contents_line_indexes: set[int] = set()
    contents_indexes_and_pages: list[tuple[int, int]] = []
    for line_index, flow_line in enumerate(all_lines):
        line_end_text = flow_line.line.text[-_MAX_LINE_END_CHARS:]
        if not line_end_text[-1:].isdigit():
            continue
        if _CONTENTS_LEADERS_PATTERN.search(line_end_text):
            contents_line_indexes.add(line_index)
        number_match = _NUMBER_AT_END_PATTERN.search(line_end_text)
        if number_match is None:
            continue
        page_number = int(number_match[1])
        if contents_indexes_and_pages and (
            line_index - contents_indexes_and_pages[-1][0] > _MAX_CONTENTS_LINE_GAP
            or page_number < contents_indexes_and_pages[-1][1]
        ):
            contents_line_indexes |= _list_line_indexes_of_run(contents_indexes_and_pages)
            contents_indexes_and_pages = []
        contents_indexes_and_pages.append((line_index, page_number))
    contents_line_indexes |= _list_line_indexes_of_run(contents_indexes_and_pages)
    return contents_line_indexes | _list_contents_page_line_indexes(
        all_lines, contents_line_indexes
    )


def _find_line_ranges_of_figure_pages(
    all_lines: Sequence[FlowLine], usual_line_length: int
) -> dict[int, range]:
    """Return the lines of each page that has a caption and no line as long as one of text."""
    line_ranges_by_figure_page: dict[int, range] = {}
    first_line_index = 0
    for page_number, page_lines in groupby(all_lines, key=lambda flow_line: flow_line.page):
        line_texts = [flow_line.line.text for flow_line in page_lines]
        has_body_text = any(_is_body_text(line_text, usual_line_length) for line_text in line_texts)
        if not has_body_text and any(map(FIGURE_CAPTION_PATTERN.match, line_texts)):
            line_ranges_by_figure_page[page_number] = range(
                first_line_index, first_line_index + len(line_texts)
            )
        first_line_index += len(line_texts)
    return line_ranges_by_figure_page


def _is_body_text(line_text: str, usual_line_length: int) -> bool:
    """Whether a line is too long for a label, or ends like a sentence."""
    return len(line_text) >= _MAX_FIGURE_LABEL_SHARE * usual_line_length or (
        len(line_text) >= _MIN_SENTENCE_END_CHARS and line_text.endswith(_SENTENCE_ENDS)
    )


def _list_line_indexes_of_run(contents_indexes_and_pages: Sequence[tuple[int, int]]) -> set[int]:
    """Return the lines from the first to the last of a run; none if it is too short."""
    if len(contents_indexes_and_pages) < _MIN_CONTENTS_LINES:
        return set()
    return set(range(contents_indexes_and_pages[0][0], contents_indexes_and_pages[-1][0] + 1))


def _list_contents_page_line_indexes(
    all_lines: Sequence[FlowLine], contents_line_indexes: set[int]
) -> set[int]:
    """Return all lines of the pages that are contents for the most part."""
    if not contents_line_indexes:
        return set()
    line_indexes_by_page: defaultdict[int, list[int]] = defaultdict(list)
    for line_index, flow_line in enumerate(all_lines):
        line_indexes_by_page[flow_line.page].append(line_index)
    return {
        line_index
        for page_line_indexes in line_indexes_by_page.values()
        if len(contents_line_indexes.intersection(page_line_indexes))
        >= _MIN_CONTENTS_LINE_SHARE * len(page_line_indexes)
        for line_index in page_line_indexes
    }

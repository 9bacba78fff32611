"""Turns pages into text: rejoins words, separates paragraphs, drops running headers and footers."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from readingroom.ingest.read.page import BROKEN_WORD_MARK, Box, DrawnRule, Line, RawPage
from readingroom.ingest.structure.page_edges import (
    PAGE_EDGE_SHARE,
    find_heading_header_keys,
    is_printed_page_number,
    make_page_row_key,
)

_DEFAULT_LEADING = 1.2
# A distance this many times the usual one separates two paragraphs.
_MIN_PARAGRAPH_GAP_RATIO = 1.3
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "”", '"')
_WORD_PATTERN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD_PATTERN = re.compile(rf"{_WORD_PATTERN.pattern}$")
_MAX_WORD_CHARS = 100
# A line that has become this long by joining is joined to no more.
_MAX_JOINED_CHARS = 5_000
# Words by which headers are known that end in the name of a section.
_BEGINNING_WORD_COUNT = 3
_NUMBER_AT_END_PATTERN = re.compile(r"(?:^|\s)(\d{1,4})$")
_NUMBER_AT_START_PATTERN = re.compile(r"(\d{1,4})(?=\s|$)")
# Of lines with the number of their page; fewer may be numbered footnotes or headings.
_MIN_NUMBERED_PAGES = 5
_MAX_FOOTER_CHARS = 120
# Letters this much smaller than the usual ones, at the top of pages, are those of a header.
_MAX_HEADER_SIZE_RATIO = 0.92
# Share of a page's height in which the rules of headers and footers are drawn, beside the text.
_RULE_EDGE_HEIGHT_SHARE = 1.5 * PAGE_EDGE_SHARE
# Letters this many times the usual height, on page after page, are written across the text.
_MIN_WATERMARK_SIZE_RATIO = 2.0
# Among the keys where there are any: most files have none, and every line would be looked up.
_HAS_WATERMARKS_KEY = ("\0\0", 0)


@dataclass(frozen=True, slots=True)
class FlowLine:
    """A line and where it begins in the document's text."""

    line: Line
    start_offset: int
    page: int
    starts_paragraph: bool
    box: Box | None = None
    """The panel on its page in which the line stands."""


@dataclass(frozen=True, slots=True)
class TextFlow:
    """The cleaned text of a document, and where its lines and pages are in it."""

    text: str
    lines: list[FlowLine]
    page_start_offsets: list[int]
    page_end_offsets: list[int]
    page_texts: list[str]
    """The full text of each page, with headers and footers."""
    rules_by_page: dict[int, list[DrawnRule]]
    """The lines drawn across each page, but for those of headers and footers."""


def make_text_flow(raw_pages: Sequence[RawPage]) -> TextFlow:
    """Return the text of the pages in order."""
    rejoin_words(raw_pages)
    leading_ratio = _measure_leading_ratio(raw_pages)
    running_line_keys = _find_running_line_keys(raw_pages)
    text_pieces: list[str] = []
    all_lines: list[FlowLine] = []
    page_start_offsets: list[int] = []
    page_end_offsets: list[int] = []
    text_offset = 0
    for raw_page in raw_pages:
        body_lines = [
            line
            for line in raw_page.lines
            if not _is_running_line(line, raw_page, running_line_keys)
        ]
        page_start_offsets.append(text_offset)
        for line, begins_paragraph in zip(
            body_lines, _list_paragraph_beginnings(body_lines, leading_ratio), strict=True
        ):
            if all_lines:
                is_new_page = all_lines[-1].page != raw_page.number
                # Across pages there is no distance to measure: a paragraph ends where its sentence
                # does.
                begins_paragraph = (
                    all_lines[-1].line.text.endswith(_SENTENCE_ENDS)
                    if is_new_page
                    else begins_paragraph
                )
                line_separator = "\n\n" if begins_paragraph else "\n"
                text_pieces.append(line_separator)
                text_offset += len(line_separator)
                if is_new_page:
                    page_start_offsets[-1] = text_offset
            line_box = _find_box_of_line(line, raw_page.boxes)
            all_lines.append(
                FlowLine(line, text_offset, raw_page.number, begins_paragraph, line_box)
            )
            text_pieces.append(line.text)
            text_offset += len(line.text)
        page_end_offsets.append(text_offset)
    for page_index in reversed(range(len(raw_pages))):
        if page_start_offsets[page_index] == page_end_offsets[page_index]:
            # A page without text lies where the next one begins.
            next_page_start_offset = (
                page_start_offsets[page_index + 1]
                if page_index + 1 < len(raw_pages)
                else text_offset
            )
            page_start_offsets[page_index] = page_end_offsets[page_index] = next_page_start_offset
    page_texts = [_build_page_text(raw_page.lines, leading_ratio) for raw_page in raw_pages]
    return TextFlow(
        "".join(text_pieces),
        all_lines,
        page_start_offsets,
        page_end_offsets,
        page_texts,
        _list_body_rules_by_page(raw_pages),
    )


def _list_body_rules_by_page(raw_pages: Sequence[RawPage]) -> dict[int, list[DrawnRule]]:
    """Return the rules of each page but for those at one place near the edge of half of them."""
    page_counts_by_rule_key = Counter(
        rule_key
        for raw_page in raw_pages
        for rule_key in {
            _make_drawn_rule_key(drawn_rule)
            for drawn_rule in raw_page.rules
            if min(drawn_rule.vertical_position, raw_page.height - drawn_rule.vertical_position)
            < _RULE_EDGE_HEIGHT_SHARE * raw_page.height
        }
    )
    min_page_count = max(3, 0.5 * len(raw_pages))
    return {
        raw_page.number: body_rules
        for raw_page in raw_pages
        if (
            body_rules := [
                drawn_rule
                for drawn_rule in raw_page.rules
                if page_counts_by_rule_key[_make_drawn_rule_key(drawn_rule)] < min_page_count
            ]
        )
    }


def _make_drawn_rule_key(drawn_rule: DrawnRule) -> tuple[int, int]:
    # Facing pages may have different margins, but their lines are equally wide and high.
    return round((drawn_rule.right - drawn_rule.left) / 6), round(drawn_rule.vertical_position / 6)


def rejoin_words(raw_pages: Sequence[RawPage]) -> None:
    """Rejoin words broken at line ends, in the way that the rest of the document writes them.

    `infra-structure` loses its hyphen and `plan-making` keeps it: only the other occurrences of a
    word can tell which.
    """
    for raw_page in raw_pages:
        raw_page.lines = [*_join_broken_lines(raw_page.lines)]
    broken_lines = [
        line for raw_page in raw_pages for line in raw_page.lines if BROKEN_WORD_MARK in line.text
    ]
    if not broken_lines:
        return
    line_texts = (line.text for raw_page in raw_pages for line in raw_page.lines)
    word_counts = Counter(
        word.lower() for line_text in line_texts for word in _WORD_PATTERN.findall(line_text)
    )
    breaks_words = any(_has_proven_break(line.text, word_counts) for line in broken_lines)
    for line in broken_lines:
        line.text = _rejoin_words_of_line(line.text, word_counts, breaks_words).strip()


def _has_proven_break(line_text: str, word_counts: Counter[str]) -> bool:
    """Whether a word broken in a line is written whole elsewhere, so that its typesetter broke it.

    Others break lines only at the hyphens that words have of their own.
    """
    text_pieces = line_text.split(BROKEN_WORD_MARK)
    return any(
        (word_head_match := _LAST_WORD_PATTERN.search(text_before[-_MAX_WORD_CHARS:]))
        and (word_tail_match := _WORD_PATTERN.match(text_after))
        and word_counts[(word_head_match[0] + word_tail_match[0]).lower()]
        for text_before, text_after in pairwise(text_pieces)
    )


def _rejoin_words_of_line(line_text: str, word_counts: Counter[str], breaks_words: bool) -> str:
    """Return a line with the words around each mark rejoined; a mark between others is a hyphen."""
    # Not one pattern for both words: it would try every letter before a mark as the first.
    rejoined_pieces: list[str] = []
    text_before, *broken_pieces = line_text.split(BROKEN_WORD_MARK)
    for text_after in broken_pieces:
        head_match = _LAST_WORD_PATTERN.search(text_before[-_MAX_WORD_CHARS:])
        tail_match = _WORD_PATTERN.match(text_after)
        if head_match and tail_match:
            rejoined_pieces += [
                text_before[: len(text_before) - len(head_match[0])],
                _rejoin_word(head_match[0], tail_match[0], word_counts, breaks_words),
            ]
            text_before = text_after[tail_match.end() :]
        else:
            rejoined_pieces += [text_before, "-"]
            text_before = text_after
    return "".join([*rejoined_pieces, text_before])


def _rejoin_word(
    word_head: str, word_tail: str, word_counts: Counter[str], breaks_words: bool
) -> str:
    joined_word, hyphenated_word = word_head + word_tail, f"{word_head}-{word_tail}"
    is_hyphen_usual = word_counts[hyphenated_word.lower()] > word_counts[joined_word.lower()]
    # The halves at the end of one line and the beginning of the next were counted once themselves.
    is_compound = not breaks_words and all(
        word_counts[word_half.lower()] > 1 for word_half in (word_head, word_tail)
    )
    return (
        hyphenated_word
        if is_hyphen_usual or is_compound or not word_tail.islower() or "-" in word_tail
        else joined_word
    )


def _join_broken_lines(page_lines: Sequence[Line]) -> Iterator[Line]:
    """Append the second half of a broken word to the first, where the reader has not done so."""
    line_above: Line | None = None
    for line in page_lines:
        if line_above and _ends_in_broken_word(line_above.text) and line.text[0].islower():
            second_half_of_word, _, rest_of_line = line.text.partition(" ")
            line_above.text = line_above.text[:-1] + BROKEN_WORD_MARK + second_half_of_word
            line_above.last_bottom = line.last_bottom
            if not rest_of_line:
                continue
            line.text = rest_of_line.lstrip()
        yield line
        line_above = line


def _find_box_of_line(line: Line, boxes: Sequence[Box]) -> Box | None:
    """Return the box that holds a line's first letter; of several, the smallest."""
    line_middle_height = line.bottom + line.letter_height / 2
    holding_boxes = [
        box
        for box in boxes
        if box.left - 2 <= line.left <= box.right and box.bottom <= line_middle_height <= box.top
    ]
    return min(holding_boxes, key=lambda box: box.top - box.bottom, default=None)


def _ends_in_broken_word(line_text: str) -> bool:
    """Whether a line ends in the middle of a word."""
    return (
        line_text[-1:] == "-" and line_text[-2:-1].isalpha() and len(line_text) < _MAX_JOINED_CHARS
    )


def _measure_leading_ratio(raw_pages: Sequence[RawPage]) -> float:
    """Return the usual distance between two lines of a paragraph, in letter heights."""
    distance_ratios = [
        (line_above.last_bottom - line_below.bottom) / line_below.letter_height
        for raw_page in raw_pages
        for line_above, line_below in pairwise(raw_page.lines)
        if line_below.letter_height > 0
        and abs(line_above.letter_height - line_below.letter_height) < 0.5
    ]
    usual_ratios = sorted(ratio for ratio in distance_ratios if 0.8 < ratio < 3)
    # The lower quartile: where paragraphs are short, half of all distances are between them.
    return usual_ratios[len(usual_ratios) // 4] if usual_ratios else _DEFAULT_LEADING


def _list_paragraph_beginnings(page_lines: Sequence[Line], leading_ratio: float) -> list[bool]:
    if not page_lines:
        return []
    return [
        True,
        *(
            _is_paragraph_gap_between(line_above, line_below, leading_ratio)
            for line_above, line_below in pairwise(page_lines)
        ),
    ]


def _is_paragraph_gap_between(line_above: Line, line_below: Line, leading_ratio: float) -> bool:
    if line_below.has_gap_above is not None:
        return line_below.has_gap_above
    baseline_distance = line_above.last_bottom - line_below.bottom
    if baseline_distance < 0:  # back at the top, in another column
        return line_above.text.endswith(_SENTENCE_ENDS)
    return baseline_distance > _MIN_PARAGRAPH_GAP_RATIO * leading_ratio * max(
        min(line_above.letter_height, line_below.letter_height), 1.0
    )


def _find_running_line_keys(raw_pages: Sequence[RawPage]) -> set[tuple[str, int]]:
    """Return the lines that are at the same height of many pages, whatever numbers they hold.

    Where half of the pages have lines that only begin alike, as headers do that name the section
    below them, the beginning is returned.
    """
    # Chapters have headers of their own, so a quarter of the pages is enough; three, lest a short
    # file's lines vanish.
    usual_size = _measure_usual_letter_size(raw_pages)
    return (
        _find_frequent_line_keys(raw_pages, _make_text_and_height_key, 0.25)
        | _find_frequent_line_keys(raw_pages, _make_line_beginning_key, 0.5)
        | _find_header_keys(raw_pages, usual_size)
        | _find_page_number_keys(raw_pages)
        | _find_watermark_keys(raw_pages, usual_size)
        | find_heading_header_keys(raw_pages)
    )


def _measure_usual_letter_size(raw_pages: Sequence[RawPage]) -> float:
    """Return the size of most letters."""
    char_counts_by_size: Counter[float] = Counter()
    for raw_page in raw_pages:
        for line in raw_page.lines:
            char_counts_by_size[round(line.letter_height * 2) / 2] += len(line.text)
    return char_counts_by_size.most_common(1)[0][0] if char_counts_by_size else 0.0


def _find_watermark_keys(raw_pages: Sequence[RawPage], usual_size: float) -> set[tuple[str, int]]:
    """Return the large words at the same place of half of the pages, across their text."""
    page_counts_by_watermark_key = Counter(
        watermark_key
        for raw_page in raw_pages
        for watermark_key in {
            _make_watermark_key(line)
            for line in raw_page.lines
            if line.letter_height >= _MIN_WATERMARK_SIZE_RATIO * usual_size
        }
    )
    min_page_count = max(3, 0.5 * len(raw_pages))
    watermark_keys = {
        watermark_key
        for watermark_key, page_count in page_counts_by_watermark_key.items()
        if page_count >= min_page_count
    }
    return watermark_keys | {_HAS_WATERMARKS_KEY} if watermark_keys else set()


def _find_header_keys(raw_pages: Sequence[RawPage], usual_size: float) -> set[tuple[str, int]]:
    """Return the heights at the top of pages where half of them have a line in small letters.

    Such headers may name the policy or the section below, and so differ from page to page.
    """
    max_header_size = _MAX_HEADER_SIZE_RATIO * usual_size
    page_counts_by_row_key = Counter(
        row_key
        for raw_page in raw_pages
        for row_key in {
            _make_header_row_key(line)
            for line in raw_page.lines
            if _is_at_page_top(line, raw_page) and line.letter_height <= max_header_size
        }
    )
    min_page_count = max(3, 0.5 * len(raw_pages))
    return {
        row_key
        for row_key, page_count in page_counts_by_row_key.items()
        if page_count >= min_page_count
    }


def _find_page_number_keys(raw_pages: Sequence[RawPage]) -> set[tuple[str, int]]:
    """Return the heights at which many pages have a line with the number printed on the page.

    Such a line may name the chapter, and so differ from page to page, or stand beside the text.
    """
    page_counts_by_number_key = Counter(
        number_key
        for raw_page in raw_pages
        for number_key in {
            number_key
            for line in raw_page.lines
            for number_key in _make_page_number_keys(line, raw_page)
        }
    )
    min_page_count = max(_MIN_NUMBERED_PAGES, 0.25 * len(raw_pages))
    return {
        number_key
        for number_key, page_count in page_counts_by_number_key.items()
        if page_count >= min_page_count
    }


def _make_page_number_keys(line: Line, raw_page: RawPage) -> list[tuple[str, int]]:
    """Return keys of a line's height and of how far its number is from that of its page."""
    if len(line.text) > _MAX_FOOTER_CHARS:
        return []
    number_matches = [_NUMBER_AT_END_PATTERN.search(line.text)]
    is_at_page_bottom = _is_at_page_edge(line, raw_page) and not _is_at_page_top(line, raw_page)
    if is_at_page_bottom and not line.text.endswith(_SENTENCE_ENDS):
        number_matches.append(_NUMBER_AT_START_PATTERN.match(line.text))
    return [
        (f"\0#{int(number_match[1]) - raw_page.number}", round(line.bottom / 6))
        for number_match in number_matches
        if number_match and (_is_at_page_edge(line, raw_page) or number_match[1] == line.text)
    ]


def _find_frequent_line_keys(
    raw_pages: Sequence[RawPage],
    make_line_key: Callable[[Line], tuple[str, int]],
    min_page_share: float,
) -> set[tuple[str, int]]:
    page_counts_by_key = Counter(
        line_key
        for raw_page in raw_pages
        for line_key in {
            make_line_key(line) for line in raw_page.lines if _is_at_page_edge(line, raw_page)
        }
    )
    min_page_count = max(3, min_page_share * len(raw_pages))
    return {
        line_key
        for line_key, page_count in page_counts_by_key.items()
        if page_count >= min_page_count
    }


def _is_running_line(
    line: Line, raw_page: RawPage, running_line_keys: set[tuple[str, int]]
) -> bool:
    if not running_line_keys.isdisjoint(_make_page_number_keys(line, raw_page)):
        return True
    if not _is_at_page_edge(line, raw_page):
        return (
            _HAS_WATERMARKS_KEY in running_line_keys
            and _make_watermark_key(line) in running_line_keys
        )
    line_keys = {
        _make_text_and_height_key(line),
        _make_line_beginning_key(line),
        make_page_row_key(line, raw_page.number),
    }
    if _is_at_page_top(line, raw_page):
        line_keys.add(_make_header_row_key(line))
    return bool(line_keys & running_line_keys) or is_printed_page_number(line.text)


def _is_at_page_edge(line: Line, raw_page: RawPage) -> bool:
    return (
        not PAGE_EDGE_SHARE * raw_page.height
        <= line.bottom
        <= (1 - PAGE_EDGE_SHARE) * raw_page.height
    )


def _is_at_page_top(line: Line, raw_page: RawPage) -> bool:
    return line.bottom > (1 - PAGE_EDGE_SHARE) * raw_page.height


def _make_header_row_key(line: Line) -> tuple[str, int]:
    """Return the key of a line's height alone, in letters of its size."""
    return f"\0{round(line.letter_height)}", round(line.bottom / 6)


def _make_watermark_key(line: Line) -> tuple[str, int]:
    return f"\0\0{line.text}", round(line.bottom / 6)


def _make_text_and_height_key(line: Line) -> tuple[str, int]:
    # Rounded to six points, because scanned and re-set pages shift by a few.
    return re.sub(r"\d+", "#", line.text.lower()), round(line.bottom / 6)


def _make_line_beginning_key(line: Line) -> tuple[str, int]:
    """Return the key of a line's beginning; one without letters alone there is like no other's."""
    line_words = line.text.lower().split()
    first_words = line_words[:_BEGINNING_WORD_COUNT]
    are_letters = len(first_words) == _BEGINNING_WORD_COUNT and all(map(str.isalpha, first_words))
    return " ".join(first_words if are_letters else line_words), round(line.bottom / 6)


def _build_page_text(page_lines: Iterable[Line], leading_ratio: float) -> str:
    page_lines = list(page_lines)
    separated_line_texts = [
        ("\n\n" if begins_paragraph else "\n") + line.text
        for line, begins_paragraph in zip(
            page_lines, _list_paragraph_beginnings(page_lines, leading_ratio), strict=True
        )
    ]
    return "".join(separated_line_texts).lstrip("\n")

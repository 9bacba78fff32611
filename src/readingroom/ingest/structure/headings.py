"""Finds headings that say what they are: parts, chapters, sections, annexes, tables and figures.

A heading is recognised by its words *and* its look: a mere mention (`see Chapter 9`) is none.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from readingroom.ingest.structure.numbering import find_rising_number_indexes
from readingroom.ingest.structure.starts import (
    LEVELS_BY_SECTION_KIND,
    SectionKind,
    SectionStart,
    make_section_start,
)
from readingroom.ingest.structure.typography import Typography

# No pattern may take more than one pass over a line: see `numbering`.
# A title begins with a capital; after a mere mention the sentence goes on in lower case.
TITLE_REGEX = r"(?:\s*[:.|–—-]\s*|\s+)?(?P<title>[A-Z0-9“‘\"'](?s:.*))?"
_WORD_HEADING_PATTERN = re.compile(
    r"(?P<word>(?i:chapter|part|section))\s+"
    rf"(?P<number>\d{{1,2}}(?:\.\d{{1,3}})*|[IVX]+|[A-Z])(?![\w(]){TITLE_REGEX}"
)
_ANNEX_HEADING_PATTERN = re.compile(
    rf"(?P<word>(?i:annex|appendix))\s+(?P<number>[A-Z]|\d{{1,2}}|[IVX]+)(?!\w){TITLE_REGEX}"
)
_EXHIBIT_HEADING_PATTERN = re.compile(
    r"(?P<word>(?i:table|figure|box))\s+"
    rf"(?P<number>[A-Z]?\d{{1,2}}(?:[-.]\d{{1,3}})?[a-z]?)(?!\w){TITLE_REGEX}"
)
_NUMBERED_TITLE_PATTERN = re.compile(r"(?P<number>\d{1,2})\.?\s*(?P<title>[A-Z][^.]{2,})")
_LEADING_NUMBER_PATTERN = re.compile(r"\d{1,3}[.)\s]")
_MAX_UNNUMBERED_REF_CHARS = 100
_MIN_PLAIN_HEADINGS = 2
# Of headings above a section, which are part of no section before it.
_MAX_LEADING_HEADING_LINES = 6
# Points that a heading may begin right of the section below it; an item of a list is further.
_MAX_LEADING_HEADING_INDENT = 40.0
# Rows that begin alike; fewer may be headings, one below the other.
_MIN_TABLE_ROWS = 3
# Of the words that these headings begin with.
_HEADING_FIRST_LETTERS = frozenset("CcPpSsAaTtFfBb")


def find_headings(typography: Typography) -> list[SectionStart]:
    """Return the headings in order, one for each line and for each reference.

    Of those with the same reference, the one of the longest section is returned: the others are in
    lists, such as an index of tables.
    """
    headings = [*_iterate_worded_headings(typography), *_iterate_numbered_chapters(typography)]
    return _remove_repeated_headings(
        _exclude_cited_sections(typography, headings), len(typography.lines)
    )


def find_unnumbered_headings(
    typography: Typography, other_section_starts: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return headings without numbers, each under its own words, for want of others."""
    taken_line_indexes = {section_start.line_index for section_start in other_section_starts}
    headings = [
        make_section_start(
            line_index,
            "heading",
            typography.join_title_lines(line_index, flow_line.line.text)[
                :_MAX_UNNUMBERED_REF_CHARS
            ],
            None,
        )
        for line_index, flow_line in enumerate(typography.lines)
        if line_index not in taken_line_indexes
        and line_index not in typography.contents_line_indexes
        and flow_line.box is None
        and (typography.is_set_in_one_style or typography.is_emphasised(line_index))
        and typography.is_section_start(line_index)
        and (not typography.is_set_in_one_style or typography.is_above_prose(line_index))
    ]
    # One alone in a document without any typography may be anything: a name, a date, a salutation.
    if typography.is_set_in_one_style and len(headings) < _MIN_PLAIN_HEADINGS:
        return []
    return _remove_repeated_headings(headings, len(typography.lines))


def find_leading_headings_index(
    typography: Typography, stretch_start_index: int, stretch_end_index: int
) -> int:
    """Return the first of the headings that end a stretch of lines, or the line after them all."""
    headings_index = stretch_end_index
    if stretch_end_index >= len(typography.lines):
        return headings_index
    max_left_edge = typography.lines[stretch_end_index].line.left + _MAX_LEADING_HEADING_INDENT
    for line_index in range(
        stretch_end_index - 1,
        max(stretch_start_index, stretch_end_index - _MAX_LEADING_HEADING_LINES) - 1,
        -1,
    ):
        flow_line = typography.lines[line_index]
        if (flow_line.box and flow_line.box.is_grid) or not typography.could_be_title(line_index):
            break
        is_heading = typography.is_emphasised(line_index) or (
            flow_line.line.left <= max_left_edge
            and (
                typography.is_paragraph_of_its_own(line_index)
                or typography.is_italic_title(line_index)
            )
        )
        if not is_heading or _is_last_of_table_rows(typography, line_index):
            break
        if typography.is_block_start(line_index):
            headings_index = line_index
    return headings_index


def _is_last_of_table_rows(typography: Typography, line_index: int) -> bool:
    """Whether a line is the last of several that begin alike, as the rows of a table do."""
    last_row_line = typography.lines[line_index].line
    if not last_row_line.is_bold:
        return False
    table_row_count = 0
    while (
        line_index >= 0
        and table_row_count < _MIN_TABLE_ROWS
        and typography.lines[line_index].line.left >= last_row_line.left - 1
    ):
        is_block_start = typography.is_block_start(line_index)
        row_line = typography.lines[line_index].line
        if is_block_start and not (
            abs(row_line.left - last_row_line.left) < 1
            and abs(row_line.letter_height - last_row_line.letter_height) < 0.5
            and row_line.is_bold == last_row_line.is_bold
        ):
            break
        table_row_count += is_block_start
        line_index -= 1
    return table_row_count >= _MIN_TABLE_ROWS


def _iterate_worded_headings(typography: Typography) -> Iterator[SectionStart]:
    for line_index, flow_line in enumerate(typography.lines):
        line_text = flow_line.line.text
        if (
            line_text[0] not in _HEADING_FIRST_LETTERS
            or line_index in typography.contents_line_indexes
        ):
            continue
        if heading_match := _WORD_HEADING_PATTERN.fullmatch(
            line_text
        ) or _ANNEX_HEADING_PATTERN.fullmatch(line_text):
            if typography.is_heading(line_index) and (
                typography.is_large_line(line_index) or typography.is_block_start(line_index)
            ):
                yield _make_word_heading_start(line_index, heading_match)
        elif (heading_match := _EXHIBIT_HEADING_PATTERN.fullmatch(line_text)) and (
            typography.is_block_start(line_index) or typography.is_emphasised(line_index)
        ):
            yield make_section_start(
                line_index, "exhibit", _make_heading_ref(heading_match), heading_match["title"]
            )


def _make_word_heading_start(line_index: int, heading_match: re.Match[str]) -> SectionStart:
    heading_word, section_number, section_title = (
        heading_match["word"].title(),
        heading_match["number"],
        heading_match["title"],
    )
    if heading_word == "Section":
        heading_level = LEVELS_BY_SECTION_KIND["section"] + section_number.count(".")
        return SectionStart(
            line_index, "section", f"Section {section_number}", section_title or "", heading_level
        )
    section_kind: SectionKind = (
        "part" if heading_word == "Part" else "chapter" if heading_word == "Chapter" else "annex"
    )
    return make_section_start(
        line_index, section_kind, _make_heading_ref(heading_match), section_title
    )


def _make_heading_ref(heading_match: re.Match[str]) -> str:
    return f"{heading_match['word'].title()} {heading_match['number']}"


def _iterate_numbered_chapters(typography: Typography) -> Iterator[SectionStart]:
    """Yield `5. Title` where such titles count up, in large letters or else in bold."""
    plain_title_line_indexes = _find_numbered_title_line_indexes(typography)
    line_indexes_and_matches = [
        (line_index, heading_match)
        for line_index, flow_line in enumerate(typography.lines)
        if flow_line.line.text[0].isdigit()
        and (typography.is_emphasised(line_index) or line_index in plain_title_line_indexes)
        and line_index not in typography.contents_line_indexes
        and (heading_match := _NUMBERED_TITLE_PATTERN.fullmatch(flow_line.line.text))
        and typography.is_heading(line_index)
    ]
    large_line_indexes_and_matches = [
        index_and_match
        for index_and_match in line_indexes_and_matches
        if typography.is_large_line(index_and_match[0])
    ]
    line_indexes_and_matches = large_line_indexes_and_matches or [
        index_and_match
        for index_and_match in line_indexes_and_matches
        if index_and_match[0] in plain_title_line_indexes
        or typography.is_section_start(index_and_match[0])
    ]
    for candidate_index in find_rising_number_indexes(
        [int(heading_match["number"]) for _, heading_match in line_indexes_and_matches], max_step=2
    ):
        line_index, heading_match = line_indexes_and_matches[candidate_index]
        yield make_section_start(
            line_index, "chapter", f"Chapter {heading_match['number']}", heading_match["title"]
        )


def _find_numbered_title_line_indexes(typography: Typography) -> set[int]:
    """Return the lines `5. Title` of a document in one size and weight, each above its text.

    There are none where other paragraphs begin with numbers: those are what is cited.
    """
    if not typography.is_set_in_one_style:
        return set()
    numbered_line_indexes = [
        line_index
        for line_index, flow_line in enumerate(typography.lines)
        if typography.is_block_start(line_index)
        and _LEADING_NUMBER_PATTERN.match(flow_line.line.text)
    ]
    are_all_lines_titles = all(
        _NUMBERED_TITLE_PATTERN.fullmatch(typography.lines[line_index].line.text)
        and typography.is_above_prose(line_index)
        for line_index in numbered_line_indexes
    )
    return (
        set(numbered_line_indexes)
        if are_all_lines_titles and len(numbered_line_indexes) > 1
        else set()
    )


def _exclude_cited_sections(
    typography: Typography, headings: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return the headings but for `Section 20` alone in plain letters: an Act that is cited."""
    heading_counts_by_first_word = Counter(
        heading_start.ref.partition(" ")[0] for heading_start in headings
    )
    return [
        heading_start
        for heading_start in headings
        if heading_start.title
        or heading_start.kind == "exhibit"
        or typography.is_emphasised(heading_start.line_index)
        or heading_counts_by_first_word[heading_start.ref.partition(" ")[0]] > 1
    ]


def _remove_repeated_headings(
    headings: Sequence[SectionStart], document_line_count: int
) -> list[SectionStart]:
    headings_by_line_index = {
        heading_start.line_index: heading_start for heading_start in reversed(headings)
    }
    ordered_headings = sorted(
        headings_by_line_index.values(), key=lambda heading_start: heading_start.line_index
    )
    section_end_indexes = [
        *(heading_start.line_index for heading_start in ordered_headings),
        document_line_count,
    ][1:]
    longest_sections_by_ref: dict[str, tuple[int, SectionStart]] = {}
    for heading_start, section_end_index in zip(ordered_headings, section_end_indexes, strict=True):
        section_line_count = section_end_index - heading_start.line_index
        if (
            heading_start.ref not in longest_sections_by_ref
            or section_line_count > longest_sections_by_ref[heading_start.ref][0]
        ):
            longest_sections_by_ref[heading_start.ref] = section_line_count, heading_start
    return sorted(
        (heading_start for _, heading_start in longest_sections_by_ref.values()),
        key=lambda heading_start: heading_start.line_index,
    )

"""Finds the notes at the feet of pages, which interrupt the text that goes on after them."""

import re
from collections.abc import Iterable
from itertools import groupby

from readingroom.ingest.structure.typography import Typography

# The raised number may seem to touch the first word, or a full stop follow it.
_NOTE_MARK_PATTERN = re.compile(r"(?P<mark>\d{1,3})(?:\.?\s+\S|[A-Z“‘]|$)")

# Without a full stop, which the number of a clause may have.
_RAISED_NOTE_MARK_PATTERN = re.compile(r"\d{1,2}(?:\s+\S|[A-Z“‘])")
# The number of a policy is no mark.
_NAMED_CODE_PATTERN = re.compile(r"\b[Pp]olic(?:y|ies)\s+[A-Z]{1,6}[ .-]?\d{1,3}")
# Points by which the letters of one note may differ in height.
_NOTE_LETTER_HEIGHT_TOLERANCE = 0.3


def find_marks_by_footnote_line(typography: Typography) -> dict[int, str]:
    """Return the lines of footnotes, each with the mark of its note.

    They stand last on their page, in small letters, and the text above has the mark of the first.
    """
    marks_by_line_index: dict[int, str] = {}
    for _, grouped_line_indexes in groupby(
        range(len(typography.lines)), key=lambda line_index: typography.lines[line_index].page
    ):
        page_line_indexes = [*grouped_line_indexes]
        note_line_indexes = _list_footnote_line_indexes(typography, page_line_indexes)
        if not note_line_indexes:
            continue
        page_marks_by_line_index: dict[int, str] = {}
        note_mark = ""
        for line_index in note_line_indexes:
            note_mark_match = _NOTE_MARK_PATTERN.match(typography.lines[line_index].line.text)
            note_mark = note_mark_match["mark"] if note_mark_match else note_mark
            page_marks_by_line_index[line_index] = note_mark
        text_line_indexes = range(page_line_indexes[0], note_line_indexes[0])
        if has_note_mark(
            typography, text_line_indexes, page_marks_by_line_index[note_line_indexes[0]]
        ):
            marks_by_line_index |= page_marks_by_line_index
    return marks_by_line_index


def has_note_mark(typography: Typography, text_line_indexes: Iterable[int], note_mark: str) -> bool:
    """Return whether a word of these lines bears the mark of a note."""
    # After a code, only a full stop or the like tells the mark from the code's own number.
    marked_word_pattern = re.compile(rf"[^\W\d](?:[.,;:’”)]?|\d{{1,3}}[.,;:’”)]){note_mark}(?!\w)")
    return any(
        marked_word_pattern.search(
            _NAMED_CODE_PATTERN.sub("Policy X", typography.lines[line_index].line.text)
        )
        for line_index in text_line_indexes
        if note_mark in typography.lines[line_index].line.text
    )


def _list_footnote_line_indexes(typography: Typography, page_line_indexes: list[int]) -> list[int]:
    """Return the last lines of a page that are small, from the first that begins with a number."""
    first_small_position = len(page_line_indexes)
    while first_small_position and _is_small_plain_line(
        typography, page_line_indexes[first_small_position - 1]
    ):
        first_small_position -= 1
    if first_small_position == len(page_line_indexes):
        first_small_position = _find_first_smallest_position(typography, page_line_indexes)
    # A table in small letters stands in the box of the text above it, notes do not.
    box_above = (
        typography.lines[page_line_indexes[first_small_position - 1]].box
        if first_small_position
        else None
    )
    small_line_indexes = [
        line_index
        for line_index in page_line_indexes[first_small_position:]
        if typography.lines[line_index].box is None or typography.lines[line_index].box != box_above
    ]
    for small_position, line_index in enumerate(small_line_indexes):
        if _NOTE_MARK_PATTERN.match(typography.lines[line_index].line.text):
            return small_line_indexes[small_position:]
    return []


def _is_small_plain_line(typography: Typography, line_index: int) -> bool:
    return not typography.lines[line_index].line.is_bold and typography.is_small_line(line_index)


def _find_first_smallest_position(typography: Typography, page_line_indexes: list[int]) -> int:
    """Return the place of the first of the last lines that are smaller than all above them.

    Where the reasons for policies are in small letters, notes are hardly smaller than most text.
    """
    first_smallest_position = len(page_line_indexes)
    note_letter_height = typography.lines[page_line_indexes[-1]].line.letter_height
    if note_letter_height >= typography.usual_letter_size - _NOTE_LETTER_HEIGHT_TOLERANCE:
        return first_smallest_position
    page_lines = [typography.lines[line_index].line for line_index in page_line_indexes]
    while (
        first_smallest_position
        and abs(page_lines[first_smallest_position - 1].letter_height - note_letter_height)
        < _NOTE_LETTER_HEIGHT_TOLERANCE
    ):
        first_smallest_position -= 1
    are_notes = (
        all(
            line.letter_height > note_letter_height + _NOTE_LETTER_HEIGHT_TOLERANCE
            for line in page_lines[:first_smallest_position]
        )
        and _RAISED_NOTE_MARK_PATTERN.match(page_lines[first_smallest_position].text)
        and typography.is_block_start(page_line_indexes[first_smallest_position])
    )
    return first_smallest_position if are_notes else len(page_lines)

"""Puts the lines of a page into the order in which they are read, where their file has another.

Most programs write a page from top to bottom, column by column, and that order is kept. Some write
one layer after the other: all plain paragraphs, then all items of lists, then their numbers.
"""

from collections.abc import Sequence

from readingroom.ingest.read.page import Line

# Share of a page's height at its top and bottom: headers and footers may be written first.
_EDGE_SHARE = 0.09
# Of the height of a letter's box; most letters are wider, so that columns never seem to overlap.
_MIN_LETTER_WIDTH = 0.33
_BAND_WIDTH = 36.0
# Letter heights between two lines of which one is the continuation of the other.
_MAX_LEADING = 2.5
_MAX_INDENT = 40.0
# Of the number or the letter of an item, and how far left of its text it may stand.
_MAX_MARK_CHARS = 8
_MAX_MARK_DISTANCE = 80.0
# Lines in which the text of a mark is looked for.
_MARKED_LINES = 60
# A page with more is a drawing or a table of figures.
_MAX_LINES = 1_000


def put_in_reading_order(page_lines: Sequence[Line], page_height: float) -> list[Line]:
    """Return the lines; one that is written after what stands below it goes before that."""
    body_bottom, body_top = _EDGE_SHARE * page_height, (1 - _EDGE_SHARE) * page_height
    body_lines = [line for line in page_lines if body_bottom <= line.bottom <= body_top]
    is_in_order = not any(map(_goes_back, body_lines, body_lines[1:]))
    if is_in_order or len(page_lines) > _MAX_LINES:
        return [*page_lines]
    ordered_lines: list[Line] = []
    lowest_by_band: dict[int, float] = {}
    place = -1
    for line in page_lines:
        is_at_edge = not body_bottom <= line.bottom <= body_top
        bands = range(int(line.left / _BAND_WIDTH), int(_get_right(line) / _BAND_WIDTH) + 1)
        lowest_bottom = min((lowest_by_band.get(band, line.bottom) for band in bands), default=0.0)
        if (marked_index := _find_marked_line(ordered_lines, line, place)) is not None:
            place = marked_index
        elif not is_at_edge and lowest_bottom < line.bottom - line.size / 2:
            place = _find_place(ordered_lines, line, place)
        else:
            place = len(ordered_lines)
        ordered_lines.insert(place, line)
        if not is_at_edge:
            for band in bands:
                lowest_by_band[band] = min(lowest_by_band.get(band, line.bottom), line.bottom)
    return ordered_lines


def _goes_back(line: Line, next_line: Line) -> bool:
    """Whether a line stands above the one before it, or beside it on its left."""
    rise = next_line.bottom - line.bottom
    return rise > next_line.size / 2 or (
        next_line.left < line.left and abs(rise) < next_line.size / 3
    )


def _find_place(ordered_lines: Sequence[Line], line: Line, last_place: int) -> int:
    """Return where a line goes: after the one that it continues, or before what stands below it."""
    if 0 <= last_place < len(ordered_lines):
        last_line = ordered_lines[last_place]
        distance = last_line.bottom - line.bottom
        is_next_line = 0 <= distance < _MAX_LEADING * line.size and (
            abs(line.left - last_line.left) < _MAX_INDENT
        )
        following_line = (
            ordered_lines[last_place + 1] if last_place + 1 < len(ordered_lines) else None
        )
        if is_next_line and (
            following_line is None
            or following_line.bottom < line.bottom
            or not _overlap(following_line, line)
        ):
            return last_place + 1
    place = 0
    for index, other_line in enumerate(ordered_lines):
        if not _overlap(other_line, line):
            continue
        if other_line.bottom < line.bottom - line.size / 2:
            # What follows the last line above may stand further left: a heading below a table.
            return place or index
        place = index + 1
    return len(ordered_lines)


def _find_marked_line(ordered_lines: Sequence[Line], line: Line, last_place: int) -> int | None:
    """Return the index of the line that a mark such as `a)` belongs to, if it is written before."""
    if len(line.text) > _MAX_MARK_CHARS:
        return None
    for index in range(last_place, max(last_place - _MARKED_LINES, -1), -1):
        text_line = ordered_lines[index]
        is_level = abs(text_line.bottom - line.bottom) < line.size / 3
        if is_level and _get_right(line) < text_line.left < line.left + _MAX_MARK_DISTANCE:
            return index
    return None


def _overlap(line: Line, other_line: Line) -> bool:
    """Whether two lines stand in the same column, one above the other."""
    return line.left < _get_right(other_line) and other_line.left < _get_right(line)


def _get_right(line: Line) -> float:
    """Return where a line ends at the least."""
    return line.left + _MIN_LETTER_WIDTH * line.size * len(line.text)

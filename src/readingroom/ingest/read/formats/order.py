"""Puts the lines of a page into the order in which they are read, where their file has another.

Most programs write a page from top to bottom, column by column, and that order is kept. Some write
one layer after the other: all plain paragraphs, then all items of lists, then their numbers.
"""

from collections.abc import Sequence
from itertools import chain, islice, pairwise

from readingroom.ingest.read.page import BROKEN_WORD_MARK, Line

# Share of a page's height at its top and bottom: headers and footers may be written first.
_EDGE_HEIGHT_SHARE = 0.09
# Letter heights between a header or a footer and the text; at the edge, nearer lines are text.
_MIN_EDGE_DISTANCE = 1.9
# Of the height of a letter's box; most letters are wider, so that columns never seem to overlap.
_MIN_LETTER_WIDTH_RATIO = 0.33
_USUAL_LETTER_WIDTH_RATIO = 0.45
_BAND_WIDTH = 36.0
# Letter heights between two lines of which one is the continuation of the other.
_MAX_LEADING_RATIO = 2.5
_MAX_INDENT = 40.0
# Of the number or the letter of an item, and how far left of its text it may stand.
_MAX_MARK_CHARS = 8
_MAX_MARK_DISTANCE = 80.0
# Lines in which the text of a mark is looked for.
_MAX_LINES_SEARCHED_FOR_MARK = 60
# Of a page that are written before the text around them.
_MAX_EARLY_LINES = 12
# One alone may be a heading that is written last.
_MIN_LINES_ABOVE = 2
# A page with more is a drawing or a table of figures.
_MAX_ORDERED_LINES = 1_000


def put_in_reading_order(page_lines: Sequence[Line], page_height: float) -> list[Line]:
    """Return the lines; one that is written after what stands below it goes before that."""
    body_bottom, body_top = _measure_body(page_lines, page_height)
    body_lines = [
        page_line for page_line in page_lines if body_bottom <= page_line.bottom <= body_top
    ]
    is_in_order = not any(map(_is_back_up_page, body_lines, body_lines[1:]))
    if is_in_order or len(page_lines) > _MAX_ORDERED_LINES:
        return [*page_lines]
    early_groups = _find_early_groups(body_lines)
    early_line_ids = {id(page_line) for early_group in early_groups for page_line in early_group}
    other_lines = [page_line for page_line in page_lines if id(page_line) not in early_line_ids]
    # Nothing goes before the header and the footer that a page begins with.
    body_start = next(
        line_index
        for line_index, page_line in enumerate(other_lines)
        if body_bottom <= page_line.bottom <= body_top
    )
    ordered_lines = _lift_late_lines(other_lines[body_start:], body_bottom, body_top)
    return [
        *other_lines[:body_start],
        *_insert_line_groups(ordered_lines, early_groups),
    ]


def _measure_body(page_lines: Sequence[Line], page_height: float) -> tuple[float, float]:
    """Return between which heights lines are text.

    Near the top, that is what stands apart below the first rows, a header's; near the foot, where
    notes stand apart, what follows the text closely.
    """
    body_bottom, body_top = _EDGE_HEIGHT_SHARE * page_height, (1 - _EDGE_HEIGHT_SHARE) * page_height
    row_pairs = [*pairwise(sorted(page_lines, key=lambda page_line: -page_line.bottom))]
    highest_bottom = next(
        (
            lower_line.bottom
            for upper_line, lower_line in row_pairs
            if _are_rows_apart(upper_line, lower_line)
            # Where the text begins at the top, no header stands above it.
            and upper_line.bottom > body_top
        ),
        page_height,
    )
    lowest_bottom = next(
        (
            upper_line.bottom
            for upper_line, lower_line in row_pairs
            if lower_line.bottom < body_bottom and _are_rows_apart(upper_line, lower_line)
        ),
        body_bottom,
    )
    return min(body_bottom, lowest_bottom), max(body_top, highest_bottom)


def _are_rows_apart(upper_line: Line, lower_line: Line) -> bool:
    letter_height = min(upper_line.letter_height, lower_line.letter_height)
    return upper_line.bottom - lower_line.bottom > _MIN_EDGE_DISTANCE * letter_height


def _lift_late_lines(page_lines: Sequence[Line], body_bottom: float, body_top: float) -> list[Line]:
    """Return the lines, each that is written after what stands below it before that."""
    ordered_lines: list[Line] = []
    lowest_bottom_by_band: dict[int, float] = {}
    insert_index = -1
    for page_line in page_lines:
        is_at_edge = not body_bottom <= page_line.bottom <= body_top
        column_bands = range(
            int(page_line.left / _BAND_WIDTH),
            int(_estimate_right_edge(page_line) / _BAND_WIDTH) + 1,
        )
        lowest_bottom = min(
            (
                lowest_bottom_by_band.get(column_band, page_line.bottom)
                for column_band in column_bands
            ),
            default=0.0,
        )
        if (
            marked_line_index := _find_marked_line(ordered_lines, page_line, insert_index)
        ) is not None:
            insert_index = marked_line_index
        elif not is_at_edge and lowest_bottom < page_line.bottom - page_line.letter_height / 2:
            insert_index = _find_insert_index(ordered_lines, page_line, insert_index)
        else:
            insert_index = len(ordered_lines)
        ordered_lines.insert(insert_index, page_line)
        if not is_at_edge:
            for column_band in column_bands:
                lowest_bottom_by_band[column_band] = min(
                    lowest_bottom_by_band.get(column_band, page_line.bottom), page_line.bottom
                )
    return ordered_lines


def _find_early_groups(body_lines: Sequence[Line]) -> list[list[Line]]:
    """Return the pieces written first though text around them stands above: codes, side headings.

    There are none where a page begins with a whole column.
    """
    early_count = next(
        (
            line_index
            for line_index, page_line in enumerate(body_lines[: _MAX_EARLY_LINES + 1])
            if line_index
            and all(page_line.bottom > early_line.bottom for early_line in body_lines[:line_index])
        ),
        0,
    )
    later_lines = body_lines[early_count:]
    if len(later_lines) < 2 * early_count:
        return []
    early_lines = [
        page_line
        for page_line in body_lines[:early_count]
        if _stands_below_several(page_line, later_lines)
    ]
    if not early_lines:
        return []
    early_groups = [[early_lines[0]]]
    for page_line in early_lines[1:]:
        last_line = early_groups[-1][-1]
        is_next_row = (
            0 < last_line.bottom - page_line.bottom < _MAX_LEADING_RATIO * page_line.letter_height
        )
        if is_next_row and abs(page_line.left - last_line.left) < _MAX_INDENT:
            early_groups[-1].append(page_line)
        else:
            early_groups.append([page_line])
    return early_groups


def _stands_below_several(page_line: Line, later_lines: Sequence[Line]) -> bool:
    """Whether lines that are written later stand above one in its column."""
    lines_above = (
        later_line
        for later_line in later_lines
        if later_line.bottom > page_line.bottom + page_line.letter_height
        and later_line.left < _estimate_right_edge(page_line)
        and page_line.left < _estimate_right_edge(later_line, _USUAL_LETTER_WIDTH_RATIO)
    )
    return sum(1 for _ in islice(lines_above, _MIN_LINES_ABOVE)) == _MIN_LINES_ABOVE


def _insert_line_groups(ordered_lines: list[Line], line_groups: Sequence[list[Line]]) -> list[Line]:
    """Return lines with groups beside the line that is level with the first of each."""
    for line_group in line_groups:
        first_line = line_group[0]
        level_line_index = next(
            (
                line_index
                for line_index, page_line in enumerate(ordered_lines)
                if abs(page_line.bottom - first_line.bottom)
                < 0.6 * max(page_line.letter_height, first_line.letter_height)
            ),
            None,
        )
        if level_line_index is None:
            insert_index = _find_insert_index(ordered_lines, first_line, -1)
        else:
            insert_index = level_line_index + (
                ordered_lines[level_line_index].left < first_line.left
            )
        ordered_lines[insert_index:insert_index] = line_group
    return ordered_lines


def _is_back_up_page(page_line: Line, next_line: Line) -> bool:
    """Whether a line stands above the one before it, or beside it on its left."""
    line_rise = next_line.bottom - page_line.bottom
    return line_rise > next_line.letter_height / 2 or (
        next_line.left < page_line.left and abs(line_rise) < next_line.letter_height / 3
    )


def _find_insert_index(
    ordered_lines: Sequence[Line], page_line: Line, last_insert_index: int
) -> int:
    """Return where a line goes: after the one that it continues, or before what stands below it."""
    if 0 <= last_insert_index < len(ordered_lines):
        last_line = ordered_lines[last_insert_index]
        line_distance = last_line.bottom - page_line.bottom
        is_next_line = 0 <= line_distance < _MAX_LEADING_RATIO * page_line.letter_height and (
            abs(page_line.left - last_line.left) < _MAX_INDENT
        )
        following_line = (
            ordered_lines[last_insert_index + 1]
            if last_insert_index + 1 < len(ordered_lines)
            else None
        )
        if is_next_line and (
            following_line is None
            or following_line.bottom < page_line.bottom
            or not _are_in_same_column(following_line, page_line)
        ):
            return last_insert_index + 1
    insert_index = 0
    for line_index, other_line in enumerate(ordered_lines):
        if not _are_in_same_column(other_line, page_line):
            continue
        if other_line.bottom < page_line.bottom - page_line.letter_height / 2:
            # What follows the last line above may stand further left: a heading below a table.
            return (
                _find_paragraph_end(ordered_lines, page_line, insert_index, line_index)
                if insert_index
                else line_index
            )
        insert_index = line_index + 1
    return len(ordered_lines)


def _find_paragraph_end(
    ordered_lines: Sequence[Line], page_line: Line, insert_index: int, max_insert_index: int
) -> int:
    """Return the first place, from one on, that does not divide a paragraph above a line."""
    while insert_index < max_insert_index:
        last_line, next_line = ordered_lines[insert_index - 1], ordered_lines[insert_index]
        is_next_row = (
            0 < last_line.bottom - next_line.bottom < _MAX_LEADING_RATIO * next_line.letter_height
        )
        is_same_paragraph = is_next_row and abs(next_line.left - last_line.left) < _MAX_INDENT
        if not is_same_paragraph or next_line.bottom <= page_line.bottom:
            break
        insert_index += 1
    return insert_index


def _find_marked_line(
    ordered_lines: Sequence[Line], page_line: Line, last_insert_index: int
) -> int | None:
    """Return the index of the line that a mark such as `a)` belongs to, if it is written before."""
    if len(page_line.text) > _MAX_MARK_CHARS:
        return None
    indexes_before = range(
        last_insert_index, max(last_insert_index - _MAX_LINES_SEARCHED_FOR_MARK, -1), -1
    )
    # Where all bullets of a list are written last, the text of the next follows that of the last.
    indexes_after = range(
        last_insert_index + 1,
        min(last_insert_index + _MAX_LINES_SEARCHED_FOR_MARK, len(ordered_lines)),
    )
    for line_index in chain(indexes_before, indexes_after):
        text_line = ordered_lines[line_index]
        is_level = abs(text_line.bottom - page_line.bottom) < page_line.letter_height / 3
        if (
            is_level
            and _estimate_right_edge(page_line)
            < text_line.left
            < page_line.left + _MAX_MARK_DISTANCE
        ):
            return line_index
    return None


def _are_in_same_column(page_line: Line, other_line: Line) -> bool:
    """Whether two lines stand in the same column, one above the other."""
    return page_line.left < _estimate_right_edge(
        other_line
    ) and other_line.left < _estimate_right_edge(page_line)


def _estimate_right_edge(page_line: Line, letter_width: float = _MIN_LETTER_WIDTH_RATIO) -> float:
    """Return where a line ends at the least, or as letters of this width do.

    One that ends in a broken word holds the next row too, which stands below it.
    """
    row_length = max(map(len, page_line.text.split(BROKEN_WORD_MARK)))
    return page_line.left + letter_width * page_line.letter_height * row_length

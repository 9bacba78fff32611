"""Puts the lines of a page into the order in which they are read, where their file has another.

Most programs write a page from top to bottom, column by column, and that order is kept. Some write
one layer after the other: all plain paragraphs, then all items of lists, then their numbers.
"""

from collections.abc import Sequence
from itertools import chain, islice, pairwise

from readingroom.ingest.read.page import BROKEN_WORD_MARK, Line

# Share of a page's height at its top and bottom: headers and footers may be written first.
_PAGE_EDGE_HEIGHT_SHARE = 0.09
# Letter heights between a header or a footer and the text; at the edge, nearer lines are text.
_MIN_HEADER_DISTANCE = 1.9
# Of the height of a letter's box; most letters are wider, so that columns never seem to overlap.
_MIN_LETTER_WIDTH_RATIO = 0.33
_USUAL_LETTER_WIDTH_RATIO = 0.45
_COLUMN_BAND_WIDTH = 36.0
# Letter heights between two lines of which one is the continuation of the other.
_MAX_LINE_DISTANCE_RATIO = 2.5
_MAX_LEFT_DIFFERENCE = 40.0
# Of the number or the letter of an item, and how far left of its text it may stand.
_MAX_ITEM_MARK_CHARS = 8
_MAX_ITEM_MARK_DISTANCE = 80.0
# Lines in which the text of a mark is looked for.
_MAX_LINES_SEARCHED_FOR_ITEM = 60
# Of a page that are written before the text around them.
_MAX_EARLY_LINES = 12
# One alone may be a heading that is written last.
_MIN_LATER_LINES_ABOVE = 2
# A page with more is a drawing or a table of figures.
_MAX_REORDERED_LINES = 1_000


def put_in_reading_order(page_lines: Sequence[Line], page_height: float) -> list[Line]:
    """Return the lines; one that is written after what stands below it goes before that."""
    body_bottom, body_top = _measure_body_heights(page_lines, page_height)
    body_lines = [
        page_line for page_line in page_lines if body_bottom <= page_line.bottom <= body_top
    ]
    is_in_order = not any(map(_is_next_line_above, body_lines, body_lines[1:]))
    if is_in_order or len(page_lines) > _MAX_REORDERED_LINES:
        return [*page_lines]
    early_line_groups = _group_early_lines(body_lines)
    early_line_ids = {
        id(page_line) for early_line_group in early_line_groups for page_line in early_line_group
    }
    lines_without_early_ones = [
        page_line for page_line in page_lines if id(page_line) not in early_line_ids
    ]
    # Nothing goes before the header and the footer that a page begins with.
    body_start_index = next(
        line_index
        for line_index, page_line in enumerate(lines_without_early_ones)
        if body_bottom <= page_line.bottom <= body_top
    )
    ordered_lines = _move_late_lines_up(
        lines_without_early_ones[body_start_index:], body_bottom, body_top
    )
    return [
        *lines_without_early_ones[:body_start_index],
        *_insert_line_groups(ordered_lines, early_line_groups),
    ]


def _measure_body_heights(page_lines: Sequence[Line], page_height: float) -> tuple[float, float]:
    """Return between which heights lines are text.

    Near the top, that is what stands apart below the first rows, a header's; near the foot, where
    notes stand apart, what follows the text closely.
    """
    body_bottom, body_top = (
        _PAGE_EDGE_HEIGHT_SHARE * page_height,
        (1 - _PAGE_EDGE_HEIGHT_SHARE) * page_height,
    )
    neighbouring_lines = [*pairwise(sorted(page_lines, key=lambda page_line: -page_line.bottom))]
    highest_text_bottom = next(
        (
            lower_line.bottom
            for upper_line, lower_line in neighbouring_lines
            if _are_rows_apart(upper_line, lower_line)
            # Where the text begins at the top, no header stands above it.
            and upper_line.bottom > body_top
        ),
        page_height,
    )
    lowest_text_bottom = next(
        (
            upper_line.bottom
            for upper_line, lower_line in neighbouring_lines
            if lower_line.bottom < body_bottom and _are_rows_apart(upper_line, lower_line)
        ),
        body_bottom,
    )
    return min(body_bottom, lowest_text_bottom), max(body_top, highest_text_bottom)


def _are_rows_apart(upper_line: Line, lower_line: Line) -> bool:
    letter_height = min(upper_line.letter_height, lower_line.letter_height)
    return upper_line.bottom - lower_line.bottom > _MIN_HEADER_DISTANCE * letter_height


def _move_late_lines_up(
    page_lines: Sequence[Line], body_bottom: float, body_top: float
) -> list[Line]:
    """Return the lines, each that is written after what stands below it before that."""
    ordered_lines: list[Line] = []
    lowest_bottoms_by_band: dict[int, float] = {}
    insertion_index = -1
    for page_line in page_lines:
        is_at_page_edge = not body_bottom <= page_line.bottom <= body_top
        column_bands = range(
            int(page_line.left / _COLUMN_BAND_WIDTH),
            int(_estimate_right_edge(page_line) / _COLUMN_BAND_WIDTH) + 1,
        )
        lowest_bottom_in_bands = min(
            (
                lowest_bottoms_by_band.get(column_band, page_line.bottom)
                for column_band in column_bands
            ),
            default=0.0,
        )
        if (
            marked_line_index := _find_marked_line_index(ordered_lines, page_line, insertion_index)
        ) is not None:
            insertion_index = marked_line_index
        elif (
            not is_at_page_edge
            and lowest_bottom_in_bands < page_line.bottom - page_line.letter_height / 2
        ):
            insertion_index = _find_insertion_index(ordered_lines, page_line, insertion_index)
        else:
            insertion_index = len(ordered_lines)
        ordered_lines.insert(insertion_index, page_line)
        if not is_at_page_edge:
            for column_band in column_bands:
                lowest_bottoms_by_band[column_band] = min(
                    lowest_bottoms_by_band.get(column_band, page_line.bottom), page_line.bottom
                )
    return ordered_lines


def _group_early_lines(body_lines: Sequence[Line]) -> list[list[Line]]:
    """Return the pieces written first though text around them stands above: codes, side headings.

    There are none where a page begins with a whole column.
    """
    early_line_count = next(
        (
            line_index
            for line_index, page_line in enumerate(body_lines[: _MAX_EARLY_LINES + 1])
            if line_index
            and all(page_line.bottom > early_line.bottom for early_line in body_lines[:line_index])
        ),
        0,
    )
    later_lines = body_lines[early_line_count:]
    if len(later_lines) < 2 * early_line_count:
        return []
    early_lines = [
        page_line
        for page_line in body_lines[:early_line_count]
        if _is_below_several_lines(page_line, later_lines)
    ]
    if not early_lines:
        return []
    early_line_groups = [[early_lines[0]]]
    for page_line in early_lines[1:]:
        last_early_line = early_line_groups[-1][-1]
        is_next_row = (
            0
            < last_early_line.bottom - page_line.bottom
            < _MAX_LINE_DISTANCE_RATIO * page_line.letter_height
        )
        if is_next_row and abs(page_line.left - last_early_line.left) < _MAX_LEFT_DIFFERENCE:
            early_line_groups[-1].append(page_line)
        else:
            early_line_groups.append([page_line])
    return early_line_groups


def _is_below_several_lines(page_line: Line, later_lines: Sequence[Line]) -> bool:
    """Whether lines that are written later stand above one in its column."""
    lines_above = (
        later_line
        for later_line in later_lines
        if later_line.bottom > page_line.bottom + page_line.letter_height
        and later_line.left < _estimate_right_edge(page_line)
        and page_line.left < _estimate_right_edge(later_line, _USUAL_LETTER_WIDTH_RATIO)
    )
    return sum(1 for _ in islice(lines_above, _MIN_LATER_LINES_ABOVE)) == _MIN_LATER_LINES_ABOVE


def _insert_line_groups(ordered_lines: list[Line], line_groups: Sequence[list[Line]]) -> list[Line]:
    """Return lines with groups beside the line that is level with the first of each."""
    for line_group in line_groups:
        first_group_line = line_group[0]
        level_line_index = next(
            (
                line_index
                for line_index, page_line in enumerate(ordered_lines)
                if abs(page_line.bottom - first_group_line.bottom)
                < 0.6 * max(page_line.letter_height, first_group_line.letter_height)
            ),
            None,
        )
        if level_line_index is None:
            insertion_index = _find_insertion_index(ordered_lines, first_group_line, -1)
        else:
            insertion_index = level_line_index + (
                ordered_lines[level_line_index].left < first_group_line.left
            )
        ordered_lines[insertion_index:insertion_index] = line_group
    return ordered_lines


def _is_next_line_above(page_line: Line, next_line: Line) -> bool:
    """Whether a line stands above the one before it, or beside it on its left."""
    height_difference = next_line.bottom - page_line.bottom
    return height_difference > next_line.letter_height / 2 or (
        next_line.left < page_line.left and abs(height_difference) < next_line.letter_height / 3
    )


def _find_insertion_index(
    ordered_lines: Sequence[Line], page_line: Line, last_insertion_index: int
) -> int:
    """Return where a line goes: after the one that it continues, or before what stands below it."""
    if 0 <= last_insertion_index < len(ordered_lines):
        last_inserted_line = ordered_lines[last_insertion_index]
        line_distance = last_inserted_line.bottom - page_line.bottom
        is_next_line = 0 <= line_distance < _MAX_LINE_DISTANCE_RATIO * page_line.letter_height and (
            abs(page_line.left - last_inserted_line.left) < _MAX_LEFT_DIFFERENCE
        )
        following_line = (
            ordered_lines[last_insertion_index + 1]
            if last_insertion_index + 1 < len(ordered_lines)
            else None
        )
        if is_next_line and (
            following_line is None
            or following_line.bottom < page_line.bottom
            or not _are_in_same_column(following_line, page_line)
        ):
            return last_insertion_index + 1
    insertion_index = 0
    for line_index, ordered_line in enumerate(ordered_lines):
        if not _are_in_same_column(ordered_line, page_line):
            continue
        if ordered_line.bottom < page_line.bottom - page_line.letter_height / 2:
            # What follows the last line above may stand further left: a heading below a table.
            return (
                _find_index_after_paragraph(ordered_lines, page_line, insertion_index, line_index)
                if insertion_index
                else line_index
            )
        insertion_index = line_index + 1
    return len(ordered_lines)


def _find_index_after_paragraph(
    ordered_lines: Sequence[Line], page_line: Line, insertion_index: int, max_insertion_index: int
) -> int:
    """Return the first place, from one on, that does not divide a paragraph above a line."""
    while insertion_index < max_insertion_index:
        line_above, line_below = ordered_lines[insertion_index - 1], ordered_lines[insertion_index]
        is_next_row = (
            0
            < line_above.bottom - line_below.bottom
            < _MAX_LINE_DISTANCE_RATIO * line_below.letter_height
        )
        is_same_paragraph = (
            is_next_row and abs(line_below.left - line_above.left) < _MAX_LEFT_DIFFERENCE
        )
        if not is_same_paragraph or line_below.bottom <= page_line.bottom:
            break
        insertion_index += 1
    return insertion_index


def _find_marked_line_index(
    ordered_lines: Sequence[Line], mark_line: Line, last_insertion_index: int
) -> int | None:
    """Return the index of the line that a mark such as `a)` belongs to, if it is written before."""
    if len(mark_line.text) > _MAX_ITEM_MARK_CHARS:
        return None
    indexes_before = range(
        last_insertion_index, max(last_insertion_index - _MAX_LINES_SEARCHED_FOR_ITEM, -1), -1
    )
    # Where all bullets of a list are written last, the text of the next follows that of the last.
    indexes_after = range(
        last_insertion_index + 1,
        min(last_insertion_index + _MAX_LINES_SEARCHED_FOR_ITEM, len(ordered_lines)),
    )
    for line_index in chain(indexes_before, indexes_after):
        text_line = ordered_lines[line_index]
        is_level_with_mark = abs(text_line.bottom - mark_line.bottom) < mark_line.letter_height / 3
        if (
            is_level_with_mark
            and _estimate_right_edge(mark_line)
            < text_line.left
            < mark_line.left + _MAX_ITEM_MARK_DISTANCE
        ):
            return line_index
    return None


def _are_in_same_column(page_line: Line, other_line: Line) -> bool:
    """Whether two lines stand in the same column, one above the other."""
    return page_line.left < _estimate_right_edge(
        other_line
    ) and other_line.left < _estimate_right_edge(page_line)


def _estimate_right_edge(
    page_line: Line, letter_width_ratio: float = _MIN_LETTER_WIDTH_RATIO
) -> float:
    """Return where a line ends at the least, or as letters of this width do.

    One that ends in a broken word holds the next row too, which stands below it.
    """
    longest_row_length = max(map(len, page_line.text.split(BROKEN_WORD_MARK)))
    return page_line.left + letter_width_ratio * page_line.letter_height * longest_row_length

"""How far the box of a policy reaches: over tables in it, to the next column and overleaf."""

import re
from collections.abc import Container

from readingroom.ingest.structure.codes import is_above_requirement
from readingroom.ingest.structure.explanations import (
    is_explaining_heading,
    is_monitoring_table_head,
)
from readingroom.ingest.structure.layout import FlowLine
from readingroom.ingest.structure.policy_headings import (
    PolicyHeading,
    is_continued_heading,
    is_repeated_at_page_top,
)
from readingroom.ingest.structure.typography import (
    FIGURE_CAPTION_PATTERN,
    MARGIN_TOLERANCE,
    Typography,
)

# Lines between a heading and the box of its policy: the rest of the title.
_MAX_LINES_BEFORE_BOX = 4
# Points by which the box of a policy may change its width from page to page.
_MAX_BOX_WIDTH_CHANGE = 40.0
# Points between the edges of boxes of one width.
_MAX_BOX_EDGE_DIFFERENCE = 2.0
_ANNOUNCING_SENTENCE_PATTERN = re.compile(
    r":$|\b(?:below|following|follows)\b[^.]{0,40}\.?$"
    r"|\btables? (?:below|overleaf)\b[^.]{0,120}\.?$",
    re.IGNORECASE,
)
# Of a paragraph, at its end.
_MAX_ANNOUNCING_CHARS, _MAX_ANNOUNCING_LINES = 180, 3
_FOOTNOTE_MARK_CHARS = frozenset("*†‡¹²³⁴⁵⁶⁷⁸⁹")


def find_box_end_index(
    typography: Typography,
    policy_heading: PolicyHeading,
    max_end_index: int,
    footnote_line_indexes: Container[int],
) -> int:
    """Return the line after the box of a policy, at most `end_limit`; 0 without a box."""
    box_start_index = _find_box_start_index(
        typography, policy_heading.text_start_index, max_end_index
    )
    if box_start_index is None:
        return 0
    box_end_index = _find_last_box_end_index(
        typography, box_start_index, max_end_index, footnote_line_indexes
    )
    if (
        box_end_index < max_end_index
        and typography.lines[box_end_index].box is not None
        and typography.lines[box_end_index].page == typography.lines[box_start_index].page + 1
        and _is_heading_bar(typography, policy_heading, box_start_index, box_end_index)
    ):
        # The bar or the tab of a heading stands last on its page, and the box of the text overleaf.
        return _find_last_box_end_index(
            typography, box_end_index, max_end_index, footnote_line_indexes
        )
    if _is_heading_bar(
        typography, policy_heading, box_start_index, box_end_index
    ) or _is_table_of_facts(typography, policy_heading, box_start_index, box_end_index):
        return 0
    return _exclude_map_at_box_end(typography, box_start_index, box_end_index)


def _is_heading_bar(
    typography: Typography, policy_heading: PolicyHeading, box_start_index: int, box_end_index: int
) -> bool:
    """Whether a box holds only the heading of a policy, whose text begins below it or overleaf."""
    title_end_index = typography.get_title_end(
        policy_heading.heading_index, policy_heading.title or "title"
    )
    return policy_heading.label_line_index is None and box_end_index <= title_end_index < len(
        typography.lines
    )


def _is_table_of_facts(
    typography: Typography, policy_heading: PolicyHeading, box_start_index: int, box_end_index: int
) -> bool:
    """Whether a table below a heading holds no sentence, and text goes on below it or overleaf.

    So sites are set: their area, their use and their homes in a table, and then the policy.
    """
    all_lines = typography.lines
    table_box = all_lines[box_start_index].box
    return (
        table_box is not None
        and table_box.is_grid
        and all_lines[policy_heading.heading_index].box != table_box
        and box_end_index < len(all_lines)
        and (
            all_lines[box_end_index].page == all_lines[box_end_index - 1].page
            or is_above_requirement(typography, box_end_index - 1)
        )
        and not any(
            flow_line.line.text.endswith((".", ";", ":"))
            for flow_line in all_lines[box_start_index:box_end_index]
        )
    )


def _exclude_map_at_box_end(
    typography: Typography, box_start_index: int, box_end_index: int
) -> int:
    """Return the end of a box without the words of a map that stands at its foot.

    They are short and in other letters than the text, and the caption follows them.
    """
    if box_end_index == len(typography.lines) or not FIGURE_CAPTION_PATTERN.match(
        typography.lines[box_end_index].line.text
    ):
        return box_end_index
    while box_end_index > box_start_index + 1 and typography.is_map_label(box_end_index - 1):
        box_end_index -= 1
    return box_end_index


def is_small_print_between_boxes(typography: Typography, line_index: int) -> bool:
    """Whether a line between two parts of a policy's box is small print below the first."""
    return typography.lines[line_index].box is None and _is_footnote_line(typography, line_index)


def _find_box_start_index(
    typography: Typography, heading_index: int, max_end_index: int
) -> int | None:
    """Return the first line of a policy that stands in a box, or None if it has no box."""
    all_lines = typography.lines
    for line_index in range(
        heading_index, min(heading_index + _MAX_LINES_BEFORE_BOX, max_end_index)
    ):
        if all_lines[line_index].box is not None:
            return line_index
        # What a policy is for may stand in italics above its box.
        if line_index > heading_index and not (
            typography.has_same_look(heading_index, line_index)
            or all_lines[line_index].line.is_italic
        ):
            return None
    return None


def _find_last_box_end_index(
    typography: Typography,
    box_start_index: int,
    max_end_index: int,
    footnote_line_indexes: Container[int],
) -> int:
    """Return the line after a box, which may go on in the next column or on the next page."""
    all_lines = typography.lines
    box_end_index = box_start_index + 1
    first_line_text = all_lines[box_start_index].line.text
    bold_line_count = int(all_lines[box_start_index].line.is_bold)
    for next_index in range(box_start_index + 1, max_end_index):
        if typography.is_on_figure_page(next_index) or next_index in footnote_line_indexes:
            continue
        following_line, last_line = (
            all_lines[next_index],
            all_lines[box_end_index - 1],
        )
        is_same_box = following_line.box == last_line.box and following_line.page == last_line.page
        if following_line.box is None:
            if _is_footnote_line(typography, next_index):
                continue
            break
        # A table of indicators may touch the box above it.
        if is_same_box and is_monitoring_table_head(typography, next_index, is_in_box=True):
            break
        if not is_same_box:
            is_often_bold = 3 * bold_line_count > next_index - box_start_index
            is_heading_bar = box_end_index - box_start_index < _MAX_LINES_BEFORE_BOX
            # A chapter's title may stand in a banner at the top of the next page.
            is_chapter_title = typography.is_large_line(next_index) and (
                following_line.line.letter_height
                > all_lines[box_start_index].line.letter_height + 1
            )
            has_text = typography.get_title_end(box_start_index, "title") < box_end_index
            if (
                is_chapter_title
                or is_explaining_heading(typography, next_index)
                or not (
                    (
                        is_heading_bar
                        and _is_box_right_below(typography, box_end_index - 1, next_index)
                    )
                    or (
                        not (has_text and _has_other_ground_colour(last_line, following_line))
                        and (
                            _is_box_of_next_paragraph(typography, box_end_index - 1, next_index)
                            or _is_box_continued(
                                typography,
                                box_end_index - 1,
                                next_index,
                                is_often_bold,
                            )
                        )
                    )
                    or _is_announced_table_below(typography, box_end_index - 1, next_index)
                    or _is_box_resumed_below_table(
                        typography, box_start_index, box_end_index - 1, next_index
                    )
                    or is_continued_heading(following_line.line.text, first_line_text)
                    or is_repeated_at_page_top(typography, box_start_index, next_index)
                )
            ):
                break
        box_end_index = next_index + 1
        bold_line_count += following_line.line.is_bold
    return box_end_index


def _has_other_ground_colour(line_above: FlowLine, line_below: FlowLine) -> bool:
    """Whether a box ends on another ground than the next begins on; one that goes on keeps its.

    The rows of a table may have grounds by turns.
    """
    assert line_above.box is not None and line_below.box is not None
    if line_above.box.is_grid:
        return False
    colours_above, colours_below = (
        line_above.box.bottom_colours,
        line_below.box.top_colours,
    )
    return colours_above != colours_below and colours_above.isdisjoint(colours_below)


def _is_box_right_below(typography: Typography, line_index_above: int, line_index: int) -> bool:
    """Whether the box of a line hangs right below another, as that of a text below its heading."""
    line_above, flow_line = typography.lines[line_index_above], typography.lines[line_index]
    assert line_above.box is not None and flow_line.box is not None
    if flow_line.page != line_above.page or not typography.is_emphasised(line_index_above):
        return False
    gap_between_boxes = line_above.box.bottom - flow_line.box.top
    # A heading may stand on a tab that is narrower than the box of its text.
    spans_box_above = (
        abs(flow_line.box.left - line_above.box.left) < MARGIN_TOLERANCE
        and flow_line.box.right > line_above.box.right - MARGIN_TOLERANCE
    )
    return (
        spans_box_above
        and abs(gap_between_boxes) < 2 * typography.usual_letter_size
        and not typography.is_emphasised(line_index)
    )


def _is_announced_table_below(
    typography: Typography, last_box_line_index: int, line_index: int
) -> bool:
    """Whether a table stands right below a box whose text leads to it: `as follows:`."""
    last_box_line, table_line = typography.lines[last_box_line_index], typography.lines[line_index]
    assert last_box_line.box is not None and table_line.box is not None
    return (
        table_line.box.is_grid
        and _is_below_as_wide_box(typography, last_box_line, table_line)
        and does_text_announce_table(typography, last_box_line_index)
    )


def _is_box_resumed_below_table(
    typography: Typography, box_start_index: int, last_table_line_index: int, line_index: int
) -> bool:
    """Whether the box of a policy goes on right below a table that interrupts it, as it began."""
    first_line, last_table_line, flow_line = (
        typography.lines[compared_index]
        for compared_index in (box_start_index, last_table_line_index, line_index)
    )
    assert first_line.box is not None and last_table_line.box is not None
    assert flow_line.box is not None
    return (
        last_table_line.box.is_grid
        and not first_line.box.is_grid
        and _is_below_as_wide_box(typography, last_table_line, flow_line)
        and abs(flow_line.box.left - first_line.box.left) < MARGIN_TOLERANCE
        and abs(flow_line.box.right - first_line.box.right) < MARGIN_TOLERANCE
        and flow_line.box.top_colours == first_line.box.top_colours
    )


def _is_below_as_wide_box(
    typography: Typography, line_above: FlowLine, line_below: FlowLine
) -> bool:
    """Whether a box stands right below another of its page that is about as wide."""
    assert line_above.box is not None and line_below.box is not None
    return (
        line_below.page == line_above.page
        and abs(line_above.box.bottom - line_below.box.top) < 2 * typography.usual_letter_size
        and abs(line_below.box.left - line_above.box.left) < _MAX_BOX_WIDTH_CHANGE
        and abs(line_below.box.right - line_above.box.right) < _MAX_BOX_WIDTH_CHANGE
    )


def _is_box_of_next_paragraph(
    typography: Typography, line_index_above: int, line_index: int
) -> bool:
    """Whether a box is the next of several, one for each paragraph, with a small gap between."""
    line_above, flow_line = typography.lines[line_index_above], typography.lines[line_index]
    assert line_above.box is not None and flow_line.box is not None
    if flow_line.page != line_above.page or line_above.box.is_grid or flow_line.box.is_grid:
        return False
    return (
        0 <= line_above.box.bottom - flow_line.box.top <= typography.usual_letter_size
        and abs(flow_line.box.left - line_above.box.left) < _MAX_BOX_EDGE_DIFFERENCE
        and abs(flow_line.box.right - line_above.box.right) < _MAX_BOX_EDGE_DIFFERENCE
    )


def _is_box_continued(
    typography: Typography, last_box_line_index: int, line_index: int, is_often_bold: bool
) -> bool:
    """Whether a box goes on in the box of another line, at the top of a column or a page."""
    last_box_line, flow_line = typography.lines[last_box_line_index], typography.lines[line_index]
    assert last_box_line.box is not None and flow_line.box is not None
    is_next_column = (
        flow_line.page > last_box_line.page or flow_line.line.bottom > last_box_line.line.bottom
    )
    next_page_number = last_box_line.page + 1
    while next_page_number in typography.line_ranges_by_figure_page:
        next_page_number += 1
    if not is_next_column or flow_line.page > next_page_number:
        return False
    width_change = abs(
        (flow_line.box.right - flow_line.box.left)
        - (last_box_line.box.right - last_box_line.box.left)
    )
    has_other_heading = flow_line.line.is_bold and not is_often_bold
    reaches_bottom = (
        last_box_line.box.bottom
        <= typography.usual_lowest_bottom + 2 * typography.usual_letter_size
    )
    return width_change < _MAX_BOX_WIDTH_CHANGE and (
        reaches_bottom
        or not has_other_heading
        or does_text_announce_table(typography, last_box_line_index)
    )


def _is_footnote_line(typography: Typography, line_index: int) -> bool:
    return (
        typography.is_small_line(line_index)
        or typography.lines[line_index].line.text[0] in _FOOTNOTE_MARK_CHARS
    )


def does_text_announce_table(typography: Typography, last_line_index: int) -> bool:
    """Return whether the paragraph that ends on a line leads to what stands below it."""
    # The word that announces need not stand on the last line of its sentence.
    first_line_index = last_line_index
    while last_line_index - first_line_index < _MAX_ANNOUNCING_LINES - 1 and not (
        typography.is_block_start(first_line_index)
    ):
        first_line_index -= 1
    text_end = " ".join(
        flow_line.line.text
        for flow_line in typography.lines[first_line_index : last_line_index + 1]
    )
    return _ANNOUNCING_SENTENCE_PATTERN.search(text_end[-_MAX_ANNOUNCING_CHARS:]) is not None

"""How far a policy reaches: to the end of its box, or to the text that explains it."""

import re
from collections.abc import Container, Sequence

from readingroom.ingest.structure.codes import is_above_requirement
from readingroom.ingest.structure.explanations import (
    is_explaining_heading,
    is_monitoring_table_head,
)
from readingroom.ingest.structure.layout import FlowLine
from readingroom.ingest.structure.policy_headings import (
    PolicyHeading,
    is_continued_heading,
    is_heading_repeated_at_page_top,
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
_MIN_POLICY_INDENT, _MAX_POLICY_INDENT = 8.0, 60.0
"""Points by which a whole policy is set in; a second column begins further right."""
_NUMBERED_LINE_PATTERN = re.compile(r"\(?\w{1,4}[.)]|\W|\d")
_TABLE_CAPTION_PATTERN = re.compile(r"Table\s+[A-Z]{0,4}\d{1,2}(?!\w)")
_ANNOUNCING_SENTENCE_PATTERN = re.compile(
    r":$|\b(?:below|following|follows)\b[^.]{0,40}\.?$", re.IGNORECASE
)
# Policies of a plan, and the share of them, that are explained in a column beside them.
_MIN_SIDE_POLICIES, _MIN_SIDE_POLICY_SHARE = 3, 0.6
_MIN_COLUMN_WIDTH = 100.0
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
    title_end_index = typography.find_title_end_index(
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
    document_lines = typography.lines
    table_box = document_lines[box_start_index].box
    return (
        table_box is not None
        and table_box.is_grid
        and document_lines[policy_heading.heading_index].box != table_box
        and box_end_index < len(document_lines)
        and (
            document_lines[box_end_index].page == document_lines[box_end_index - 1].page
            or is_above_requirement(typography, box_end_index - 1)
        )
        and not any(
            flow_line.line.text.endswith((".", ";", ":"))
            for flow_line in document_lines[box_start_index:box_end_index]
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


def find_text_end_index(
    typography: Typography, policy_heading: PolicyHeading, boundary_index: int
) -> int:
    """Return the line after the last one of a policy that stands in no box."""
    heading_size = typography.lines[policy_heading.heading_index].line.letter_height
    text_start_index = _find_text_start_index(typography, policy_heading)
    is_bold_text = is_policy_set_in_bold(typography, policy_heading, boundary_index)
    is_policy_indented = text_start_index < boundary_index and all(
        _MIN_POLICY_INDENT <= typography.measure_indent(line_index) <= _MAX_POLICY_INDENT
        for line_index in (policy_heading.heading_index, text_start_index)
    )
    is_italic_text = text_start_index < boundary_index and typography.is_italic_prose(
        text_start_index
    )
    for line_index in range(policy_heading.text_start_index + 1, boundary_index):
        if not typography.is_on_figure_page(line_index) and (
            is_explaining_heading(typography, line_index)
            or is_monitoring_table_head(typography, line_index)
            or _is_larger_heading(typography, line_index, heading_size)
            or (is_bold_text and _is_plain_prose(typography, line_index))
            or (is_italic_text and _is_upright_prose(typography, line_index))
            or (is_italic_text and _is_small_upright_note(typography, text_start_index, line_index))
            or (is_policy_indented and _is_back_at_margin(typography, policy_heading, line_index))
        ):
            return _exclude_map_at_text_end(typography, text_start_index, line_index)
    return _exclude_map_at_text_end(typography, text_start_index, boundary_index)


def _exclude_map_at_text_end(
    typography: Typography, text_start_index: int, text_end_index: int
) -> int:
    """Return the end of a text without the caption of a map below it, and the words of the map."""
    caption_index = text_end_index - 1
    while caption_index > text_start_index and (
        typography.is_map_label(caption_index) or typography.is_small_line(caption_index)
    ):
        caption_index -= 1
    is_caption = (
        caption_index > text_start_index
        and FIGURE_CAPTION_PATTERN.match(typography.lines[caption_index].line.text)
        and typography.is_block_start(caption_index)
        and typography.is_after_sentence(caption_index)
        and typography.could_be_title(caption_index)
    )
    return caption_index if is_caption else text_end_index


def is_policy_set_in_bold(
    typography: Typography, policy_heading: PolicyHeading, boundary_index: int
) -> bool:
    """Return whether the text of a policy begins in bold letters."""
    text_start_index = _find_text_start_index(typography, policy_heading)
    return text_start_index < boundary_index and _is_bold_prose(typography, text_start_index)


def _find_text_start_index(typography: Typography, policy_heading: PolicyHeading) -> int:
    """Return the first line below the title of a policy, and below a table of facts there."""
    text_start_index = typography.find_title_end_index(
        policy_heading.text_start_index, policy_heading.title or "title"
    )
    document_lines = typography.lines
    while text_start_index < len(document_lines) and (
        (line_box := document_lines[text_start_index].box) is not None and line_box.is_grid
    ):
        text_start_index += 1
    return text_start_index


def find_side_column_left(
    typography: Typography, policies: Sequence[PolicyHeading], next_line_indexes: Sequence[int]
) -> float | None:
    """Return where a column begins that explains most policies beside them; None without one.

    Such a column begins level with the heading of each policy; that of a newspaper at the top.
    """
    left_edges = [
        left_edge
        for policy_heading, next_line_index in zip(policies, next_line_indexes, strict=True)
        if (
            left_edge := _find_left_edge_of_text_beside(typography, policy_heading, next_line_index)
        )
        is not None
    ]
    if len(left_edges) < max(_MIN_SIDE_POLICIES, _MIN_SIDE_POLICY_SHARE * len(policies)):
        return None
    side_column_left = min(left_edges) - MARGIN_TOLERANCE
    has_policies_in_column = any(
        typography.lines[policy_heading.heading_index].line.left >= side_column_left
        for policy_heading in policies
    )
    return None if has_policies_in_column else side_column_left


def _find_left_edge_of_text_beside(
    typography: Typography, policy_heading: PolicyHeading, next_policy_line_index: int
) -> float | None:
    """Return the left edge of the text that begins beside the heading of a policy, if any does."""
    heading_line = typography.lines[policy_heading.heading_index]
    for line_index in range(policy_heading.text_start_index + 1, next_policy_line_index):
        flow_line, line_above = typography.lines[line_index], typography.lines[line_index - 1]
        if flow_line.page != heading_line.page:
            return None
        if flow_line.line.bottom > line_above.line.bottom + flow_line.line.letter_height:
            is_level_with_heading = (
                abs(flow_line.line.bottom - heading_line.line.bottom)
                < 2 * flow_line.line.letter_height
            )
            is_right_of_heading = flow_line.line.left > heading_line.line.left + _MIN_COLUMN_WIDTH
            return flow_line.line.left if is_level_with_heading and is_right_of_heading else None
    return None


def _is_back_at_margin(
    typography: Typography, policy_heading: PolicyHeading, line_index: int
) -> bool:
    """Whether a paragraph begins at the margin, after a policy that is set in from it.

    A number at the margin may belong to the policy, and so does a table that it announces.
    """
    return (
        typography.is_block_start(line_index)
        and typography.measure_indent(line_index) < MARGIN_TOLERANCE
        and typography.has_same_margin(policy_heading.heading_index, line_index)
        and not _NUMBERED_LINE_PATTERN.match(typography.lines[line_index].line.text)
        and not _is_row_of_announced_table(typography, line_index)
    )


def _is_row_of_announced_table(typography: Typography, line_index: int) -> bool:
    """Whether a line stands in a table below a sentence that leads to it: `as follows:`.

    Between them there may be a caption; one that is set in as the policy is is announcement enough.
    """
    is_table_caption = (
        _TABLE_CAPTION_PATTERN.match(typography.lines[line_index].line.text) is not None
    )
    if is_table_caption and line_index + 1 < len(typography.lines):
        line_index += 1
    row_box, page_number = typography.lines[line_index].box, typography.lines[line_index].page
    if row_box is None or not row_box.is_grid:
        return False
    while line_index and (
        typography.lines[line_index].box == row_box
        and typography.lines[line_index].page == page_number
    ):
        line_index -= 1
    if _TABLE_CAPTION_PATTERN.match(typography.lines[line_index].line.text):
        if typography.measure_indent(line_index) >= MARGIN_TOLERANCE:
            return True
        line_index -= 1
    return (
        _ANNOUNCING_SENTENCE_PATTERN.search(typography.lines[line_index].line.text[-60:])
        is not None
    )


def _is_bold_prose(typography: Typography, line_index: int) -> bool:
    prose_line = typography.lines[line_index].line
    return prose_line.is_bold and len(prose_line.text) >= 0.7 * typography.usual_line_length


def _is_plain_prose(typography: Typography, line_index: int) -> bool:
    """Whether a paragraph in ordinary letters begins here, after a policy in bold ones."""
    next_line_index = min(line_index + 1, len(typography.lines) - 1)
    return typography.is_prose_start(line_index) and not typography.is_emphasised(next_line_index)


def _is_upright_prose(typography: Typography, line_index: int) -> bool:
    """Whether a paragraph in upright letters begins here, after a policy in italics."""
    next_line_index = min(line_index + 1, len(typography.lines) - 1)
    return typography.is_prose_start(line_index) and not (
        typography.lines[line_index].line.is_italic
        or typography.lines[next_line_index].line.is_italic
    )


def _is_small_upright_note(typography: Typography, text_start_index: int, line_index: int) -> bool:
    """Whether a line in smaller, upright letters follows a policy in italics, not in a table."""
    note_line = typography.lines[line_index]
    return (
        note_line.box is None
        and not note_line.line.is_italic
        and note_line.line.letter_height < typography.lines[text_start_index].line.letter_height - 1
        and typography.lines[line_index - 1].box is None
        and typography.is_after_sentence(line_index)
        and note_line.line.text[0].isupper()
    )


def _find_box_start_index(
    typography: Typography, heading_index: int, max_end_index: int
) -> int | None:
    """Return the first line of a policy that stands in a box, or None if it has no box."""
    document_lines = typography.lines
    for line_index in range(
        heading_index, min(heading_index + _MAX_LINES_BEFORE_BOX, max_end_index)
    ):
        if document_lines[line_index].box is not None:
            return line_index
        # What a policy is for may stand in italics above its box.
        if line_index > heading_index and not (
            typography.has_same_look(heading_index, line_index)
            or document_lines[line_index].line.is_italic
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
    document_lines = typography.lines
    box_end_index = box_start_index + 1
    first_line_text = document_lines[box_start_index].line.text
    bold_line_count = int(document_lines[box_start_index].line.is_bold)
    for next_index in range(box_start_index + 1, max_end_index):
        if typography.is_on_figure_page(next_index) or next_index in footnote_line_indexes:
            continue
        following_line, last_line = (
            document_lines[next_index],
            document_lines[box_end_index - 1],
        )
        is_same_box = following_line.box == last_line.box and following_line.page == last_line.page
        if following_line.box is None:
            if _is_footnote_line(typography, next_index):
                continue
            break
        if not is_same_box:
            is_often_bold = 3 * bold_line_count > next_index - box_start_index
            is_heading_bar = box_end_index - box_start_index < _MAX_LINES_BEFORE_BOX
            # A chapter's title may stand in a banner at the top of the next page.
            is_chapter_title = typography.is_large_line(next_index) and (
                following_line.line.letter_height
                > document_lines[box_start_index].line.letter_height + 1
            )
            has_text = typography.find_title_end_index(box_start_index, "title") < box_end_index
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
                    or is_continued_heading(following_line.line.text, first_line_text)
                    or is_heading_repeated_at_page_top(typography, box_start_index, next_index)
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
    next_page = last_box_line.page + 1
    while next_page in typography.line_ranges_by_figure_page:
        next_page += 1
    if not is_next_column or flow_line.page > next_page:
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
    return width_change < _MAX_BOX_WIDTH_CHANGE and (reaches_bottom or not has_other_heading)


def _is_footnote_line(typography: Typography, line_index: int) -> bool:
    return (
        typography.is_small_line(line_index)
        or typography.lines[line_index].line.text[0] in _FOOTNOTE_MARK_CHARS
    )


def _is_larger_heading(typography: Typography, line_index: int, heading_size: float) -> bool:
    """Whether a line is a heading above policies: in larger letters than theirs."""
    return (
        typography.lines[line_index].line.letter_height > heading_size + 1
        and typography.is_block_start(line_index)
        and typography.could_be_title(line_index)
    )

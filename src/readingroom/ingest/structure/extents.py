"""How far a policy without a box reaches: to the text that explains it."""

import re
from collections.abc import Sequence

from readingroom.ingest.structure.explanations import (
    is_explaining_heading,
    is_monitoring_table_head,
)
from readingroom.ingest.structure.policy_boxes import does_text_announce_table
from readingroom.ingest.structure.policy_headings import PolicyHeading
from readingroom.ingest.structure.typography import (
    FIGURE_CAPTION_PATTERN,
    MARGIN_TOLERANCE,
    Typography,
)

_MIN_POLICY_INDENT, _MAX_POLICY_INDENT = 8.0, 60.0
"""Points by which a whole policy is set in; a second column begins further right."""
_NUMBERED_LINE_PATTERN = re.compile(r"\(?\w{1,4}[.)]|\W|\d")
_TABLE_CAPTION_PATTERN = re.compile(r"Table\s+[A-Z]{0,4}\d{1,2}(?!\w)")
# Policies of a plan, and the share of them, that are explained in a column beside them.
_MIN_SIDE_POLICIES, _MIN_SIDE_POLICY_SHARE = 3, 0.6
_MIN_COLUMN_WIDTH = 100.0


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
    text_start_index = typography.get_title_end(
        policy_heading.text_start_index, policy_heading.title or "title"
    )
    all_lines = typography.lines
    while text_start_index < len(all_lines) and (
        (line_box := all_lines[text_start_index].box) is not None and line_box.is_grid
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
    return does_text_announce_table(typography, line_index)


def _is_bold_prose(typography: Typography, line_index: int) -> bool:
    """Whether a line of text is bold, and not only the mark or the words that it begins with."""
    prose_line, next_line_index = typography.lines[line_index].line, line_index + 1
    does_paragraph_go_on = next_line_index < len(
        typography.lines
    ) and not typography.is_block_start(next_line_index)
    return (
        prose_line.is_bold
        and len(prose_line.text) >= 0.7 * typography.usual_line_length
        and (not does_paragraph_go_on or typography.lines[next_line_index].line.is_bold)
    )


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


def _is_larger_heading(typography: Typography, line_index: int, heading_size: float) -> bool:
    """Whether a line is a heading above policies: in larger letters than theirs."""
    return (
        typography.lines[line_index].line.letter_height > heading_size + 1
        and typography.is_block_start(line_index)
        and typography.could_be_title(line_index)
    )

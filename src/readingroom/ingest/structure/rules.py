"""Where policies end that stand between two lines drawn across the page."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from readingroom.ingest.read.page import DrawnRule
from readingroom.ingest.structure.layout import FlowLine
from readingroom.ingest.structure.policy_headings import PolicyHeading
from readingroom.ingest.structure.typography import Typography

# Policies of a plan, and the share of them, that stand between rules.
_MIN_RULED_POLICIES, _MIN_RULED_SHARE = 3, 0.6
# Letter heights between a rule and the line below or above it.
_MAX_RULE_DISTANCE = 3.0
# Letter heights by which the box of a letter may reach over a rule.
_MAX_LETTER_OVERLAP = 0.35
# Points between the ends of rules that belong together.
_MAX_RULE_END_DIFFERENCE = 3.0
# Lines between two rules of a table: its head, or a row.
_MAX_TABLE_ROW_LINES = 3


def find_ruled_end_indexes(
    typography: Typography,
    policy_headings: Sequence[PolicyHeading],
    next_line_indexes: Sequence[int],
    paragraph_line_indexes: Container[int],
) -> list[int]:
    """Return for each policy the line after the rule below it; 0 where none closes it.

    A rule above the heading or right below it opens a policy, and the next one of its width closes
    it; where no heading has a rule, one above plain text closes it. Not below numbered paragraphs
    of the plan, which no policy holds.
    """
    zero_end_indexes = [0] * len(policy_headings)
    min_policy_count = max(_MIN_RULED_POLICIES, _MIN_RULED_SHARE * len(policy_headings))
    if not typography.rules_by_page or len(policy_headings) < min_policy_count:
        return zero_end_indexes
    closing_rules = [
        _find_closing_rule(typography, policy_heading, next_line_index, paragraph_line_indexes)
        for policy_heading, next_line_index in zip(policy_headings, next_line_indexes, strict=True)
    ]
    rule_counts_by_width = Counter(
        round(_measure_rule_width(closing_rule.drawn_rule))
        for closing_rule in closing_rules
        if closing_rule
    )
    usual_rule_width = rule_counts_by_width.most_common(1)[0][0] if rule_counts_by_width else 0
    ruled_end_indexes = [
        closing_rule.line_index
        if closing_rule
        and abs(_measure_rule_width(closing_rule.drawn_rule) - usual_rule_width)
        < _MAX_RULE_END_DIFFERENCE
        else 0
        for closing_rule in closing_rules
    ]
    return (
        ruled_end_indexes
        if sum(map(bool, ruled_end_indexes)) >= min_policy_count
        else zero_end_indexes
    )


@dataclass(frozen=True, slots=True)
class _ClosingRule:
    """The line after a policy, and the rule above that line."""

    line_index: int
    drawn_rule: DrawnRule


def _find_closing_rule(
    typography: Typography,
    policy_heading: PolicyHeading,
    next_line_index: int,
    paragraph_line_indexes: Container[int],
) -> _ClosingRule | None:
    """Return where a rule closes a policy, or None."""
    title_end_index = typography.get_title_end(
        policy_heading.heading_index, policy_heading.title or "title"
    )
    opening_rule = _find_rule_above(typography, policy_heading.line_index) or _find_rule_below(
        typography, title_end_index - 1
    )
    # The first rule below the title is the heading's own.
    for line_index in range(title_end_index + 1, next_line_index):
        drawn_rule = _find_rule_below(typography, line_index - 1)
        if drawn_rule is None:
            if line_index in paragraph_line_indexes:
                return None
            continue
        if opening_rule is None:
            # Above a heading, a rule may belong to that heading.
            is_closing_rule = not typography.is_emphasised(line_index)
        else:
            is_closing_rule = _are_rules_equally_wide(drawn_rule, opening_rule)
        if (
            is_closing_rule
            and not _is_rule_repeated_above(typography, line_index, drawn_rule)
            and not _is_above_table_row(typography, line_index, next_line_index, drawn_rule)
        ):
            return _ClosingRule(line_index, drawn_rule)
    return None


def _find_rule_above(typography: Typography, line_index: int) -> DrawnRule | None:
    """Return the nearest rule right above a line, with no other line between."""
    flow_line = typography.lines[line_index]
    line_top = flow_line.line.bottom + flow_line.line.letter_height
    lowest_position, highest_position = (
        line_top - _MAX_LETTER_OVERLAP * flow_line.line.letter_height,
        line_top + _MAX_RULE_DISTANCE * flow_line.line.letter_height,
    )
    if not _is_first_of_column(typography, line_index):
        highest_position = min(highest_position, typography.lines[line_index - 1].line.last_bottom)
    rules_above = _list_rules_between(typography, flow_line, lowest_position, highest_position)
    return min(rules_above, key=lambda drawn_rule: drawn_rule.vertical_position, default=None)


def _find_rule_below(typography: Typography, line_index: int) -> DrawnRule | None:
    """Return the rule between a line and the next, if there is one."""
    flow_line = typography.lines[line_index]
    letter_size = flow_line.line.letter_height
    highest_position = flow_line.line.last_bottom + _MAX_LETTER_OVERLAP * letter_size
    lowest_position = flow_line.line.last_bottom - _MAX_RULE_DISTANCE * letter_size
    next_line_index = line_index + 1
    if next_line_index < len(typography.lines) and not _is_first_of_column(
        typography, next_line_index
    ):
        next_line = typography.lines[next_line_index].line
        lowest_position = max(
            lowest_position, next_line.bottom + (1 - _MAX_LETTER_OVERLAP) * next_line.letter_height
        )
    return next(
        iter(_list_rules_between(typography, flow_line, lowest_position, highest_position)), None
    )


def _list_rules_between(
    typography: Typography, flow_line: FlowLine, lowest_position: float, highest_position: float
) -> list[DrawnRule]:
    """Return the rules over or under a line that are drawn between two heights of its page."""
    return [
        drawn_rule
        for drawn_rule in typography.rules_by_page.get(flow_line.page, ())
        if lowest_position <= drawn_rule.vertical_position <= highest_position
        and drawn_rule.left - _MAX_RULE_END_DIFFERENCE <= flow_line.line.left < drawn_rule.right
    ]


def _is_first_of_column(typography: Typography, line_index: int) -> bool:
    """Whether a line is the first of its page or column."""
    if not line_index:
        return True
    flow_line, line_above = typography.lines[line_index], typography.lines[line_index - 1]
    return (
        flow_line.page != line_above.page
        or flow_line.line.bottom > line_above.line.bottom + flow_line.line.letter_height
    )


def _is_rule_repeated_above(
    typography: Typography, line_index: int, opening_rule: DrawnRule
) -> bool:
    """Whether rules are drawn above and below each part of a policy that a page end divides."""
    if not _is_first_of_column(typography, line_index):
        return False
    rule_above = _find_rule_above(typography, line_index)
    return rule_above is not None and _are_rules_equally_wide(rule_above, opening_rule)


def _is_above_table_row(
    typography: Typography, line_index: int, next_line_index: int, opening_rule: DrawnRule
) -> bool:
    """Whether a rule has another one a row further down, as in a table without upright rules."""
    last_row_line_index = min(line_index + _MAX_TABLE_ROW_LINES, next_line_index - 1)
    return any(
        (drawn_rule := _find_rule_below(typography, row_line_index)) is not None
        and _are_rules_equally_wide(drawn_rule, opening_rule)
        for row_line_index in range(line_index, last_row_line_index)
    )


def _are_rules_equally_wide(drawn_rule: DrawnRule, other_rule: DrawnRule) -> bool:
    """Whether two rules are equally long; on facing pages they may begin at different places."""
    return (
        abs(_measure_rule_width(drawn_rule) - _measure_rule_width(other_rule))
        < _MAX_RULE_END_DIFFERENCE
    )


def _measure_rule_width(drawn_rule: DrawnRule) -> float:
    return drawn_rule.right - drawn_rule.left

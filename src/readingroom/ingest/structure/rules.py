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
_MIN_RULE_OVERLAP = 0.35
# Points between the ends of rules that belong together.
_MAX_END_DIFFERENCE = 3.0
# Lines between two rules of a table: its head, or a row.
_MAX_ROW_LINES = 3


def find_ruled_ends(
    typography: Typography,
    policies: Sequence[PolicyHeading],
    next_line_indexes: Sequence[int],
    paragraph_line_indexes: Container[int],
) -> list[int]:
    """Return for each policy the line after the rule below it; 0 where none closes it.

    A rule above the heading or right below it opens a policy, and the next one of its width closes
    it; where no heading has a rule, one above plain text closes it. Not below numbered paragraphs
    of the plan, which no policy holds.
    """
    no_ends = [0] * len(policies)
    min_policy_count = max(_MIN_RULED_POLICIES, _MIN_RULED_SHARE * len(policies))
    if not typography.rules_by_page or len(policies) < min_policy_count:
        return no_ends
    closing_rules = [
        _find_closing_rule(typography, policy_heading, next_line, paragraph_line_indexes)
        for policy_heading, next_line in zip(policies, next_line_indexes, strict=True)
    ]
    width_counts = Counter(
        round(_measure_width(closing_rule.rule)) for closing_rule in closing_rules if closing_rule
    )
    usual_width = width_counts.most_common(1)[0][0] if width_counts else 0
    ruled_ends = [
        closing_rule.line_index
        if closing_rule
        and abs(_measure_width(closing_rule.rule) - usual_width) < _MAX_END_DIFFERENCE
        else 0
        for closing_rule in closing_rules
    ]
    return ruled_ends if sum(map(bool, ruled_ends)) >= min_policy_count else no_ends


@dataclass(frozen=True, slots=True)
class _ClosingRule:
    """The line after a policy, and the rule above that line."""

    line_index: int
    rule: DrawnRule


def _find_closing_rule(
    typography: Typography,
    policy_heading: PolicyHeading,
    next_line: int,
    paragraph_line_indexes: Container[int],
) -> _ClosingRule | None:
    """Return where a rule closes a policy, or None."""
    title_end_index = typography.find_title_end(
        policy_heading.heading_index, policy_heading.title or "title"
    )
    opening_rule = _find_rule_above(typography, policy_heading.line_index) or _find_rule_below(
        typography, title_end_index - 1
    )
    # The first rule below the title is the heading's own.
    for line_index in range(title_end_index + 1, next_line):
        rule = _find_rule_below(typography, line_index - 1)
        if rule is None:
            if line_index in paragraph_line_indexes:
                return None
            continue
        if opening_rule is None:
            # Above a heading, a rule may belong to that heading.
            is_closing = not typography.is_emphasised(line_index)
        else:
            is_closing = _are_equally_wide(rule, opening_rule)
        if (
            is_closing
            and not _is_ruled_again(typography, line_index, rule)
            and not _is_table_row(typography, line_index, next_line, rule)
        ):
            return _ClosingRule(line_index, rule)
    return None


def _find_rule_above(typography: Typography, line_index: int) -> DrawnRule | None:
    """Return the nearest rule right above a line, with no other line between."""
    flow_line = typography.lines[line_index]
    line_top = flow_line.line.bottom + flow_line.line.size
    lowest_height, highest_height = (
        line_top - _MIN_RULE_OVERLAP * flow_line.line.size,
        line_top + _MAX_RULE_DISTANCE * flow_line.line.size,
    )
    if not _is_first_of_column(typography, line_index):
        highest_height = min(highest_height, typography.lines[line_index - 1].line.last_bottom)
    rules_above = _list_rules_between(typography, flow_line, lowest_height, highest_height)
    return min(rules_above, key=lambda rule: rule.height, default=None)


def _find_rule_below(typography: Typography, line_index: int) -> DrawnRule | None:
    """Return the rule between a line and the next, if there is one."""
    flow_line = typography.lines[line_index]
    size = flow_line.line.size
    highest_height = flow_line.line.last_bottom + _MIN_RULE_OVERLAP * size
    lowest_height = flow_line.line.last_bottom - _MAX_RULE_DISTANCE * size
    next_index = line_index + 1
    if next_index < len(typography.lines) and not _is_first_of_column(typography, next_index):
        next_line = typography.lines[next_index].line
        lowest_height = max(
            lowest_height, next_line.bottom + (1 - _MIN_RULE_OVERLAP) * next_line.size
        )
    return next(
        iter(_list_rules_between(typography, flow_line, lowest_height, highest_height)), None
    )


def _list_rules_between(
    typography: Typography, flow_line: FlowLine, lowest_height: float, highest_height: float
) -> list[DrawnRule]:
    """Return the rules over or under a line that are drawn between two heights of its page."""
    return [
        rule
        for rule in typography.rules_by_page.get(flow_line.page, ())
        if lowest_height <= rule.height <= highest_height
        and rule.left - _MAX_END_DIFFERENCE <= flow_line.line.left < rule.right
    ]


def _is_first_of_column(typography: Typography, line_index: int) -> bool:
    """Whether a line is the first of its page or column."""
    if not line_index:
        return True
    flow_line, line_above = typography.lines[line_index], typography.lines[line_index - 1]
    return (
        flow_line.page != line_above.page
        or flow_line.line.bottom > line_above.line.bottom + flow_line.line.size
    )


def _is_ruled_again(typography: Typography, line_index: int, opening_rule: DrawnRule) -> bool:
    """Whether rules are drawn above and below each part of a policy that a page end divides."""
    if not _is_first_of_column(typography, line_index):
        return False
    rule_above = _find_rule_above(typography, line_index)
    return rule_above is not None and _are_equally_wide(rule_above, opening_rule)


def _is_table_row(
    typography: Typography, line_index: int, next_line: int, opening_rule: DrawnRule
) -> bool:
    """Whether a rule has another one a row further down, as in a table without upright rules."""
    last_index = min(line_index + _MAX_ROW_LINES, next_line - 1)
    return any(
        (rule := _find_rule_below(typography, row_index)) is not None
        and _are_equally_wide(rule, opening_rule)
        for row_index in range(line_index, last_index)
    )


def _are_equally_wide(rule: DrawnRule, other_rule: DrawnRule) -> bool:
    """Whether two rules are equally long; on facing pages they may begin at different places."""
    return abs(_measure_width(rule) - _measure_width(other_rule)) < _MAX_END_DIFFERENCE


def _measure_width(rule: DrawnRule) -> float:
    return rule.right - rule.left

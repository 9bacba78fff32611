"""Finds the policies of a plan: of all places that name one, the place that *is* the policy.

A plan names each of its policies many times over: in its contents, in its monitoring tables, in
appendices, sometimes in full. Every such heading is a candidate; the policy is the one with text
below it, in the body of the plan, outside tables, that looks as most policies of the plan do.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from itertools import pairwise, takewhile

from readingroom.ingest.read.page import Box
from readingroom.ingest.structure.codes import (
    NUMBER_HEADING_PATTERN,
    find_box_look,
    find_boxed_prefixes,
    find_code_families,
    find_named_prefixes,
    is_above_monitoring_labels,
    is_above_requirement,
)
from readingroom.ingest.structure.policy_headings import (
    PolicyHeading,
    find_policy_headings,
    is_heading_row_of_list,
)
from readingroom.ingest.structure.starts import SectionStart
from readingroom.ingest.structure.typography import MARGIN_TOLERANCE, Typography

_BACK_MATTER_PATTERN = re.compile(
    r"monitor|implementation|saved polic|supersed|replaced|glossary|index|schedule of|list of polic"
    r"|policy list|evidence base|abbreviations",
    re.IGNORECASE,
)
_EXPLAINING_TITLE_PATTERN = re.compile(
    r"(?:.*\W)?(?:background|justification|explanation|supporting text|monitoring|implementation)",
    re.IGNORECASE | re.DOTALL,
)
_TITLE_WITHOUT_POLICIES_PATTERN = re.compile(
    r"report on the examination|inspector[’']?s report|report to .* council$"
    r"|supplementary planning (?:document|guidance)\b",
    re.IGNORECASE,
)
_FIRST_CLAUSE_PATTERN = re.compile(r"\(?A[.)]?\s+[A-Z]")
_NUMBER_MENTION_PATTERN = re.compile(r"\bPolicy (\d{1,2}[A-Z]?)\b(?![./]\d)")
_TITLE_PAGE_COUNT = 2
# Of policies headed by mere numbers, and of those of them that the text names.
_MIN_NUMBERED_POLICIES, _MIN_MENTIONED_POLICIES = 4, 3
# A plan with fewer policies may name them by codes alone.
_MIN_WORDED_POLICIES = 3
_BODY_RANK, _BACK_MATTER_RANK, _ANNEX_RANK = 2, 1, 0
# An annex that begins before this share of the lines is a line of the contents.
_MIN_ANNEX_POSITION_SHARE = 0.3
# Of the text below a heading; with less, it is a line of a list.
_MIN_POLICY_TEXT_CHARS = 40
# Of a sentence that stands in a box with its heading, and nothing else.
_MIN_SENTENCE_CHARS = 12
# Share of a plan's policies that stand in boxes; then a box that names one is the policy.
_MIN_BOXED_POLICY_SHARE = 0.6
_MAX_LINES_COUNTED = 400
# Headings without a text, one below the other; with fewer, they are no list.
_MIN_HEADINGS_IN_LIST = 3


def find_policy_and_other_headings(
    typography: Typography, document_text: str, headings: Sequence[SectionStart]
) -> tuple[list[PolicyHeading], list[PolicyHeading]]:
    """Return the policies of a document, and the other headings that name one."""
    if not has_own_policies(typography):
        return [], []
    code_prefixes = find_named_prefixes(document_text)
    chosen_headings, other_headings = _choose_policy_headings(typography, code_prefixes, headings)
    looks_of_policies = {
        (line_of_heading.is_bold, round(line_of_heading.letter_height))
        for policy_heading in chosen_headings
        for line_of_heading in [typography.lines[policy_heading.heading_index].line]
    }
    has_few_policies = len(chosen_headings) < _MIN_WORDED_POLICIES
    # Beside policies that are called so, a code without the word is one where the contents list it
    # and it looks like them, heads a box or is listed as they are.
    family_prefixes = {
        code_prefix
        for code_family in find_code_families(typography, document_text)
        if has_few_policies or code_family.look in looks_of_policies or code_family.is_like_policies
        for code_prefix in (
            code_family.prefixes if has_few_policies else code_family.listed_prefixes
        )
    }
    family_prefixes |= find_boxed_prefixes(
        typography, [policy_heading.heading_index for policy_heading in chosen_headings]
    )
    number_heading_line_indexes = (
        _find_number_heading_line_indexes(typography) if has_few_policies else set()
    )
    if family_prefixes - code_prefixes or number_heading_line_indexes:
        return _choose_policy_headings(
            typography,
            code_prefixes | family_prefixes,
            # `6. Affordable homes` reads like a chapter.
            [
                section_start
                for section_start in headings
                if section_start.line_index not in number_heading_line_indexes
            ],
            number_heading_line_indexes,
        )
    return chosen_headings, other_headings


def _find_number_heading_line_indexes(typography: Typography) -> set[int]:
    """Return the headings `6. Affordable homes` of what the text calls `Policy 6`.

    Each begins a box, or stands above a clause `A`; what stands above a paragraph is a chapter.
    """
    numbers_by_line_index = {
        line_index: heading_match["number"]
        for line_index, flow_line in enumerate(typography.lines[:-1])
        if flow_line.line.text[0].isdigit()
        and (heading_match := NUMBER_HEADING_PATTERN.fullmatch(flow_line.line.text))
        and (
            (
                find_box_look(typography, line_index) is not None
                and typography.lines[line_index + 1].box == flow_line.box
            )
            or _FIRST_CLAUSE_PATTERN.match(
                typography.lines[
                    min(typography.get_title_end(line_index, "title"), len(typography.lines) - 1)
                ].line.text
            )
        )
        and line_index not in typography.contents_line_indexes
        and typography.is_emphasised(line_index)
        and typography.is_heading(line_index)
    }
    policy_numbers = {
        heading_number
        for line_index, heading_number in numbers_by_line_index.items()
        if is_above_requirement(typography, line_index)
    }
    if len(policy_numbers) < _MIN_NUMBERED_POLICIES:
        return set()
    mentioned_numbers = {
        policy_number
        for flow_line in typography.lines
        for policy_number in _NUMBER_MENTION_PATTERN.findall(flow_line.line.text)
    }
    # Some of the numbers that the text names may be other plans'.
    are_policies = (
        3 * len(policy_numbers) >= 2 * len({*numbers_by_line_index.values()})
        and len(policy_numbers & mentioned_numbers) >= _MIN_MENTIONED_POLICIES
        and 2 * len(policy_numbers & mentioned_numbers) > len(mentioned_numbers)
    )
    return {*numbers_by_line_index} if are_policies else set()


def _choose_policy_headings(
    typography: Typography,
    code_prefixes: set[str],
    headings: Sequence[SectionStart],
    number_heading_line_indexes: Container[int] = (),
) -> tuple[list[PolicyHeading], list[PolicyHeading]]:
    """Return the policies whose codes begin with these letters or follow the word "Policy"."""
    candidate_headings = find_policy_headings(
        typography, code_prefixes, number_heading_line_indexes
    )
    boundary_line_indexes = sorted(
        {
            section_start.line_index
            for section_start in headings
            if section_start.kind not in ("exhibit", "part")
        }
        | {candidate_heading.line_index for candidate_heading in candidate_headings}
        | {len(typography.lines)}
    )
    chosen_headings = _PolicyChooser(
        typography, candidate_headings, headings, boundary_line_indexes
    ).choose_headings()
    chosen_line_indexes = {candidate_heading.line_index for candidate_heading in chosen_headings}
    other_headings = [
        candidate_heading
        for candidate_heading in candidate_headings
        if candidate_heading.line_index not in chosen_line_indexes
        and not is_heading_row_of_list(typography, candidate_heading)
    ]
    return chosen_headings, other_headings


def has_own_policies(typography: Typography) -> bool:
    """Whether a document can have policies of its own; a report on a plan only quotes them."""
    for line_index, flow_line in enumerate(typography.lines):
        if flow_line.page > _TITLE_PAGE_COUNT:
            break
        if line_index in typography.contents_line_indexes:
            continue
        if typography.is_emphasised(line_index) and _TITLE_WITHOUT_POLICIES_PATTERN.search(
            flow_line.line.text[:200]
        ):
            return False
    return True


def make_policy_ref_key(policy_ref: str) -> str:
    """Return a reference without blanks, which plans write in a code or leave out."""
    return policy_ref.replace(" ", "").casefold()


class _PolicyChooser:
    """Chooses, of the headings that name one policy, the one that is the policy."""

    def __init__(
        self,
        typography: Typography,
        candidate_headings: Sequence[PolicyHeading],
        headings: Sequence[SectionStart],
        boundary_line_indexes: Sequence[int],
    ) -> None:
        self._typography = typography
        self._candidate_headings = candidate_headings
        self._ranked_stretches = _rank_document_stretches(headings, len(typography.lines))
        self._next_boundaries_by_line_index = dict(pairwise(boundary_line_indexes))
        heading_line_indexes = [heading.line_index for heading in candidate_headings]
        self._next_headings_by_line_index = dict(
            pairwise([*heading_line_indexes, len(typography.lines)])
        )
        self._refs_by_box = self._group_refs_by_box()
        self._text_lengths_by_line_index = {
            candidate_heading.line_index: self._count_text_chars(candidate_heading)
            for candidate_heading in candidate_headings
        }
        self._last_row_indexes_of_lists = self._find_last_rows_of_lists()
        plausible_headings = [*filter(self._is_plausible_heading, candidate_headings)]
        refs_of_boxed_policies = {
            make_policy_ref_key(heading.ref)
            for heading in plausible_headings
            if self._is_first_line_of_box(heading)
        }
        plausible_refs = {make_policy_ref_key(heading.ref) for heading in plausible_headings}
        self._are_policies_boxed = len(refs_of_boxed_policies) > _MIN_BOXED_POLICY_SHARE * len(
            plausible_refs
        )
        # The look of most policies, counted over references so that a long list does not win.
        refs_by_look: defaultdict[tuple[bool, float, bool], set[str]] = defaultdict(set)
        for candidate_heading in plausible_headings:
            refs_by_look[self._get_heading_look(candidate_heading)].add(
                make_policy_ref_key(candidate_heading.ref)
            )
        self._policy_counts_by_look = Counter(
            {heading_look: len(refs_of_look) for heading_look, refs_of_look in refs_by_look.items()}
        )

    def choose_headings(self) -> list[PolicyHeading]:
        best_headings_by_ref: dict[str, PolicyHeading] = {}
        for candidate_heading in self._candidate_headings:
            if not self._is_plausible_heading(candidate_heading):
                continue
            policy_ref_key = make_policy_ref_key(candidate_heading.ref)
            if policy_ref_key not in best_headings_by_ref or self._make_rank_key(
                candidate_heading
            ) > self._make_rank_key(best_headings_by_ref[policy_ref_key]):
                best_headings_by_ref[policy_ref_key] = candidate_heading
        return sorted(
            best_headings_by_ref.values(),
            key=lambda candidate_heading: candidate_heading.line_index,
        )

    def _make_rank_key(
        self, candidate_heading: PolicyHeading
    ) -> tuple[int, bool, bool, bool, bool, bool, bool, int, bool, int]:
        return (
            self._get_stretch_rank(candidate_heading),
            # A note in the margin may name the policy beside it.
            not self._typography.is_small_line(candidate_heading.heading_index),
            not self._shares_box_with_others(candidate_heading),
            not self._is_inside_table(candidate_heading),
            # The section about a policy may be numbered, and have its name.
            not self._begins_with_digit(candidate_heading),
            not _EXPLAINING_TITLE_PATTERN.fullmatch(candidate_heading.title),
            self._are_policies_boxed and self._is_first_line_of_box(candidate_heading),
            self._policy_counts_by_look[self._get_heading_look(candidate_heading)],
            candidate_heading.label_line_index is not None,
            self._text_lengths_by_line_index[candidate_heading.line_index],
        )

    def _is_plausible_heading(self, candidate_heading: PolicyHeading) -> bool:
        """Whether there is text below a heading, in the body of the document."""
        has_text = self._text_lengths_by_line_index[
            candidate_heading.line_index
        ] >= _MIN_POLICY_TEXT_CHARS or self._begins_box_with_sentence(candidate_heading)
        return (
            has_text
            and self._get_stretch_rank(candidate_heading) != _ANNEX_RANK
            and candidate_heading.line_index not in self._last_row_indexes_of_lists
            and not self._is_monitoring_heading(candidate_heading)
        )

    def _begins_box_with_sentence(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading begins a box, and a sentence ends it."""
        all_lines = self._typography.lines
        heading_line = all_lines[candidate_heading.heading_index]
        text_start_index = candidate_heading.heading_index + 1
        if heading_line.box is None or heading_line.box.is_grid:
            return False
        lines_below_in_box = [
            *takewhile(
                lambda flow_line: (
                    flow_line.box == heading_line.box and flow_line.page == heading_line.page
                ),
                all_lines[text_start_index : text_start_index + _MIN_HEADINGS_IN_LIST],
            )
        ]
        return bool(lines_below_in_box) and (
            len(lines_below_in_box[-1].line.text) >= _MIN_SENTENCE_CHARS
            and lines_below_in_box[-1].line.text.endswith(".")
        )

    def _is_monitoring_heading(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading in a chapter on monitoring stands above indicators, not above rules."""
        heading_index = candidate_heading.heading_index
        return self._get_stretch_rank(candidate_heading) == _BACK_MATTER_RANK and (
            is_above_monitoring_labels(self._typography, heading_index)
            or not is_above_requirement(self._typography, heading_index)
        )

    def _find_last_rows_of_lists(self) -> set[int]:
        """Return the headings that end a list of others; the text below is no part of the list."""
        last_row_indexes: set[int] = set()
        list_row_count = 0
        for last_heading, next_heading in pairwise(self._candidate_headings):
            is_next_row = self._is_next_row_of_list(last_heading, next_heading)
            list_row_count = list_row_count + 1 if is_next_row else 0
            if list_row_count >= _MIN_HEADINGS_IN_LIST:
                last_row_indexes.add(next_heading.line_index)
        return last_row_indexes

    def _is_next_row_of_list(
        self, last_heading: PolicyHeading, next_heading: PolicyHeading
    ) -> bool:
        """Whether one heading stands right below another that looks like it, without a text."""
        all_lines = self._typography.lines
        last_line = all_lines[last_heading.heading_index]
        next_line = all_lines[next_heading.heading_index]
        return (
            self._text_lengths_by_line_index[last_heading.line_index] < _MIN_POLICY_TEXT_CHARS
            and last_line.page == next_line.page
            and abs(last_line.line.left - next_line.line.left) < 1
            and self._typography.has_same_look(
                last_heading.heading_index, next_heading.heading_index
            )
        )

    def _get_stretch_rank(self, candidate_heading: PolicyHeading) -> int:
        stretch_index = (
            bisect_right(self._ranked_stretches, (candidate_heading.line_index, _BODY_RANK)) - 1
        )
        return self._ranked_stretches[stretch_index][1]

    def _group_refs_by_box(self) -> dict[tuple[int, Box], set[str]]:
        """Return the policies that each box names as headings do, by its page."""
        refs_by_box: defaultdict[tuple[int, Box], set[str]] = defaultdict(set)
        for candidate_heading in self._candidate_headings:
            heading_line = self._typography.lines[candidate_heading.heading_index]
            if heading_line.box is not None:
                refs_by_box[heading_line.page, heading_line.box].add(
                    make_policy_ref_key(candidate_heading.ref)
                )
        return refs_by_box

    def _shares_box_with_others(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading stands in a box with others, as in a table of several policies."""
        heading_line = self._typography.lines[candidate_heading.heading_index]
        if heading_line.box is None:
            return False
        return len(self._refs_by_box[heading_line.page, heading_line.box]) > 1

    def _is_first_line_of_box(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading is the first line of a box that holds its text too."""
        all_lines = self._typography.lines
        heading_index = candidate_heading.heading_index
        heading_box = all_lines[heading_index].box
        return (
            heading_box is not None
            and heading_index + 1 < len(all_lines)
            and all_lines[heading_index + 1].box == heading_box
            and (heading_index == 0 or all_lines[heading_index - 1].box != heading_box)
        )

    def _is_inside_table(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading stands in a table; not so in a box that holds a rule and a table."""
        heading_index = candidate_heading.heading_index
        box_of_heading = self._typography.lines[heading_index].box
        if box_of_heading is None or not box_of_heading.is_grid:
            return False
        text_start_index = self._typography.get_title_end(heading_index, candidate_heading.title)
        does_box_hold_policy = (
            self._is_first_line_of_box(candidate_heading)
            and self._typography.is_long_line(text_start_index)
            and self._typography.lines[text_start_index].box == box_of_heading
            and is_above_requirement(self._typography, heading_index)
            and not is_above_monitoring_labels(self._typography, heading_index)
        )
        return not does_box_hold_policy

    def _begins_with_digit(self, candidate_heading: PolicyHeading) -> bool:
        return self._typography.lines[candidate_heading.heading_index].line.text[0].isdigit()

    def _get_heading_look(self, candidate_heading: PolicyHeading) -> tuple[bool, float, bool]:
        heading_line = self._typography.lines[candidate_heading.heading_index].line
        return (
            heading_line.is_bold,
            round(heading_line.letter_height),
            candidate_heading.ref.startswith("Policy "),
        )

    def _count_text_chars(self, candidate_heading: PolicyHeading) -> int:
        """Return the number of characters between a heading and the next, or its own line's."""
        text_start_index = candidate_heading.heading_index + (
            candidate_heading.line_index == candidate_heading.heading_index
        )
        text_end_index = min(
            self._next_boundaries_by_line_index[candidate_heading.line_index],
            text_start_index + _MAX_LINES_COUNTED,
        )
        all_lines = self._typography.lines
        heading_box = all_lines[candidate_heading.heading_index].box
        if heading_box is not None:
            # Numbers in the box of a policy are its own, and end nothing.
            max_box_end_index = min(
                self._next_headings_by_line_index[candidate_heading.line_index],
                text_start_index + _MAX_LINES_COUNTED,
            )
            box_lines = [
                *takewhile(
                    lambda flow_line: flow_line.box == heading_box,
                    all_lines[text_start_index:max_box_end_index],
                )
            ]
            box_char_count = sum(len(flow_line.line.text) for flow_line in box_lines)
            # The heading and its facts may be all that a page has room for.
            if box_char_count >= _MIN_POLICY_TEXT_CHARS or (
                heading_box.is_grid
                and not self._is_continued_on_next_page(
                    candidate_heading, text_start_index + len(box_lines)
                )
            ):
                return box_char_count
        return sum(
            len(flow_line.line.text) for flow_line in all_lines[text_start_index:text_end_index]
        )

    def _is_continued_on_next_page(
        self, candidate_heading: PolicyHeading, next_line_index: int
    ) -> bool:
        """Whether a heading ends its page, and a box of the same width begins the next."""
        all_lines = self._typography.lines
        heading_line = all_lines[candidate_heading.heading_index]
        if (
            next_line_index >= len(all_lines)
            or all_lines[next_line_index].page != heading_line.page + 1
        ):
            return False
        next_box = all_lines[next_line_index].box
        assert heading_line.box is not None
        return (
            next_box is not None
            and abs(next_box.left - heading_line.box.left) < MARGIN_TOLERANCE
            and abs(next_box.right - heading_line.box.right) < MARGIN_TOLERANCE
        )


def _rank_document_stretches(
    headings: Sequence[SectionStart], line_count: int
) -> list[tuple[int, int]]:
    """Return the lines at which a stretch of the document begins, each with its weight.

    The body weighs 2, chapters on monitoring, old policies and the like 1, and annexes 0.
    """
    start_indexes_and_ranks = [(0, _BODY_RANK)]
    back_matter_level: int | None = None
    for section_start in headings:
        if section_start.kind not in ("part", "chapter", "annex", "section"):
            continue
        is_annex = section_start.kind == "annex"
        if (
            back_matter_level is not None
            and section_start.level > back_matter_level
            and not is_annex
        ):
            continue
        back_matter_level = section_start.level
        if is_annex and section_start.line_index > _MIN_ANNEX_POSITION_SHARE * line_count:
            start_indexes_and_ranks.append((section_start.line_index, _ANNEX_RANK))
        elif is_annex or _BACK_MATTER_PATTERN.search(section_start.title[:200]):
            start_indexes_and_ranks.append((section_start.line_index, _BACK_MATTER_RANK))
        else:
            start_indexes_and_ranks.append((section_start.line_index, _BODY_RANK))
            back_matter_level = None
    return start_indexes_and_ranks

"""Finds the sections of a policy document: chapters, policies, numbered paragraphs, tables.

Headings and numbers come from `headings`, `policies` and `numbering`; here they are put in order,
each with its extent. What only explains a policy is a section beside it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from readingroom.engine.chunking import Span
from readingroom.ingest.document import DocumentSection, PassageKind
from readingroom.ingest.structure.extents import (
    find_side_column_left,
    find_text_end_index,
    is_policy_set_in_bold,
)
from readingroom.ingest.structure.footnotes import find_marks_by_footnote_line, has_note_mark
from readingroom.ingest.structure.headings import (
    find_headings,
    find_leading_headings_index,
    find_unnumbered_headings,
)
from readingroom.ingest.structure.layout import TextFlow
from readingroom.ingest.structure.numbering import (
    find_decimal_numbered_sections,
    iterate_plain_paragraph_starts,
)
from readingroom.ingest.structure.policies import find_policy_and_other_headings
from readingroom.ingest.structure.policy_boxes import (
    find_box_end_index,
    is_small_print_between_boxes,
)
from readingroom.ingest.structure.policy_headings import PolicyHeading, is_repeated_at_page_top
from readingroom.ingest.structure.rules import find_ruled_end_indexes
from readingroom.ingest.structure.starts import (
    LEVELS_BY_SECTION_KIND,
    SUPPORTING_REF_PREFIX,
    SectionStart,
    make_section_start,
)
from readingroom.ingest.structure.typography import FIGURE_CAPTION_PATTERN, Typography

# A document with fewer numbered paragraphs and no policies is divided by its bare headings.
_MIN_NUMBERED_PARAGRAPHS = 8
_ENCLOSING_SECTION_KINDS = ("part", "chapter", "annex", "section", "heading")


@dataclass(frozen=True, slots=True)
class _Division:
    """Where a stretch of the document begins, and the section it belongs to, if to any."""

    line_index: int
    section_start: SectionStart | None
    is_resumed: bool = False
    lead_line_index: int | None = None
    """The first line of a heading that is printed again above it, if one is."""


def find_sections(text_flow: TextFlow) -> tuple[DocumentSection, ...]:
    """Return the sections in order; a stretch between two of them belongs to none."""
    typography = Typography(text_flow)
    headings = find_headings(typography)
    decimal_starts = find_decimal_numbered_sections(typography, headings)
    outline_starts = _add_figure_page_starts(
        typography,
        sorted([*headings, *decimal_starts], key=lambda section_start: section_start.line_index),
    )
    policies, other_headings = find_policy_and_other_headings(
        typography, text_flow.text, outline_starts
    )
    paragraph_line_indexes = {
        section_start.line_index
        for section_start in outline_starts
        if section_start.kind not in ("exhibit", "part")
    }
    policy_extents = _PolicyExtents(typography, policies, paragraph_line_indexes)
    section_starts = _add_plain_starts(
        typography, policy_extents.exclude_inner_starts(outline_starts), policy_extents
    )
    divisions = [
        _Division(section_start.line_index, section_start) for section_start in section_starts
    ]
    divisions += [
        _Division(other_heading.line_index, None)
        for other_heading in other_headings
        if not policy_extents.is_line_in_policy_box(other_heading.line_index)
    ]
    divisions += policy_extents.divide_policies(divisions)
    divisions.sort(key=_make_division_sort_key)
    divisions = [
        *_resume_sections_after_exhibits(typography, [*_resume_enclosing_sections(divisions)])
    ]
    return tuple(_iterate_sections(text_flow, typography, divisions))


def _add_figure_page_starts(
    typography: Typography, outline_starts: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return the starts, with one for each page that a figure fills.

    A policy or a paragraph may go on after it, but the words of a figure are no part of them.
    """
    headed_page_numbers = {
        typography.lines[section_start.line_index].page
        for section_start in outline_starts
        if section_start.kind != "exhibit"
    }
    figure_page_numbers = typography.line_ranges_by_figure_page.keys() - headed_page_numbers
    starts_on_other_pages = [
        section_start
        for section_start in outline_starts
        if typography.lines[section_start.line_index].page not in figure_page_numbers
    ]
    figure_starts = [
        _make_figure_start(typography, typography.line_ranges_by_figure_page[page_number])
        for page_number in figure_page_numbers
    ]
    return sorted(
        [*starts_on_other_pages, *figure_starts], key=lambda section_start: section_start.line_index
    )


def _make_figure_start(typography: Typography, page_line_indexes: range) -> SectionStart:
    figure_caption_match = next(
        caption_match
        for line_index in page_line_indexes
        if (caption_match := FIGURE_CAPTION_PATTERN.match(typography.lines[line_index].line.text))
    )
    section_ref = " ".join(figure_caption_match["ref"].split())
    return SectionStart(
        page_line_indexes.start,
        "exhibit",
        section_ref,
        figure_caption_match["title"],
        LEVELS_BY_SECTION_KIND["para"],
    )


def _add_plain_starts(
    typography: Typography, outline_starts: Sequence[SectionStart], policy_extents: "_PolicyExtents"
) -> list[SectionStart]:
    """Return the starts with plain numbers or bare headings, where there is nothing better."""
    if any(section_start.kind == "para" for section_start in outline_starts):
        return [*outline_starts]
    policy_starts = [
        policy_heading.to_section_start() for policy_heading in policy_extents.policies
    ]
    paragraph_starts = [
        *iterate_plain_paragraph_starts(
            typography, [*outline_starts, *policy_starts], policy_extents.list_box_line_indexes()
        )
    ]
    section_starts = [*outline_starts, *paragraph_starts]
    if not policy_starts and len(paragraph_starts) < _MIN_NUMBERED_PARAGRAPHS:
        section_starts += find_unnumbered_headings(typography, section_starts)
    return sorted(section_starts, key=lambda section_start: section_start.line_index)


class _PolicyExtents:
    """The lines that each policy of a document covers."""

    def __init__(
        self,
        typography: Typography,
        policies: Sequence[PolicyHeading],
        paragraph_line_indexes: Container[int],
    ) -> None:
        self.policies = policies
        self._typography = typography
        self._policy_line_indexes = [policy_heading.line_index for policy_heading in policies]
        next_line_indexes = [*self._policy_line_indexes, len(typography.lines)][1:]
        self._marks_by_footnote_line = find_marks_by_footnote_line(typography) if policies else {}
        self._side_column_left = find_side_column_left(typography, policies, next_line_indexes)
        drawn_end_indexes = [
            find_box_end_index(
                typography, policy_heading, next_line_index, self._marks_by_footnote_line
            )
            for policy_heading, next_line_index in zip(policies, next_line_indexes, strict=True)
        ]
        self._boxed_policy_line_indexes = {
            policy_heading.line_index
            for policy_heading, drawn_end_index in zip(policies, drawn_end_indexes, strict=True)
            if drawn_end_index
        }
        ruled_end_indexes = find_ruled_end_indexes(
            typography, policies, next_line_indexes, paragraph_line_indexes
        )
        # Two rules mark a policy off as a box does.
        self._box_end_indexes = [
            drawn_end_index or ruled_end_index
            for drawn_end_index, ruled_end_index in zip(
                drawn_end_indexes, ruled_end_indexes, strict=True
            )
        ]

    def is_line_in_policy_box(self, line_index: int) -> bool:
        """Whether a line stands in the box of a policy, below its heading."""
        policy_index = bisect_right(self._policy_line_indexes, line_index) - 1
        return policy_index >= 0 and (
            self.policies[policy_index].text_start_index
            < line_index
            < self._box_end_indexes[policy_index]
        )

    def list_box_line_indexes(self) -> set[int]:
        return {
            line_index
            for policy_heading, box_end_index in zip(
                self.policies, self._box_end_indexes, strict=True
            )
            for line_index in range(policy_heading.line_index, box_end_index)
        }

    def exclude_inner_starts(self, outline_starts: Sequence[SectionStart]) -> list[SectionStart]:
        """Return the starts but for those that only divide a policy: `Part A`, its numbers."""
        outer_starts: list[SectionStart] = []
        last_outside_line_index = -1
        for section_start in outline_starts:
            if section_start.kind == "exhibit":
                outer_starts.append(section_start)
            elif not (
                self.is_line_in_policy_box(section_start.line_index)
                or self._is_part_of_policy(section_start, last_outside_line_index)
            ):
                outer_starts.append(section_start)
                last_outside_line_index = section_start.line_index
        return outer_starts

    def _is_part_of_policy(self, section_start: SectionStart, last_outside_line_index: int) -> bool:
        """Whether `Part A` follows a policy without a box, in letters no larger than its own."""
        policy_index = bisect_right(self._policy_line_indexes, section_start.line_index) - 1
        if policy_index < 0:
            return False
        policy_line_index = self._policy_line_indexes[policy_index]
        if section_start.kind == "chapter" and section_start.line_index == policy_line_index:
            return True  # `6. Homes`, which the text calls `Policy 6`
        if section_start.kind != "part" or last_outside_line_index > policy_line_index:
            return False
        all_lines = self._typography.lines
        heading_line = all_lines[self.policies[policy_index].heading_index].line
        section_start_line = all_lines[section_start.line_index].line
        return section_start_line.letter_height <= heading_line.letter_height + 0.5

    def divide_policies(self, divisions: Sequence[_Division]) -> Iterator[_Division]:
        """Yield where each policy begins, and where the text begins that only explains it."""
        boundary_indexes = sorted(
            {len(self._typography.lines), *self._policy_line_indexes}
            | {
                division.line_index
                for division in divisions
                if division.section_start is None or division.section_start.kind != "exhibit"
            }
        )
        all_boundary_indexes = sorted(
            {*boundary_indexes, *(division.line_index for division in divisions)}
        )
        for policy_heading, box_end_index in zip(self.policies, self._box_end_indexes, strict=True):
            policy_start = policy_heading.to_section_start()
            supporting_start = make_section_start(
                policy_heading.line_index,
                "supporting",
                SUPPORTING_REF_PREFIX + policy_heading.ref,
                policy_heading.title,
            )
            yield _Division(policy_heading.line_index, policy_start)
            title_end_index = self._typography.get_title_end(
                policy_heading.heading_index, policy_heading.title
            )
            if title_end_index < policy_heading.text_start_index:
                yield _Division(title_end_index, supporting_start)
                yield _Division(policy_heading.text_start_index, policy_start, is_resumed=True)
            next_boundary_index = boundary_indexes[
                bisect_right(boundary_indexes, policy_heading.text_start_index)
            ]
            policy_end_index = box_end_index or find_text_end_index(
                self._typography, policy_heading, next_boundary_index
            )
            if self._side_column_left is not None and not box_end_index:
                text_line_indexes = range(policy_heading.text_start_index + 1, policy_end_index)
                yield from self._separate_side_column(
                    text_line_indexes, policy_start, supporting_start
                )
            is_policy_marked_off = box_end_index or is_policy_set_in_bold(
                self._typography, policy_heading, next_boundary_index
            )
            yield from self._separate_footnotes(
                range(policy_heading.text_start_index + 1, policy_end_index),
                policy_start,
                is_policy_marked_off=bool(is_policy_marked_off),
                is_policy_boxed=policy_heading.line_index in self._boxed_policy_line_indexes,
            )
            yield from self._skip_repeated_headings(policy_heading, policy_end_index, policy_start)
            supporting_end_index = all_boundary_indexes[
                bisect_left(all_boundary_indexes, policy_end_index)
            ]
            has_exhibit_next = (
                supporting_end_index
                < boundary_indexes[bisect_left(boundary_indexes, policy_end_index)]
            )
            leading_headings_index = find_leading_headings_index(
                self._typography, policy_end_index, supporting_end_index
            )
            if has_exhibit_next or policy_end_index < leading_headings_index:
                yield _Division(policy_end_index, supporting_start, is_resumed=True)

    def _skip_repeated_headings(
        self, policy_heading: PolicyHeading, policy_end_index: int, policy_start: SectionStart
    ) -> Iterator[_Division]:
        """Yield where a policy goes on below its heading that is printed again on a new page."""
        heading_index = policy_heading.heading_index
        title_end_index = self._typography.get_title_end(heading_index, policy_heading.title)
        heading_line_count = title_end_index - heading_index
        for line_index in range(title_end_index, policy_end_index - heading_line_count):
            if is_repeated_at_page_top(
                self._typography, heading_index, line_index, heading_line_count
            ):
                resumed_index = line_index + heading_line_count
                yield _Division(
                    resumed_index, policy_start, is_resumed=True, lead_line_index=line_index
                )

    def _separate_footnotes(
        self,
        text_line_indexes: range,
        policy_start: SectionStart,
        *,
        is_policy_marked_off: bool,
        is_policy_boxed: bool,
    ) -> Iterator[_Division]:
        """Yield where notes at the foot of a page interrupt a policy, and where it goes on.

        Another policy's are no part of it; nor its own, outside its box or not in its bold letters.
        """
        was_footnote_line = False
        for line_index in text_line_indexes:
            note_mark = self._marks_by_footnote_line.get(line_index)
            is_footnote_line = (
                is_policy_boxed and is_small_print_between_boxes(self._typography, line_index)
            ) or (
                note_mark is not None
                and (
                    is_policy_marked_off
                    or not has_note_mark(
                        self._typography, range(text_line_indexes.start, line_index), note_mark
                    )
                )
            )
            if is_footnote_line != was_footnote_line:
                section_start = None if is_footnote_line else policy_start
                yield _Division(line_index, section_start, is_resumed=True)
            was_footnote_line = is_footnote_line

    def _separate_side_column(
        self, text_line_indexes: range, policy_start: SectionStart, supporting_start: SectionStart
    ) -> Iterator[_Division]:
        """Yield where the column beside a policy begins, and where the policy goes on after it."""
        was_in_side_column = False
        for line_index in text_line_indexes:
            is_in_side_column = self._typography.lines[line_index].line.left >= (
                self._side_column_left or 0
            )
            if is_in_side_column != was_in_side_column:
                section_start = supporting_start if is_in_side_column else policy_start
                yield _Division(line_index, section_start, is_resumed=True)
            was_in_side_column = is_in_side_column


def _make_division_sort_key(division: _Division) -> tuple[int, bool]:
    """Return a sort key: an exhibit follows what begins on the same line."""
    is_exhibit = division.section_start is not None and division.section_start.kind == "exhibit"
    return division.line_index, is_exhibit


def _resume_enclosing_sections(divisions: Sequence[_Division]) -> Iterator[_Division]:
    """Yield the divisions; one that begins no section belongs to the chapter around it."""
    enclosing_section_start = current_section_start = None
    for division in divisions:
        if division.section_start is None and enclosing_section_start is not None:
            if current_section_start is not enclosing_section_start:
                yield replace(division, section_start=enclosing_section_start, is_resumed=True)
            current_section_start = enclosing_section_start
            continue
        yield division
        current_section_start = division.section_start
        if (
            division.section_start is not None
            and division.section_start.kind in _ENCLOSING_SECTION_KINDS
        ):
            enclosing_section_start = division.section_start


def _resume_sections_after_exhibits(
    typography: Typography, divisions: Sequence[_Division]
) -> Iterator[_Division]:
    """Yield the divisions; where prose goes on after a table, its section starts a second time."""
    last_section_start: SectionStart | None = None
    end_indexes = [
        *(division.line_index for division in divisions),
        len(typography.lines),
    ][1:]
    for division, end_index in zip(divisions, end_indexes, strict=True):
        yield division
        if division.section_start is None or division.section_start.kind != "exhibit":
            last_section_start = division.section_start
        elif last_section_start is not None and typography.is_on_figure_page(division.line_index):
            page_number = typography.lines[division.line_index].page
            figure_end_index = typography.line_ranges_by_figure_page[page_number].stop
            if figure_end_index < end_index:
                yield _Division(figure_end_index, last_section_start, is_resumed=True)
        elif last_section_start is not None:
            next_line_indexes = range(division.line_index + 1, end_index)
            resumed_line_index = next(filter(typography.is_prose_start, next_line_indexes), None)
            if resumed_line_index is not None:
                yield _Division(resumed_line_index, last_section_start, is_resumed=True)


def _iterate_sections(
    text_flow: TextFlow, typography: Typography, divisions: Sequence[_Division]
) -> Iterator[DocumentSection]:
    ancestor_starts: list[SectionStart] = []
    lead_line_indexes = [*_iterate_lead_line_indexes(typography, divisions), len(text_flow.lines)]
    line_start_offsets = [
        *(flow_line.start_offset for flow_line in text_flow.lines),
        len(text_flow.text),
    ]
    for division, lead_line_index, end_index in zip(
        divisions, lead_line_indexes, lead_line_indexes[1:], strict=False
    ):
        section_start = division.section_start
        if section_start is None:
            ancestor_starts = []
            continue
        ancestor_starts = [
            ancestor for ancestor in ancestor_starts if ancestor.level < section_start.level
        ] + [section_start]
        if division.line_index >= end_index:
            continue
        yield DocumentSection(
            ref=section_start.ref,
            path=tuple(ancestor.ref for ancestor in ancestor_starts),
            title=typography.join_title_lines(section_start.line_index, section_start.title),
            start_offset=line_start_offsets[division.line_index],
            end_offset=line_start_offsets[end_index],
            page=text_flow.lines[division.line_index].page,
            lead_start_offset=line_start_offsets[lead_line_index],
            kind=_find_passage_kind_by_ancestry(ancestor_starts),
        )


def _iterate_lead_line_indexes(
    typography: Typography, divisions: Sequence[_Division]
) -> Iterator[int]:
    """Yield for each division the first line of the headings above it, or its own."""
    text_start_index = 0
    for division in divisions:
        section_start = division.section_start
        if division.lead_line_index is not None:
            yield division.lead_line_index
        elif section_start is None or section_start.kind == "exhibit" or division.is_resumed:
            yield division.line_index
        else:
            yield find_leading_headings_index(typography, text_start_index, division.line_index)
        text_start_index = division.line_index + 1
        if section_start is not None and not division.is_resumed:
            text_start_index = typography.get_title_end(division.line_index, section_start.title)


def find_passage_kind(
    text_flow: TextFlow, passage_span: Span, section: DocumentSection
) -> PassageKind:
    """Return what a stretch of a section is: where most of it stands in a grid, it is a table."""
    if section.kind != "supporting":
        return section.kind
    first_line_index = bisect_left(
        text_flow.lines, passage_span.start_offset, key=lambda flow_line: flow_line.start_offset
    )
    end_line_index = bisect_left(
        text_flow.lines, passage_span.end_offset, key=lambda flow_line: flow_line.start_offset
    )
    passage_lines = text_flow.lines[first_line_index:end_line_index]
    grid_char_count = sum(
        len(flow_line.line.text)
        for flow_line in passage_lines
        if flow_line.box and flow_line.box.is_grid
    )
    return "table" if 2 * grid_char_count > passage_span.length else "supporting"


def _find_passage_kind_by_ancestry(ancestor_starts: Sequence[SectionStart]) -> PassageKind:
    """Return what weight a section has, which the sections around it decide."""
    ancestor_section_kinds = {section_start.kind for section_start in ancestor_starts}
    if "annex" in ancestor_section_kinds:
        return "appendix"
    if "policy" in ancestor_section_kinds:
        return "policy"
    is_table = ancestor_starts[-1].kind == "exhibit" and ancestor_starts[-1].ref.startswith("Table")
    return "table" if is_table else "supporting"

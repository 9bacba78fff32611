"""Finds numbered paragraphs by their position in a sequence that rises through the document."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from readingroom.ingest.structure.starts import (
    LEVELS_BY_SECTION_KIND,
    SectionStart,
    make_section_start,
)
from readingroom.ingest.structure.typography import MARGIN_TOLERANCE, Typography

# Fewer decimal numbers in a whole document are measurements or stray references.
_MIN_DECIMAL_PARAGRAPHS = 8
# Paragraphs in an annex that begin with a higher number are quoted from another document.
_MAX_FIRST_ANNEX_PARAGRAPH = 5

# A line may be as long as its author likes, so no pattern may take more than one pass over it: one
# that ends in `.*` matches any character there, or it would be tried again from every other place.
_DECIMAL_PARAGRAPH_PATTERN = re.compile(
    r"(?P<number>(?:\d{1,2}|[A-Z])(?:\.\d{1,3}){1,3})\.?(?s:\s*(?P<title>[^\d\s].*)|\s+\d.*)?"
)
_PLAIN_PARAGRAPH_PATTERN = re.compile(
    r"(?P<number>\d{1,3})(?:\.\s*(?:[^\d\s](?s:.*))?|\s+[A-Z](?s:.*))"
)
_UNIT_OF_MEASURE_PATTERN = re.compile(
    r"(?:m|km|mm|ha|metres?|miles?|hectares?|million|billion|per ?cent|%)\b|%"
)


def find_decimal_numbered_sections(
    typography: Typography, headings: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return the paragraphs and sections numbered like `4.12`, where there are enough of them."""
    taken_line_indexes = {heading_start.line_index for heading_start in headings}
    decimal_sections = [*_iterate_decimal_numbered_sections(typography, taken_line_indexes)]
    return decimal_sections if len(decimal_sections) >= _MIN_DECIMAL_PARAGRAPHS else []


def _iterate_decimal_numbered_sections(
    typography: Typography, taken_line_indexes: Collection[int]
) -> Iterator[SectionStart]:
    """Yield paragraphs and sections numbered like `4.12`, in their sequence."""
    previous_number_parts: tuple[str | int, ...] = ()
    last_numbered_line_index: int | None = None
    for line_index, flow_line in enumerate(typography.lines):
        line_text = flow_line.line.text
        # Looked at first, because most lines begin with a letter and need no pattern.
        if (
            not (line_text[0].isdigit() or line_text[1:2] == ".")
            or line_index in taken_line_indexes
        ):
            continue
        number_match = _DECIMAL_PARAGRAPH_PATTERN.fullmatch(line_text)
        if number_match is None or line_index in typography.contents_line_indexes:
            continue
        paragraph_number, paragraph_title = number_match["number"], number_match["title"] or ""
        if typography.is_small_line(line_index) or _UNIT_OF_MEASURE_PATTERN.match(paragraph_title):
            continue
        number_parts = tuple(
            int(number_part) if number_part.isdigit() else number_part
            for number_part in paragraph_number.split(".")
        )
        if not (
            typography.is_block_start(line_index)
            or typography.is_outdented(line_index)
            or typography.is_emphasised(line_index)
            or (
                typography.has_hanging_indent(line_index)
                and (
                    _is_next_number(number_parts, previous_number_parts)
                    or _is_after_paragraph_end(typography, last_numbered_line_index, line_index)
                )
            )
        ):
            continue
        if not _can_follow_number(number_parts, previous_number_parts):
            continue
        previous_number_parts, last_numbered_line_index = number_parts, line_index
        if (
            paragraph_title
            and not paragraph_title.endswith(".")
            and _is_section_title(typography, line_index)
        ):
            section_level = LEVELS_BY_SECTION_KIND["section"] + paragraph_number.count(".")
            yield SectionStart(
                line_index, "section", f"Section {paragraph_number}", paragraph_title, section_level
            )
        else:
            yield make_section_start(line_index, "para", f"Para {paragraph_number}", None)


def _is_after_paragraph_end(
    typography: Typography, last_numbered_line_index: int | None, line_index: int
) -> bool:
    """Whether a number follows a whole sentence, as far left as the last one, or at the margin."""
    last_indent = (
        0.0
        if last_numbered_line_index is None
        else typography.measure_indent(last_numbered_line_index)
    )
    return (
        typography.is_after_sentence(line_index)
        and abs(typography.measure_indent(line_index) - last_indent) < MARGIN_TOLERANCE
    )


def _is_section_title(typography: Typography, line_index: int) -> bool:
    """Whether all of a numbered line is a title, not only the bold words that it begins with."""
    if not (typography.is_emphasised(line_index) and typography.is_heading(line_index)):
        return False
    title_end_index = typography.get_title_end(line_index, "title")
    return title_end_index == len(typography.lines) or typography.is_block_start(title_end_index)


def _can_follow_number(
    number_parts: tuple[str | int, ...], previous_number_parts: tuple[str | int, ...]
) -> bool:
    """Whether a decimal number may follow: the next one, a first one below, or one further up."""
    if not previous_number_parts:
        return number_parts[-1] in (0, 1, 2)
    if type(number_parts[0]) is not type(previous_number_parts[0]):
        return False
    first_different_index = next(
        (
            part_index
            for part_index, (number_part, previous_part) in enumerate(
                zip(number_parts, previous_number_parts, strict=False)
            )
            if number_part != previous_part
        ),
        None,
    )
    if first_different_index is None:  # one is the beginning of the other
        return len(number_parts) > len(previous_number_parts) and all(
            further_part in (0, 1, 2) for further_part in number_parts[len(previous_number_parts) :]
        )
    difference_in_part = _compute_ordinal(number_parts[first_different_index]) - _compute_ordinal(
        previous_number_parts[first_different_index]
    )
    return 0 < difference_in_part <= 3 and all(
        further_part in (0, 1, 2) for further_part in number_parts[first_different_index + 1 :]
    )


def _is_next_number(
    number_parts: tuple[str | int, ...], previous_number_parts: tuple[str | int, ...]
) -> bool:
    """Whether a number is the very next one: `4.13` after `4.12`."""
    last_previous_part = previous_number_parts[-1] if previous_number_parts else None
    return isinstance(last_previous_part, int) and number_parts == (
        *previous_number_parts[:-1],
        last_previous_part + 1,
    )


def _compute_ordinal(number_part: str | int) -> int:
    """Return where a letter or a number of a decimal number stands among its like."""
    return ord(number_part) if isinstance(number_part, str) else number_part


def iterate_plain_paragraph_starts(
    typography: Typography, headings: Sequence[SectionStart], excluded_line_indexes: Collection[int]
) -> Iterator[SectionStart]:
    """Yield paragraphs like `116. Text` whose numbers rise through the document."""
    taken_line_indexes = {heading_start.line_index for heading_start in headings} | set(
        excluded_line_indexes
    )
    line_indexes_and_numbers = [
        (line_index, int(number_match["number"]))
        for line_index, flow_line in enumerate(typography.lines)
        if flow_line.line.text[0].isdigit()
        and line_index not in taken_line_indexes
        and line_index not in typography.contents_line_indexes
        and (number_match := _PLAIN_PARAGRAPH_PATTERN.fullmatch(flow_line.line.text))
        and not typography.is_small_line(line_index)
    ]
    line_indexes_and_numbers = [*_exclude_clause_numbers(line_indexes_and_numbers, headings)]
    rounded_left_edges = [
        round(typography.lines[line_index].line.left / MARGIN_TOLERANCE)
        for line_index, _ in line_indexes_and_numbers
    ]
    left_edge_counts = Counter(rounded_left_edges)
    usual_left_edge = left_edge_counts.most_common(1)[0][0] if left_edge_counts else 0
    number_weights = [
        _weigh_number(
            typography, line_index, is_in_usual_column=abs(rounded_left_edge - usual_left_edge) <= 2
        )
        for rounded_left_edge, (line_index, _) in zip(
            rounded_left_edges, line_indexes_and_numbers, strict=True
        )
    ]
    paragraph_numbers = [paragraph_number for _, paragraph_number in line_indexes_and_numbers]
    rising_number_indexes = find_rising_number_indexes(
        paragraph_numbers, max_step=3, number_weights=number_weights
    )
    first_annex_line_index = min(
        (heading_start.line_index for heading_start in headings if heading_start.kind == "annex"),
        default=None,
    )
    are_numbers_quoted = (
        bool(rising_number_indexes)
        and paragraph_numbers[rising_number_indexes[0]] > _MAX_FIRST_ANNEX_PARAGRAPH
        and first_annex_line_index is not None
        and line_indexes_and_numbers[rising_number_indexes[0]][0] > first_annex_line_index
    )
    if are_numbers_quoted:
        return
    for rising_number_index in rising_number_indexes:
        line_index, paragraph_number = line_indexes_and_numbers[rising_number_index]
        yield make_section_start(line_index, "para", f"Para {paragraph_number}", None)


def _weigh_number(typography: Typography, line_index: int, is_in_usual_column: bool) -> float:
    """Return how much a number at the beginning of a line looks like that of a paragraph."""
    line_text = typography.lines[line_index].line.text
    # A number in another column is a list item more often than a paragraph, but not always.
    number_weight = 1.0 if is_in_usual_column else 0.2
    if len(line_text) < 0.7 * typography.usual_line_length and not line_text.endswith(
        (".", ":", ";")
    ):
        number_weight *= 0.6  # the title of a chapter
    if not (typography.is_block_start(line_index) or typography.is_outdented(line_index)):
        # Plainly typeset, with no distance between paragraphs; else a number within a sentence.
        number_weight *= 0.8 if typography.is_after_sentence(line_index) else 0.2
    return number_weight


def _exclude_clause_numbers(
    line_indexes_and_numbers: Sequence[tuple[int, int]], headings: Sequence[SectionStart]
) -> Iterator[tuple[int, int]]:
    """Yield the candidates but for 1, 2, 3 … below a policy: those are its clauses."""
    parent_heading_line_indexes = sorted(
        heading_start.line_index
        for heading_start in headings
        if heading_start.kind in ("policy", "annex", "chapter")
    )
    policy_line_indexes = {
        heading_start.line_index for heading_start in headings if heading_start.kind == "policy"
    }
    parent_heading_line_index, last_clause_number = -1, 0
    for line_index, paragraph_number in line_indexes_and_numbers:
        parent_heading_index = bisect_left(parent_heading_line_indexes, line_index) - 1
        if (
            parent_heading_index >= 0
            and parent_heading_line_indexes[parent_heading_index] != parent_heading_line_index
        ):
            parent_heading_line_index, last_clause_number = (
                parent_heading_line_indexes[parent_heading_index],
                0,
            )
        if (
            parent_heading_line_index in policy_line_indexes
            and paragraph_number == last_clause_number + 1
        ):
            last_clause_number = paragraph_number
        else:
            yield line_index, paragraph_number


def find_rising_number_indexes(
    candidate_numbers: Sequence[int], max_step: int, number_weights: Sequence[float] | None = None
) -> list[int]:
    """Return the indexes of the numbers that form the best sequence rising in small steps."""
    number_weights = number_weights or [1.0] * len(candidate_numbers)
    best_score_and_end_by_number: dict[int, tuple[float, int]] = {}
    predecessor_indexes: list[int | None] = []
    for candidate_index, (candidate_number, number_weight) in enumerate(
        zip(candidate_numbers, number_weights, strict=True)
    ):
        scores_and_end_indexes = [
            # A missing number costs something, so that a chain with every number wins over one with
            # gaps.
            (
                best_score_and_end_by_number[candidate_number - step_size][0]
                - 0.5 * (step_size - 1),
                best_score_and_end_by_number[candidate_number - step_size][1],
            )
            for step_size in range(1, max_step + 1)
            if candidate_number - step_size in best_score_and_end_by_number
        ]
        best_chain_score, previous_index = max(scores_and_end_indexes, default=(0.0, None))
        predecessor_indexes.append(previous_index)
        if (
            candidate_number not in best_score_and_end_by_number
            or best_chain_score + number_weight > best_score_and_end_by_number[candidate_number][0]
        ):
            best_score_and_end_by_number[candidate_number] = (
                best_chain_score + number_weight,
                candidate_index,
            )
    chain_indexes: list[int] = []
    chain_index: int | None = (
        max(best_score_and_end_by_number.values())[1] if best_score_and_end_by_number else None
    )
    while chain_index is not None:
        chain_indexes.append(chain_index)
        chain_index = predecessor_indexes[chain_index]
    return chain_indexes[::-1]

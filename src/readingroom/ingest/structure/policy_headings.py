"""Finds the lines that name a policy as headings do: `Policy LP5 – Housing`, `HOU2`, a badge."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from readingroom.ingest.structure.codes import (
    CODE_ALONE_PATTERN,
    CODE_HEADING_PATTERN,
    NUMBER_HEADING_PATTERN,
    POLICY_HEADING_PATTERN,
    SITE_HEADING_PATTERN,
    TITLE_BEFORE_CODE_PATTERN,
    find_heading_bar_line_indexes,
    find_site_heading_line_indexes,
    get_code_letters,
    match_synonym_heading,
)
from readingroom.ingest.structure.starts import SectionStart, make_section_start
from readingroom.ingest.structure.typography import MARGIN_TOLERANCE, Typography

# Of a heading that may name a policy; most lines have another.
_HEADING_BEGINNING_PATTERN = re.compile(r"[A-Z]|\d{1,2}[\d.]*\s+[A-Z]")
_POLICY_HEADING_WORDS = ("Policy", "POLICY", "Allocation", "ALLOCATION", "trategic policy")
_TEXT_LABEL_PATTERN = re.compile(r"(?:Policy|POLICY)(?: text)?:?")
_CONTINUED_PATTERN = re.compile(r"\bcont(?:inued|[’']d|d)?\.?\W*$", re.IGNORECASE)
# Points that the word "Policy" may begin left or right of the code below it.
_MAX_BADGE_LEFT_DIFFERENCE = 30.0
# Of the usual length of a line; a cell of a table is shorter.
_MIN_TEXT_LINE_SHARE = 0.7
# Lines between the heading of a policy and the label of its text.
_MAX_LINES_TO_LABEL = 120


@dataclass(frozen=True, slots=True)
class PolicyHeading:
    """A line that names a policy as a heading does."""

    line_index: int
    """Where the section begins: at the heading, or at the label above it."""
    heading_index: int
    ref: str
    title: str
    label_line_index: int | None = None
    """The line `Policy` further down, below which its text begins."""

    @property
    def text_start_index(self) -> int:
        """The line at which the policy itself begins: that of the label, or the heading."""
        return self.heading_index if self.label_line_index is None else self.label_line_index

    def to_section_start(self) -> SectionStart:
        return make_section_start(self.line_index, "policy", self.ref, self.title)


def is_continued_heading(line_text: str, heading_text: str) -> bool:
    """Whether a line such as `Policy H1 continued` says that the policy of a heading goes on."""
    if not _CONTINUED_PATTERN.search(line_text[-40:]):
        return False
    words_before_continued = re.findall(r"\w+", _CONTINUED_PATTERN.sub("", line_text).casefold())
    heading_words = re.findall(r"\w+", heading_text.casefold())
    return (
        bool(words_before_continued)
        and words_before_continued == heading_words[: len(words_before_continued)]
    )


def find_policy_headings(
    typography: Typography, code_prefixes: set[str], number_heading_line_indexes: Container[int]
) -> list[PolicyHeading]:
    """Return every heading that names a policy, in the body of a plan or elsewhere."""
    all_lines = typography.lines
    sorted_label_line_indexes = [
        line_index
        for line_index, label_line in enumerate(all_lines)
        if _TEXT_LABEL_PATTERN.fullmatch(label_line.line.text)
        and not _is_cell_of_table(typography, line_index)
    ]
    label_line_indexes = set(sorted_label_line_indexes)
    site_heading_line_indexes, heading_bar_line_indexes = (
        find_site_heading_line_indexes(typography),
        find_heading_bar_line_indexes(typography),
    )
    policy_headings: list[PolicyHeading] = []
    for line_index, flow_line in enumerate(all_lines):
        line_text = flow_line.line.text
        if (
            not _HEADING_BEGINNING_PATTERN.match(line_text)
            or line_index in typography.contents_line_indexes
        ):
            continue
        policy_heading = (
            (
                _match_badge_heading(typography, line_index)
                if line_index - 1 in label_line_indexes
                else None
            )
            or _match_worded_heading(typography, line_index)
            or _match_code_heading(typography, line_index, code_prefixes, label_line_indexes)
            or _match_code_alone(typography, line_index, code_prefixes)
            or _match_synonym_heading(typography, line_index, code_prefixes)
            or (
                _make_site_heading(typography, line_index)
                if line_index in site_heading_line_indexes
                else None
            )
            or (
                _make_heading_bar_heading(typography, line_index)
                if line_index in heading_bar_line_indexes
                else None
            )
            or (
                _make_number_heading(typography, line_index)
                if line_index in number_heading_line_indexes
                else None
            )
        )
        if policy_heading:
            policy_headings.append(policy_heading)
    policy_headings = [*_exclude_numbered_clauses(typography, policy_headings)]
    unrepeated_headings = [*_exclude_repeated_headings(typography, policy_headings)]
    return [*_attach_text_labels(unrepeated_headings, sorted_label_line_indexes)]


def _is_cell_of_table(typography: Typography, label_line_index: int) -> bool:
    """Whether a label stands in a table, and not above the text of a box with a table further down.

    Below a label in a table there is a code, or there are short cells.
    """
    all_lines = typography.lines
    label_line, next_line_index = all_lines[label_line_index], label_line_index + 1
    if label_line.box is None or not label_line.box.is_grid:
        return False
    if next_line_index == len(all_lines) or all_lines[label_line_index - 1].box == label_line.box:
        return True
    next_line = all_lines[next_line_index]
    is_above_policy_text = (
        typography.is_emphasised(label_line_index)
        and typography.is_block_start(next_line_index)
        and next_line.box == label_line.box
        and next_line.line.bottom < label_line.line.bottom
        and abs(next_line.line.left - label_line.line.left) < MARGIN_TOLERANCE
        and len(next_line.line.text) >= _MIN_TEXT_LINE_SHARE * typography.usual_line_length
    )
    return not is_above_policy_text


def _exclude_numbered_clauses(
    typography: Typography, policy_headings: Sequence[PolicyHeading]
) -> Iterator[PolicyHeading]:
    """Yield the headings but for `SP2.1 The council will`, a clause of `Policy SP2: Homes`."""
    heading_texts = [
        typography.lines[policy_heading.heading_index].line.text
        for policy_heading in policy_headings
    ]
    # Other plans head policies `S1.1`, without a `Policy S1` above them.
    worded_codes = {
        policy_heading.ref.partition("Policy ")[2]
        for policy_heading, heading_text in zip(policy_headings, heading_texts, strict=True)
        if not CODE_HEADING_PATTERN.fullmatch(heading_text)
    }
    for policy_heading, heading_text in zip(policy_headings, heading_texts, strict=True):
        code_match = CODE_HEADING_PATTERN.fullmatch(heading_text)
        if code_match is None or code_match["number"].rpartition(".")[0] not in worded_codes - {""}:
            yield policy_heading


def _exclude_repeated_headings(
    typography: Typography, policy_headings: Sequence[PolicyHeading]
) -> Iterator[PolicyHeading]:
    """Yield the headings but for those printed again where a box goes on at the top of a page."""
    previous_heading: PolicyHeading | None = None
    for policy_heading in policy_headings:
        is_repeated = (
            previous_heading is not None
            and is_repeated_at_page_top(
                typography, previous_heading.heading_index, policy_heading.heading_index
            )
            and _are_in_continued_box(typography, previous_heading, policy_heading)
        )
        if not is_repeated:
            yield policy_heading
        previous_heading = policy_heading


def is_repeated_at_page_top(
    typography: Typography, heading_index: int, line_index: int, line_count: int = 1
) -> bool:
    """Whether lines are the first of their page and say the same as a heading further up."""
    all_lines = typography.lines
    page_top_lines, heading_lines = (
        all_lines[first_index : first_index + line_count]
        for first_index in (line_index, heading_index)
    )
    return (
        line_index > heading_index
        and all_lines[line_index].page != all_lines[line_index - 1].page
        and [flow_line.line.text for flow_line in page_top_lines]
        == [flow_line.line.text for flow_line in heading_lines]
    )


def is_heading_row_of_list(typography: Typography, policy_heading: PolicyHeading) -> bool:
    """Whether a mere code begins a row of text that looks like the row above: a list of sites."""
    line_index = policy_heading.heading_index
    return (
        line_index > 0
        and CODE_HEADING_PATTERN.fullmatch(typography.lines[line_index].line.text) is not None
        and typography.lines[line_index - 1].page == typography.lines[line_index].page
        and typography.has_same_look(line_index - 1, line_index)
    )


def _are_in_continued_box(
    typography: Typography, policy_heading: PolicyHeading, repeated_heading: PolicyHeading
) -> bool:
    """Whether boxes of one width reach from a heading to where it stands again, page by page."""
    all_lines = typography.lines
    heading_box = all_lines[policy_heading.heading_index].box
    last_page_number = all_lines[policy_heading.heading_index].page
    for line_index in range(policy_heading.heading_index, repeated_heading.heading_index + 1):
        flow_line = all_lines[line_index]
        if flow_line.box is None and typography.is_small_line(line_index):
            continue  # a footnote
        if flow_line.box is None or heading_box is None or flow_line.page > last_page_number + 1:
            return False
        last_page_number = flow_line.page
        is_box_as_wide = (
            abs(flow_line.box.left - heading_box.left) < MARGIN_TOLERANCE
            and abs(flow_line.box.right - heading_box.right) < MARGIN_TOLERANCE
        )
        if not is_box_as_wide:
            return False
    return True


def _match_badge_heading(typography: Typography, line_index: int) -> PolicyHeading | None:
    """Return the heading whose code stands below the word "Policy", with its title beside both."""
    label_line_index = line_index - 1
    label_line, code_line = typography.lines[label_line_index], typography.lines[line_index]
    if CODE_ALONE_PATTERN.fullmatch(code_line.line.text) is None or not typography.is_emphasised(
        line_index
    ):
        return None
    height_difference = label_line.line.bottom - code_line.line.bottom
    is_label_above_code = (
        label_line.page == code_line.page
        and 0 < height_difference < 2 * code_line.line.letter_height
    )
    if (
        not is_label_above_code
        or abs(label_line.line.left - code_line.line.left) > _MAX_BADGE_LEFT_DIFFERENCE
    ):
        return None
    for title_line_index in (label_line_index - 1, line_index + 1):
        if 0 <= title_line_index < len(typography.lines) and _is_title_beside_badge(
            typography, title_line_index, line_index, height_difference
        ):
            return PolicyHeading(
                min(title_line_index, label_line_index),
                line_index,
                f"Policy {code_line.line.text}",
                typography.lines[title_line_index].line.text,
            )
    return None


def _is_title_beside_badge(
    typography: Typography, title_line_index: int, code_line_index: int, badge_height: float
) -> bool:
    """Whether a line is a title at the right of a badge, level with it."""
    title_line, code_line = typography.lines[title_line_index], typography.lines[code_line_index]
    height_difference = title_line.line.bottom - code_line.line.bottom
    return (
        title_line.page == code_line.page
        and title_line.line.left > code_line.line.left + code_line.line.letter_height
        and -code_line.line.letter_height / 2
        < height_difference
        < badge_height + code_line.line.letter_height / 2
        and typography.is_emphasised(title_line_index)
        and typography.could_be_title(title_line_index)
    )


def _match_worded_heading(typography: Typography, line_index: int) -> PolicyHeading | None:
    """Return the heading `Policy LP5 – Housing`, or None."""
    line_text = typography.lines[line_index].line.text
    # Most lines lack these words, and the pattern takes longer to say so.
    if not any(heading_word in line_text for heading_word in _POLICY_HEADING_WORDS):
        return None
    heading_match = POLICY_HEADING_PATTERN.fullmatch(line_text)
    if heading_match is None or (
        (heading_match["section"] or heading_match["uncapped"] or heading_match["after_comma"])
        and not typography.is_emphasised(line_index)
    ):
        return None
    # `Strategic policy S1, Homes for all`, but not `Policy S1, Policy S2 and the map`.
    if heading_match["after_comma"] and (
        "Polic" in heading_match["after_comma"] or line_text.endswith(".")
    ):
        return None
    if heading_match["section"] and _is_sentence_about_policy(
        typography, line_index, heading_match.end("number")
    ):
        return None
    is_run_in_heading = typography.is_run_in_heading(line_index)
    if not (is_run_in_heading or typography.is_heading(line_index)):
        return None
    if not (typography.is_block_start(line_index) or typography.is_after_sentence(line_index)):
        return None
    heading_title = (
        heading_match["title"] or heading_match["uncapped"] or heading_match["after_comma"] or ""
    )
    if heading_match["continued"] or _CONTINUED_PATTERN.search(heading_title[-40:]):
        return None
    heading_word = heading_match["word"]
    if heading_match["topic"] and heading_match["number"].isdigit():
        # A mere number does not tell the policies of one topic from another's.
        heading_word = f"{heading_match['topic']} {heading_word}"
    heading_word = heading_word.title() if heading_word.isupper() else heading_word
    policy_part_suffix = (
        f" Part {heading_match['part'].split()[1]}" if heading_match["part"] else ""
    )
    policy_title = (
        "" if is_run_in_heading else _complete_title(typography, line_index, heading_title)
    )
    policy_title = policy_title or heading_match["bracketed"] or ""
    return PolicyHeading(
        line_index,
        line_index,
        f"{' '.join(heading_word.split())} {heading_match['number']}{policy_part_suffix}",
        policy_title,
    )


def _is_sentence_about_policy(
    typography: Typography, line_index: int, code_end_offset: int
) -> bool:
    """Whether a numbered paragraph begins with code and title: `4.2 Policy H1 Homes is relevant.`

    Its number alone may be bold. A heading goes on in letters of its own look.
    """
    line_text = typography.lines[line_index].line.text
    if line_text[code_end_offset:].lstrip().startswith((":", "–", "—", "-", ".")):
        return False
    next_line_index = line_index + 1
    does_sentence_go_on = (
        next_line_index < len(typography.lines)
        and not typography.has_same_look(line_index, next_line_index)
        and typography.lines[next_line_index].line.text[0].islower()
    )
    return does_sentence_go_on or line_text.endswith(".")


def _match_code_heading(
    typography: Typography, line_index: int, code_prefixes: set[str], label_line_indexes: set[int]
) -> PolicyHeading | None:
    """Return the heading `HOU2 Housing Density`, or a code beside its text below a label."""
    code_match = CODE_HEADING_PATTERN.fullmatch(typography.lines[line_index].line.text)
    if code_match is None or not typography.is_emphasised(line_index):
        return None
    policy_ref = f"Policy {code_match['number']}"
    if line_index - 1 in label_line_indexes:
        # The code stands in the margin of the text, whose first line is no title.
        return PolicyHeading(line_index - 1, line_index, policy_ref, "")
    if get_code_letters(code_match["number"]) not in code_prefixes or not typography.is_heading(
        line_index
    ):
        return None
    if not (typography.is_block_start(line_index) or typography.is_after_sentence(line_index)):
        return None
    return PolicyHeading(line_index, line_index, policy_ref, code_match["title"])


def _match_code_alone(
    typography: Typography, line_index: int, code_prefixes: set[str]
) -> PolicyHeading | None:
    """Return the heading `HOU2` whose title stands on the next line, or None."""
    policy_code = typography.lines[line_index].line.text
    if CODE_ALONE_PATTERN.fullmatch(policy_code) is None or not typography.is_block_start(
        line_index
    ):
        return None
    if get_code_letters(policy_code) not in code_prefixes:
        return None
    policy_title = _complete_title(typography, line_index, "")
    if not policy_title and typography.is_emphasised(line_index):
        # Beside its text, the title of a policy may be set in plain letters.
        next_line_index = line_index + 1
        is_next_line_title = next_line_index < len(typography.lines) and typography.could_be_title(
            next_line_index
        )
        policy_title = typography.lines[next_line_index].line.text if is_next_line_title else ""
    return (
        PolicyHeading(line_index, line_index, f"Policy {policy_code}", policy_title)
        if policy_title
        else None
    )


def _match_synonym_heading(
    typography: Typography, line_index: int, code_prefixes: set[str]
) -> PolicyHeading | None:
    """Return the heading `Strategy 9 – A new town` of a plan that calls its policies so."""
    synonym_match = match_synonym_heading(typography.lines[line_index].line.text)
    if synonym_match is None or synonym_match["word"].upper() not in code_prefixes:
        return None
    if not (
        typography.is_emphasised(line_index)
        and typography.is_heading(line_index)
        and (typography.is_block_start(line_index) or typography.is_after_sentence(line_index))
    ):
        return None
    policy_ref = f"{synonym_match['word'].capitalize()} {synonym_match['number']}"
    policy_title = _complete_title(typography, line_index, synonym_match["title"] or "")
    return PolicyHeading(line_index, line_index, policy_ref, policy_title)


def _make_site_heading(typography: Typography, line_index: int) -> PolicyHeading:
    """Return the heading `Site H1(a) Gasworks Yard`, which a line is known to be."""
    site_match = SITE_HEADING_PATTERN.fullmatch(typography.lines[line_index].line.text)
    assert site_match is not None
    site_title = _complete_title(typography, line_index, site_match["title"] or "")
    # `Housing Site 1` and `Employment Site 1` are two.
    site_heading_word = (
        site_match["word"].title() if site_match["word"].isupper() else site_match["word"]
    )
    return PolicyHeading(
        line_index, line_index, f"{site_heading_word} {site_match['number']}", site_title
    )


def _make_heading_bar_heading(typography: Typography, line_index: int) -> PolicyHeading:
    """Return the heading `Affordable homes Policy H3`, which a line is known to be."""
    heading_match = TITLE_BEFORE_CODE_PATTERN.fullmatch(typography.lines[line_index].line.text)
    assert heading_match is not None
    return PolicyHeading(
        line_index, line_index, f"Policy {heading_match['number']}", heading_match["title"].strip()
    )


def _make_number_heading(typography: Typography, line_index: int) -> PolicyHeading:
    """Return the heading `6. Affordable homes`, which a line is known to be."""
    heading_match = NUMBER_HEADING_PATTERN.fullmatch(typography.lines[line_index].line.text)
    assert heading_match is not None
    return PolicyHeading(
        line_index, line_index, f"Policy {heading_match['number']}", heading_match["title"]
    )


def _complete_title(typography: Typography, line_index: int, policy_title: str) -> str:
    """Return the title; where the heading has only a code, it is the next line of the same look."""
    next_line_index = line_index + 1
    if (
        policy_title
        or next_line_index == len(typography.lines)
        or not typography.is_emphasised(line_index)
    ):
        return policy_title
    is_next_line_title = typography.has_same_look(
        line_index, next_line_index
    ) and typography.could_be_title(next_line_index)
    return typography.lines[next_line_index].line.text if is_next_line_title else ""


def _attach_text_labels(
    policy_headings: Sequence[PolicyHeading], sorted_label_line_indexes: Sequence[int]
) -> Iterator[PolicyHeading]:
    """Yield the headings, each with the label of its text where there is one before the next."""
    next_label_position = 0
    for heading_position, policy_heading in enumerate(policy_headings):
        next_heading_line_index = (
            policy_headings[heading_position + 1].line_index
            if heading_position + 1 < len(policy_headings)
            else None
        )
        while (
            next_label_position < len(sorted_label_line_indexes)
            and sorted_label_line_indexes[next_label_position] <= policy_heading.heading_index
        ):
            next_label_position += 1
        label_line_index = (
            sorted_label_line_indexes[next_label_position]
            if next_label_position < len(sorted_label_line_indexes)
            else None
        )
        is_own_label = (
            label_line_index is not None
            and (next_heading_line_index is None or label_line_index < next_heading_line_index)
            and label_line_index - policy_heading.heading_index <= _MAX_LINES_TO_LABEL
        )
        yield PolicyHeading(
            policy_heading.line_index,
            policy_heading.heading_index,
            policy_heading.ref,
            policy_heading.title,
            label_line_index if is_own_label else None,
        )

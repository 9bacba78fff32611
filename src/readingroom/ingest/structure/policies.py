"""Finds the policies of a plan: of all places that name one, the place that *is* the policy.

A plan names each of its policies many times over: in its contents, in its monitoring tables, in
appendices, sometimes in full. Every such heading is a candidate; the policy is the one with text
below it, in the body of the plan, outside tables, that looks as most policies of the plan do.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from readingroom.ingest.read.page import Box
from readingroom.ingest.structure.codes import (
    CODE_ALONE,
    CODE_HEADING,
    POLICY_HEADING,
    SITE_HEADING,
    find_family_prefixes,
    find_named_prefixes,
    find_site_lines,
    get_prefix,
    is_listed,
)
from readingroom.ingest.structure.starts import SectionStart, make_start
from readingroom.ingest.structure.typography import Typography

_TEXT_LABEL = re.compile(r"(?:Policy|POLICY)(?: text)?:?")
_BACK_MATTER = re.compile(
    r"monitor|implementation|saved polic|supersed|replaced|glossary|index|schedule of|list of polic"
    r"|policy list|evidence base|abbreviations",
    re.IGNORECASE,
)
_EXPLAINING_TITLE = re.compile(
    r"(?:.*\W)?(?:background|justification|explanation|supporting text|monitoring|implementation)",
    re.IGNORECASE | re.DOTALL,
)
_CONTINUED = re.compile(r"\bcont(?:inued|[’']d|d)?\.?\W*$", re.IGNORECASE)
_TITLE_WITHOUT_POLICIES = re.compile(
    r"report on the examination|inspector[’']?s report|report to .* council$"
    r"|supplementary planning (?:document|guidance)\b",
    re.IGNORECASE,
)
_TITLE_PAGES = 2
# A plan with fewer policies may name them by codes alone.
_MIN_POLICIES = 3
_BODY_GRADE, _BACK_GRADE, _ANNEX_GRADE = 2, 1, 0
# An annex that begins before this share of the lines is a line of the contents.
_MIN_ANNEX_SHARE = 0.3
# Of the text below a heading; with less, it is a line of a list.
_MIN_TEXT_CHARS = 40
_MAX_MEASURED_LINES = 400
# Lines between the heading of a policy and the label of its text.
_MAX_LABEL_DISTANCE = 120


@dataclass(frozen=True, slots=True)
class PolicyHeading:
    """A line that names a policy as a heading does."""

    line_index: int
    """Where the section begins: at the heading, or at the label above it."""
    heading_index: int
    ref: str
    title: str
    label_index: int | None = None
    """The line `Policy` further down, below which its text begins."""

    @property
    def text_index(self) -> int:
        """The line at which the policy itself begins: that of the label, or the heading."""
        return self.heading_index if self.label_index is None else self.label_index

    def to_section_start(self) -> SectionStart:
        return make_start(self.line_index, "policy", self.ref, self.title)


def find_policies(
    typography: Typography, document_text: str, headings: Sequence[SectionStart]
) -> tuple[list[PolicyHeading], list[PolicyHeading]]:
    """Return the policies of a document, and the other headings that name one."""
    if not has_own_policies(typography):
        return [], []
    code_prefixes = find_named_prefixes(document_text)
    chosen_headings, other_headings = _choose_policies(typography, code_prefixes, headings)
    policy_looks = {
        (heading_line.is_bold, round(heading_line.size))
        for policy_heading in chosen_headings
        for heading_line in [typography.lines[policy_heading.heading_index].line]
    }
    has_few_policies = len(chosen_headings) < _MIN_POLICIES
    contents_text = " ".join(
        typography.lines[line_index].line.text for line_index in sorted(typography.contents_lines)
    )
    # Beside policies that are called so, a code without the word is one where it looks like them
    # and the contents list it.
    family_prefixes = {
        code_prefix
        for code_prefix, code_looks in find_family_prefixes(typography, document_text).items()
        if has_few_policies or (code_looks & policy_looks and is_listed(code_prefix, contents_text))
    }
    if family_prefixes - code_prefixes:
        return _choose_policies(typography, code_prefixes | family_prefixes, headings)
    return chosen_headings, other_headings


def _choose_policies(
    typography: Typography, code_prefixes: set[str], headings: Sequence[SectionStart]
) -> tuple[list[PolicyHeading], list[PolicyHeading]]:
    """Return the policies whose codes begin with these letters or follow the word "Policy"."""
    candidate_headings = _find_candidates(typography, code_prefixes)
    boundaries = sorted(
        {
            section_start.line_index
            for section_start in headings
            if section_start.kind not in ("exhibit", "part")
        }
        | {candidate_heading.line_index for candidate_heading in candidate_headings}
        | {len(typography.lines)}
    )
    chosen_headings = _PolicyChooser(
        typography, candidate_headings, headings, boundaries
    ).choose_headings()
    chosen_lines = {candidate_heading.line_index for candidate_heading in chosen_headings}
    other_headings = [
        candidate_heading
        for candidate_heading in candidate_headings
        if candidate_heading.line_index not in chosen_lines
    ]
    return chosen_headings, other_headings


def has_own_policies(typography: Typography) -> bool:
    """Whether a document can have policies of its own; a report on a plan only quotes them."""
    for line_index, flow_line in enumerate(typography.lines):
        if flow_line.page > _TITLE_PAGES:
            break
        if line_index in typography.contents_lines:
            continue
        if typography.stands_out(line_index) and _TITLE_WITHOUT_POLICIES.search(
            flow_line.line.text[:200]
        ):
            return False
    return True


def fold_code(policy_ref: str) -> str:
    """Return a reference without blanks, which plans write in a code or leave out."""
    return policy_ref.replace(" ", "").casefold()


def says_continued(line_text: str, heading_text: str) -> bool:
    """Whether a line such as `Policy H1 continued` says that the policy of a heading goes on."""
    if not _CONTINUED.search(line_text[-40:]):
        return False
    named_words = re.findall(r"\w+", _CONTINUED.sub("", line_text).casefold())
    heading_words = re.findall(r"\w+", heading_text.casefold())
    return bool(named_words) and named_words == heading_words[: len(named_words)]


def _find_candidates(typography: Typography, code_prefixes: set[str]) -> list[PolicyHeading]:
    flow_lines = typography.lines
    label_indexes = [
        line_index
        for line_index, label_line in enumerate(flow_lines)
        if _TEXT_LABEL.fullmatch(label_line.line.text)
        and not (label_line.box and label_line.box.is_grid)
    ]
    label_lines = set(label_indexes)
    site_lines = find_site_lines(typography)
    candidate_headings: list[PolicyHeading] = []
    for line_index, flow_line in enumerate(flow_lines):
        line_text = flow_line.line.text
        if not line_text[0].isupper() or line_index in typography.contents_lines:
            continue
        candidate_heading = (
            _match_worded_heading(typography, line_index)
            or _match_code_heading(typography, line_index, code_prefixes, label_lines)
            or _match_code_alone(typography, line_index, code_prefixes)
            or (_make_site_heading(typography, line_index) if line_index in site_lines else None)
        )
        if candidate_heading:
            candidate_headings.append(candidate_heading)
    return [*_attach_labels(candidate_headings, label_indexes)]


def _match_worded_heading(typography: Typography, line_index: int) -> PolicyHeading | None:
    """Return the heading `Policy LP5 – Housing`, or None."""
    line_text = typography.lines[line_index].line.text
    heading_match = POLICY_HEADING.fullmatch(line_text)
    if heading_match is None:
        return None
    is_run_in = typography.runs_in(line_index)
    if not (is_run_in or typography.is_heading(line_index)):
        return None
    if not (typography.begins_block(line_index) or typography.follows_sentence(line_index)):
        return None
    if _CONTINUED.search((heading_match["title"] or "")[-40:]):
        return None
    if heading_match["topic"] and not any(
        character.isalpha() for character in heading_match["number"]
    ):
        return None  # a mere number does not tell the policies of one topic from another's
    policy_word = (
        heading_match["word"].title() if heading_match["word"].isupper() else heading_match["word"]
    )
    policy_part = f" Part {heading_match['part'].split()[1]}" if heading_match["part"] else ""
    policy_title = (
        "" if is_run_in else _complete_title(typography, line_index, heading_match["title"] or "")
    )
    return PolicyHeading(
        line_index,
        line_index,
        f"{' '.join(policy_word.split())} {heading_match['number']}{policy_part}",
        policy_title,
    )


def _match_code_heading(
    typography: Typography, line_index: int, code_prefixes: set[str], label_lines: set[int]
) -> PolicyHeading | None:
    """Return the heading `HOU2 Housing Density`, or a code beside its text below a label."""
    code_match = CODE_HEADING.fullmatch(typography.lines[line_index].line.text)
    if code_match is None or not typography.stands_out(line_index):
        return None
    policy_ref = f"Policy {code_match['number']}"
    if line_index - 1 in label_lines:
        # The code stands in the margin of the text, whose first line is no title.
        return PolicyHeading(line_index - 1, line_index, policy_ref, "")
    if get_prefix(code_match["number"]) not in code_prefixes or not typography.is_heading(
        line_index
    ):
        return None
    if not (typography.begins_block(line_index) or typography.follows_sentence(line_index)):
        return None
    return PolicyHeading(line_index, line_index, policy_ref, code_match["title"])


def _match_code_alone(
    typography: Typography, line_index: int, code_prefixes: set[str]
) -> PolicyHeading | None:
    """Return the heading `HOU2` whose title stands on the next line, or None."""
    policy_code = typography.lines[line_index].line.text
    if CODE_ALONE.fullmatch(policy_code) is None or not typography.begins_block(line_index):
        return None
    if get_prefix(policy_code) not in code_prefixes:
        return None
    policy_title = _complete_title(typography, line_index, "")
    if not policy_title and typography.stands_out(line_index):
        # Beside its text, the title of a policy may be set in plain letters.
        next_index = line_index + 1
        has_title = next_index < len(typography.lines) and typography.is_title_like(next_index)
        policy_title = typography.lines[next_index].line.text if has_title else ""
    return (
        PolicyHeading(line_index, line_index, f"Policy {policy_code}", policy_title)
        if policy_title
        else None
    )


def _make_site_heading(typography: Typography, line_index: int) -> PolicyHeading:
    """Return the heading `Site H1(a) Gasworks Yard`, which a line is known to be."""
    site_match = SITE_HEADING.fullmatch(typography.lines[line_index].line.text)
    assert site_match is not None
    site_title = _complete_title(typography, line_index, site_match["title"] or "")
    return PolicyHeading(line_index, line_index, f"Site {site_match['number']}", site_title)


def _complete_title(typography: Typography, line_index: int, policy_title: str) -> str:
    """Return the title; where the heading has only a code, it is the next line of the same look."""
    next_index = line_index + 1
    if policy_title or next_index == len(typography.lines) or not typography.stands_out(line_index):
        return policy_title
    is_title = typography.has_same_look(line_index, next_index) and typography.is_title_like(
        next_index
    )
    return typography.lines[next_index].line.text if is_title else ""


def _attach_labels(
    candidate_headings: Sequence[PolicyHeading], label_indexes: Sequence[int]
) -> Iterator[PolicyHeading]:
    """Yield the headings, each with the label of its text where there is one before the next."""
    next_label_place = 0
    for heading_index, candidate_heading in enumerate(candidate_headings):
        next_heading_line = (
            candidate_headings[heading_index + 1].line_index
            if heading_index + 1 < len(candidate_headings)
            else None
        )
        while (
            next_label_place < len(label_indexes)
            and label_indexes[next_label_place] <= candidate_heading.heading_index
        ):
            next_label_place += 1
        label_line = (
            label_indexes[next_label_place] if next_label_place < len(label_indexes) else None
        )
        is_own_label = (
            label_line is not None
            and (next_heading_line is None or label_line < next_heading_line)
            and label_line - candidate_heading.heading_index <= _MAX_LABEL_DISTANCE
        )
        yield PolicyHeading(
            candidate_heading.line_index,
            candidate_heading.heading_index,
            candidate_heading.ref,
            candidate_heading.title,
            label_line if is_own_label else None,
        )


class _PolicyChooser:
    """Chooses, of the headings that name one policy, the one that is the policy."""

    def __init__(
        self,
        typography: Typography,
        candidate_headings: Sequence[PolicyHeading],
        headings: Sequence[SectionStart],
        boundaries: Sequence[int],
    ) -> None:
        self._typography = typography
        self._candidate_headings = candidate_headings
        self._graded_stretches = _grade_lines(headings, len(typography.lines))
        self._next_boundaries = dict(pairwise(boundaries))
        heading_lines = [heading.line_index for heading in candidate_headings]
        self._next_headings = dict(pairwise([*heading_lines, len(typography.lines)]))
        self._refs_by_box = self._group_by_box()
        self._text_lengths = {
            candidate_heading.line_index: self._measure_text(candidate_heading)
            for candidate_heading in candidate_headings
        }
        # The look of most policies, counted over references so that a long list does not win.
        refs_by_look: defaultdict[tuple[bool, float, bool], set[str]] = defaultdict(set)
        for candidate_heading in candidate_headings:
            if self._is_plausible(candidate_heading):
                refs_by_look[self._describe_look(candidate_heading)].add(
                    fold_code(candidate_heading.ref)
                )
        self._look_counts = Counter(
            {heading_look: len(look_refs) for heading_look, look_refs in refs_by_look.items()}
        )

    def choose_headings(self) -> list[PolicyHeading]:
        best_headings_by_ref: dict[str, PolicyHeading] = {}
        for candidate_heading in self._candidate_headings:
            if not self._is_plausible(candidate_heading):
                continue
            policy_ref = fold_code(candidate_heading.ref)
            if policy_ref not in best_headings_by_ref or self._make_rank(
                candidate_heading
            ) > self._make_rank(best_headings_by_ref[policy_ref]):
                best_headings_by_ref[policy_ref] = candidate_heading
        return sorted(
            best_headings_by_ref.values(),
            key=lambda candidate_heading: candidate_heading.line_index,
        )

    def _make_rank(
        self, candidate_heading: PolicyHeading
    ) -> tuple[int, bool, bool, bool, int, bool, int]:
        return (
            self._get_grade(candidate_heading),
            not self._is_in_list(candidate_heading),
            not self._is_in_grid(candidate_heading),
            not _EXPLAINING_TITLE.fullmatch(candidate_heading.title),
            self._look_counts[self._describe_look(candidate_heading)],
            candidate_heading.label_index is not None,
            self._text_lengths[candidate_heading.line_index],
        )

    def _is_plausible(self, candidate_heading: PolicyHeading) -> bool:
        """Whether there is text below a heading, in the body of the document."""
        has_text = self._text_lengths[candidate_heading.line_index] >= _MIN_TEXT_CHARS
        return has_text and self._get_grade(candidate_heading) != _ANNEX_GRADE

    def _get_grade(self, candidate_heading: PolicyHeading) -> int:
        stretch_index = (
            bisect_right(self._graded_stretches, (candidate_heading.line_index, _BODY_GRADE)) - 1
        )
        return self._graded_stretches[stretch_index][1]

    def _group_by_box(self) -> dict[tuple[int, Box], set[str]]:
        """Return the policies that each box names as headings do, by its page."""
        refs_by_box: defaultdict[tuple[int, Box], set[str]] = defaultdict(set)
        for candidate_heading in self._candidate_headings:
            heading_line = self._typography.lines[candidate_heading.heading_index]
            if heading_line.box is not None:
                refs_by_box[heading_line.page, heading_line.box].add(
                    fold_code(candidate_heading.ref)
                )
        return refs_by_box

    def _is_in_list(self, candidate_heading: PolicyHeading) -> bool:
        """Whether a heading stands in a box with others, as in a table of several policies."""
        heading_line = self._typography.lines[candidate_heading.heading_index]
        if heading_line.box is None:
            return False
        return len(self._refs_by_box[heading_line.page, heading_line.box]) > 1

    def _is_in_grid(self, candidate_heading: PolicyHeading) -> bool:
        line_box = self._typography.lines[candidate_heading.heading_index].box
        return line_box is not None and line_box.is_grid

    def _describe_look(self, candidate_heading: PolicyHeading) -> tuple[bool, float, bool]:
        heading_line = self._typography.lines[candidate_heading.heading_index].line
        return (
            heading_line.is_bold,
            round(heading_line.size),
            candidate_heading.ref.startswith("Policy "),
        )

    def _measure_text(self, candidate_heading: PolicyHeading) -> int:
        """Return the number of characters between a heading and the next, or its own line's."""
        first_line = candidate_heading.heading_index + (
            candidate_heading.line_index == candidate_heading.heading_index
        )
        end_line = min(
            self._next_boundaries[candidate_heading.line_index], first_line + _MAX_MEASURED_LINES
        )
        all_lines = self._typography.lines
        heading_box = all_lines[candidate_heading.heading_index].box
        if heading_box is not None:
            # Numbers in the box of a policy are its own, and end nothing.
            last_line = min(
                self._next_headings[candidate_heading.line_index], first_line + _MAX_MEASURED_LINES
            )
            box_lines = takewhile(
                lambda flow_line: flow_line.box == heading_box, all_lines[first_line:last_line]
            )
            box_length = sum(len(flow_line.line.text) for flow_line in box_lines)
            # The heading may be all of it that a page has room for.
            if heading_box.is_grid or box_length >= _MIN_TEXT_CHARS:
                return box_length
        return sum(len(flow_line.line.text) for flow_line in all_lines[first_line:end_line])


def _grade_lines(headings: Sequence[SectionStart], line_count: int) -> list[tuple[int, int]]:
    """Return the lines at which a stretch of the document begins, each with its weight.

    The body weighs 2, chapters on monitoring, old policies and the like 1, and annexes 0.
    """
    graded_stretches = [(0, _BODY_GRADE)]
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
        if is_annex and section_start.line_index > _MIN_ANNEX_SHARE * line_count:
            graded_stretches.append((section_start.line_index, _ANNEX_GRADE))
        elif is_annex or _BACK_MATTER.search(section_start.title[:200]):
            graded_stretches.append((section_start.line_index, _BACK_GRADE))
        else:
            graded_stretches.append((section_start.line_index, _BODY_GRADE))
            back_matter_level = None
    return graded_stretches

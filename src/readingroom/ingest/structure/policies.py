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

from readingroom.ingest.structure.headings import TITLE_PATTERN
from readingroom.ingest.structure.starts import SectionStart, make_start
from readingroom.ingest.structure.typography import Typography

# Codes as plans write them: LP5, BSC 1, DM3.2, H-1, S/12, ESD13a, AR-UA-ST1.
_CODE = r"[A-Z]{1,6}(?:[/-][A-Z]{1,5})*[ /-]?\d{1,3}(?:\.\d{1,2})?[A-Za-z]?"
_POLICY_WORDS = (
    r"(?:(?:Core|Strategic|Non-Strategic|Local|Site|Area|Place|Development|Management|Draft|CORE|"
    r"STRATEGIC|LOCAL|SITE|DRAFT)\s+)*(?:Policy|POLICY)|(?:Site |SITE )?(?:Allocation|ALLOCATION)"
)
_TOPIC_WORDS = (
    r"(?i:housing|employment|environment(?:al)?|transport|design|retail|econom(?:y|ic)|heritage"
    r"|infrastructure|community|general|spatial|delivery|neighbourhood|planning|rural|urban)"
)
_POLICY_HEADING = re.compile(
    rf"(?:(?P<topic>{_TOPIC_WORDS})\s+)?(?P<word>{_POLICY_WORDS})\s+"
    rf"(?P<number>{_CODE}|(?:[A-Z][a-z]+ ){{1,3}}\d{{1,3}}|[A-Z]{{2,6}} [A-Z]{{1,4}}\d{{1,3}}"
    rf"|\d{{1,3}}(?:\.\d{{1,2}})?[A-Z]?|[A-Z](?=\s*[:–—-]))"
    # What kind of policy it is may stand between its code and its title.
    rf"(?![\w/])(?:\s*\((?i:cont)(?s:.*)|(?:\s*\([A-Za-z -]{{5,30}}\))?{TITLE_PATTERN})"
)
_CODE_HEADING = re.compile(
    r"(?!(?:ANNEX|PART|TABLE|BOX|STEP|NOTE|PHASE|STAGE|ZONE|FIGURE|MAP|PPS|PPG|MPS)\b)"
    rf"(?P<number>{_CODE})(?:\s*[:–—-]\s*|\s+)(?P<title>[A-Z“‘](?s:.*))"
)
_CODE_ALONE = re.compile(_CODE)
_LABEL = re.compile(r"(?:Policy|POLICY)(?: text)?:?")
_MENTION = re.compile(r"\b[Pp]olic(?:y|ies)\s+([A-Z]{1,6})[ /-]?\d")
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
_NO_POLICIES = re.compile(
    r"report on the examination|inspector[’']?s report|report to .* council$"
    r"|supplementary planning (?:document|guidance)\b",
    re.IGNORECASE,
)
_TITLE_PAGES = 2
_BODY, _BACK, _ANNEX = 2, 1, 0
_MIN_ANNEX_SHARE = 0.3
"""An annex that begins before this share of the lines is a line of the contents."""
_MIN_TEXT_CHARS = 40
"""Of the text below a heading; with less, it is a line of a list."""
_MAX_MEASURED_LINES = 400
_MAX_LABEL_DISTANCE = 120
"""Lines between the heading of a policy and the label of its text."""


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

    def to_start(self) -> SectionStart:
        return make_start(self.line_index, "policy", self.ref, self.title)


def find_policies(
    typography: Typography, text: str, headings: Sequence[SectionStart]
) -> tuple[list[PolicyHeading], list[PolicyHeading]]:
    """Return the policies of a document, and the other headings that name one."""
    if not has_own_policies(typography):
        return [], []
    candidates = _find_candidates(typography, text)
    boundaries = sorted(
        {start.line_index for start in headings if start.kind not in ("exhibit", "part")}
        | {candidate.line_index for candidate in candidates}
        | {len(typography.lines)}
    )
    chosen = _Choice(typography, candidates, headings, boundaries).choose()
    chosen_lines = {candidate.line_index for candidate in chosen}
    others = [candidate for candidate in candidates if candidate.line_index not in chosen_lines]
    return chosen, others


def has_own_policies(typography: Typography) -> bool:
    """Whether a document can have policies of its own; a report on a plan only quotes them."""
    for index, flow_line in enumerate(typography.lines):
        if flow_line.page > _TITLE_PAGES:
            break
        if index in typography.contents_lines:
            continue
        if typography.stands_out(index) and _NO_POLICIES.search(flow_line.line.text[:200]):
            return False
    return True


def fold_code(ref: str) -> str:
    """Return a reference without blanks, which plans write in a code or leave out."""
    return ref.replace(" ", "").casefold()


def _find_candidates(typography: Typography, text: str) -> list[PolicyHeading]:
    lines = typography.lines
    prefixes = {match[1] for match in _MENTION.finditer(text)}
    labels = [index for index, line in enumerate(lines) if _LABEL.fullmatch(line.line.text)]
    label_lines = set(labels)
    candidates: list[PolicyHeading] = []
    for index, flow_line in enumerate(lines):
        line_text = flow_line.line.text
        if not line_text[0].isupper() or index in typography.contents_lines:
            continue
        candidate = (
            _match_worded(typography, index)
            or _match_code(typography, index, prefixes, label_lines)
            or _match_code_alone(typography, index, prefixes)
        )
        if candidate:
            candidates.append(candidate)
    return [*_attach_labels(candidates, labels)]


def _match_worded(typography: Typography, index: int) -> PolicyHeading | None:
    """Return the heading `Policy LP5 – Housing`, or None."""
    line_text = typography.lines[index].line.text
    match = _POLICY_HEADING.fullmatch(line_text)
    if match is None or not typography.is_heading(index):
        return None
    if not (typography.begins_block(index) or typography.follows_sentence(index)):
        return None
    if _CONTINUED.search((match["title"] or "")[-40:]):
        return None
    if match["topic"] and not any(character.isalpha() for character in match["number"]):
        return None  # a mere number does not tell the policies of one topic from another's
    word = match["word"].title() if match["word"].isupper() else match["word"]
    title = _complete_title(typography, index, match["title"] or "")
    return PolicyHeading(index, index, f"{' '.join(word.split())} {match['number']}", title)


def _match_code(
    typography: Typography, index: int, prefixes: set[str], label_lines: set[int]
) -> PolicyHeading | None:
    """Return the heading `HOU2 Housing Density`, or a code beside its text below a label."""
    match = _CODE_HEADING.fullmatch(typography.lines[index].line.text)
    if match is None or not typography.stands_out(index):
        return None
    ref = f"Policy {match['number']}"
    if index - 1 in label_lines:
        # The code stands in the margin of the text, whose first line is no title.
        return PolicyHeading(index - 1, index, ref, "")
    letters = re.match(r"[A-Z]+", match["number"])
    is_known = letters is not None and letters[0] in prefixes
    if not is_known or not typography.is_heading(index):
        return None
    if not (typography.begins_block(index) or typography.follows_sentence(index)):
        return None
    return PolicyHeading(index, index, ref, match["title"])


def _match_code_alone(
    typography: Typography, index: int, prefixes: set[str]
) -> PolicyHeading | None:
    """Return the heading `HOU2` whose title stands on the next line, or None."""
    code = typography.lines[index].line.text
    if _CODE_ALONE.fullmatch(code) is None or not typography.begins_block(index):
        return None
    letters = re.match(r"[A-Z]+", code)
    if letters is None or letters[0] not in prefixes:
        return None
    title = _complete_title(typography, index, "")
    return PolicyHeading(index, index, f"Policy {code}", title) if title else None


def _complete_title(typography: Typography, index: int, title: str) -> str:
    """Return the title; where the heading has only a code, it is the next line of the same look."""
    following = index + 1
    if title or following == len(typography.lines) or not typography.stands_out(index):
        return title
    is_title = typography.has_same_look(index, following) and typography.is_title_like(following)
    return typography.lines[following].line.text if is_title else ""


def _attach_labels(
    candidates: Sequence[PolicyHeading], labels: Sequence[int]
) -> Iterator[PolicyHeading]:
    """Yield the headings, each with the label of its text where there is one before the next."""
    next_label = 0
    for number, candidate in enumerate(candidates):
        end = candidates[number + 1].line_index if number + 1 < len(candidates) else None
        while next_label < len(labels) and labels[next_label] <= candidate.heading_index:
            next_label += 1
        label = labels[next_label] if next_label < len(labels) else None
        is_own = (
            label is not None
            and (end is None or label < end)
            and label - candidate.heading_index <= _MAX_LABEL_DISTANCE
        )
        yield PolicyHeading(
            candidate.line_index,
            candidate.heading_index,
            candidate.ref,
            candidate.title,
            label if is_own else None,
        )


class _Choice:
    """Chooses, of the headings that name one policy, the one that is the policy."""

    def __init__(
        self,
        typography: Typography,
        candidates: Sequence[PolicyHeading],
        headings: Sequence[SectionStart],
        boundaries: Sequence[int],
    ) -> None:
        self._typography = typography
        self._candidates = candidates
        self._stretches = _grade_lines(headings, len(typography.lines))
        self._next_boundary = dict(pairwise(boundaries))
        self._text_lengths = {
            candidate.line_index: self._measure_text(candidate) for candidate in candidates
        }
        # The look of most policies, counted over references so that a long list does not win.
        refs_by_look: defaultdict[tuple[bool, float, bool], set[str]] = defaultdict(set)
        for candidate in candidates:
            if self._is_plausible(candidate):
                refs_by_look[self._describe_look(candidate)].add(fold_code(candidate.ref))
        self._look_counts = Counter({look: len(refs) for look, refs in refs_by_look.items()})

    def choose(self) -> list[PolicyHeading]:
        best: dict[str, PolicyHeading] = {}
        for candidate in self._candidates:
            if not self._is_plausible(candidate):
                continue
            ref = fold_code(candidate.ref)
            if ref not in best or self._rank(candidate) > self._rank(best[ref]):
                best[ref] = candidate
        return sorted(best.values(), key=lambda candidate: candidate.line_index)

    def _rank(self, candidate: PolicyHeading) -> tuple[int, bool, bool, int, bool, int]:
        return (
            self._get_grade(candidate),
            not self._is_in_grid(candidate),
            not _EXPLAINING_TITLE.fullmatch(candidate.title),
            self._look_counts[self._describe_look(candidate)],
            candidate.label_index is not None,
            self._text_lengths[candidate.line_index],
        )

    def _is_plausible(self, candidate: PolicyHeading) -> bool:
        """Whether there is text below a heading, in the body of the document."""
        has_text = self._text_lengths[candidate.line_index] >= _MIN_TEXT_CHARS
        return has_text and self._get_grade(candidate) != _ANNEX

    def _get_grade(self, candidate: PolicyHeading) -> int:
        index = bisect_right(self._stretches, (candidate.line_index, _BODY)) - 1
        return self._stretches[index][1]

    def _is_in_grid(self, candidate: PolicyHeading) -> bool:
        box = self._typography.lines[candidate.heading_index].box
        return box is not None and box.is_grid

    def _describe_look(self, candidate: PolicyHeading) -> tuple[bool, float, bool]:
        line = self._typography.lines[candidate.heading_index].line
        return line.is_bold, round(line.size), candidate.ref.startswith("Policy ")

    def _measure_text(self, candidate: PolicyHeading) -> int:
        """Return the number of characters between a heading and the next, or its own line's."""
        first = candidate.heading_index + (candidate.line_index == candidate.heading_index)
        end = min(self._next_boundary[candidate.line_index], first + _MAX_MEASURED_LINES)
        all_lines = self._typography.lines
        box = all_lines[candidate.heading_index].box
        if box is not None:
            # Numbers in the box of a policy are its own, and end nothing.
            last = first + _MAX_MEASURED_LINES
            in_box = takewhile(lambda flow_line: flow_line.box == box, all_lines[first:last])
            box_length = sum(len(flow_line.line.text) for flow_line in in_box)
            # The heading may be all of it that a page has room for.
            if box.is_grid or box_length >= _MIN_TEXT_CHARS:
                return box_length
        return sum(len(flow_line.line.text) for flow_line in all_lines[first:end])


def _grade_lines(headings: Sequence[SectionStart], line_count: int) -> list[tuple[int, int]]:
    """Return the lines at which a stretch of the document begins, each with its weight.

    The body weighs 2, chapters on monitoring, old policies and the like 1, and annexes 0.
    """
    stretches = [(0, _BODY)]
    open_level: int | None = None
    for start in headings:
        if start.kind not in ("part", "chapter", "annex", "section"):
            continue
        is_annex = start.kind == "annex"
        if open_level is not None and start.level > open_level and not is_annex:
            continue
        open_level = start.level
        if is_annex and start.line_index > _MIN_ANNEX_SHARE * line_count:
            stretches.append((start.line_index, _ANNEX))
        elif is_annex or _BACK_MATTER.search(start.title[:200]):
            stretches.append((start.line_index, _BACK))
        else:
            stretches.append((start.line_index, _BODY))
            open_level = None
    return stretches

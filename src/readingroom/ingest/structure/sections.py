"""Finds the sections of a policy document: chapters, policies, numbered paragraphs, tables.

A heading is recognised by its words *and* its look; a numbered paragraph by its position in a
sequence that rises through the document. A mere mention (`see Chapter 9`) starts no section.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from readingroom.ingest.document import DocumentSection
from readingroom.ingest.structure.layout import FlowLine, TextFlow

SectionKind = Literal["part", "chapter", "annex", "section", "policy", "para", "exhibit"]

_HEADING_SCALE = 1.12
"""Letters this many times the usual height belong to a heading."""
_MAX_HEADING_CHARS = 120
_MARGIN_TOLERANCE = 6.0
"""Points within which two lines begin at the same margin."""
_MIN_MARGIN_SHARE = 0.2
"""Share of a document's characters that makes a margin one of its body text."""
# Fewer decimal numbers in a whole document are measurements or stray references.
_MIN_DECIMALS = 8
_MIN_CONTENTS_LINES = 5
_MAX_CONTENTS_GAP = 3
"""Lines without a page number that a table of contents may hold: group names, long titles."""
_MAX_TITLE_CHARS = 500
"""Of a title that goes on over several lines."""

# A line may be as long as its author likes, so no pattern below may take more than one pass over
# it: one that is searched for sees only the end of the line, and one that ends in `.*` matches any
# character there, or it would fail at the last and be tried again from every other place.
_TAIL_CHARS = 200

# A title begins with a capital; after a mere mention the sentence goes on in lower case.
_TITLE_PATTERN = r"(?:\s*[:.–—-]\s*|\s+)?(?P<title>[A-Z0-9“‘\"'](?s:.*))?"
_WORD_HEADING = re.compile(
    r"(?P<word>(?i:chapter|part|section))\s+"
    rf"(?P<number>\d{{1,2}}(?:\.\d{{1,3}})*|[IVX]+|[A-Z])(?![\w(]){_TITLE_PATTERN}"
)
_ANNEX_HEADING = re.compile(
    rf"(?P<word>(?i:annex|appendix))\s+(?P<number>[A-Z]|\d{{1,2}})(?!\w){_TITLE_PATTERN}"
)
_EXHIBIT_HEADING = re.compile(
    r"(?P<word>(?i:table|figure|box))\s+"
    rf"(?P<number>[A-Z]?\d{{1,2}}(?:[-.]\d{{1,3}})?[a-z]?)(?!\w){_TITLE_PATTERN}"
)
_POLICY_HEADING = re.compile(
    r"(?:Policy|POLICY)\s+"
    r"(?P<number>[A-Z]{1,5}\s?\d{1,3}[A-Za-z]?|(?:[A-Z][a-z]+ ){1,3}\d{1,3}|\d{1,3}[A-Z]?)"
    rf"(?!\w){_TITLE_PATTERN}"
)
_POLICY_CODE_HEADING = re.compile(
    r"(?!(?:ANNEX|PART|TABLE|BOX|STEP|NOTE|PHASE|STAGE|ZONE)\b)"
    r"(?P<number>[A-Z]{1,5}\s?\d{1,3}[A-Za-z]?)\s*[:–—-]\s+(?P<title>[A-Z“‘](?s:.*))"
)
_NUMBERED_TITLE = re.compile(r"(?P<number>\d{1,2})\.?\s*(?P<title>[A-Z][^.]{2,})")
_DECIMAL_PARAGRAPH = re.compile(
    r"(?P<number>(?:\d{1,2}|[A-Z])(?:\.\d{1,3}){1,3})\.?(?s:\s*(?P<title>[^\d\s].*)|\s+\d.*)?"
)
_PLAIN_PARAGRAPH = re.compile(r"(?P<number>\d{1,3})\.\s*(?P<title>[^\d\s](?s:.*))?")
_UNIT_OF_MEASURE = re.compile(
    r"(?:m|km|mm|ha|metres?|miles?|hectares?|million|billion|per ?cent|%)\b|%"
)
_ENDS_IN_NUMBER = re.compile(r"(?:\.{2,}|\s)\s*(\d{1,3})$")
_CONTENTS_LEADERS = re.compile(r"(?:\.\s?){4,}\s*\d{1,4}$")

_LEVELS: dict[SectionKind, int] = {
    "part": 0,
    "chapter": 1,
    "annex": 1,
    "section": 2,
    "policy": 8,
    "para": 8,
    "exhibit": 9,
}


@dataclass(frozen=True, slots=True)
class _SectionStart:
    """A line that starts a section."""

    line_index: int
    kind: SectionKind
    ref: str
    title: str
    level: int


def find_sections(flow: TextFlow) -> tuple[DocumentSection, ...]:
    """Return the sections in order; from the first one on, they cover the text without gaps."""
    typography = _Typography(flow)
    # Headings first: numbers within a policy are its clauses, which needs to know where policies
    # begin.
    headings = _remove_repeats([*_find_headings(typography)], len(flow.lines))
    paragraphs = _find_paragraphs(typography, headings)
    starts = sorted([*headings, *paragraphs], key=lambda start: start.line_index)
    starts = [
        replace(start, title=typography.join_title_lines(start.line_index, start.title))
        for start in starts
    ]
    return tuple(_make_sections(flow, [*_resume_after_exhibits(typography, starts)]))


class _Typography:
    """The lines of a document, and the sizes and margins that are usual among them."""

    def __init__(self, flow: TextFlow) -> None:
        self.lines = flow.lines
        weights: Counter[float] = Counter()
        margins: Counter[int] = Counter()
        for flow_line in flow.lines:
            weights[round(flow_line.line.size * 2) / 2] += len(flow_line.line.text)
            margins[round(flow_line.line.left)] += len(flow_line.line.text)
        self.size = weights.most_common(1)[0][0] if weights else 0.0
        self.margin = margins.most_common(1)[0][0] if margins else 0
        min_weight = _MIN_MARGIN_SHARE * margins.total()
        self._margins = [margin for margin, weight in margins.items() if weight >= min_weight]
        body_line_lengths = sorted(
            len(line.line.text) for line in flow.lines if self._is_body(line)
        )
        self.usual_line_length = (
            body_line_lengths[len(body_line_lengths) * 3 // 4] if body_line_lengths else 0
        )
        self._contents_lines = _find_contents(flow.lines)
        self._contents_lines |= {
            index
            for index, line in enumerate(flow.lines)
            if _CONTENTS_LEADERS.search(_get_tail(line))
        }

    def match_lines(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Yield the lines that the pattern matches, except those of tables of contents."""
        for index, flow_line in enumerate(self.lines):
            if index in self._contents_lines:
                continue
            if match := pattern.fullmatch(flow_line.line.text):
                yield index, match

    def begins_block(self, index: int) -> bool:
        """Whether a paragraph begins here, or a page, where a gap above cannot be seen."""
        return (
            index == 0
            or self.lines[index].starts_paragraph
            or self.lines[index - 1].page != self.lines[index].page
        )

    def is_large(self, index: int) -> bool:
        return self.lines[index].line.size >= _HEADING_SCALE * self.size

    def is_small(self, index: int) -> bool:
        return self.lines[index].line.size < 0.9 * self.size

    def stands_out(self, index: int) -> bool:
        return self.lines[index].line.is_bold or self.is_large(index)

    def is_heading(self, index: int) -> bool:
        """Whether a line looks like a heading, or is short and alone, which is all a scan shows."""
        text = self.lines[index].line.text
        if len(text) > _MAX_HEADING_CHARS:
            return False
        if self.is_large(index):
            return True
        if text.endswith((",", ";")):
            return False
        if self.stands_out(index):
            return True
        may_be_title = self.begins_block(index) and not text.endswith(".")
        return may_be_title and (index + 1 == len(self.lines) or self.begins_block(index + 1))

    def join_title_lines(self, index: int, title: str) -> str:
        """Return a title with the lines on which it continues."""
        if not title or not self.stands_out(index):
            return title
        first_line = self.lines[index].line
        for number in range(index + 1, len(self.lines)):
            following = self.lines[number]
            line = following.line
            is_alike = line.is_bold == first_line.is_bold and abs(line.size - first_line.size) < 0.5
            if following.starts_paragraph or not is_alike or len(title) > _MAX_TITLE_CHARS:
                break
            title = f"{title} {line.text}"
        return title

    def is_outdented(self, index: int) -> bool:
        """Whether a line begins left of the text, as the number of a paragraph does."""
        return self.lines[index].line.left < self.margin - _MARGIN_TOLERANCE

    def is_prose(self, index: int) -> bool:
        """Whether a paragraph of body text begins here."""
        flow_line = self.lines[index]
        text = flow_line.line.text
        is_sentence = text[0].isupper() and len(text) >= 0.7 * self.usual_line_length
        return (
            flow_line.starts_paragraph
            and is_sentence
            and self._is_body(flow_line)
            and not flow_line.line.is_bold
        )

    def _is_body(self, flow_line: FlowLine) -> bool:
        line = flow_line.line
        is_at_margin = any(abs(line.left - margin) < _MARGIN_TOLERANCE for margin in self._margins)
        return is_at_margin and abs(line.size - self.size) < 0.75


def _find_contents(lines: Sequence[FlowLine]) -> set[int]:
    """Return the lines of tables of contents: most of them end in page numbers, which rise."""
    contents: set[int] = set()
    numbered_lines: list[tuple[int, int]] = []
    for line_index, flow_line in enumerate(lines):
        match = _ENDS_IN_NUMBER.search(_get_tail(flow_line))
        if match is None:
            continue
        number = int(match[1])
        if numbered_lines and (
            line_index - numbered_lines[-1][0] > _MAX_CONTENTS_GAP or number < numbered_lines[-1][1]
        ):
            contents |= _list_run_lines(numbered_lines)
            numbered_lines = []
        numbered_lines.append((line_index, number))
    return contents | _list_run_lines(numbered_lines)


def _get_tail(flow_line: FlowLine) -> str:
    """Return the end of a line, where the page number of a line of contents is."""
    return flow_line.line.text[-_TAIL_CHARS:]


def _list_run_lines(numbered_lines: Sequence[tuple[int, int]]) -> set[int]:
    """Return the lines from the first to the last of a run; none if it is too short."""
    if len(numbered_lines) < _MIN_CONTENTS_LINES:
        return set()
    return set(range(numbered_lines[0][0], numbered_lines[-1][0] + 1))


def _find_headings(typography: _Typography) -> Iterator[_SectionStart]:
    yield from _match_headings(typography, _WORD_HEADING, _describe_word_heading)
    yield from _match_headings(
        typography, _ANNEX_HEADING, lambda match: ("annex", _make_ref(match), _LEVELS["annex"])
    )
    yield from _match_headings(
        typography,
        _POLICY_HEADING,
        lambda match: ("policy", f"Policy {match['number']}", _LEVELS["policy"]),
    )
    for line_index, match in typography.match_lines(_EXHIBIT_HEADING):
        if typography.begins_block(line_index) or typography.stands_out(line_index):
            yield _make_start(line_index, "exhibit", _make_ref(match), match)
    for line_index, match in typography.match_lines(_POLICY_CODE_HEADING):
        if typography.stands_out(line_index) and typography.is_heading(line_index):
            yield _make_start(line_index, "policy", f"Policy {match['number']}", match)
    yield from _find_numbered_chapters(typography)


def _match_headings(
    typography: _Typography,
    pattern: re.Pattern[str],
    describe: Callable[[re.Match[str]], tuple[SectionKind, str, int]],
) -> Iterator[_SectionStart]:
    for line_index, match in typography.match_lines(pattern):
        if typography.is_heading(line_index):
            kind, ref, level = describe(match)
            yield _SectionStart(line_index, kind, ref, match["title"] or "", level)


def _describe_word_heading(match: re.Match[str]) -> tuple[SectionKind, str, int]:
    word, number = match["word"].title(), match["number"]
    if word == "Section":
        return "section", f"Section {number}", _LEVELS["section"] + number.count(".")
    kind: SectionKind = "part" if word == "Part" else "chapter"
    return kind, f"{word} {number}", _LEVELS[kind]


def _make_ref(match: re.Match[str]) -> str:
    return f"{match['word'].title()} {match['number']}"


def _make_start(
    line_index: int, kind: SectionKind, ref: str, match: re.Match[str]
) -> _SectionStart:
    return _SectionStart(line_index, kind, ref, match["title"] or "", _LEVELS[kind])


def _find_numbered_chapters(typography: _Typography) -> Iterator[_SectionStart]:
    """Yield `5. Title` in large letters where such titles count up, as chapters do."""
    candidates = [
        (line_index, match)
        for line_index, match in typography.match_lines(_NUMBERED_TITLE)
        if typography.is_large(line_index) and typography.is_heading(line_index)
    ]
    for index in find_rising_numbers([int(match["number"]) for _, match in candidates], max_gap=2):
        line_index, match = candidates[index]
        yield _make_start(line_index, "chapter", f"Chapter {match['number']}", match)


def _remove_repeats(headings: Sequence[_SectionStart], line_count: int) -> list[_SectionStart]:
    """Return one heading per line and, of those with the same reference, the longest section's.

    The others are in lists, such as a schedule of policies or an index of tables.
    """
    by_line = {start.line_index: start for start in reversed(headings)}
    ordered = sorted(by_line.values(), key=lambda start: start.line_index)
    ends = [*(start.line_index for start in ordered), line_count][1:]
    best: dict[str, tuple[int, _SectionStart]] = {}
    for start, end in zip(ordered, ends, strict=True):
        section_lines = end - start.line_index
        if start.ref not in best or section_lines > best[start.ref][0]:
            best[start.ref] = section_lines, start
    return [start for _, start in best.values()]


def _find_paragraphs(
    typography: _Typography, headings: Sequence[_SectionStart]
) -> list[_SectionStart]:
    """Return the decimal paragraphs where there are enough of them, else the plain ones."""
    heading_lines = {start.line_index for start in headings}
    decimals = [
        start for start in _find_decimals(typography) if start.line_index not in heading_lines
    ]
    if len(decimals) >= _MIN_DECIMALS:
        return decimals
    return [*_find_plain_numbers(typography, headings)]


def _find_decimals(typography: _Typography) -> Iterator[_SectionStart]:
    """Yield paragraphs and sections numbered like `4.12`, in their sequence."""
    last_components: tuple[str | int, ...] = ()
    for line_index, match in typography.match_lines(_DECIMAL_PARAGRAPH):
        number, title = match["number"], match["title"] or ""
        if typography.is_small(line_index) or _UNIT_OF_MEASURE.match(title):
            continue
        if not (
            typography.begins_block(line_index)
            or typography.is_outdented(line_index)
            or typography.stands_out(line_index)
        ):
            continue
        components = tuple(int(text) if text.isdigit() else text for text in number.split("."))
        if not _follows(components, last_components):
            continue
        last_components = components
        if (
            title
            and typography.stands_out(line_index)
            and typography.is_heading(line_index)
            and not title.endswith(".")
        ):
            level = _LEVELS["section"] + number.count(".")
            yield _SectionStart(line_index, "section", f"Section {number}", title, level)
        else:
            yield _SectionStart(line_index, "para", f"Para {number}", "", _LEVELS["para"])


def _follows(number: tuple[str | int, ...], last: tuple[str | int, ...]) -> bool:
    """Whether a decimal number may follow: the next one, a first one below, or one further up."""
    if not last:
        return number[-1] in (0, 1, 2)
    if type(number[0]) is not type(last[0]):
        return False
    first_difference = next(
        (i for i, (a, b) in enumerate(zip(number, last, strict=False)) if a != b), None
    )
    if first_difference is None:  # one is the beginning of the other
        return len(number) > len(last) and all(
            component in (0, 1, 2) for component in number[len(last) :]
        )
    rise = _rank(number[first_difference]) - _rank(last[first_difference])
    return 0 < rise <= 3 and all(
        component in (0, 1, 2) for component in number[first_difference + 1 :]
    )


def _rank(component: str | int) -> int:
    """Return where a letter or a number of a decimal number stands among its like."""
    return ord(component) if isinstance(component, str) else component


def _find_plain_numbers(
    typography: _Typography, headings: Sequence[_SectionStart]
) -> Iterator[_SectionStart]:
    """Yield paragraphs like `116. Text` whose numbers rise through the document."""
    heading_lines = {start.line_index for start in headings}
    candidates = [
        (line_index, int(match["number"]))
        for line_index, match in typography.match_lines(_PLAIN_PARAGRAPH)
        if line_index not in heading_lines
        and not typography.is_small(line_index)
        and (typography.begins_block(line_index) or typography.is_outdented(line_index))
    ]
    candidates = [*_remove_clauses(candidates, headings)]
    columns = [
        typography.lines[line_index].line.left / _MARGIN_TOLERANCE for line_index, _ in candidates
    ]
    frequencies = Counter(round(column) for column in columns)
    usual_column = frequencies.most_common(1)[0][0] if frequencies else 0
    # A number in another column is a list item more often than a paragraph, but not always.
    weights = [1.0 if abs(column - usual_column) <= 2 else 0.2 for column in columns]
    numbers = [number for _, number in candidates]
    for index in find_rising_numbers(numbers, max_gap=3, weights=weights):
        line_index, number = candidates[index]
        yield _SectionStart(line_index, "para", f"Para {number}", "", _LEVELS["para"])


def _remove_clauses(
    candidates: Sequence[tuple[int, int]], headings: Sequence[_SectionStart]
) -> Iterator[tuple[int, int]]:
    """Yield the candidates but for 1, 2, 3 … below a policy or an annex: those are its clauses."""
    parent_lines = sorted(
        start.line_index for start in headings if start.kind in ("policy", "annex", "chapter")
    )
    with_clauses = {start.line_index for start in headings if start.kind in ("policy", "annex")}
    parent_line, last_clause = -1, 0
    for line_index, number in candidates:
        index = bisect_left(parent_lines, line_index) - 1
        if index >= 0 and parent_lines[index] != parent_line:
            parent_line, last_clause = parent_lines[index], 0
        if parent_line in with_clauses and number == last_clause + 1:
            last_clause = number
        else:
            yield line_index, number


def find_rising_numbers(
    numbers: Sequence[int], max_gap: int, weights: Sequence[float] | None = None
) -> list[int]:
    """Return the indexes of the numbers that form the best sequence rising in small steps."""
    weights = weights or [1.0] * len(numbers)
    best: dict[int, tuple[float, int]] = {}
    predecessors: list[int | None] = []
    for index, (number, weight) in enumerate(zip(numbers, weights, strict=True)):
        chains = [
            # A missing number costs something, so that a chain with every number wins over one with
            # gaps.
            (best[number - gap][0] - 0.5 * (gap - 1), best[number - gap][1])
            for gap in range(1, max_gap + 1)
            if number - gap in best
        ]
        score, previous = max(chains, default=(0.0, None))
        predecessors.append(previous)
        if number not in best or score + weight > best[number][0]:
            best[number] = score + weight, index
    chain: list[int] = []
    chain_index: int | None = max(best.values())[1] if best else None
    while chain_index is not None:
        chain.append(chain_index)
        chain_index = predecessors[chain_index]
    return chain[::-1]


def _resume_after_exhibits(
    typography: _Typography, starts: Sequence[_SectionStart]
) -> Iterator[_SectionStart]:
    """Yield the starts; where prose goes on after a table, its section starts a second time."""
    enclosing_start: _SectionStart | None = None
    ends = [*(start.line_index for start in starts), len(typography.lines)][1:]
    for start, end in zip(starts, ends, strict=True):
        yield start
        if start.kind != "exhibit":
            enclosing_start = start
        elif enclosing_start is not None:
            resumed_line = next(
                (
                    line_index
                    for line_index in range(start.line_index + 1, end)
                    if typography.is_prose(line_index)
                ),
                None,
            )
            if resumed_line is not None:
                yield replace(enclosing_start, line_index=resumed_line)


def _make_sections(flow: TextFlow, starts: Sequence[_SectionStart]) -> Iterator[DocumentSection]:
    ancestry: list[_SectionStart] = []
    offsets = [flow.lines[start.line_index].start for start in starts] + [len(flow.text)]
    for index, start in enumerate(starts):
        ancestry = [ancestor for ancestor in ancestry if ancestor.level < start.level] + [start]
        yield DocumentSection(
            ref=start.ref,
            path=tuple(ancestor.ref for ancestor in ancestry),
            title=start.title,
            start=offsets[index],
            end=offsets[index + 1],
            page=flow.lines[start.line_index].page,
        )

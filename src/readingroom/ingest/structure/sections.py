"""Finds the sections of a policy document: chapters, policies, numbered paragraphs, tables.

A heading is known by its words *and* its look; a numbered paragraph by its place in a sequence that
rises through the document. What is merely mentioned (`see Chapter 9`) starts nothing.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from readingroom.ingest.document import Section
from readingroom.ingest.structure.layout import Flow, Placed

Kind = Literal["part", "chapter", "annex", "section", "policy", "para", "exhibit"]

_LARGER = 1.12
"""Letters this many times the usual height are a heading's."""
_LONGEST_HEADING = 120
_MARGIN = 6.0
"""Points within which two lines begin at the same margin."""
_COMMON = 0.2
"""A margin that this share of a document's characters keep to is one of its text."""
_ENOUGH_DECIMALS = 8
_SHORTEST_CONTENTS = 5
_CONTENTS_GAP = 3
"""A line in a table of contents may be a group's name, or a title too long for one line."""

# A title begins with a capital: what goes on in small letters is a sentence that mentions it.
_TITLE = r"(?:\s*[:.–—-]\s*|\s+)?(?P<title>[A-Z0-9“‘\"'].*)?"
_NAMED = re.compile(
    r"(?P<word>(?i:chapter|part|section))\s+"
    rf"(?P<number>\d{{1,2}}(?:\.\d{{1,3}})*|[IVX]+|[A-Z])(?![\w(]){_TITLE}"
)
_ANNEX = re.compile(rf"(?P<word>(?i:annex|appendix))\s+(?P<number>[A-Z]|\d{{1,2}})(?!\w){_TITLE}")
_EXHIBIT = re.compile(
    r"(?P<word>(?i:table|figure|box))\s+"
    rf"(?P<number>[A-Z]?\d{{1,2}}(?:[-.]\d{{1,3}})?[a-z]?)(?!\w){_TITLE}"
)
_POLICY = re.compile(
    r"(?:Policy|POLICY)\s+"
    r"(?P<number>[A-Z]{1,5}\s?\d{1,3}[A-Za-z]?|(?:[A-Z][a-z]+ ){1,3}\d{1,3}|\d{1,3}[A-Z]?)"
    rf"(?!\w){_TITLE}"
)
_CODE = re.compile(
    r"(?!(?:ANNEX|PART|TABLE|BOX|STEP|NOTE|PHASE|STAGE|ZONE)\b)"
    r"(?P<number>[A-Z]{1,5}\s?\d{1,3}[A-Za-z]?)\s*[:–—-]\s+(?P<title>[A-Z“‘].*)"
)
_NUMBERED_TITLE = re.compile(r"(?P<number>\d{1,2})\.?\s*(?P<title>[A-Z][^.]{2,})")
_DECIMAL = re.compile(
    r"(?P<number>(?:\d{1,2}|[A-Z])(?:\.\d{1,3}){1,3})\.?(?:\s*(?P<title>[^\d\s].*)|\s+\d.*)?"
)
_PLAIN = re.compile(r"(?P<number>\d{1,3})\.\s*(?P<title>[^\d\s].*)?")
_MEASURE = re.compile(r"(?:m|km|mm|ha|metres?|miles?|hectares?|million|billion|per ?cent|%)\b|%")
_ENDS_IN_NUMBER = re.compile(r"(?:\.{2,}|\s)\s*(\d{1,3})$")
_LEADERS = re.compile(r"(?:\.\s?){4,}\s*\d{1,4}$")

_LEVELS: dict[Kind, int] = {
    "part": 0,
    "chapter": 1,
    "annex": 1,
    "section": 2,
    "policy": 8,
    "para": 8,
    "exhibit": 9,
}


@dataclass(frozen=True, slots=True)
class _Start:
    """A line that starts a section."""

    at: int
    """The line's number."""
    kind: Kind
    ref: str
    title: str
    level: int


def find(flow: Flow) -> tuple[Section, ...]:
    """The sections in order, without gaps from the first one on."""
    page = _Look(flow)
    headings = _without_repeats([*_headings(page)], len(flow.lines))
    starts = sorted([*headings, *_paragraphs(page, headings)], key=lambda start: start.at)
    titled = [replace(start, title=page.whole_title(start.at, start.title)) for start in starts]
    return tuple(_sections(flow, [*_with_ends_of_exhibits(page, titled)]))


class _Look:
    """The lines of a document and what is usual among them."""

    def __init__(self, flow: Flow) -> None:
        self.lines = flow.lines
        weights: Counter[float] = Counter()
        margins: Counter[int] = Counter()
        for placed in flow.lines:
            weights[round(placed.line.size * 2) / 2] += len(placed.line.text)
            margins[round(placed.line.left)] += len(placed.line.text)
        self.size = weights.most_common(1)[0][0] if weights else 0.0
        self.margin = margins.most_common(1)[0][0] if margins else 0
        enough = _COMMON * margins.total()
        self._margins = [margin for margin, weight in margins.items() if weight >= enough]
        lengths = sorted(len(p.line.text) for p in flow.lines if self._is_usual(p))
        self.full_line = lengths[len(lengths) * 3 // 4] if lengths else 0
        self._contents = _contents(flow.lines)

    def fitting(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Lines that the pattern fits, tables of contents left out."""
        for at, placed in enumerate(self.lines):
            if at in self._contents or _LEADERS.search(placed.line.text):
                continue
            if match := pattern.fullmatch(placed.line.text):
                yield at, match

    def begins_block(self, at: int) -> bool:
        """Whether a paragraph begins here, or a page, which hides the gap above."""
        return at == 0 or self.lines[at].gap or self.lines[at - 1].page != self.lines[at].page

    def is_large(self, at: int) -> bool:
        return self.lines[at].line.size >= _LARGER * self.size

    def is_small(self, at: int) -> bool:
        return self.lines[at].line.size < 0.9 * self.size

    def stands_out(self, at: int) -> bool:
        return self.lines[at].line.bold or self.is_large(at)

    def is_heading(self, at: int) -> bool:
        """By its look, or by standing alone and short, which is all that a scan can show."""
        text = self.lines[at].line.text
        if len(text) > _LONGEST_HEADING:
            return False
        if self.is_large(at):
            return True
        if text.endswith((",", ";")):
            return False
        if self.stands_out(at):
            return True
        alone = self.begins_block(at) and not text.endswith(".")
        return alone and (at + 1 == len(self.lines) or self.begins_block(at + 1))

    def whole_title(self, at: int, title: str) -> str:
        """A title with the lines that it goes on over."""
        if not title or not self.stands_out(at):
            return title
        first = self.lines[at].line
        for placed in self.lines[at + 1 :]:
            same = placed.line.bold == first.bold and abs(placed.line.size - first.size) < 0.5
            if placed.gap or not same:
                break
            title = f"{title} {placed.line.text}"
        return title

    def hangs(self, at: int) -> bool:
        """Whether a line begins left of the text, as the number of a paragraph does."""
        return self.lines[at].line.left < self.margin - _MARGIN

    def is_prose(self, at: int) -> bool:
        placed = self.lines[at]
        text = placed.line.text
        sentence = text[0].isupper() and len(text) >= 0.7 * self.full_line
        return placed.gap and sentence and self._is_usual(placed) and not placed.line.bold

    def _is_usual(self, placed: Placed) -> bool:
        at_margin = any(abs(placed.line.left - margin) < _MARGIN for margin in self._margins)
        return at_margin and abs(placed.line.size - self.size) < 0.75


def _contents(lines: Sequence[Placed]) -> set[int]:
    """Lines of tables of contents: stretches where most end in a page number, and those rise."""
    found: set[int] = set()
    stretch: list[tuple[int, int]] = []
    for at, placed in enumerate(lines):
        match = _ENDS_IN_NUMBER.search(placed.line.text)
        if match is None:
            continue
        number = int(match[1])
        if stretch and (at - stretch[-1][0] > _CONTENTS_GAP or number < stretch[-1][1]):
            found |= _long_enough(stretch)
            stretch = []
        stretch.append((at, number))
    return found | _long_enough(stretch)


def _long_enough(stretch: Sequence[tuple[int, int]]) -> set[int]:
    if len(stretch) < _SHORTEST_CONTENTS:
        return set()
    return set(range(stretch[0][0], stretch[-1][0] + 1))


def _headings(page: _Look) -> Iterator[_Start]:
    yield from _matching(page, _NAMED, _named)
    yield from _matching(page, _ANNEX, lambda m: ("annex", _spelled(m), _LEVELS["annex"]))
    yield from _matching(
        page, _POLICY, lambda m: ("policy", f"Policy {m['number']}", _LEVELS["policy"])
    )
    for at, match in page.fitting(_EXHIBIT):
        if page.begins_block(at) or page.stands_out(at):
            yield _start(at, "exhibit", _spelled(match), match)
    for at, match in page.fitting(_CODE):
        if page.stands_out(at) and page.is_heading(at):
            yield _start(at, "policy", f"Policy {match['number']}", match)
    yield from _numbered_chapters(page)


def _matching(
    page: _Look,
    pattern: re.Pattern[str],
    named: Callable[[re.Match[str]], tuple[Kind, str, int]],
) -> Iterator[_Start]:
    for at, match in page.fitting(pattern):
        if page.is_heading(at):
            kind, ref, level = named(match)
            yield _Start(at, kind, ref, match["title"] or "", level)


def _named(match: re.Match[str]) -> tuple[Kind, str, int]:
    word, number = match["word"].title(), match["number"]
    if word == "Section":
        return "section", f"Section {number}", _LEVELS["section"] + number.count(".")
    kind: Kind = "part" if word == "Part" else "chapter"
    return kind, f"{word} {number}", _LEVELS[kind]


def _spelled(match: re.Match[str]) -> str:
    return f"{match['word'].title()} {match['number']}"


def _start(at: int, kind: Kind, ref: str, match: re.Match[str]) -> _Start:
    return _Start(at, kind, ref, match["title"] or "", _LEVELS[kind])


def _numbered_chapters(page: _Look) -> Iterator[_Start]:
    """`5. Title` in large letters, where such titles count up: numbers at random do not."""
    found = [
        (at, match)
        for at, match in page.fitting(_NUMBERED_TITLE)
        if page.is_large(at) and page.is_heading(at)
    ]
    for index in rising([int(match["number"]) for _, match in found], most_gap=2):
        at, match = found[index]
        yield _start(at, "chapter", f"Chapter {match['number']}", match)


def _without_repeats(headings: Sequence[_Start], count: int) -> list[_Start]:
    """One heading a line, and of those with one reference the one with most below it.

    The others are lists of what there is: a schedule of policies, an index of tables.
    """
    by_line = {start.at: start for start in reversed(headings)}
    ordered = sorted(by_line.values(), key=lambda start: start.at)
    ends = [*(start.at for start in ordered), count][1:]
    best: dict[str, tuple[int, _Start]] = {}
    for start, end in zip(ordered, ends, strict=True):
        below = end - start.at
        if start.ref not in best or below > best[start.ref][0]:
            best[start.ref] = below, start
    return [start for _, start in best.values()]


def _paragraphs(page: _Look, headings: Sequence[_Start]) -> list[_Start]:
    """Decimal paragraphs where there are any to speak of, else plain ones, never both."""
    taken = {start.at for start in headings}
    decimal = [start for start in _decimal(page) if start.at not in taken]
    if len(decimal) >= _ENOUGH_DECIMALS:
        return decimal
    return [*_plain(page, headings)]


def _decimal(page: _Look) -> Iterator[_Start]:
    last: tuple[str | int, ...] = ()
    for at, match in page.fitting(_DECIMAL):
        number, title = match["number"], match["title"] or ""
        if page.is_small(at) or _MEASURE.match(title):
            continue
        if not (page.begins_block(at) or page.hangs(at) or page.stands_out(at)):
            continue
        key = tuple(int(part) if part.isdigit() else part for part in number.split("."))
        if not _follows(key, last):
            continue
        last = key
        if title and page.stands_out(at) and page.is_heading(at) and not title.endswith("."):
            level = _LEVELS["section"] + number.count(".")
            yield _Start(at, "section", f"Section {number}", title, level)
        else:
            yield _Start(at, "para", f"Para {number}", "", _LEVELS["para"])


def _follows(key: tuple[str | int, ...], last: tuple[str | int, ...]) -> bool:
    """Whether a decimal number may come next: one further, a first below, or one further up."""
    if not last:
        return key[-1] in (0, 1, 2)
    if type(key[0]) is not type(last[0]):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), None)
    if shared is None:  # one lies below the other
        return len(key) > len(last) and all(part in (0, 1, 2) for part in key[len(last) :])
    step = _order(key[shared]) - _order(last[shared])
    return 0 < step <= 3 and all(part in (0, 1, 2) for part in key[shared + 1 :])


def _order(part: str | int) -> int:
    return ord(part) if isinstance(part, str) else part


def _plain(page: _Look, headings: Sequence[_Start]) -> Iterator[_Start]:
    """`116. Text`, its numbers rising through the document; a policy's clauses are its own."""
    taken = {start.at for start in headings}
    found = [
        (at, int(match["number"]))
        for at, match in page.fitting(_PLAIN)
        if at not in taken and not page.is_small(at) and (page.begins_block(at) or page.hangs(at))
    ]
    found = [*_outside_own_numbering(found, headings)]
    margins = Counter(round(page.lines[at].line.left / _MARGIN) for at, _ in found)
    usual = margins.most_common(1)[0][0] if margins else 0
    weights = [
        1.0 if abs(page.lines[at].line.left / _MARGIN - usual) <= 2 else 0.2 for at, _ in found
    ]
    for index in rising([number for _, number in found], most_gap=3, weights=weights):
        at, number = found[index]
        yield _Start(at, "para", f"Para {number}", "", _LEVELS["para"])


def _outside_own_numbering(
    found: Sequence[tuple[int, int]], headings: Sequence[_Start]
) -> Iterator[tuple[int, int]]:
    """Leave out 1, 2, 3 … below a policy or an annex: they are its clauses."""
    owners = sorted(s.at for s in headings if s.kind in ("policy", "annex", "chapter"))
    own = {s.at for s in headings if s.kind in ("policy", "annex")}
    owner, inner = -1, 0
    for at, number in found:
        index = bisect_left(owners, at) - 1
        if index >= 0 and owners[index] != owner:
            owner, inner = owners[index], 0
        if owner in own and number == inner + 1:
            inner = number
        else:
            yield at, number


def rising(
    numbers: Sequence[int], most_gap: int, weights: Sequence[float] | None = None
) -> list[int]:
    """Which of the numbers form the best sequence that rises in small steps, as their indexes."""
    weights = weights or [1.0] * len(numbers)
    best: dict[int, tuple[float, int]] = {}
    before: list[int | None] = []
    for index, (number, weight) in enumerate(zip(numbers, weights, strict=True)):
        options = [
            (best[number - gap][0] - 0.5 * (gap - 1), best[number - gap][1])
            for gap in range(1, most_gap + 1)
            if number - gap in best
        ]
        score, previous = max(options, default=(0.0, None))
        before.append(previous)
        if number not in best or score + weight > best[number][0]:
            best[number] = score + weight, index
    chain: list[int] = []
    link: int | None = max(best.values())[1] if best else None
    while link is not None:
        chain.append(link)
        link = before[link]
    return chain[::-1]


def _with_ends_of_exhibits(page: _Look, starts: Sequence[_Start]) -> Iterator[_Start]:
    """A table ends where prose goes on; what goes on is the section around it."""
    around: _Start | None = None
    ends = [*(start.at for start in starts), len(page.lines)][1:]
    for start, end in zip(starts, ends, strict=True):
        yield start
        if start.kind != "exhibit":
            around = start
        elif around is not None:
            back = next((at for at in range(start.at + 1, end) if page.is_prose(at)), None)
            if back is not None:
                yield _Start(back, around.kind, around.ref, around.title, around.level)


def _sections(flow: Flow, starts: Sequence[_Start]) -> Iterator[Section]:
    above: list[_Start] = []
    offsets = [flow.lines[start.at].start for start in starts] + [len(flow.text)]
    for index, start in enumerate(starts):
        above = [one for one in above if one.level < start.level] + [start]
        yield Section(
            ref=start.ref,
            path=tuple(one.ref for one in above),
            title=start.title,
            start=offsets[index],
            end=offsets[index + 1],
            page=flow.lines[start.at].page,
        )

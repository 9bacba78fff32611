"""Makes text of pages: words rejoined, paragraphs apart, running headers and footers left out."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from readingroom.ingest.read.page import BROKEN_WORD, Line, Sheet

_EDGE = 0.09
"""The share of a page's height, above and below, where headers and footers live."""
_USUAL_LEADING = 1.2
_GAP = 1.3
"""A distance this many times the usual one parts two paragraphs."""
_PAGE_NUMBER = re.compile(
    r"(?:page\s*)?[-–]?\s*(?:\d{1,4}|[ivxl]{1,7})\s*[-–]?(?:\s*(?:of|/)\s*\d{1,4})?"
)
_ENDS = (".", "!", "?", ":", ";", "”", '"')
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BROKEN = re.compile(rf"({_WORD.pattern}){BROKEN_WORD}({_WORD.pattern})")
_ENDS_BROKEN = re.compile(r"[^\W\d_]-$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A line and where it begins in the document's text."""

    line: Line
    start: int
    page: int
    gap: bool
    """Whether a paragraph begins with it."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The cleaned text of a document, and where everything in it came from."""

    text: str
    lines: list[Placed]
    page_starts: list[int]
    page_ends: list[int]
    page_texts: list[str]
    """Each page whole, with what the cleaned text leaves out."""


def flow(sheets: Sequence[Sheet]) -> Flow:
    """The text of the pages in order."""
    rejoin_words(sheets)
    leading = _leading(sheets)
    repeated = _repeated(sheets)
    parts: list[str] = []
    placed: list[Placed] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for sheet in sheets:
        kept = [line for line in sheet.lines if not _is_furniture(line, sheet, repeated)]
        starts.append(at)
        for line, gap in zip(kept, _gaps(kept, leading), strict=True):
            if placed:
                new_page = placed[-1].page != sheet.number
                gap = placed[-1].line.text.endswith(_ENDS) if new_page else gap
                glue = "\n\n" if gap else "\n"
                parts.append(glue)
                at += len(glue)
                if new_page:
                    starts[-1] = at
            placed.append(Placed(line, at, sheet.number, gap))
            parts.append(line.text)
            at += len(line.text)
        ends.append(at)
    for index in reversed(range(len(sheets))):
        if starts[index] == ends[index]:  # a page without text lies where the next one begins
            starts[index] = ends[index] = starts[index + 1] if index + 1 < len(sheets) else at
    page_texts = [_page_text(sheet.lines, leading) for sheet in sheets]
    return Flow("".join(parts), placed, starts, ends, page_texts)


def rejoin_words(sheets: Sequence[Sheet]) -> None:
    """Mend words broken at line ends, as the rest of the document writes them.

    `infra-structure` is one word and `plan-making` is two: which, only other places can tell.
    """
    for sheet in sheets:
        sheet.lines = [*_pulled_together(sheet.lines)]
    broken = [line for sheet in sheets for line in sheet.lines if BROKEN_WORD in line.text]
    if not broken:
        return
    texts = (line.text for sheet in sheets for line in sheet.lines)
    known = Counter(word.lower() for text in texts for word in _WORD.findall(text))
    for line in broken:
        mended = _BROKEN.sub(lambda match: _mended(match[1], match[2], known), line.text)
        line.text = mended.replace(BROKEN_WORD, "-").strip()


def _mended(head: str, tail: str, known: Counter[str]) -> str:
    joined, hyphened = head + tail, f"{head}-{tail}"
    if known[hyphened.lower()] > known[joined.lower()] or not tail.islower() or "-" in tail:
        return hyphened
    return joined


def _pulled_together(lines: Sequence[Line]) -> Iterator[Line]:
    """Put the second half of a broken word behind the first, where the reader has not."""
    above: Line | None = None
    for line in lines:
        if above and _ENDS_BROKEN.search(above.text) and line.text[0].islower():
            half, _, rest = line.text.partition(" ")
            above.text = above.text[:-1] + BROKEN_WORD + half
            above.low = line.low
            if not rest:
                continue
            line.text = rest.lstrip()
        yield line
        above = line


def _leading(sheets: Sequence[Sheet]) -> float:
    """The usual distance between two lines of a paragraph, in letter heights."""
    distances = [
        (above.low - below.bottom) / below.size
        for sheet in sheets
        for above, below in pairwise(sheet.lines)
        if below.size > 0 and abs(above.size - below.size) < 0.5
    ]
    usual = sorted(distance for distance in distances if 0.8 < distance < 3)
    # The lower quarter: where paragraphs are short, half of all distances are gaps between them.
    return usual[len(usual) // 4] if usual else _USUAL_LEADING


def _gaps(lines: Sequence[Line], leading: float) -> list[bool]:
    if not lines:
        return []
    return [True, *(_is_gap(above, below, leading) for above, below in pairwise(lines))]


def _is_gap(above: Line, below: Line, leading: float) -> bool:
    if below.gap is not None:
        return below.gap
    distance = above.low - below.bottom
    if distance < 0:  # back to the top: another column goes on with the sentence, or not
        return above.text.endswith(_ENDS)
    return distance > _GAP * leading * max(min(above.size, below.size), 1.0)


def _repeated(sheets: Sequence[Sheet]) -> set[tuple[str, int]]:
    """What stands at the same height of many pages, numbers aside."""
    seen = Counter(
        key
        for sheet in sheets
        for key in {_key(line) for line in sheet.lines if _at_edge(line, sheet)}
    )
    enough = max(3, 0.25 * len(sheets))
    return {key for key, times in seen.items() if times >= enough}


def _is_furniture(line: Line, sheet: Sheet, repeated: set[tuple[str, int]]) -> bool:
    if not _at_edge(line, sheet):
        return False
    return _key(line) in repeated or bool(_PAGE_NUMBER.fullmatch(line.text.lower()))


def _at_edge(line: Line, sheet: Sheet) -> bool:
    return not _EDGE * sheet.height <= line.bottom <= (1 - _EDGE) * sheet.height


def _key(line: Line) -> tuple[str, int]:
    return re.sub(r"\d+", "#", line.text.lower()), round(line.bottom / 6)


def _page_text(lines: Iterable[Line], leading: float) -> str:
    lines = list(lines)
    parts = [
        ("\n\n" if gap else "\n") + line.text
        for line, gap in zip(lines, _gaps(lines, leading), strict=True)
    ]
    return "".join(parts).lstrip("\n")

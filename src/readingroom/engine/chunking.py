"""Cuts a text into overlapping chunks that know exactly where, and on which pages, they lie.

The cuts equal those of LangChain's `RecursiveCharacterTextSplitter(keep_separator="end")`, which
the contracts name; there a chunk is a string that has lost its place, here it is a pair of offsets.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZE = 800
OVERLAP = 200
# Tried in order; where none is left, between any two characters.
SEPARATORS = ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a text: `text[start:end]`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def split(text: str, size: int = SIZE, overlap: int = OVERLAP) -> list[Span]:
    """Cut a text into spans of at most `size` characters, in order, no white space at their ends.

    A cut falls after the coarsest separator that keeps the parts small enough. Neighbours share up
    to `overlap` characters. A text of white space alone has no spans.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"the overlap ({overlap}) must be at least 0 and below the size ({size})")
    chunks = _Splitter(text, size, overlap).chunks(Span(0, len(text)), level=0)
    stripped = (_strip(text, span) for span in chunks)
    return [span for span in stripped if span.length]


def pages_of(span: Span, page_starts: Sequence[int]) -> list[int]:
    """The pages a span touches, counted from 1; `page_starts` holds the offset each begins at.

    A page without text (it begins where the next one does) is touched by nothing.
    """
    first = max(1, bisect_right(page_starts, span.start))
    last = bisect_left(page_starts, span.end)
    return [
        page
        for page in range(first, last + 1)
        if page == last or page_starts[page - 1] < page_starts[page]
    ]


class _Splitter:
    def __init__(self, text: str, size: int, overlap: int) -> None:
        self.text = text
        self.size = size
        self.overlap = overlap

    def chunks(self, whole: Span, level: int) -> Iterator[Span]:
        """Small pieces are merged up to the size; one that is too large is cut more finely."""
        level = self._first_separator(whole, level)
        if level == len(SEPARATORS):
            yield from self._windows(whole)
            return
        small: list[Span] = []
        for piece in self._pieces(whole, SEPARATORS[level]):
            if piece.length < self.size:
                small.append(piece)
                continue
            yield from self._merge(small)
            small = []
            yield from self.chunks(piece, level + 1)
        yield from self._merge(small)

    def _first_separator(self, whole: Span, level: int) -> int:
        while level < len(SEPARATORS):
            if self.text.find(SEPARATORS[level], whole.start, whole.end) >= 0:
                break
            level += 1
        return level

    def _pieces(self, whole: Span, separator: str) -> Iterator[Span]:
        start = whole.start
        while (found := self.text.find(separator, start, whole.end)) >= 0:
            end = found + len(separator)
            yield Span(start, end)
            start = end
        if start < whole.end:
            yield Span(start, whole.end)

    def _merge(self, pieces: list[Span]) -> Iterator[Span]:
        """Join neighbours while they fit; the next chunk begins with what the overlap allows."""
        kept: deque[Span] = deque()
        for piece in pieces:
            if kept and piece.end - kept[0].start > self.size:
                yield Span(kept[0].start, kept[-1].end)
                while kept and not self._may_begin(kept[0], piece):
                    kept.popleft()
            kept.append(piece)
        if kept:
            yield Span(kept[0].start, kept[-1].end)

    def _may_begin(self, first: Span, added: Span) -> bool:
        shared = added.start - first.start
        return shared <= self.overlap and shared + added.length <= self.size

    def _windows(self, whole: Span) -> Iterator[Span]:
        """A run without any separator: what merging single characters would come to."""
        start = whole.start
        while whole.end - start > self.size:
            yield Span(start, start + self.size)
            start += self.size - self.overlap
        if start < whole.end:
            yield Span(start, whole.end)


def _strip(text: str, span: Span) -> Span:
    said = span.of(text)
    start = span.start + len(said) - len(said.lstrip())
    return Span(start, max(start, span.start + len(said.rstrip())))

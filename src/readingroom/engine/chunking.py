"""Cuts a text into overlapping chunks that know exactly where, and on which pages, they lie.

The cuts equal those of LangChain's `RecursiveCharacterTextSplitter(keep_separator="end")`, which
the contracts name; there a chunk is a string that has lost its place, here it is a pair of offsets.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

SIZE = 800
OVERLAP = 200
# Tried in order; where none is left, between any two characters.
SEPARATORS = ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ")


class Span(NamedTuple):
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
    splitter = _Splitter(text, size, overlap)
    splitter.cut(0, len(text), level=0)
    return splitter.spans


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
    """Works on offsets alone: a stretch of pieces is the list of the places where they meet."""

    def __init__(self, text: str, size: int, overlap: int) -> None:
        self.spans: list[Span] = []
        self._text = text
        self._size = size
        self._overlap = overlap

    def cut(self, start: int, end: int, level: int) -> None:
        """Small pieces are merged up to the size; one that is too large is cut more finely."""
        level = self._first_separator(start, end, level)
        if level == len(SEPARATORS):
            self._windows(start, end)
            return
        edges = self._edges(start, end, SEPARATORS[level])
        small = [start]
        for left, right in pairwise(edges):
            if right - left < self._size:
                small.append(right)
                continue
            self._merge(small)
            self.cut(left, right, level + 1)
            small = [right]
        self._merge(small)

    def _first_separator(self, start: int, end: int, level: int) -> int:
        while level < len(SEPARATORS):
            if self._text.find(SEPARATORS[level], start, end) >= 0:
                break
            level += 1
        return level

    def _edges(self, start: int, end: int, separator: str) -> list[int]:
        """Where the pieces begin and end, each with its separator."""
        width = len(separator)
        lengths = map(len, self._text[start:end].split(separator))
        edges = [*accumulate(map(width.__add__, lengths), initial=start)]
        edges[-1] -= width  # the last piece has no separator, and may be nothing but it
        return edges if edges[-1] > edges[-2] else edges[:-1]

    def _merge(self, edges: Sequence[int]) -> None:
        """Join neighbours while they fit; the next chunk begins with what the overlap allows."""
        if len(edges) < 2:
            return
        size, overlap = self._size, self._overlap
        first, limit = 0, edges[0] + size
        for last in range(1, len(edges)):
            end = edges[last]
            if end <= limit or first == last - 1:
                continue
            start = edges[last - 1]
            self._add(edges[first], start)
            begins = max(start - overlap, end - size)
            while first < last - 1 and edges[first] < begins:
                first += 1
            limit = edges[first] + size
        self._add(edges[first], edges[-1])

    def _windows(self, start: int, end: int) -> None:
        """A run without any separator: what merging single characters would come to."""
        while end - start > self._size:
            self._add(start, start + self._size)
            start += self._size - self._overlap
        if start < end:
            self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        """A chunk, without the white space at its ends; white space alone is none."""
        said = self._text[start:end].rstrip()
        begins = start + len(said) - len(said.lstrip())
        if said:
            self.spans.append(Span(begins, start + len(said)))

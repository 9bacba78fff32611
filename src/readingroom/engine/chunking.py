"""Cuts a text into overlapping chunks that know exactly where, and on which pages, they lie.

The cuts equal those of LangChain's `RecursiveCharacterTextSplitter(keep_separator="end")`, which
the contracts name. There a chunk is a string without a position; here it is a pair of offsets.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

# Both numbers are the contracts'. 800 characters are about 200 tokens, and the model reads 256.
CHUNK_SIZE = 800
CHUNK_OVERLAP_LENGTH = 200
# Tried in this order; after the last, a cut may fall between any two characters.
CHUNK_SEPARATORS = ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ")


class Span(NamedTuple):
    """Part of a text: `text[start_offset:end_offset]`."""

    start_offset: int
    end_offset: int

    @property
    def length(self) -> int:
        return self.end_offset - self.start_offset

    def cut_from(self, document_text: str) -> str:
        return document_text[self.start_offset : self.end_offset]


def split_into_spans(
    document_text: str, max_size: int = CHUNK_SIZE, overlap_length: int = CHUNK_OVERLAP_LENGTH
) -> list[Span]:
    """Cut a text into spans of at most `max_size` characters, in order, without outer white space.

    A cut falls after the coarsest separator that keeps the parts small enough. Neighbours share up
    to `overlap_length` characters. A text of white space alone has no spans.
    """
    if not 0 <= overlap_length < max_size:
        raise ValueError(
            f"the overlap ({overlap_length}) must be at least 0 and below the size ({max_size})"
        )
    splitter = _Splitter(document_text, max_size, overlap_length)
    if len(document_text) < max_size:  # whatever separates its parts, they are joined again
        splitter.add_trimmed_span(0, len(document_text))
        return splitter.spans
    splitter.add_spans_of_part(0, len(document_text), separator_level=0)
    return splitter.spans


def find_page_numbers(span: Span, page_start_offsets: Sequence[int]) -> list[int]:
    """Return the pages that a span touches, counted from 1.

    `page_start_offsets` holds where each page begins. A page without text begins where the next one
    does, and no span touches it.
    """
    first_page_number = max(1, bisect_right(page_start_offsets, span.start_offset))
    last_page_number = bisect_left(page_start_offsets, span.end_offset)
    return [
        page_number
        for page_number in range(first_page_number, last_page_number + 1)
        if page_number == last_page_number
        or page_start_offsets[page_number - 1] < page_start_offsets[page_number]
    ]


class _Splitter:
    """Collects spans. It works on offsets: adjacent parts are given as the list of their edges."""

    def __init__(self, document_text: str, max_size: int, overlap_length: int) -> None:
        self.spans: list[Span] = []
        self._text = document_text
        self._max_size = max_size
        self._overlap_length = overlap_length

    def add_spans_of_part(self, start_offset: int, end_offset: int, separator_level: int) -> None:
        """Merge small parts up to the size, and cut parts that are too large more finely."""
        separator_level = self._choose_separator_level(start_offset, end_offset, separator_level)
        if separator_level == len(CHUNK_SEPARATORS):
            self._add_window_spans(start_offset, end_offset)
            return
        edge_offsets = self._find_edge_offsets(
            start_offset, end_offset, CHUNK_SEPARATORS[separator_level]
        )
        small_part_edge_offsets = [start_offset]
        for part_start_offset, part_end_offset in pairwise(edge_offsets):
            if part_end_offset - part_start_offset < self._max_size:
                small_part_edge_offsets.append(part_end_offset)
                continue
            self._add_merged_spans(small_part_edge_offsets)
            self.add_spans_of_part(part_start_offset, part_end_offset, separator_level + 1)
            small_part_edge_offsets = [part_end_offset]
        self._add_merged_spans(small_part_edge_offsets)

    def _choose_separator_level(
        self, start_offset: int, end_offset: int, separator_level: int
    ) -> int:
        while separator_level < len(CHUNK_SEPARATORS):
            if self._text.find(CHUNK_SEPARATORS[separator_level], start_offset, end_offset) >= 0:
                break
            separator_level += 1
        return separator_level

    def _find_edge_offsets(self, start_offset: int, end_offset: int, separator: str) -> list[int]:
        """Return where the parts begin and end; a separator belongs to the part before it."""
        separator_length = len(separator)
        part_lengths = map(len, self._text[start_offset:end_offset].split(separator))
        edge_offsets = [
            *accumulate(map(separator_length.__add__, part_lengths), initial=start_offset)
        ]
        # No separator follows the last part, which is empty when the text ends with one.
        edge_offsets[-1] -= separator_length
        return edge_offsets if edge_offsets[-1] > edge_offsets[-2] else edge_offsets[:-1]

    def _add_merged_spans(self, edge_offsets: Sequence[int]) -> None:
        """Join neighbours while they fit; begin the next chunk as early as the overlap allows."""
        if len(edge_offsets) < 2:
            return
        max_size, overlap_length = self._max_size, self._overlap_length
        first_edge_index, furthest_end_offset = 0, edge_offsets[0] + max_size
        for last_edge_index in range(1, len(edge_offsets)):
            part_end_offset = edge_offsets[last_edge_index]
            # A single part is never cut here, whatever its size: `add_spans_of_part` has done so.
            if part_end_offset <= furthest_end_offset or first_edge_index == last_edge_index - 1:
                continue
            part_start_offset = edge_offsets[last_edge_index - 1]
            self.add_trimmed_span(edge_offsets[first_edge_index], part_start_offset)
            # The overlap must leave room for the next part as well.
            earliest_start_offset = max(
                part_start_offset - overlap_length, part_end_offset - max_size
            )
            while (
                first_edge_index < last_edge_index - 1
                and edge_offsets[first_edge_index] < earliest_start_offset
            ):
                first_edge_index += 1
            furthest_end_offset = edge_offsets[first_edge_index] + max_size
        self.add_trimmed_span(edge_offsets[first_edge_index], edge_offsets[-1])

    def _add_window_spans(self, start_offset: int, end_offset: int) -> None:
        """Cut text without any separator. Merging single characters would give the same spans."""
        while end_offset - start_offset > self._max_size:
            self.add_trimmed_span(start_offset, start_offset + self._max_size)
            start_offset += self._max_size - self._overlap_length
        if start_offset < end_offset:
            self.add_trimmed_span(start_offset, end_offset)

    def add_trimmed_span(self, start_offset: int, end_offset: int) -> None:
        """Add a span without the white space at its ends; nothing for white space alone."""
        trimmed_text = self._text[start_offset:end_offset].rstrip()
        if trimmed_text:
            trimmed_start_offset = start_offset + len(trimmed_text) - len(trimmed_text.lstrip())
            self.spans.append(Span(trimmed_start_offset, start_offset + len(trimmed_text)))

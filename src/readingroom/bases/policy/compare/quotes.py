"""Looks for quotations in the text of a policy, by the conventions of those who quote.

A quotation counts as found only where its words stand, all of them and in order. Left out may be
what a quotation leaves out by custom: the mark of a footnote, the letter of a list item, a footnote
at the end of a page, and whatever `…` stands for, which is never more than part of one section.
"""

import difflib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.bases.policy.chunks.joining import (
    iterate_chunks_and_own_texts,
    list_printed_page_labels,
)
from readingroom.bases.policy.chunks.search import make_nearest_revision
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare.passages import (
    fold_text,
)
from readingroom.bases.policy.models import QuotePlace
from readingroom.bases.policy.registry.records import Revision, format_citation
from readingroom.core.text import DASH_CHARACTERS

_ELLIPSIS_PATTERN = re.compile(
    r"\s*(?:\[\s*(?:…|\.\s?\.\s?\.)\s*\]|\(\s*(?:…|\.\.\.)\s*\)|…|\.\s?\.\s?\.+)\s*"
)
_BRACKETED_LETTER_PATTERN = re.compile(r"\[(\w)\](?=\w)")
_QUOTER_REMARK_PATTERN = re.compile(
    r"\s*[\[(](?:sic|(?:my |our |original )?emphasis (?:added|mine|in original)|footnotes? omitted)"
    r"[\])]",
    re.IGNORECASE,
)
_BRACKETED_WORDS_PATTERN = re.compile(r"\[([^\[\]]{1,200})\]")
_OUTER_QUOTES_PATTERN = re.compile(r"[“\"‘'](.*)[”\"’']", re.DOTALL)
_LIST_MARKER_PATTERN = re.compile(r"\(?([a-z]|[ivx]{1,4}|\d{1,2})[.)]", re.IGNORECASE)
_WORD_AND_MARKS_PATTERN = re.compile(r"(?P<word>.*?\w)(?P<marks>\W*)", re.DOTALL)

# The number of a footnote, printed right after a word or after the full stop of its sentence.
# Capitals before it are a code: in `HOU2` the number is no footnote.
_FOOTNOTE_AFTER_WORD_REGEX = r"(?:(?<=(?-i:[a-z]){3})\d{1,3})?"
_FOOTNOTE_AFTER_MARKS_REGEX = r"(?:(?<=[a-z][.,;:)’”\"'])\d{1,3}(?=\s|$))?"
# A blank; at the beginning of a line, also the letter or number of a list item or a paragraph.
_BETWEEN_WORDS_REGEX = (
    r"(?:\s*\n\s*(?:\(?(?:[a-z]|[ivx]{1,4}|\d{1,3})[.)]|[•▪◦·–-]|[\uf000-\uf0ff])\s+|\s+)"
)
_WORD_START_REGEX = rf"(?<!\w)(?<!\w[{DASH_CHARACTERS}'’])(?<!\d[.,])"
_WORD_END_REGEX = rf"(?!\w)(?![{DASH_CHARACTERS}'’]\w)(?![.,]\d)"
_REGEX_CLASS_BY_CHARACTER = {
    **dict.fromkeys("'‘’", "['‘’]"),
    **dict.fromkeys('"“”', '["“”]'),
    **dict.fromkeys(DASH_CHARACTERS, f"[{DASH_CHARACTERS}]"),
}
_FOOTNOTE_LINE_PATTERN = re.compile(r"\d{1,3}\s?[A-Z“‘(h]")
_MAX_FOOTNOTE_LINES = 30
_MAX_ELISION_CHARS = 1_500
_MIN_SEGMENT_WORDS = 2
"""Of each part of a quotation with `…`: single words stand in any order somewhere."""
_MAX_QUOTE_WORDS = 1_000
"""Of a quotation that is looked for: as many characters as it may have are 700 words of a text, and
for each word the pattern takes its time to be made.
"""
_MAX_COMPARED_WORD_PAIRS = 300_000
"""Pairs of equal words that are compared to find the closest stretch; a long quotation needs
100,000. Beyond it, one of a few words again and again would take minutes.
"""


@dataclass(frozen=True, slots=True)
class QuotePosition:
    """Where a quotation begins."""

    chunk: StoredChunk
    page_number: int


def locate_quote(quoted_text: str, chunks: Sequence[StoredChunk]) -> QuotePosition | None:
    """Return where the words of a quotation stand, or None when they stand nowhere.

    Spacing, capitals, dashes and quotation marks may differ; the words may run across chunks.
    """
    quote_segments = _split_quote(quoted_text)
    if (
        not quote_segments
        or sum(len(quote_segment.split()) for quote_segment in quote_segments) > _MAX_QUOTE_WORDS
    ):
        return None
    joined_text = _JoinedText(chunks)
    segment_patterns = [_compile_segment(quote_segment) for quote_segment in quote_segments]
    for text_variant in joined_text.list_variants():
        quote_offset = _find_segments_offset(
            segment_patterns, text_variant.text, text_variant.section_end_offsets
        )
        if quote_offset is not None:
            return joined_text.get_quote_position(text_variant.convert_to_full_offset(quote_offset))
    return None


def _split_quote(quoted_text: str) -> list[str]:
    """Return the parts of a quotation between its ellipses, without what its author added."""
    plain_quote = quoted_text.strip()
    if outer_quotes_match := _OUTER_QUOTES_PATTERN.fullmatch(plain_quote):
        plain_quote = outer_quotes_match[1]
    plain_quote = _QUOTER_REMARK_PATTERN.sub("", _BRACKETED_LETTER_PATTERN.sub(r"\1", plain_quote))
    quote_segments = [
        quote_segment.strip() for quote_segment in _ELLIPSIS_PATTERN.split(plain_quote)
    ]
    # Words in brackets are the author's, unless the text has them too.
    quote_segments = [
        _BRACKETED_WORDS_PATTERN.sub(r"\1", quote_segment)
        for quote_segment in quote_segments
        if quote_segment
    ]
    if len(quote_segments) > 1 and any(
        len(re.findall(r"\w+", quote_segment)) < _MIN_SEGMENT_WORDS
        for quote_segment in quote_segments
    ):
        return []
    return [quote_segment for quote_segment in quote_segments if re.search(r"\w", quote_segment)]


def _compile_segment(quote_segment: str) -> re.Pattern[str]:
    """Return a pattern for words in a row.

    `safe` does not match in `unsafe`, `un-safe` or `safe-ish`, nor `000 homes` in `300,000 homes`.
    """
    segment_words = quote_segment.split()
    word_regexes = [_make_word_regex(segment_word) for segment_word in segment_words]
    start_guard_regex = _WORD_START_REGEX if segment_words[0][0].isalnum() else ""
    end_guard_regex = _WORD_END_REGEX if segment_words[-1][-1].isalnum() else ""
    return re.compile(
        start_guard_regex + _BETWEEN_WORDS_REGEX.join(word_regexes) + end_guard_regex, re.IGNORECASE
    )


def _make_word_regex(segment_word: str) -> str:
    if word_match := _LIST_MARKER_PATTERN.fullmatch(segment_word):
        return rf"\(?{re.escape(word_match[1])}[.)]?"
    word_match = _WORD_AND_MARKS_PATTERN.fullmatch(segment_word)
    if word_match is None:
        return _escape_for_regex(segment_word)
    if not word_match["marks"]:
        return _escape_for_regex(word_match["word"]) + _FOOTNOTE_AFTER_WORD_REGEX
    return (
        _escape_for_regex(word_match["word"])
        + _FOOTNOTE_AFTER_WORD_REGEX
        + _escape_for_regex(word_match["marks"])
        + _FOOTNOTE_AFTER_MARKS_REGEX
    )


def _escape_for_regex(plain_text: str) -> str:
    return "".join(
        _REGEX_CLASS_BY_CHARACTER.get(text_character, re.escape(text_character))
        for text_character in plain_text
    )


def _find_segments_offset(
    segment_patterns: Sequence[re.Pattern[str]],
    searched_text: str,
    section_end_offsets: Sequence[int],
) -> int | None:
    """Return where the first segment begins, if the others follow it in the same section."""
    for first_match in segment_patterns[0].finditer(searched_text):
        section_end_offset = section_end_offsets[
            bisect_right(section_end_offsets, first_match.start())
        ]
        segment_end_offset: int | None = first_match.end()
        for segment_pattern in segment_patterns[1:]:
            assert segment_end_offset is not None
            search_end_offset = min(section_end_offset, segment_end_offset + _MAX_ELISION_CHARS)
            following_match = segment_pattern.search(
                searched_text, segment_end_offset, search_end_offset
            )
            segment_end_offset = following_match.end() if following_match else None
            if segment_end_offset is None:
                break
        if segment_end_offset is not None:
            return first_match.start()
    return None


@dataclass(frozen=True, slots=True)
class _TextVariant:
    """A text as it is read: whole, or without the footnotes at the ends of pages."""

    text: str
    variant_start_offsets: list[int]
    """Where each kept stretch begins in this text."""
    full_start_offsets: list[int]
    """Where it begins in the whole text."""
    section_end_offsets: list[int]

    def convert_to_full_offset(self, variant_offset: int) -> int:
        stretch_index = bisect_right(self.variant_start_offsets, variant_offset) - 1
        return (
            self.full_start_offsets[stretch_index]
            + variant_offset
            - self.variant_start_offsets[stretch_index]
        )


class _JoinedText:
    """The chunks of a revision as one text, in which each place knows its chunk and page."""

    def __init__(self, chunks: Sequence[StoredChunk]) -> None:
        self._chunks: list[StoredChunk] = []
        self._chunk_offsets: list[int] = []
        self._document_offsets: list[int] = []
        text_pieces: list[str] = []
        joined_length = 0
        page_end_offsets: list[int] = []
        section_end_offsets: list[int] = []
        for chunk, own_start_offset, own_text in iterate_chunks_and_own_texts(chunks):
            leading_space_count = len(own_text) - len(own_text.lstrip("\n ")) if text_pieces else 0
            if self._chunks and self._chunks[-1].section_ref != chunk.section_ref:
                section_end_offsets.append(joined_length)
            if self._chunks and self._chunks[-1].pages[-1] < chunk.pages[0]:
                page_end_offsets.append(joined_length)
            page_end_offsets += [
                joined_length + page_start_offset - own_start_offset + leading_space_count
                for page_start_offset in chunk.page_start_offsets
                if page_start_offset > own_start_offset
            ]
            self._chunks.append(chunk)
            self._chunk_offsets.append(joined_length)
            self._document_offsets.append(own_start_offset - leading_space_count)
            text_pieces.append(own_text)
            joined_length += len(own_text)
        self.text = "".join(text_pieces)
        self._section_end_offsets = [*section_end_offsets, joined_length, joined_length + 1]
        self._page_ends = page_end_offsets

    def list_variants(self) -> Iterator[_TextVariant]:
        """Yield the whole text, then the text without footnotes at the ends of pages."""
        yield _TextVariant(self.text, [0], [0], self._section_end_offsets)
        footnote_spans = [
            footnote_span
            for footnote_span in map(self._find_footnote_span, self._page_ends)
            if footnote_span
        ]
        if footnote_spans:
            yield self._make_variant_without_spans(footnote_spans)

    def get_quote_position(self, text_offset: int) -> QuotePosition:
        chunk_list_index = bisect_right(self._chunk_offsets, text_offset) - 1
        chunk = self._chunks[chunk_list_index]
        document_offset = (
            self._document_offsets[chunk_list_index]
            + text_offset
            - self._chunk_offsets[chunk_list_index]
        )
        return QuotePosition(chunk, chunk.get_page_number(max(document_offset, chunk.start_offset)))

    def _find_footnote_span(self, page_end_offset: int) -> tuple[int, int] | None:
        """Return the lines before the end of a page that begin with the numbers of footnotes."""
        footnotes_start_offset: int | None = None
        line_end_offset = page_end_offset
        for _ in range(_MAX_FOOTNOTE_LINES):
            line_start_offset = self.text.rfind("\n", 0, max(line_end_offset - 1, 0)) + 1
            line_text = self.text[line_start_offset:line_end_offset].strip()
            if _FOOTNOTE_LINE_PATTERN.match(line_text):
                footnotes_start_offset = line_start_offset
            elif footnotes_start_offset is not None:
                break
            if line_start_offset == 0:
                break
            line_end_offset = line_start_offset
        return (
            (footnotes_start_offset, page_end_offset)
            if footnotes_start_offset is not None
            else None
        )

    def _make_variant_without_spans(self, cut_spans: Sequence[tuple[int, int]]) -> _TextVariant:
        kept_texts: list[str] = []
        variant_start_offsets: list[int] = []
        full_start_offsets: list[int] = []
        kept_length, previous_end_offset = 0, 0
        for span_start_offset, span_end_offset in [*cut_spans, (len(self.text), len(self.text))]:
            if span_start_offset < previous_end_offset:
                continue
            variant_start_offsets.append(kept_length)
            full_start_offsets.append(previous_end_offset)
            kept_texts.append(self.text[previous_end_offset:span_start_offset])
            kept_length += span_start_offset - previous_end_offset
            previous_end_offset = span_end_offset
        # Sections end where they did, measured in what is kept.
        section_end_offsets = []
        for section_end_offset in self._section_end_offsets:
            stretch_index = bisect_right(full_start_offsets, section_end_offset) - 1
            kept_end_offset = (
                variant_start_offsets[stretch_index]
                + section_end_offset
                - full_start_offsets[stretch_index]
            )
            next_start_offset = (
                variant_start_offsets[stretch_index + 1]
                if stretch_index + 1 < len(variant_start_offsets)
                else kept_end_offset
            )
            section_end_offsets.append(
                min(kept_end_offset, next_start_offset)
                if next_start_offset < kept_end_offset
                else kept_end_offset
            )
        return _TextVariant(
            "".join(kept_texts), variant_start_offsets, full_start_offsets, section_end_offsets
        )


def make_quote_place(
    quote_position: QuotePosition, revision: Revision, revisions: Sequence[Revision]
) -> QuotePlace:
    """Return where a quotation stands, with the citation of its passage."""
    return QuotePlace(
        **make_nearest_revision(revision, revisions).model_dump(),
        section_ref=quote_position.chunk.section_ref,
        page_number=quote_position.page_number,
        chunk_id=quote_position.chunk.chunk_id,
        section_title=quote_position.chunk.section_title,
        passage_kind=quote_position.chunk.passage_kind,
        citation=format_citation(
            revision,
            quote_position.chunk.section_ref,
            [quote_position.page_number],
            quote_position.chunk.section_title,
            quote_position.chunk.kind_note,
            list_printed_page_labels([quote_position.chunk], [quote_position.page_number]),
        ),
        stage=revision.stage,
    )


def find_closest_stretch(quoted_text: str, searched_text: str) -> tuple[str, float]:
    """Return the stretch of a text most like a quotation, and their similarity from 0 to 1."""
    text_words, quote_words = searched_text.split(), fold_text(quoted_text).split()
    folded_text_words = [fold_text(text_word) for text_word in text_words]
    window_word_count = min(len(quote_words), len(text_words))
    best_similarity, best_window_index = 0.0, 0
    quote_word_counts = Counter(quote_words)
    compared_pair_count = 0
    sequence_matcher = difflib.SequenceMatcher(autojunk=False)
    # The matcher caches what it knows of its second sequence, so the quotation goes there.
    sequence_matcher.set_seq2(quote_words)
    for window_index in range(len(text_words) - window_word_count + 1):
        window_words = folded_text_words[window_index : window_index + window_word_count]
        sequence_matcher.set_seq1(window_words)
        # Two cheap upper bounds first: the exact ratio is quadratic and run at every word.
        if (
            sequence_matcher.real_quick_ratio() > best_similarity
            and sequence_matcher.quick_ratio() > best_similarity
        ):
            compared_pair_count += sum(
                quote_word_counts[folded_word] for folded_word in window_words
            )
            if compared_pair_count > _MAX_COMPARED_WORD_PAIRS:
                if (
                    not best_similarity
                ):  # not even one window: the words alone, whatever their order
                    best_similarity, best_window_index = (
                        sequence_matcher.quick_ratio(),
                        window_index,
                    )
                break
            window_similarity = sequence_matcher.ratio()
            if window_similarity > best_similarity:
                best_similarity, best_window_index = window_similarity, window_index
    return " ".join(text_words[best_window_index : best_window_index + window_word_count]), round(
        best_similarity, 3
    )

"""Sections of a page's text: found by heading or anchor, searched, and checked for a quotation."""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.bases.guidance.pages.markdown import Anchor
from readingroom.core.text import fold_dashes
from readingroom.engine.stems import get_shared_stemmer

_MARKDOWN_HEADING_PATTERN = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_CODE_BLOCK_PATTERN = re.compile(r"^```\n.*?^```$", re.MULTILINE | re.DOTALL)
_WORD_PATTERN = re.compile(r"\S+")
_QUOTE_MARK_TRANSLATION = str.maketrans(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00b4`", "''''\"\"\"\"''"
)
# Marks of Markdown that are no words of the page: addresses of links, footnotes, emphasis.
_MARKDOWN_MARKS_PATTERN = re.compile(
    r"\]\([^)\s]{0,2000}\)|\[\^[^\]\s]{0,40}\]|!?\[|\]|\\(?=[^\w\s])|[*`]|~~|\+\+|(?<=\w)[\^~](?=\w)|[\^~]"
    r"|^(?:> ?|- |#{1,6} |• )+|[|•]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """A heading and all that is under it, up to the next heading of its level or above."""

    heading: str
    level: int
    anchor: str | None
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A paragraph, list or table of a page that has words of a question."""

    text: str
    start_offset: int
    section: SectionSpan | None
    match_score: int


def list_sections(page_text: str, page_anchors: Sequence[Anchor]) -> list[SectionSpan]:
    """Return the sections of a text, in order; of headings alike, each has its own anchor."""
    # Blanked out, so that offsets stay: a line of code may look like a heading.
    text_without_code = _CODE_BLOCK_PATTERN.sub(
        lambda code_match: " " * len(code_match[0]), page_text
    )
    anchor_ids_by_line: dict[str, list[str]] = {}
    for page_anchor in reversed(page_anchors):
        anchor_ids_by_line.setdefault(page_anchor.heading_line, []).append(page_anchor.id)
    heading_matches = list(_MARKDOWN_HEADING_PATTERN.finditer(text_without_code))
    anchor_ids = [
        anchor_ids_by_line[heading_match[0]].pop()
        if anchor_ids_by_line.get(heading_match[0])
        else None
        for heading_match in heading_matches
    ]
    section_spans: list[SectionSpan] = []
    next_heading_offsets = [len(page_text)] * 7  # by level: where the next heading of it is
    for heading_match, anchor_id in zip(
        reversed(heading_matches), reversed(anchor_ids), strict=True
    ):
        heading_level = len(heading_match[1])
        section_end_offset = min(next_heading_offsets[1 : heading_level + 1])
        section_spans.append(
            SectionSpan(
                to_plain_text(heading_match[2]),
                heading_level,
                anchor_id,
                heading_match.start(),
                section_end_offset,
            )
        )
        next_heading_offsets[heading_level] = heading_match.start()
    section_spans.reverse()
    return section_spans


def find_section(section_spans: Sequence[SectionSpan], section_name: str) -> SectionSpan | None:
    """Return the section with this anchor or heading; a part of a heading must be the only one."""
    trimmed_name = section_name.strip().lstrip("#").strip()
    for section_span in section_spans:
        if section_span.anchor == trimmed_name:
            return section_span
    folded_name = fold_words(trimmed_name)
    for section_span in section_spans:
        if fold_words(section_span.heading) == folded_name:
            return section_span
    sections_with_name = [
        section_span
        for section_span in section_spans
        if folded_name in fold_words(section_span.heading)
    ]
    return sections_with_name[0] if folded_name and len(sections_with_name) == 1 else None


def find_enclosing_section(
    section_spans: Sequence[SectionSpan], text_offset: int
) -> SectionSpan | None:
    """Return the innermost section that an offset lies in."""
    section_index = (
        bisect_right([section_span.start_offset for section_span in section_spans], text_offset) - 1
    )
    return section_spans[section_index] if section_index >= 0 else None


def search_blocks(
    page_text: str, section_spans: Sequence[SectionSpan], query_text: str
) -> list[FoundBlock]:
    """Return the blocks with words of the query, those with the most different ones first.

    The words of a heading count for the first block below it.
    """
    shared_word_stemmer = get_shared_stemmer()
    query_stems = set(shared_word_stemmer.stem_significant_words(query_text))
    folded_query = fold_words(query_text)
    found_blocks = []
    heading_stems: set[str] = set()
    for block_start_offset, block_text in split_blocks(page_text):
        block_stems = set(shared_word_stemmer.stem_significant_words(to_plain_text(block_text)))
        if block_text.startswith("#"):
            heading_stems |= block_stems
            continue
        match_score = len(query_stems & (block_stems | heading_stems))
        heading_stems.clear()
        if folded_query and folded_query in fold_words(to_plain_text(block_text)):
            match_score += len(query_stems) + 1
        if match_score:
            section_span = find_enclosing_section(section_spans, block_start_offset)
            found_blocks.append(
                FoundBlock(block_text, block_start_offset, section_span, match_score)
            )
    return sorted(found_blocks, key=lambda found_block: -found_block.match_score)


def split_blocks(page_text: str) -> Iterator[tuple[int, str]]:
    """Yield each block of a Markdown text with its offset."""
    block_offset = 0
    for block_text in page_text.split("\n\n"):
        if block_text.strip():
            yield block_offset, block_text
        block_offset += len(block_text) + 2


def find_quotation(page_text: str, quoted_text: str) -> int | None:
    """Return where a quotation stands in a text, whatever its spacing, quotation marks and case.

    Marks of Markdown do not count. Returns None where the words do not stand in a row.
    """
    folded_page_words, word_offsets = _split_words(page_text)
    folded_quotation = fold_words(to_plain_text(quoted_text))
    if not folded_quotation:
        return None
    joined_words_text = " ".join(folded_page_words)
    # Whole words alone: "000 homes" is no quotation of "300,000 homes".
    quotation_match = re.search(
        rf"(?<![^ ]){re.escape(folded_quotation)}(?=[ .,;:!?)\"']|$)", joined_words_text
    )
    return (
        word_offsets[joined_words_text.count(" ", 0, quotation_match.start())]
        if quotation_match
        else None
    )


def find_nearest_block(page_text: str, quoted_text: str) -> tuple[str, float]:
    """Return the block most like a quotation, and their similarity from 0 to 1."""
    quotation_words = fold_words(to_plain_text(quoted_text)).split()
    sequence_matcher = difflib.SequenceMatcher(autojunk=False)
    sequence_matcher.set_seq2(quotation_words)
    best_block_text, best_similarity = "", 0.0
    for _, block_text in split_blocks(page_text):
        block_words = fold_words(to_plain_text(block_text)).split()
        # A quotation is compared with as many words as it has, from where they begin to agree.
        first_shared_index = next(
            (
                word_index
                for word_index, block_word in enumerate(block_words)
                if block_word in quotation_words
            ),
            0,
        )
        sequence_matcher.set_seq1(
            block_words[first_shared_index : first_shared_index + len(quotation_words)]
        )
        if (
            sequence_matcher.real_quick_ratio() > best_similarity
            and sequence_matcher.quick_ratio() > best_similarity
        ):
            block_similarity = sequence_matcher.ratio()
            if block_similarity > best_similarity:
                best_block_text, best_similarity = block_text, block_similarity
    return best_block_text, round(best_similarity, 3)


def to_plain_text(markdown_text: str) -> str:
    """Return a text without the marks of Markdown, in single spaces."""
    return " ".join(_MARKDOWN_MARKS_PATTERN.sub("", markdown_text).split())


def fold_words(raw_text: str) -> str:
    """Return a text with plain dashes and quotation marks, single blanks and no capitals."""
    return " ".join(fold_dashes(raw_text).translate(_QUOTE_MARK_TRANSLATION).casefold().split())


def _split_words(page_text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text as they are compared, each with its offset."""
    # Marks become blanks of the same length, so that offsets stay those of the text.
    unmarked_text = _MARKDOWN_MARKS_PATTERN.sub(
        lambda mark_match: "\x00" * len(mark_match[0]), page_text
    )
    folded_words, word_offsets = [], []
    for word_match in _WORD_PATTERN.finditer(unmarked_text):
        folded_word = fold_words(word_match[0].replace("\x00", ""))
        if folded_word:
            folded_words.append(folded_word)
            word_offsets.append(word_match.start())
    return folded_words, word_offsets

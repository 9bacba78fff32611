"""Sections of a page's text: found by heading or anchor, searched, and checked for a quotation."""

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.bases.guidance.pages.markdown import Anchor
from readingroom.core.text import fold_dashes
from readingroom.engine.stems import shared_stemmer

_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```\n.*?^```$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S+")
_PLAIN_QUOTES = str.maketrans(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00b4`", "''''\"\"\"\"''"
)
# Marks of Markdown that are no words of the page: addresses of links, footnotes, emphasis.
_MARKS = re.compile(
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
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A paragraph, list or table of a page that has words of a question."""

    text: str
    start: int
    section: SectionSpan | None
    matched_words: int


def list_sections(text: str, anchors: Sequence[Anchor]) -> list[SectionSpan]:
    """Return the sections of a text, in order; of headings alike, each has its own anchor."""
    # Blanked out, so that offsets stay: a line of code may look like a heading.
    prose = _CODE_BLOCK.sub(lambda match: " " * len(match[0]), text)
    ids_by_line: dict[str, list[str]] = {}
    for anchor in reversed(anchors):
        ids_by_line.setdefault(anchor.heading_line, []).append(anchor.id)
    matches = list(_HEADING.finditer(prose))
    ids = [ids_by_line[match[0]].pop() if ids_by_line.get(match[0]) else None for match in matches]
    sections: list[SectionSpan] = []
    next_starts = [len(text)] * 7  # by level: where the next heading of it is
    for match, id in zip(reversed(matches), reversed(ids), strict=True):
        level = len(match[1])
        end = min(next_starts[1 : level + 1])
        sections.append(SectionSpan(to_plain_text(match[2]), level, id, match.start(), end))
        next_starts[level] = match.start()
    sections.reverse()
    return sections


def find_section(sections: Sequence[SectionSpan], name: str) -> SectionSpan | None:
    """Return the section with this anchor or heading; a part of a heading must be the only one."""
    wanted = name.strip().lstrip("#").strip()
    for section in sections:
        if section.anchor == wanted:
            return section
    folded = fold_words(wanted)
    for section in sections:
        if fold_words(section.heading) == folded:
            return section
    containing = [section for section in sections if folded in fold_words(section.heading)]
    return containing[0] if folded and len(containing) == 1 else None


def find_enclosing_section(sections: Sequence[SectionSpan], offset: int) -> SectionSpan | None:
    """Return the innermost section that an offset lies in."""
    index = bisect_right([section.start for section in sections], offset) - 1
    return sections[index] if index >= 0 else None


def search_blocks(text: str, sections: Sequence[SectionSpan], query: str) -> list[FoundBlock]:
    """Return the blocks with words of the query, those with the most different ones first."""
    stemmer = shared_stemmer()
    wanted = set(stemmer.split(query))
    folded_query = fold_words(query)
    blocks = []
    for start, block in split_blocks(text):
        matched_words = len(wanted.intersection(stemmer.split(to_plain_text(block))))
        if folded_query and folded_query in fold_words(to_plain_text(block)):
            matched_words += len(wanted) + 1
        if matched_words and not block.startswith("#"):
            section = find_enclosing_section(sections, start)
            blocks.append(FoundBlock(block, start, section, matched_words))
    return sorted(blocks, key=lambda found: -found.matched_words)


def split_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield each block of a Markdown text with its offset."""
    start = 0
    for block in text.split("\n\n"):
        if block.strip():
            yield start, block
        start += len(block) + 2


def find_quotation(text: str, quotation: str) -> int | None:
    """Return where a quotation stands in a text, whatever its spacing, quotation marks and case.

    Marks of Markdown do not count. Returns None where the words do not stand in a row.
    """
    words, offsets = _split_words(text)
    wanted = fold_words(to_plain_text(quotation))
    if not wanted:
        return None
    joined = " ".join(words)
    # Whole words alone: "000 homes" is no quotation of "300,000 homes".
    match = re.search(rf"(?<![^ ]){re.escape(wanted)}(?=[ .,;:!?)\"']|$)", joined)
    return offsets[joined.count(" ", 0, match.start())] if match else None


def find_nearest(text: str, quotation: str) -> tuple[str, float]:
    """Return the block most like a quotation, and their similarity from 0 to 1."""
    wanted = fold_words(to_plain_text(quotation)).split()
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best_block, best_ratio = "", 0.0
    for _, block in split_blocks(text):
        words = fold_words(to_plain_text(block)).split()
        # A quotation is compared with as many words as it has, from where they begin to agree.
        start = next((i for i, word in enumerate(words) if word in wanted), 0)
        matcher.set_seq1(words[start : start + len(wanted)])
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best_block, best_ratio = block, ratio
    return best_block, round(best_ratio, 3)


def to_plain_text(markdown: str) -> str:
    """Return a text without the marks of Markdown, in single spaces."""
    return " ".join(_MARKS.sub("", markdown).split())


def fold_words(text: str) -> str:
    """Return a text with plain dashes and quotation marks, single blanks and no capitals."""
    return " ".join(fold_dashes(text).translate(_PLAIN_QUOTES).casefold().split())


def _split_words(text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text as they are compared, each with its offset."""
    # Marks become blanks of the same length, so that offsets stay those of the text.
    plain = _MARKS.sub(lambda match: "\x00" * len(match[0]), text)
    words, offsets = [], []
    for match in _WORD.finditer(plain):
        word = fold_words(match[0].replace("\x00", ""))
        if word:
            words.append(word)
            offsets.append(match.start())
    return words, offsets

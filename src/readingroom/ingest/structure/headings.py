"""Finds headings that say what they are: parts, chapters, sections, annexes, tables and figures.

A heading is recognised by its words *and* its look: a mere mention (`see Chapter 9`) is none.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from readingroom.ingest.structure.numbering import find_rising_numbers
from readingroom.ingest.structure.starts import LEVELS, SectionKind, SectionStart, make_start
from readingroom.ingest.structure.typography import Typography

# No pattern may take more than one pass over a line: see `numbering`.
# A title begins with a capital; after a mere mention the sentence goes on in lower case.
TITLE_PATTERN = r"(?:\s*[:.|–—-]\s*|\s+)?(?P<title>[A-Z0-9“‘\"'](?s:.*))?"
_WORD_HEADING = re.compile(
    r"(?P<word>(?i:chapter|part|section))\s+"
    rf"(?P<number>\d{{1,2}}(?:\.\d{{1,3}})*|[IVX]+|[A-Z])(?![\w(]){TITLE_PATTERN}"
)
_ANNEX_HEADING = re.compile(
    rf"(?P<word>(?i:annex|appendix))\s+(?P<number>[A-Z]|\d{{1,2}}|[IVX]+)(?!\w){TITLE_PATTERN}"
)
_EXHIBIT_HEADING = re.compile(
    r"(?P<word>(?i:table|figure|box))\s+"
    rf"(?P<number>[A-Z]?\d{{1,2}}(?:[-.]\d{{1,3}})?[a-z]?)(?!\w){TITLE_PATTERN}"
)
_NUMBERED_TITLE = re.compile(r"(?P<number>\d{1,2})\.?\s*(?P<title>[A-Z][^.]{2,})")
_MAX_BARE_REF_CHARS = 100
_FIRST_LETTERS = frozenset("CcPpSsAaTtFfBb")
"""Of the words that these headings begin with."""


def find_headings(typography: Typography) -> list[SectionStart]:
    """Return the headings in order, one for each line and for each reference.

    Of those with the same reference, the one of the longest section is returned: the others are in
    lists, such as an index of tables.
    """
    headings = [*_find_worded_headings(typography), *_find_numbered_chapters(typography)]
    return _remove_repeats(_remove_stray_words(typography, headings), len(typography.lines))


def find_bare_headings(
    typography: Typography, other_starts: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return headings without numbers, each under its own words, for want of others."""
    taken_lines = {start.line_index for start in other_starts}
    headings = [
        make_start(
            line_index,
            "heading",
            typography.join_title_lines(line_index, flow_line.line.text)[:_MAX_BARE_REF_CHARS],
            None,
        )
        for line_index, flow_line in enumerate(typography.lines)
        if line_index not in taken_lines
        and line_index not in typography.contents_lines
        and flow_line.box is None
        and typography.stands_out(line_index)
        and typography.begins_section(line_index)
    ]
    return _remove_repeats(headings, len(typography.lines))


def _find_worded_headings(typography: Typography) -> Iterator[SectionStart]:
    for line_index, flow_line in enumerate(typography.lines):
        text = flow_line.line.text
        if text[0] not in _FIRST_LETTERS or line_index in typography.contents_lines:
            continue
        if match := _WORD_HEADING.fullmatch(text) or _ANNEX_HEADING.fullmatch(text):
            if typography.is_heading(line_index) and (
                typography.is_large(line_index) or typography.begins_block(line_index)
            ):
                yield _describe_word_heading(line_index, match)
        elif (match := _EXHIBIT_HEADING.fullmatch(text)) and (
            typography.begins_block(line_index) or typography.stands_out(line_index)
        ):
            yield make_start(line_index, "exhibit", _make_ref(match), match["title"])


def _describe_word_heading(line_index: int, match: re.Match[str]) -> SectionStart:
    word, number, title = match["word"].title(), match["number"], match["title"]
    if word == "Section":
        level = LEVELS["section"] + number.count(".")
        return SectionStart(line_index, "section", f"Section {number}", title or "", level)
    kind: SectionKind = "part" if word == "Part" else "chapter" if word == "Chapter" else "annex"
    return make_start(line_index, kind, _make_ref(match), title)


def _make_ref(match: re.Match[str]) -> str:
    return f"{match['word'].title()} {match['number']}"


def _find_numbered_chapters(typography: Typography) -> Iterator[SectionStart]:
    """Yield `5. Title` where such titles count up, in large letters or else in bold."""
    candidates = [
        (line_index, match)
        for line_index, flow_line in enumerate(typography.lines)
        if flow_line.line.text[0].isdigit()
        and typography.stands_out(line_index)
        and line_index not in typography.contents_lines
        and (match := _NUMBERED_TITLE.fullmatch(flow_line.line.text))
        and typography.is_heading(line_index)
    ]
    large_candidates = [candidate for candidate in candidates if typography.is_large(candidate[0])]
    candidates = large_candidates or [
        candidate for candidate in candidates if typography.begins_section(candidate[0])
    ]
    for index in find_rising_numbers([int(match["number"]) for _, match in candidates], max_gap=2):
        line_index, match = candidates[index]
        yield make_start(line_index, "chapter", f"Chapter {match['number']}", match["title"])


def _remove_stray_words(
    typography: Typography, headings: Sequence[SectionStart]
) -> list[SectionStart]:
    """Return the headings but for `Section 20` alone in plain letters: an Act that is cited."""
    word_counts = Counter(start.ref.partition(" ")[0] for start in headings)
    return [
        start
        for start in headings
        if start.title
        or start.kind == "exhibit"
        or typography.stands_out(start.line_index)
        or word_counts[start.ref.partition(" ")[0]] > 1
    ]


def _remove_repeats(headings: Sequence[SectionStart], line_count: int) -> list[SectionStart]:
    by_line = {start.line_index: start for start in reversed(headings)}
    ordered = sorted(by_line.values(), key=lambda start: start.line_index)
    ends = [*(start.line_index for start in ordered), line_count][1:]
    best: dict[str, tuple[int, SectionStart]] = {}
    for start, end in zip(ordered, ends, strict=True):
        section_lines = end - start.line_index
        if start.ref not in best or section_lines > best[start.ref][0]:
            best[start.ref] = section_lines, start
    return sorted((start for _, start in best.values()), key=lambda start: start.line_index)

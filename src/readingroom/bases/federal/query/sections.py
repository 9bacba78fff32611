"""Sections of a bill or law: found by their headings, listed as an outline, compared by version."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.core.errors import InvalidArguments

OUTLINE = "outline"
"""What stands for a section's number when all of them are to be listed."""
# The table of contents has `Sec. 2. Findings.`; the section itself is printed in capitals.
_HEADING = re.compile(
    r"^[ \t\u201c]*(?:SECTION|SEC\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.?[ \t]*(.*)$", re.MULTILINE
)
_SMALL_HEADING = re.compile(
    r"^[ \t]*(?:Section|Sec\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.[ \t]*(.*)$", re.MULTILINE
)
_SECTION_WORDS = re.compile(r"^\s*(?:section|sec\.?|\u00a7+)\s*", re.I)
_WORD = re.compile(r"\S+")
_MAX_HEADING, _MAX_NAMED = 120, 40
_MAX_CONTENTS_LINE = 200
"""Characters of a line in a table of contents, with the heading of a title that may follow it."""
_CONTEXT_WORDS = 8
_MAX_COMPARED_WORDS = 4_000
"""Longer sections are only called changed: comparing words takes the square of their number."""


@dataclass(frozen=True, slots=True)
class TextSection:
    """A section of a text: what it is called, and where it stands."""

    label: str
    """Its number; where a bill has it several times, `301#2` is the second."""
    heading: str
    start: int
    end: int


def list_sections(body: str) -> list[TextSection]:
    """Return the sections of a text in its order."""
    matches = _find_headings(body)
    seen: Counter[str] = Counter()
    sections = []
    for index, match in enumerate(matches):
        number = match[1].replace("\u2013", "-")
        seen[number] += 1
        label = number if seen[number] == 1 else f"{number}#{seen[number]}"
        end = matches[index + 1].start() if index + 1 < len(matches) else len(body)
        heading = match[2].strip()[:_MAX_HEADING]
        sections.append(TextSection(label, heading, match.start(), end))
    return sections


def _find_headings(body: str) -> list[re.Match[str]]:
    """Return the headings of sections; in capitals, unless most of them are not, as in old laws."""
    capital = list(_HEADING.finditer(body))
    numbers = {match[1] for match in capital}
    headings = sorted((*capital, *_SMALL_HEADING.finditer(body)), key=lambda match: match.start())
    ends = [*(match.start() for match in headings), len(body)][1:]
    is_line = [
        len(body[match.start(2) : end].strip()) <= _MAX_CONTENTS_LINE
        for match, end in zip(headings, ends, strict=True)
    ]
    with_text = {match[1] for match, short in zip(headings, is_line, strict=True) if not short}
    if numbers and len(with_text - numbers) <= len(numbers):
        return capital
    last_places = {match[1]: place for place, match in enumerate(headings)}
    # A line of the contents is short, and its section comes later; a short section stays.
    return [
        match
        for place, match in enumerate(headings)
        if not is_line[place] or last_places[match[1]] == place
    ]


def find_section(body: str, wanted: str) -> TextSection:
    """Return a section by its number, as `501`, `Sec. 501` or `301#2`.

    Raise InvalidArguments, which lists the sections there are.
    """
    sections = list_sections(body)
    label = _SECTION_WORDS.sub("", wanted).strip().rstrip(".").replace("\u2013", "-")
    for section in sections:
        if section.label.lower() == label.lower():
            return section
    named = ", ".join(section.label for section in sections[:_MAX_NAMED])
    more = f", … {len(sections)} in all" if len(sections) > _MAX_NAMED else ""
    problem = f"there is no section {wanted[:50]!r}; there are {named or 'none'}{more}"
    raise InvalidArguments([{"field": "section", "message": problem}])


def format_outline(body: str) -> str:
    """Return a line for each section: its number, its heading and its offset in the text."""
    lines = [
        f"Sec. {section.label}. {section.heading} [offset {section.start}]"
        for section in list_sections(body)
    ]
    return "\n".join(lines) or "No section headings were found in this text."


# --- two versions ---


def compare_versions(older: str, newer: str) -> str:
    """Return what differs between two versions, section by section, in the newer one's order.

    Removed words stand in [-…-], added ones in {+…+}; equal sections are only counted.
    """
    old_sections = {section.label: section for section in list_sections(older)}
    new_sections = list_sections(newer)
    lines = []
    unchanged = 0
    for section in new_sections:
        text = newer[section.start : section.end]
        previous = old_sections.pop(section.label, None)
        if previous is None:
            lines.append(f"Sec. {section.label}. {section.heading}: added, {len(text)} characters.")
            continue
        old_text = older[previous.start : previous.end]
        if _split_words(old_text) == _split_words(text):
            unchanged += 1
        else:
            lines.append(
                f"Sec. {section.label}. {section.heading}:\n{_mark_changes(old_text, text)}"
            )
    lines += [
        f"Sec. {section.label}. {section.heading}: removed." for section in old_sections.values()
    ]
    if not new_sections and not lines:
        lines = [_mark_changes(older, newer)]
    return "\n\n".join([f"{unchanged} sections are equal.", *lines])


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text)


def _mark_changes(older: str, newer: str) -> str:
    before, after = _split_words(older), _split_words(newer)
    if max(len(before), len(after)) > _MAX_COMPARED_WORDS:
        return f"changed, from {len(older)} to {len(newer)} characters; too long to mark each word."
    return " ".join(_list_marked(before, after))


def _list_marked(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            same = after[new_start:new_end]
            is_long = len(same) > 2 * _CONTEXT_WORDS
            yield from ([*same[:_CONTEXT_WORDS], "…", *same[-_CONTEXT_WORDS:]] if is_long else same)
            continue
        if old_end > old_start:
            yield f"[-{' '.join(before[old_start:old_end])}-]"
        if new_end > new_start:
            yield f"{{+{' '.join(after[new_start:new_end])}+}}"

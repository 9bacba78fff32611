"""Sections of a bill or law: found by their headings, listed as an outline, compared by version."""

import re
from collections import Counter
from dataclasses import dataclass

from readingroom.core.errors import InvalidArguments
from readingroom.core.text import DiffRun, compare_words

OUTLINE_SECTION = "outline"
"""What stands for a section's number when all of them are to be listed."""
# The table of contents has `Sec. 2. Findings.`; the section itself is printed in capitals.
_CAPITALS_HEADING_PATTERN = re.compile(
    r"^[ \t\u201c]*(?:SECTION|SEC\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.?[ \t]*(.*)$", re.MULTILINE
)
_MIXED_CASE_HEADING_PATTERN = re.compile(
    r"^[ \t]*(?:Section|Sec\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.[ \t]*(.*)$", re.MULTILINE
)
_LEADING_SECTION_WORD_PATTERN = re.compile(r"^\s*(?:section|sec\.?|\u00a7+)\s*", re.I)
_MAX_HEADING, _MAX_NAMED_SECTIONS = 120, 40
_MAX_CONTENTS_LINE_CHARS = 200
"""Characters of a line in a table of contents, with the heading of a title that may follow it."""
_SHOWN_WORDS_PER_END = 8  # of a long unchanged run, at either end
_MAX_REPLACED_CHARS = 40_000
"""Of two sections that share nothing: longer ones are only called changed."""
_MARKS_BY_OPERATION = {"equal": ("", ""), "delete": ("[-", "-]"), "insert": ("{+", "+}")}


@dataclass(frozen=True, slots=True)
class TextSection:
    """A section of a text: what it is called, and where it stands."""

    label: str
    """Its number; where a bill has it several times, `301#2` is the second."""
    heading: str
    start_offset: int
    end_offset: int


def list_sections(body_text: str) -> list[TextSection]:
    """Return the sections of a text in its order."""
    heading_matches = _find_headings(body_text)
    label_counts: Counter[str] = Counter()
    text_sections = []
    for heading_index, heading_match in enumerate(heading_matches):
        section_number = heading_match[1].replace("\u2013", "-")
        label_counts[section_number] += 1
        section_label = (
            section_number
            if label_counts[section_number] == 1
            else f"{section_number}#{label_counts[section_number]}"
        )
        section_end_offset = (
            heading_matches[heading_index + 1].start()
            if heading_index + 1 < len(heading_matches)
            else len(body_text)
        )
        heading_text = heading_match[2].strip()[:_MAX_HEADING]
        text_sections.append(
            TextSection(section_label, heading_text, heading_match.start(), section_end_offset)
        )
    return text_sections


def _find_headings(body_text: str) -> list[re.Match[str]]:
    """Return the headings of sections; in capitals, unless most of them are not, as in old laws."""
    capital_matches = list(_CAPITALS_HEADING_PATTERN.finditer(body_text))
    capital_section_numbers = {heading_match[1] for heading_match in capital_matches}
    heading_matches = sorted(
        (*capital_matches, *_MIXED_CASE_HEADING_PATTERN.finditer(body_text)),
        key=lambda heading_match: heading_match.start(),
    )
    next_heading_starts = [
        *(heading_match.start() for heading_match in heading_matches),
        len(body_text),
    ][1:]
    is_short_by_index = [
        len(body_text[heading_match.start(2) : next_heading_start].strip())
        <= _MAX_CONTENTS_LINE_CHARS
        for heading_match, next_heading_start in zip(
            heading_matches, next_heading_starts, strict=True
        )
    ]
    numbers_with_text = {
        heading_match[1]
        for heading_match, is_short in zip(heading_matches, is_short_by_index, strict=True)
        if not is_short
    }
    if capital_section_numbers and len(numbers_with_text - capital_section_numbers) <= len(
        capital_section_numbers
    ):
        return capital_matches
    last_index_by_number = {
        heading_match[1]: heading_index
        for heading_index, heading_match in enumerate(heading_matches)
    }
    # A line of the contents is short, and its section comes later; a short section stays.
    return [
        heading_match
        for heading_index, heading_match in enumerate(heading_matches)
        if not is_short_by_index[heading_index]
        or last_index_by_number[heading_match[1]] == heading_index
    ]


def find_section(body_text: str, wanted_section: str) -> TextSection:
    """Return a section by its number, as `501`, `Sec. 501` or `301#2`.

    Raise InvalidArguments, which lists the sections there are.
    """
    text_sections = list_sections(body_text)
    section_label = (
        _LEADING_SECTION_WORD_PATTERN.sub("", wanted_section)
        .strip()
        .rstrip(".")
        .replace("\u2013", "-")
    )
    for text_section in text_sections:
        if text_section.label.lower() == section_label.lower():
            return text_section
    section_labels_text = ", ".join(
        text_section.label for text_section in text_sections[:_MAX_NAMED_SECTIONS]
    )
    total_hint = (
        f", … {len(text_sections)} in all" if len(text_sections) > _MAX_NAMED_SECTIONS else ""
    )
    problem_text = (
        f"there is no section {wanted_section[:50]!r}; "
        f"there are {section_labels_text or 'none'}{total_hint}"
    )
    raise InvalidArguments([{"field": "section", "message": problem_text}])


def format_outline(body_text: str) -> str:
    """Return a line for each section: its number, its heading and its offset in the text."""
    outline_lines = [
        f"Sec. {text_section.label}. {text_section.heading} [offset {text_section.start_offset}]"
        for text_section in list_sections(body_text)
    ]
    return "\n".join(outline_lines) or "No section headings were found in this text."


# --- two versions ---


def compare_versions(older_text: str, newer_text: str) -> str:
    """Return what differs between two versions, section by section, in the newer one's order.

    Removed words stand in [-…-], added ones in {+…+}; equal sections are only counted.
    """
    old_section_by_label = {
        text_section.label: text_section for text_section in list_sections(older_text)
    }
    new_sections = list_sections(newer_text)
    report_lines = []
    unchanged_count = 0
    for new_section in new_sections:
        heading_line = f"Sec. {new_section.label}. {new_section.heading}"
        new_section_text = newer_text[new_section.start_offset : new_section.end_offset]
        old_section = old_section_by_label.pop(new_section.label, None)
        if old_section is None:
            report_lines.append(f"{heading_line}: added, {len(new_section_text)} characters.")
            continue
        old_section_text = older_text[old_section.start_offset : old_section.end_offset]
        if old_section_text.split() == new_section_text.split():
            unchanged_count += 1
        else:
            report_lines.append(
                f"{heading_line}:\n{_mark_changes(old_section_text, new_section_text)}"
            )
    report_lines += [
        f"Sec. {text_section.label}. {text_section.heading}: removed."
        for text_section in old_section_by_label.values()
    ]
    if not new_sections and not report_lines:
        report_lines = [_mark_changes(older_text, newer_text)]
    return "\n\n".join([f"{unchanged_count} sections are equal.", *report_lines])


def _mark_changes(older_text: str, newer_text: str) -> str:
    diff_runs = compare_words(older_text, newer_text)
    is_replaced = all(diff_run.operation != "equal" for diff_run in diff_runs)
    if is_replaced and len(older_text) + len(newer_text) > _MAX_REPLACED_CHARS:
        return (
            f"changed, from {len(older_text)} to {len(newer_text)} characters; "
            "too long to mark each word."
        )
    return " ".join(map(_format_run, diff_runs))


def _format_run(diff_run: DiffRun) -> str:
    shown_text = (
        diff_run.shorten(_SHOWN_WORDS_PER_END, "…")
        if diff_run.operation == "equal"
        else diff_run.text
    )
    opening_mark, closing_mark = _MARKS_BY_OPERATION[diff_run.operation]
    return f"{opening_mark}{' '.join(shown_text.split())}{closing_mark}"

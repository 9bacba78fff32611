"""Sections of a bill or law: found by their headings, listed as an outline, compared by version."""

import re
from collections import Counter
from dataclasses import dataclass

from readingroom.core.errors import InvalidArguments
from readingroom.core.text import DiffRun, compare_words

OUTLINE_SECTION_NAME = "outline"
"""What stands for a section's number when all of them are to be listed."""
# The table of contents has `Sec. 2. Findings.`; the section itself is printed in capitals.
_CAPITALS_HEADING_PATTERN = re.compile(
    r"^[ \t\u201c]*(?:SECTION|SEC\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.?[ \t]*(.*)$", re.MULTILINE
)
_MIXED_CASE_HEADING_PATTERN = re.compile(
    r"^[ \t]*(?:Section|Sec\.)\s+(\d+[A-Z]?(?:[-\u2013]\d+)?)\.[ \t]*(.*)$", re.MULTILINE
)
_LEADING_SECTION_WORD_PATTERN = re.compile(r"^\s*(?:section|sec\.?|\u00a7+)\s*", re.I)
_PARAGRAPHS_PATTERN = re.compile(r"(?:\s?\([A-Za-z\d]{1,5}\))+$")
_TITLE_NAME_PATTERN = re.compile(r"\s*title\s+([IVXLC]+|\d{1,3})\.?\s*", re.I)
_TITLE_HEADING_PATTERN = re.compile(
    r"^[ \t]*(?:TITLE|Title)\s+([IVXLC]+|\d{1,3})(?=[ \t]*(?:$|[\u2014\u2013:.-]))"
    r"[ \t]*[\u2014\u2013:.-]*[ \t]*(.*)$",
    re.MULTILINE,
)
_MAX_HEADING_CHARS, _MAX_LISTED_SECTIONS = 120, 40
_MAX_CONTENTS_LINE_CHARS = 200
"""Characters of a line in a table of contents, with the heading of a title that may follow it."""
_SHOWN_WORDS_PER_END = 8  # of a long unchanged run, at either end
_MAX_REPLACED_CHARS = 40_000
"""Of two sections that share nothing: longer ones are only called changed."""
_CHANGE_MARKS_BY_OPERATION = {"equal": ("", ""), "delete": ("[-", "-]"), "insert": ("{+", "+}")}


@dataclass(frozen=True, slots=True)
class TextSection:
    """A section of a text: what it is called, and where it stands."""

    label: str
    """Its number; where a bill has it several times, `301#2` is the second."""
    heading: str
    start_offset: int
    end_offset: int
    next_heading_offset: int
    """Where the next heading stands: that of a section which this one quotes, or its end."""


def list_sections(body_text: str) -> list[TextSection]:
    """Return the sections of a text in its order; those that it quotes are parts of its own."""
    heading_matches = _find_headings(body_text)
    section_labels = _label_headings(heading_matches)
    text_sections: list[TextSection] = []
    own_section_end_offset = next_heading_offset = len(body_text)
    for heading_match, section_label in zip(
        reversed(heading_matches), reversed(section_labels), strict=True
    ):
        is_quoted = _is_quoted(heading_match)
        text_sections.append(
            TextSection(
                section_label,
                heading_match[2].strip()[:_MAX_HEADING_CHARS],
                heading_match.start(),
                next_heading_offset if is_quoted else own_section_end_offset,
                next_heading_offset,
            )
        )
        next_heading_offset = heading_match.start()
        if not is_quoted:
            own_section_end_offset = next_heading_offset
    return text_sections[::-1]


def _label_headings(heading_matches: list[re.Match[str]]) -> list[str]:
    """Return the labels of headings: a text's own sections before those that it quotes."""
    label_counts: Counter[str] = Counter()
    label_by_start: dict[int, str] = {}
    for heading_match in sorted(heading_matches, key=_is_quoted):
        section_number = heading_match[1].replace("\u2013", "-")
        label_counts[section_number] += 1
        label_by_start[heading_match.start()] = (
            section_number
            if label_counts[section_number] == 1
            else f"{section_number}#{label_counts[section_number]}"
        )
    return [label_by_start[heading_match.start()] for heading_match in heading_matches]


def _is_quoted(heading_match: re.Match[str]) -> bool:
    """Whether a section is one that the bill writes into another law."""
    return heading_match[0].lstrip().startswith("\u201c")


def _find_headings(body_text: str) -> list[re.Match[str]]:
    """Return the headings of sections; in capitals, unless most of them are not, as in old laws."""
    capitals_heading_matches = list(_CAPITALS_HEADING_PATTERN.finditer(body_text))
    capital_section_numbers = {heading_match[1] for heading_match in capitals_heading_matches}
    heading_matches = sorted(
        (*capitals_heading_matches, *_MIXED_CASE_HEADING_PATTERN.finditer(body_text)),
        key=lambda heading_match: heading_match.start(),
    )
    next_heading_starts = [
        *(heading_match.start() for heading_match in heading_matches),
        len(body_text),
    ][1:]
    short_section_flags = [
        len(body_text[heading_match.start(2) : next_heading_start].strip())
        <= _MAX_CONTENTS_LINE_CHARS
        for heading_match, next_heading_start in zip(
            heading_matches, next_heading_starts, strict=True
        )
    ]
    section_numbers_with_text = {
        heading_match[1]
        for heading_match, is_short in zip(heading_matches, short_section_flags, strict=True)
        if not is_short
    }
    if capital_section_numbers and len(section_numbers_with_text - capital_section_numbers) <= len(
        capital_section_numbers
    ):
        return capitals_heading_matches
    last_index_by_number = {
        heading_match[1]: heading_index
        for heading_index, heading_match in enumerate(heading_matches)
    }
    capitals_heading_starts = {heading_match.start() for heading_match in capitals_heading_matches}
    folded_capitals_headings = {
        _fold_heading(heading_match) for heading_match in capitals_heading_matches
    }
    # The contents are not in capitals. A line of them is short, and its section comes later, or
    # says what a heading in capitals says; a short section stays.
    return [
        heading_match
        for heading_index, heading_match in enumerate(heading_matches)
        if heading_match.start() in capitals_heading_starts
        or (
            (
                not short_section_flags[heading_index]
                or last_index_by_number[heading_match[1]] == heading_index
            )
            and _fold_heading(heading_match) not in folded_capitals_headings
        )
    ]


def _fold_heading(heading_match: re.Match[str]) -> tuple[str, str]:
    """Return the number of a section and its heading, without the text that follows on its line."""
    return heading_match[1], heading_match[2].partition(".")[0].strip().casefold()


def get_section(body_text: str, requested_section: str) -> TextSection:
    """Return a section by its number, as `501`, `Sec. 501(a)`, `301#2` or `title II`.

    Raise InvalidArguments, which lists the sections there are.
    """
    if title_match := _TITLE_NAME_PATTERN.fullmatch(requested_section):
        return _get_title(body_text, title_match[1])
    text_sections = list_sections(body_text)
    section_label = (
        _LEADING_SECTION_WORD_PATTERN.sub("", requested_section)
        .strip()
        .rstrip(".")
        .replace("\u2013", "-")
    )
    # A paragraph, as in 101(a), is read with its section.
    section_label = _PARAGRAPHS_PATTERN.sub("", section_label)
    for text_section in text_sections:
        if text_section.label.lower() == section_label.lower():
            return text_section
    section_labels_text = ", ".join(
        text_section.label for text_section in text_sections[:_MAX_LISTED_SECTIONS]
    )
    total_hint = (
        f", … {len(text_sections)} in all" if len(text_sections) > _MAX_LISTED_SECTIONS else ""
    )
    problem_text = (
        f"there is no section {requested_section[:50]!r}; "
        f"there are {section_labels_text or 'none'}{total_hint}"
    )
    raise InvalidArguments([{"field": "section", "message": problem_text}])


def _get_title(body_text: str, title_number: str) -> TextSection:
    """Return a title with all of its sections; raise InvalidArguments, which lists those there are.

    A table of contents names each title first, and the text itself last.
    """
    heading_matches = list(_TITLE_HEADING_PATTERN.finditer(body_text))
    last_match_by_number = {
        heading_match[1].upper(): heading_match for heading_match in heading_matches
    }
    title_match = last_match_by_number.get(title_number.upper())
    if title_match is None:
        problem_text = (
            f"there is no title {title_number[:20]!r}; "
            f"there are {', '.join(last_match_by_number) or 'none'}"
        )
        raise InvalidArguments([{"field": "section", "message": problem_text}])
    end_offset = min(
        (
            heading_match.start()
            for heading_match in last_match_by_number.values()
            if heading_match.start() > title_match.start()
        ),
        default=len(body_text),
    )
    return TextSection(
        f"title {title_match[1]}",
        title_match[2].strip()[:_MAX_HEADING_CHARS],
        title_match.start(),
        end_offset,
        end_offset,
    )


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
    old_section_by_label, new_section_by_label = (
        _split_into_sections(older_text),
        _split_into_sections(newer_text),
    )
    if not old_section_by_label.keys() - {""} and not new_section_by_label.keys() - {""}:
        are_texts_equal = older_text.split() == newer_text.split()
        return (
            "The two texts are equal, word for word."
            if are_texts_equal
            else _render_marked_changes(older_text, newer_text)
        )
    report_lines = []
    unchanged_count = 0
    for section_label, (heading_line_text, new_section_text) in new_section_by_label.items():
        if section_label not in old_section_by_label:
            report_lines.append(f"{heading_line_text}: added, {len(new_section_text)} characters.")
            continue
        _, old_section_text = old_section_by_label.pop(section_label)
        if old_section_text.split() != new_section_text.split():
            report_lines.append(
                f"{heading_line_text}:\n"
                f"{_render_marked_changes(old_section_text, new_section_text)}"
            )
        elif section_label:
            unchanged_count += 1
    report_lines += [
        f"{heading_line_text}: removed." for heading_line_text, _ in old_section_by_label.values()
    ]
    return "\n\n".join([f"{unchanged_count} sections are equal.", *report_lines])


def _split_into_sections(body_text: str) -> dict[str, tuple[str, str]]:
    """Return the parts of a text by label, each with its heading; "" is what stands above them."""
    text_sections = list_sections(body_text)
    text_above_sections = body_text[: text_sections[0].start_offset] if text_sections else body_text
    heading_and_text_by_label = (
        {"": ("Above the first section", text_above_sections)}
        if text_above_sections.strip()
        else {}
    )
    return heading_and_text_by_label | {
        text_section.label: (
            f"Sec. {text_section.label}. {text_section.heading}",
            body_text[text_section.start_offset : text_section.next_heading_offset],
        )
        for text_section in text_sections
    }


def _render_marked_changes(older_text: str, newer_text: str) -> str:
    diff_runs = compare_words(older_text, newer_text)
    is_wholly_replaced = all(diff_run.operation != "equal" for diff_run in diff_runs)
    if is_wholly_replaced and len(older_text) + len(newer_text) > _MAX_REPLACED_CHARS:
        return (
            f"changed, from {len(older_text)} to {len(newer_text)} characters; "
            "too long to mark each word."
        )
    return " ".join(map(_format_diff_run, diff_runs))


def _format_diff_run(diff_run: DiffRun) -> str:
    shown_text = (
        diff_run.shorten(_SHOWN_WORDS_PER_END, "…")
        if diff_run.operation == "equal"
        else diff_run.text
    )
    opening_change_mark, closing_change_mark = _CHANGE_MARKS_BY_OPERATION[diff_run.operation]
    return f"{opening_change_mark}{' '.join(shown_text.split())}{closing_change_mark}"

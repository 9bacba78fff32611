"""Plain texts: dashes alike, commands escaped, pages cited, two texts compared by their words."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

DASH_CHARACTERS = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Every character that is read as a dash; it can stand in a character class as it is."""
_HYPHEN_BY_DASH = dict.fromkeys(map(ord, DASH_CHARACTERS), "-")
# Controls but for tabs and line ends, overrides of the direction of writing, halves of characters.
_CONTROL_CHARACTERS_PATTERN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

_WORD_WITH_SPACE_PATTERN = re.compile(r"\S+\s*")
_SENTENCE_PATTERN = re.compile(r"[^.;:\n]+[.;:\n]*\s*|[.;:\n]+\s*")
_MAX_WORD_PAIRS = 400_000
"""Pairs of equal words in two texts, by which comparing them costs; 7,000 words have so many."""


def fold_dashes(dashed_text: str) -> str:
    """Return the text with every Unicode dash as `-`.

    The Federal Register's own XML writes its numbers with U+2013.
    """
    return dashed_text if dashed_text.isascii() else dashed_text.translate(_HYPHEN_BY_DASH)


def escape_control_characters(untrusted_text: str) -> str:
    """Return the text with what would command a terminal as `\\u001b`, which JSON reads as well."""
    return _CONTROL_CHARACTERS_PATTERN.sub(
        lambda character_match: f"\\u{ord(character_match[0]):04x}", untrusted_text
    )


@dataclass(frozen=True, slots=True)
class DiffRun:
    """Neighbouring words that both texts have, or that were deleted, or inserted."""

    operation: Literal["equal", "delete", "insert"]
    units: Sequence[str]
    """Its words, each with the white space after it; sentences where words were too many."""

    @property
    def text(self) -> str:
        return "".join(self.units).strip()

    def shorten(self, units_per_end: int, gap_text: str) -> str:
        """Return its text with only so many words at either end, if it has more than those."""
        if len(self.units) <= 2 * units_per_end + 1:
            return self.text
        first_units, last_units = self.units[:units_per_end], self.units[-units_per_end:]
        return f"{''.join(first_units).strip()} {gap_text} {''.join(last_units).strip()}"


def compare_words(old_text: str, new_text: str) -> list[DiffRun]:
    """Return the runs of words that are the same, deleted and inserted, in the order of the texts.

    Where word by word would take too long, sentences are compared as wholes, or else the texts.
    """
    for unit_pattern in (_WORD_WITH_SPACE_PATTERN, _SENTENCE_PATTERN):
        old_units, new_units = unit_pattern.findall(old_text), unit_pattern.findall(new_text)
        # Compared without white space, because each edition breaks its lines elsewhere.
        stripped_old_units = [word_unit.strip() for word_unit in old_units]
        stripped_new_units = [word_unit.strip() for word_unit in new_units]
        if _count_equal_pairs(stripped_old_units, stripped_new_units) <= _MAX_WORD_PAIRS:
            break
    else:
        return [DiffRun("delete", [old_text]), DiffRun("insert", [new_text])]
    diff_runs: list[DiffRun] = []
    # autojunk would ignore the frequent words of a long text, and tear the diff apart there.
    sequence_matcher = difflib.SequenceMatcher(
        None, stripped_old_units, stripped_new_units, autojunk=False
    )
    for opcode_tag, old_start, old_end, new_start, new_end in sequence_matcher.get_opcodes():
        if opcode_tag == "equal":
            diff_runs.append(DiffRun("equal", new_units[new_start:new_end]))
            continue
        if old_end > old_start:
            diff_runs.append(DiffRun("delete", old_units[old_start:old_end]))
        if new_end > new_start:
            diff_runs.append(DiffRun("insert", new_units[new_start:new_end]))
    return diff_runs


def _count_equal_pairs(first_words: Sequence[str], second_words: Sequence[str]) -> int:
    second_word_counts = Counter(second_words)
    return sum(
        first_word_count * second_word_counts[word]
        for word, first_word_count in Counter(first_words).items()
    )


def find_page_runs(page_numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last page of each unbroken run; `page_numbers` must be in order."""
    page_runs: list[tuple[int, int]] = []
    for page_number in page_numbers:
        run_first_page_number = page_number
        if page_runs and page_number == page_runs[-1][1] + 1:
            run_first_page_number, _ = page_runs.pop()
        page_runs.append((run_first_page_number, page_number))
    return page_runs


def cite_pages(page_numbers: Sequence[int]) -> str:
    """Return `p. 14–15, 17`; an empty string for no pages."""
    range_texts = [
        f"{first_page_number}–{last_page_number}"
        if last_page_number > first_page_number
        else f"{first_page_number}"
        for first_page_number, last_page_number in find_page_runs(page_numbers)
    ]
    return f"p. {', '.join(range_texts)}" if range_texts else ""

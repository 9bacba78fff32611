"""Pairs the sections of two revisions: by their words first, by their references second.

A paragraph that was only renumbered is the same paragraph. So sections with the same words are
paired wherever they stand, then those whose words are most alike, and only then the rest by number.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from readingroom.bases.policy.chunks.references import fold_ref
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare.passages import (
    find_title,
    fold_text,
    group_by_section,
    join_section,
)

ChangeKind = Literal["reworded", "moved", "added", "removed"]

_MIN_LIKENESS = 0.4
"""Of two sections with other references; less alike, one was removed and the other added."""
_MIN_LIKENESS_OF_SAME_REF = 0.2
_MAX_POSTINGS = 40
"""Sections that share a pair of words; one that more share tells nothing."""
_FOOTNOTE = re.compile(r"(?<=[a-z]{3})\d{1,3}(?=\W*$)")


@dataclass(frozen=True)
class RevisionSection:
    """A section of one revision, with the words by which it is compared."""

    ref: str
    chunks: tuple[StoredChunk, ...]

    @cached_property
    def text(self) -> str:
        return join_section(self.chunks)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words but for its own number and the marks of footnotes, which change alone."""
        folded_text = fold_text(self.text)
        if label_match := _compile_label(self.ref).match(folded_text):
            folded_text = folded_text[label_match.end() :]
        return tuple(_FOOTNOTE.sub("", word) for word in folded_text.split())

    @cached_property
    def word_pairs(self) -> Counter[tuple[str, str]]:
        padded = ("", *self.words, "")
        return Counter(pairwise(padded))

    @cached_property
    def folded_ref(self) -> str:
        return fold_ref(self.ref)

    @property
    def page(self) -> int:
        return self.chunks[0].page_number

    @property
    def title(self) -> str:
        return find_title(self.chunks, self.ref)


@lru_cache(maxsize=4096)
def _compile_label(section_ref: str) -> re.Pattern[str]:
    """Return a pattern for a reference as its section begins with it: `116.`, `Policy H1:`."""
    kind_word, _, number_text = fold_text(section_ref).rpartition(" ")
    optional_kind = f"(?:{re.escape(kind_word)} )?" if kind_word else ""
    return re.compile(rf"{optional_kind}{re.escape(number_text)}(?!\w)[.:)]?(?: ?[-:])? ?")


@dataclass(frozen=True, slots=True)
class SectionPair:
    """A section before and after; one side is None where it was added or removed."""

    before: RevisionSection | None
    after: RevisionSection | None

    @property
    def has_same_words(self) -> bool:
        return (
            self.before is not None
            and self.after is not None
            and self.before.words == self.after.words
        )

    @property
    def word_count(self) -> int:
        """How many words both sides have together."""
        return sum(len(section.words) for section in (self.before, self.after) if section)

    def lies_in(self, section_refs: Collection[str]) -> bool:
        """Whether one side is one of these sections or stands inside one."""
        return any(
            section_ref in section_refs
            for section in (self.before, self.after)
            if section is not None
            for chunk in section.chunks
            for section_ref in (*chunk.section_path, chunk.section_ref)
        )

    @property
    def kind(self) -> ChangeKind | None:
        """What happened to the section; None where nothing did."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.folded_ref != self.after.folded_ref:
            return "moved"
        return None if self.has_same_words else "reworded"


def list_sections(chunks: Sequence[StoredChunk]) -> list[RevisionSection]:
    """Return the sections of a revision in reading order, each without those inside it."""
    return [
        RevisionSection(section_ref, tuple(section))
        for section_ref, section in group_by_section(chunks).items()
    ]


def pair_sections(
    old_sections: Sequence[RevisionSection], new_sections: Sequence[RevisionSection]
) -> list[SectionPair]:
    """Return every section of both once, in the order of the newer text, then what it dropped."""
    partners: dict[int, int] = {}  # new → old
    _pair_equal(old_sections, new_sections, partners)
    _pair_alike(old_sections, new_sections, partners)
    paired_old = set(partners.values())
    pairs = [
        SectionPair(old_sections[partners[index]] if index in partners else None, section)
        for index, section in enumerate(new_sections)
    ]
    pairs += [
        SectionPair(section, None)
        for index, section in enumerate(old_sections)
        if index not in paired_old
    ]
    return pairs


def _pair_equal(
    old_sections: Sequence[RevisionSection],
    new_sections: Sequence[RevisionSection],
    partners: dict[int, int],
) -> None:
    """Pair sections with the same words: those with the same reference before the others."""
    paired_old: set[int] = set()
    for by_ref in (True, False):
        # The last first, so that the first in the text is the next to be taken.
        old_by_words: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for index in reversed(range(len(old_sections))):
            if index not in paired_old:
                old_by_words[_make_words_key(old_sections[index], by_ref)].append(index)
        for index, section in enumerate(new_sections):
            equal_indexes = old_by_words.get(_make_words_key(section, by_ref))
            if index not in partners and equal_indexes:
                partners[index] = equal_indexes.pop()
                paired_old.add(partners[index])


def _make_words_key(section: RevisionSection, with_ref: bool) -> tuple[object, ...]:
    return (section.words, section.folded_ref if with_ref else None)


def _pair_alike(
    old_sections: Sequence[RevisionSection],
    new_sections: Sequence[RevisionSection],
    partners: dict[int, int],
) -> None:
    """Pair the rest by likeness, the most alike first."""
    paired_old = set(partners.values())
    free_old = [index for index in range(len(old_sections)) if index not in paired_old]
    free_new = [index for index in range(len(new_sections)) if index not in partners]
    postings: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index in free_old:
        for word_pair in old_sections[index].word_pairs:
            postings[word_pair].append(index)
    likenesses = [
        (
            likeness,
            _has_same_ref(old_sections[old_index], new_sections[new_index]),
            -new_index,
            -old_index,
        )
        for new_index in free_new
        for old_index, likeness in _measure_likeness(
            new_sections[new_index], old_sections, postings
        )
        if likeness
        >= (
            _MIN_LIKENESS_OF_SAME_REF
            if _has_same_ref(old_sections[old_index], new_sections[new_index])
            else _MIN_LIKENESS
        )
    ]
    taken_old: set[int] = set()
    for _, _, negative_new, negative_old in sorted(likenesses, reverse=True):
        if -negative_new not in partners and -negative_old not in taken_old:
            partners[-negative_new] = -negative_old
            taken_old.add(-negative_old)


def _measure_likeness(
    section: RevisionSection,
    old_sections: Sequence[RevisionSection],
    postings: dict[tuple[str, str], list[int]],
) -> Iterable[tuple[int, float]]:
    """Yield the old sections that share pairs of words with a new one, with their share of both."""
    shared_pair_counts: Counter[int] = Counter()
    for word_pair, pair_count in section.word_pairs.items():
        indexes = postings.get(word_pair, [])
        if len(indexes) > _MAX_POSTINGS:
            continue
        for index in indexes:
            shared_pair_counts[index] += min(pair_count, old_sections[index].word_pairs[word_pair])
    for index, shared_count in shared_pair_counts.items():
        pair_total = section.word_pairs.total() + old_sections[index].word_pairs.total()
        yield index, 2 * shared_count / pair_total


def _has_same_ref(first_section: RevisionSection, second_section: RevisionSection) -> bool:
    return first_section.folded_ref == second_section.folded_ref

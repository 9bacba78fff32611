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
    fold_text,
    get_section_title,
    group_chunks_by_section,
    join_section_text,
)

ChangeKind = Literal["reworded", "moved", "added", "removed"]

_MIN_SIMILARITY = 0.4
"""Of two sections with other references; less alike, one was removed and the other added."""
_MIN_SIMILARITY_OF_SAME_REF = 0.2
_MAX_SECTIONS_PER_WORD_PAIR = 40
"""Sections that share a pair of words; one that more share tells nothing."""
_FOOTNOTE_MARK_PATTERN = re.compile(r"(?<=[a-z]{3})\d{1,3}(?=\W*$)")


@dataclass(frozen=True)
class RevisionSection:
    """A section of one revision, with the words by which it is compared."""

    ref: str
    chunks: tuple[StoredChunk, ...]

    @cached_property
    def text(self) -> str:
        return join_section_text(self.chunks)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words but for its own number and the marks of footnotes, which change alone."""
        folded_text = fold_text(self.text)
        if opening_ref_match := _compile_opening_ref_pattern(self.ref).match(folded_text):
            folded_text = folded_text[opening_ref_match.end() :]
        return tuple(
            _FOOTNOTE_MARK_PATTERN.sub("", folded_word) for folded_word in folded_text.split()
        )

    @cached_property
    def word_pair_counts(self) -> Counter[tuple[str, str]]:
        padded_words = ("", *self.words, "")
        return Counter(pairwise(padded_words))

    @cached_property
    def folded_ref(self) -> str:
        return fold_ref(self.ref)

    @property
    def page_number(self) -> int:
        return self.chunks[0].page_number

    @property
    def title(self) -> str:
        return get_section_title(self.chunks, self.ref)


@lru_cache(maxsize=4096)
def _compile_opening_ref_pattern(section_ref: str) -> re.Pattern[str]:
    """Return a pattern for a reference as its section begins with it: `116.`, `Policy H1:`."""
    kind_word, _, number_text = fold_text(section_ref).rpartition(" ")
    optional_kind_regex = f"(?:{re.escape(kind_word)} )?" if kind_word else ""
    return re.compile(rf"{optional_kind_regex}{re.escape(number_text)}(?!\w)[.:)]?(?: ?[-:])? ?")


@dataclass(frozen=True, slots=True)
class SectionPair:
    """A section before and after; one side is None where it was added or removed."""

    old_section: RevisionSection | None
    new_section: RevisionSection | None

    @property
    def has_same_words(self) -> bool:
        return (
            self.old_section is not None
            and self.new_section is not None
            and self.old_section.words == self.new_section.words
        )

    @property
    def word_count(self) -> int:
        """How many words both sides have together."""
        return sum(
            len(revision_section.words)
            for revision_section in (self.old_section, self.new_section)
            if revision_section
        )

    def has_side_in_sections(self, section_refs: Collection[str]) -> bool:
        """Whether one side is one of these sections or stands inside one."""
        return any(
            section_ref in section_refs
            for revision_section in (self.old_section, self.new_section)
            if revision_section is not None
            for chunk in revision_section.chunks
            for section_ref in (*chunk.section_path, chunk.section_ref)
        )

    @property
    def change_kind(self) -> ChangeKind | None:
        """What happened to the section; None where nothing did."""
        if self.old_section is None:
            return "added"
        if self.new_section is None:
            return "removed"
        if self.old_section.folded_ref != self.new_section.folded_ref:
            return "moved"
        return None if self.has_same_words else "reworded"


def list_revision_sections(chunks: Sequence[StoredChunk]) -> list[RevisionSection]:
    """Return the sections of a revision in reading order, each without those inside it."""
    return [
        RevisionSection(section_ref, tuple(section_chunks))
        for section_ref, section_chunks in group_chunks_by_section(chunks).items()
    ]


def pair_sections(
    old_sections: Sequence[RevisionSection], new_sections: Sequence[RevisionSection]
) -> list[SectionPair]:
    """Return every section of both once, in the order of the newer text, then what it dropped."""
    old_index_by_new_index: dict[int, int] = {}  # new → old
    _pair_equal_sections(old_sections, new_sections, old_index_by_new_index)
    _pair_similar_sections(old_sections, new_sections, old_index_by_new_index)
    paired_old_indexes = set(old_index_by_new_index.values())
    section_pairs = [
        SectionPair(
            old_sections[old_index_by_new_index[section_index]]
            if section_index in old_index_by_new_index
            else None,
            new_section,
        )
        for section_index, new_section in enumerate(new_sections)
    ]
    section_pairs += [
        SectionPair(old_section, None)
        for section_index, old_section in enumerate(old_sections)
        if section_index not in paired_old_indexes
    ]
    return section_pairs


def _pair_equal_sections(
    old_sections: Sequence[RevisionSection],
    new_sections: Sequence[RevisionSection],
    old_index_by_new_index: dict[int, int],
) -> None:
    """Pair sections with the same words: those with the same reference before the others."""
    paired_old_indexes: set[int] = set()
    for needs_same_ref in (True, False):
        # The last first, so that the first in the text is the next to be taken.
        old_indexes_by_words_key: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for section_index in reversed(range(len(old_sections))):
            if section_index not in paired_old_indexes:
                old_indexes_by_words_key[
                    _make_words_key(old_sections[section_index], needs_same_ref)
                ].append(section_index)
        for section_index, new_section in enumerate(new_sections):
            equal_old_indexes = old_indexes_by_words_key.get(
                _make_words_key(new_section, needs_same_ref)
            )
            if section_index not in old_index_by_new_index and equal_old_indexes:
                old_index_by_new_index[section_index] = equal_old_indexes.pop()
                paired_old_indexes.add(old_index_by_new_index[section_index])


def _make_words_key(revision_section: RevisionSection, includes_ref: bool) -> tuple[object, ...]:
    return (revision_section.words, revision_section.folded_ref if includes_ref else None)


def _pair_similar_sections(
    old_sections: Sequence[RevisionSection],
    new_sections: Sequence[RevisionSection],
    old_index_by_new_index: dict[int, int],
) -> None:
    """Pair the rest by likeness, the most alike first."""
    paired_old_indexes = set(old_index_by_new_index.values())
    unpaired_old_indexes = [
        unpaired_index
        for unpaired_index in range(len(old_sections))
        if unpaired_index not in paired_old_indexes
    ]
    unpaired_new_indexes = [
        unpaired_index
        for unpaired_index in range(len(new_sections))
        if unpaired_index not in old_index_by_new_index
    ]
    old_indexes_by_word_pair: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for unpaired_index in unpaired_old_indexes:
        for word_pair in old_sections[unpaired_index].word_pair_counts:
            old_indexes_by_word_pair[word_pair].append(unpaired_index)
    candidate_pairs = [
        (
            section_similarity,
            _has_same_ref(old_sections[old_index], new_sections[new_index]),
            -new_index,
            -old_index,
        )
        for new_index in unpaired_new_indexes
        for old_index, section_similarity in _measure_similarities(
            new_sections[new_index], old_sections, old_indexes_by_word_pair
        )
        if section_similarity
        >= (
            _MIN_SIMILARITY_OF_SAME_REF
            if _has_same_ref(old_sections[old_index], new_sections[new_index])
            else _MIN_SIMILARITY
        )
    ]
    taken_old_indexes: set[int] = set()
    for _, _, negative_new_index, negative_old_index in sorted(candidate_pairs, reverse=True):
        if (
            -negative_new_index not in old_index_by_new_index
            and -negative_old_index not in taken_old_indexes
        ):
            old_index_by_new_index[-negative_new_index] = -negative_old_index
            taken_old_indexes.add(-negative_old_index)


def _measure_similarities(
    new_section: RevisionSection,
    old_sections: Sequence[RevisionSection],
    old_indexes_by_word_pair: dict[tuple[str, str], list[int]],
) -> Iterable[tuple[int, float]]:
    """Yield the old sections that share pairs of words with a new one, with their share of both."""
    shared_pair_counts_by_old_index: Counter[int] = Counter()
    for word_pair, word_pair_count in new_section.word_pair_counts.items():
        old_indexes = old_indexes_by_word_pair.get(word_pair, [])
        if len(old_indexes) > _MAX_SECTIONS_PER_WORD_PAIR:
            continue
        for old_index in old_indexes:
            shared_pair_counts_by_old_index[old_index] += min(
                word_pair_count, old_sections[old_index].word_pair_counts[word_pair]
            )
    for old_index, shared_pair_count in shared_pair_counts_by_old_index.items():
        total_pair_count = (
            new_section.word_pair_counts.total() + old_sections[old_index].word_pair_counts.total()
        )
        yield old_index, 2 * shared_pair_count / total_pair_count


def _has_same_ref(first_section: RevisionSection, second_section: RevisionSection) -> bool:
    return first_section.folded_ref == second_section.folded_ref

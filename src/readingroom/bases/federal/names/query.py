"""A name as people write it, word by word, and what each word may mean besides a name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.ids import BILL_TYPES

_PREPOSITIONS_BEFORE_PLACES = ("of", "from")
_POSSESSIVE_PATTERN = re.compile(r"['\u2019]s\b")
_FISCAL_YEAR_PATTERN = re.compile(r"fy(\d{2}|\d{4})")
_ORDINAL_PATTERN = re.compile(r"(\d+)(?:st|nd|rd|th)")
_BILL_WORD_PATTERN = re.compile(rf"({'|'.join(BILL_TYPES)})(\d+)")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the query, and what it may say about the record besides its name."""

    text: str
    meaning: tuple[str, str] | None = None
    """A kind such as `state`, `chamber` or `number`, and the value in its stored form."""
    is_never_name: bool = False
    """Whether it can only have its meaning: Smith `of Virginia` is not Virginia Smith."""
    may_mean_record_kind: bool = False
    """Whether it may only say what kind of record is wanted: LEGO `lobbying report`."""


@dataclass(frozen=True)
class NameQuery:
    """The words of a query for a name."""

    words: tuple[QueryWord, ...]

    @classmethod
    def parse_name(cls, written_name: str, registry_name: str) -> "NameQuery":
        """Return the query for a text, without stopwords unless it has no other words."""
        record_kind_words = load_vocabulary().record_kind_words_by_registry.get(
            registry_name, frozenset()
        )
        plain_name = _POSSESSIVE_PATTERN.sub("", written_name)
        query_words = tuple(
            replace(query_word, may_mean_record_kind=query_word.text in record_kind_words)
            for query_word in _iterate_words_with_meanings(
                tuple(_expand_bills_and_years(fold.fold_all_words(plain_name)))
            )
        )
        content_words = tuple(
            query_word
            for query_word in query_words
            if query_word.text not in load_vocabulary().stopwords
        )
        return cls(content_words or query_words)

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        return tuple(query_word.text for query_word in self.words)

    @cached_property
    def name_word_texts(self) -> tuple[str, ...]:
        """The words that names are compared with; empty for one that cannot be a name."""
        return tuple(
            "" if query_word.is_never_name else query_word.text for query_word in self.words
        )

    @cached_property
    def distinctive_words(self) -> tuple[str, ...]:
        """The words that tell names apart; all words if none does."""
        weak_words = load_vocabulary().weak_words
        strong_words = [
            query_word.text for query_word in self.words if query_word.text not in weak_words
        ]
        words_without_meaning = [
            query_word.text
            for query_word in self.words
            if query_word.text in strong_words
            and not query_word.meaning
            and not query_word.may_mean_record_kind
        ]
        return tuple(words_without_meaning or strong_words or self.word_texts)

    @cached_property
    def lookup_words(self) -> tuple[str, ...]:
        """The words whose trigrams a name must share. A single word may mean others: `guns`."""
        number_words = [
            query_word.text
            for query_word in self.words
            if query_word.meaning and query_word.meaning[0] == "number"
        ]
        if len(self.distinctive_words) > 1:
            return (*self.distinctive_words, *number_words)
        synonyms = load_vocabulary().equivalent_names_by_name.get(self.distinctive_words[0], ())
        return (*self.distinctive_words, *number_words, *synonyms)

    @cached_property
    def no_word_matches(self) -> tuple[None, ...]:
        """The matches of a name that explains no word of the query."""
        return (None,) * len(self.words)

    @property
    def wants_subcommittee(self) -> bool:
        return any(query_word.meaning == ("kind", "subcommittee") for query_word in self.words)

    @cached_property
    def acronym_words(self) -> tuple[str, ...]:
        """The words that `acronym` is made of: one of several letters, or all, of one letter."""
        are_single_letters = all(len(word) == 1 for word in self.distinctive_words)
        return self.distinctive_words if are_single_letters else self.distinctive_words[:1]

    @cached_property
    def acronym(self) -> str | None:
        """`AOC`, `HASC`, `T&I`: letters that may be the initials of a name."""
        joined_letters = "".join(self.acronym_words)
        if len(self.acronym_words) < len(self.distinctive_words):
            return None
        return (
            joined_letters if 2 <= len(joined_letters) <= 6 and joined_letters.isalpha() else None
        )

    def iterate_joined_variants(self) -> Iterator["NameQuery"]:
        """Yield the query with each two neighbours as one word: `van hollen` is `vanhollen`."""
        for word_index, word_pair in enumerate(pairwise(self.word_texts)):
            joined_word = QueryWord("".join(word_pair))
            yield replace(
                self, words=(*self.words[:word_index], joined_word, *self.words[word_index + 2 :])
            )


def _expand_bills_and_years(word_texts: Iterable[str]) -> Iterator[str]:
    """Yield `HR21` as two words, and `FY15` as the year it is."""
    for word_text in word_texts:
        if year_match := _FISCAL_YEAR_PATTERN.fullmatch(word_text):
            yield f"20{year_match[1][-2:]}"
        elif bill_match := _BILL_WORD_PATTERN.fullmatch(word_text):
            yield from bill_match.groups()
        else:
            yield word_text


def _iterate_words_with_meanings(word_texts: Sequence[str]) -> Iterator[QueryWord]:
    """Yield the words with their meanings; those of `new york` share one."""
    code_by_state_words = load_vocabulary().code_by_state_words
    word_index = 0
    while word_index < len(word_texts):
        is_after_place_preposition = (
            word_index > 0 and word_texts[word_index - 1] in _PREPOSITIONS_BEFORE_PLACES
        )
        state_words = next(
            (
                tuple(word_texts[word_index : word_index + word_count])
                for word_count in (3, 2)
                if tuple(word_texts[word_index : word_index + word_count]) in code_by_state_words
            ),
            (),
        )
        if len(state_words) > 1:
            yield from (
                QueryWord(
                    word_text,
                    ("state", code_by_state_words[state_words]),
                    is_after_place_preposition,
                )
                for word_text in state_words
            )
            word_index += len(state_words)
            continue
        meaning = _find_word_meaning(word_texts[word_index])
        is_state_meaning = meaning is not None and meaning[0] == "state"
        yield QueryWord(
            word_texts[word_index], meaning, is_after_place_preposition and is_state_meaning
        )
        word_index += 1


def _find_word_meaning(word_text: str) -> tuple[str, str] | None:
    vocabulary = load_vocabulary()
    word_values_by_kind = {
        "chamber": vocabulary.chambers_by_word,
        "party": vocabulary.parties_by_word,
        "period": vocabulary.periods_by_word,
    }
    for meaning_kind, value_by_word in word_values_by_kind.items():
        if word_text in value_by_word:
            return meaning_kind, value_by_word[word_text]
    if (word_text,) in vocabulary.code_by_state_words:
        return "state", vocabulary.code_by_state_words[(word_text,)]
    if word_text in vocabulary.subcommittee_words:
        return "kind", "subcommittee"
    if ordinal_match := _ORDINAL_PATTERN.fullmatch(word_text):
        return "number", ordinal_match[1]
    # Nothing is counted that far: a longer number is a name, such as that of a meeting.
    return ("number", word_text) if word_text.isdecimal() and len(word_text) < 5 else None

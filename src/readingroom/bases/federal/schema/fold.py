"""Names as they are compared: folded to plain words, cut into trigrams."""

import re
import tomllib
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_VOCABULARY_FILE = Path(__file__).with_name("names.toml")
_DROPPED_CHARACTERS_PATTERN = re.compile(r"['\u2019\u02bc`.]")  # O'Brien and J.D. are one word each
MAX_NAME_LETTERS = 2_000
"""What an index takes of a name."""
_MAX_UNCOUNTED_LETTERS = 100
"""Names that are no longer need not be counted: one letter stands for eighteen at the most."""
_SEPARATORS_PATTERN = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class NameVocabulary:
    """What the words around a name mean, and which names stand for each other."""

    stopwords: frozenset[str]
    weak_words: frozenset[str]
    """Words that occur in so many names that they hardly tell them apart."""
    word_endings: frozenset[str]
    """What words of one stem may end in, including nothing at all."""
    committee_words: frozenset[str]
    subcommittee_words: frozenset[str]
    chambers_by_word: Mapping[str, str]
    parties_by_word: Mapping[str, str]
    periods_by_word: Mapping[str, str]
    record_kind_words_by_registry: Mapping[str, frozenset[str]]
    """By registry, the words that only say what kind of record is wanted."""
    popular_names_by_registry: Mapping[str, Mapping[str, str]]
    """By registry, names that no official file has, each with the id of its record."""
    former_names_by_registry: Mapping[str, Mapping[str, str]]
    """By registry, names that records had, where no official file says so."""
    value_aliases_by_filter: Mapping[str, Mapping[str, str]]
    """By filter, codes and abbreviations in lower case, each with the words it stands for."""
    agency_name_by_nickname: Mapping[str, str]
    """What everybody calls an agency, written together in lower case, though no document does."""
    code_by_state_words: Mapping[tuple[str, ...], str]
    equivalent_names_by_name: Mapping[str, frozenset[str]]


@cache
def load_vocabulary() -> NameVocabulary:
    """Return the vocabulary in `names.toml`."""
    vocabulary_tables = tomllib.loads(_VOCABULARY_FILE.read_text("utf-8"))
    code_by_lowercase_code = {
        (state_code.lower(),): state_code for state_code in vocabulary_tables["states"]
    }
    code_by_state_name = {
        tuple(state_name.split("-")): state_code
        for state_code, state_names in vocabulary_tables["states"].items()
        for state_name in state_names.split()
    }
    return NameVocabulary(
        stopwords=frozenset(vocabulary_tables["stopwords"].split()),
        weak_words=frozenset(vocabulary_tables["weak"].split()),
        word_endings=frozenset(["", *vocabulary_tables["endings"].split()]),
        committee_words=frozenset(vocabulary_tables["committee"].split()),
        subcommittee_words=frozenset(vocabulary_tables["subcommittee"].split()),
        chambers_by_word=_index_meanings_by_word(vocabulary_tables["chambers"]),
        parties_by_word=_index_meanings_by_word(vocabulary_tables["parties"]),
        periods_by_word=_index_meanings_by_word(vocabulary_tables["periods"]),
        record_kind_words_by_registry={
            registry_name: frozenset(kind_words.split())
            for registry_name, kind_words in vocabulary_tables["kinds"].items()
        },
        popular_names_by_registry=vocabulary_tables["popular_names"],
        former_names_by_registry=vocabulary_tables["former_names"],
        value_aliases_by_filter=vocabulary_tables["value_aliases"],
        agency_name_by_nickname=vocabulary_tables["agency_nicknames"],
        code_by_state_words=code_by_lowercase_code | code_by_state_name,
        equivalent_names_by_name=_group_nicknames(
            vocabulary_tables["nicknames"]["groups"].split("\n")
        ),
    )


def _index_meanings_by_word(words_by_meaning: Mapping[str, str]) -> dict[str, str]:
    return {
        word: word_meaning
        for word_meaning, meaning_text in words_by_meaning.items()
        for word in meaning_text.split()
    }


def _group_nicknames(nickname_lines: Iterable[str]) -> dict[str, frozenset[str]]:
    names_by_nickname: dict[str, set[str]] = {}
    for nickname_line in nickname_lines:
        for nickname in nickname_line.split():
            names_by_nickname.setdefault(nickname, set()).update(nickname_line.split())
    return {
        nickname: frozenset(equivalent_names - {nickname})
        for nickname, equivalent_names in names_by_nickname.items()
    }


def fold_name(full_name: str) -> tuple[str, ...]:
    """Return a name as folded words, without stopwords unless it has no other words."""
    folded_words = fold_all_words(full_name)
    return (
        tuple(
            folded_word
            for folded_word in folded_words
            if folded_word not in load_vocabulary().stopwords
        )
        or folded_words
    )


def fold_stored_name(full_name: str) -> tuple[str, ...]:
    """Return the words that a record is found by under a name: of a very long one, the first."""
    folded_words = fold_name(full_name)
    if len(full_name) <= _MAX_UNCOUNTED_LETTERS:
        return folded_words
    letter_count = 0
    for word_index, folded_word in enumerate(folded_words):
        letter_count += len(folded_word) + 2  # between spaces
        if letter_count > MAX_NAME_LETTERS:
            return folded_words[:word_index] or (folded_word[:MAX_NAME_LETTERS],)
    return folded_words


def fold_all_words(written_text: str) -> tuple[str, ...]:
    """Return a text as folded words: lower case, no accents, no punctuation."""
    lower_text = (
        written_text.lower() if written_text.isascii() else _lower_without_accents(written_text)
    )
    return tuple(
        separated_word
        for separated_word in _SEPARATORS_PATTERN.split(
            _DROPPED_CHARACTERS_PATTERN.sub("", lower_text)
        )
        if separated_word
    )


def _lower_without_accents(accented_text: str) -> str:
    # These two letters have no decomposition in Unicode.
    decomposed_text = unicodedata.normalize(
        "NFKD", accented_text.replace("ß", "ss").replace("ø", "o")
    )
    return "".join(
        decomposed_letter
        for decomposed_letter in decomposed_text
        if not unicodedata.combining(decomposed_letter)
    ).lower()


def pad_words(name_words: Sequence[str]) -> str:
    """Join words with spaces on both sides of each, so that its edges make trigrams too."""
    return f"  {'  '.join(name_words)} "


def list_trigrams(word: str) -> list[str]:
    """Return the trigrams of a word with its edges: ` ma`, `mar`, …, `ey `."""
    padded_word = f" {word} " if len(word) > 1 else f"  {word} "
    return list(
        dict.fromkeys(
            padded_word[start_index : start_index + 3]
            for start_index in range(len(padded_word) - 2)
        )
    )


def join_sorted_initials(name_words: Sequence[str]) -> str:
    """Return the initials of the words that are not weak, sorted.

    Sorted, because acronyms do not keep the order of a name: `HASC` is Armed Services.
    """
    return "".join(
        sorted(
            name_word[0]
            for name_word in name_words
            if name_word not in load_vocabulary().weak_words
        )
    )


def get_first_name_id(source_name: str) -> int:
    """Return where the rows of a source's names begin.

    The names of a source have neighbouring rows, so that they can be searched without the others.
    The number is derived from the source's own name, so that it stays when sources come and go.
    """
    return zlib.crc32(source_name.encode()) << 30


MAX_NAMES_PER_SOURCE = 2**30 - 1
"""How many rows of names a source may have."""

"""Names as they are compared: folded to plain words, cut into trigrams."""

import re
import tomllib
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_VOCABULARY = Path(__file__).with_name("names.toml")
_DROPPED = re.compile(r"['\u2019\u02bc`.]")  # O'Brien and J.D. are one word each
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Vocabulary:
    """What the words around a name mean, and which names stand for each other."""

    stopwords: frozenset[str]
    weak: frozenset[str]
    """Words that occur in so many names that they hardly tell them apart."""
    endings: frozenset[str]
    """What words of one stem may end in, including nothing at all."""
    committee: frozenset[str]
    subcommittee: frozenset[str]
    chambers: Mapping[str, str]
    parties: Mapping[str, str]
    periods: Mapping[str, str]
    kinds: Mapping[str, frozenset[str]]
    """By registry, the words that only say what kind of record is wanted."""
    popular_names: Mapping[str, Mapping[str, str]]
    """By registry, names that no official file has, each with the id of its record."""
    value_aliases: Mapping[str, Mapping[str, str]]
    """By filter, codes and abbreviations in lower case, each with the words it stands for."""
    states: Mapping[tuple[str, ...], str]
    nicknames: Mapping[str, frozenset[str]]


@cache
def load_vocabulary() -> Vocabulary:
    """Return the vocabulary in `names.toml`."""
    tables = tomllib.loads(_VOCABULARY.read_text("utf-8"))
    codes = {(state_code.lower(),): state_code for state_code in tables["states"]}
    state_names = {
        tuple(word.split("-")): state_code
        for state_code, state_words in tables["states"].items()
        for word in state_words.split()
    }
    return Vocabulary(
        stopwords=frozenset(tables["stopwords"].split()),
        weak=frozenset(tables["weak"].split()),
        endings=frozenset(["", *tables["endings"].split()]),
        committee=frozenset(tables["committee"].split()),
        subcommittee=frozenset(tables["subcommittee"].split()),
        chambers=_index_by_word(tables["chambers"]),
        parties=_index_by_word(tables["parties"]),
        periods=_index_by_word(tables["periods"]),
        kinds={
            kind_name: frozenset(state_words.split())
            for kind_name, state_words in tables["kinds"].items()
        },
        popular_names=tables["popular_names"],
        value_aliases=tables["value_aliases"],
        states=codes | state_names,
        nicknames=_group_nicknames(tables["nicknames"]["groups"].split("\n")),
    )


def _index_by_word(words_by_meaning: Mapping[str, str]) -> dict[str, str]:
    return {
        word: meaning
        for meaning, meaning_words in words_by_meaning.items()
        for word in meaning_words.split()
    }


def _group_nicknames(nickname_lines: Iterable[str]) -> dict[str, frozenset[str]]:
    equivalents: dict[str, set[str]] = {}
    for nickname_line in nickname_lines:
        for nickname in nickname_line.split():
            equivalents.setdefault(nickname, set()).update(nickname_line.split())
    return {
        nickname: frozenset(equivalent_names - {nickname})
        for nickname, equivalent_names in equivalents.items()
    }


def words(full_name: str) -> tuple[str, ...]:
    """Return a name as folded words, without stopwords unless it has no other words."""
    folded = fold_all_words(full_name)
    return tuple(word for word in folded if word not in load_vocabulary().stopwords) or folded


def fold_all_words(written_text: str) -> tuple[str, ...]:
    """Return a text as folded words: lower case, no accents, no punctuation."""
    lower_text = written_text.lower() if written_text.isascii() else _strip_accents(written_text)
    return tuple(word for word in _SEPARATORS.split(_DROPPED.sub("", lower_text)) if word)


def _strip_accents(accented_text: str) -> str:
    # These two letters have no decomposition in Unicode.
    plain = unicodedata.normalize("NFKD", accented_text.replace("ß", "ss").replace("ø", "o"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()


def pad(name_words: Sequence[str]) -> str:
    """Join words with spaces on both sides of each, so that its edges make trigrams too."""
    return f"  {'  '.join(name_words)} "


def trigrams(word: str) -> list[str]:
    """Return the trigrams of a word with its edges: ` ma`, `mar`, …, `ey `."""
    padded = f" {word} " if len(word) > 1 else f"  {word} "
    return list(
        dict.fromkeys(
            padded[start_index : start_index + 3] for start_index in range(len(padded) - 2)
        )
    )


def initials(name_words: Sequence[str]) -> str:
    """Return the initials of the words that are not weak, sorted.

    Sorted, because acronyms do not keep the order of a name: `HASC` is Armed Services.
    """
    return "".join(sorted(word[0] for word in name_words if word not in load_vocabulary().weak))


def first_row(source_name: str) -> int:
    """Return where the rows of a source's names begin.

    The names of a source have neighbouring rows, so that they can be searched without the others.
    The number is derived from the source's own name, so that it stays when sources come and go.
    """
    return zlib.crc32(source_name.encode()) << 30


ROWS = 2**30 - 1
"""How many rows of names a source may have."""

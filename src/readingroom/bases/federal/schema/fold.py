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
    codes = {(code.lower(),): code for code in tables["states"]}
    names = {
        tuple(word.split("-")): code
        for code, words in tables["states"].items()
        for word in words.split()
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
        kinds={name: frozenset(words.split()) for name, words in tables["kinds"].items()},
        popular_names=tables["popular_names"],
        value_aliases=tables["value_aliases"],
        states=codes | names,
        nicknames=_group_nicknames(tables["nicknames"]["groups"].split("\n")),
    )


def _index_by_word(table: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in table.items() for word in words.split()}


def _group_nicknames(groups: Iterable[str]) -> dict[str, frozenset[str]]:
    equivalents: dict[str, set[str]] = {}
    for group in groups:
        for name in group.split():
            equivalents.setdefault(name, set()).update(group.split())
    return {name: frozenset(others - {name}) for name, others in equivalents.items()}


def words(name: str) -> tuple[str, ...]:
    """Return a name as folded words, without stopwords unless it has no other words."""
    folded = fold_all_words(name)
    return tuple(word for word in folded if word not in load_vocabulary().stopwords) or folded


def fold_all_words(text: str) -> tuple[str, ...]:
    """Return a text as folded words: lower case, no accents, no punctuation."""
    letters = text.lower() if text.isascii() else _strip_accents(text)
    return tuple(word for word in _SEPARATORS.split(_DROPPED.sub("", letters)) if word)


def _strip_accents(text: str) -> str:
    # These two letters have no decomposition in Unicode.
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss").replace("ø", "o"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()


def pad(name_words: Sequence[str]) -> str:
    """Join words with spaces on both sides of each, so that its edges make trigrams too."""
    return f"  {'  '.join(name_words)} "


def trigrams(word: str) -> list[str]:
    """Return the trigrams of a word with its edges: ` ma`, `mar`, …, `ey `."""
    padded = f" {word} " if len(word) > 1 else f"  {word} "
    return list(dict.fromkeys(padded[start : start + 3] for start in range(len(padded) - 2)))


def initials(name_words: Sequence[str]) -> str:
    """Return the initials of the words that are not weak, sorted.

    Sorted, because acronyms do not keep the order of a name: `HASC` is Armed Services.
    """
    return "".join(sorted(word[0] for word in name_words if word not in load_vocabulary().weak))


def first_row(source: str) -> int:
    """Return where the rows of a source's names begin.

    The names of a source have neighbouring rows, so that they can be searched without the others.
    The number is derived from the source's own name, so that it stays when sources come and go.
    """
    return zlib.crc32(source.encode()) << 30


ROWS = 2**30 - 1
"""How many rows of names a source may have."""

"""Names as they are compared: folded to plain words, cut into three-letter pieces."""

import re
import tomllib
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_VOCABULARY = Path(__file__).with_name("names.toml")
_JOINED = re.compile(r"['\u2019\u02bc`.]")  # O'Brien and J.D. are one word each
_APART = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Vocabulary:
    """What the words beside a name mean, and which names stand for each other."""

    silent: frozenset[str]
    weak: frozenset[str]
    endings: frozenset[str]
    """What words of one stem may end in, besides nothing at all."""
    committee: frozenset[str]
    subcommittee: frozenset[str]
    chambers: Mapping[str, str]
    parties: Mapping[str, str]
    periods: Mapping[str, str]
    kinds: Mapping[str, frozenset[str]]
    """By registry, the words that only say which kind of record is looked for."""
    known_as: Mapping[str, Mapping[str, str]]
    """By registry, names that stand in no official file, each with the id of its record."""
    states: Mapping[tuple[str, ...], str]
    nicknames: Mapping[str, frozenset[str]]


@cache
def vocabulary() -> Vocabulary:
    told = tomllib.loads(_VOCABULARY.read_text("utf-8"))
    codes = {(code.lower(),): code for code in told["states"]}
    named = {
        tuple(word.split("-")): code
        for code, words in told["states"].items()
        for word in words.split()
    }
    return Vocabulary(
        silent=frozenset(told["silent"].split()),
        weak=frozenset(told["weak"].split()),
        endings=frozenset(["", *told["endings"].split()]),
        committee=frozenset(told["committee"].split()),
        subcommittee=frozenset(told["subcommittee"].split()),
        chambers=_by_word(told["chambers"]),
        parties=_by_word(told["parties"]),
        periods=_by_word(told["periods"]),
        kinds={name: frozenset(words.split()) for name, words in told["kinds"].items()},
        known_as=told["known_as"],
        states=codes | named,
        nicknames=_nicknames(told["nicknames"]["groups"].split("\n")),
    )


def _by_word(table: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in table.items() for word in words.split()}


def _nicknames(groups: Iterable[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in groups:
        for name in group.split():
            found.setdefault(name, set()).update(group.split())
    return {name: frozenset(others - {name}) for name, others in found.items()}


def words(name: str) -> tuple[str, ...]:
    """A name as folded words, without those that say nothing, unless there are no others."""
    found = all_words(name)
    return tuple(word for word in found if word not in vocabulary().silent) or found


def all_words(text: str) -> tuple[str, ...]:
    """A text as folded words: no case, no accents, no punctuation."""
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss").replace("ø", "o"))
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()
    return tuple(word for word in _APART.split(_JOINED.sub("", letters)) if word)


def padded(name_words: Sequence[str]) -> str:
    """Words with their edges marked by spaces, so that the beginning of a word is a piece too."""
    return f"  {'  '.join(name_words)} "


def pieces(word: str) -> list[str]:
    """The three-letter pieces of a word and its edges: ` ma`, `mar`, …, `ey `."""
    marked = f" {word} " if len(word) > 1 else f"  {word} "
    return list(dict.fromkeys(marked[at : at + 3] for at in range(len(marked) - 2)))


def initials(name_words: Sequence[str]) -> str:
    """First letters of the words that matter, sorted: `HASC` is not in the order of its name."""
    return "".join(sorted(word[0] for word in name_words if word not in vocabulary().weak))


def first_row(source: str) -> int:
    """Where the rows of a source's names begin: together, so that one is searched without others.

    Derived from the source's own name, so that it stays when sources come and go.
    """
    return zlib.crc32(source.encode()) << 30


ROWS = 2**30 - 1
"""How many rows each source may have."""

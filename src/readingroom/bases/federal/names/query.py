"""A noisy name, word by word, and what each word may say besides."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.fold import vocabulary
from readingroom.bases.federal.schema.ids import BILL_TYPES

_WHERE = ("of", "from")
_FISCAL = re.compile(r"fy(\d{2}|\d{4})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_BILL = re.compile(rf"({'|'.join(BILL_TYPES)})(\d+)")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question, and what it may say of the record besides its name."""

    text: str
    meaning: tuple[str, str] | None = None
    no_name: bool = False
    """Whether it can only be that: Smith `of Virginia` is not Virginia Smith."""
    of_a_kind: bool = False
    """Whether it may only say which kind of record is looked for: LEGO `lobbying report`."""


@dataclass(frozen=True)
class Asked:
    """The question, word by word."""

    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str, registry: str) -> "Asked":
        kinds = vocabulary().kinds.get(registry, frozenset())
        words = tuple(
            replace(word, of_a_kind=word.text in kinds)
            for word in _read(tuple(_spread(fold.all_words(text))))
        )
        telling = tuple(word for word in words if word.text not in vocabulary().silent)
        return cls(telling or words)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)

    @cached_property
    def spelt(self) -> tuple[str, ...]:
        """The words as names are compared with them: nothing for one that is no name."""
        return tuple("" if word.no_name else word.text for word in self.words)

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """The words that tell names apart; all of them where none does."""
        weak = vocabulary().weak
        told = [word.text for word in self.words if word.text not in weak]
        plain = [
            word.text
            for word in self.words
            if word.text in told and not word.meaning and not word.of_a_kind
        ]
        return tuple(plain or told or self.texts)

    @cached_property
    def sought(self) -> tuple[str, ...]:
        """Of which words names must share pieces. One alone may stand for others: `guns`."""
        numbers = [word.text for word in self.words if word.meaning and word.meaning[0] == "number"]
        if len(self.telling) > 1:
            return (*self.telling, *numbers)
        return (*self.telling, *numbers, *vocabulary().nicknames.get(self.telling[0], ()))

    @cached_property
    def nothing(self) -> tuple[None, ...]:
        """That no word of it is explained."""
        return (None,) * len(self.words)

    @property
    def of_a_part(self) -> bool:
        return any(word.meaning == ("kind", "subcommittee") for word in self.words)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The words that `acronym` is made of: one of several letters, or all of one."""
        alone = all(len(word) == 1 for word in self.telling)
        return self.telling if alone else self.telling[:1]

    @cached_property
    def acronym(self) -> str | None:
        """`AOC`, `HASC`, `T&I`: letters that may be the initials of a name."""
        joined = "".join(self.letters)
        if len(self.letters) < len(self.telling):
            return None
        return joined if 2 <= len(joined) <= 6 and joined.isalpha() else None

    def joined(self) -> Iterator["Asked"]:
        """The same with two neighbours as one word: `van hollen` is `vanhollen`."""
        for at, pair in enumerate(pairwise(self.texts)):
            one = Word("".join(pair))
            yield replace(self, words=(*self.words[:at], one, *self.words[at + 2 :]))


def _spread(texts: Iterable[str]) -> Iterator[str]:
    """What is written as one word apart: `HR21`; and `FY15` as the year it is."""
    for text in texts:
        if fiscal := _FISCAL.fullmatch(text):
            yield f"20{fiscal[1][-2:]}"
        elif bill := _BILL.fullmatch(text):
            yield from bill.groups()
        else:
            yield text


def _read(texts: Sequence[str]) -> Iterator[Word]:
    """Words with their meanings; the two of `new york` share one."""
    known = vocabulary()
    at = 0
    while at < len(texts):
        where = at > 0 and texts[at - 1] in _WHERE
        pair = tuple(texts[at : at + 2])
        if len(pair) == 2 and pair in known.states:
            yield from (Word(text, ("state", known.states[pair]), where) for text in pair)
            at += 2
            continue
        meaning = _meaning(texts[at])
        yield Word(texts[at], meaning, where and meaning is not None and meaning[0] == "state")
        at += 1


def _meaning(text: str) -> tuple[str, str] | None:
    known = vocabulary()
    tables = {"chamber": known.chambers, "party": known.parties, "period": known.periods}
    for kind, table in tables.items():
        if text in table:
            return kind, table[text]
    if (text,) in known.states:
        return "state", known.states[(text,)]
    if text in known.subcommittee:
        return "kind", "subcommittee"
    if ordinal := _ORDINAL.fullmatch(text):
        return "number", ordinal[1]
    # Nothing is counted that far: a longer number is a name, such as that of a meeting.
    return ("number", text) if text.isdecimal() and len(text) < 5 else None

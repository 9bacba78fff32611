"""What stands beside a record's name: what it belongs to, and what else it says of itself."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.names.similarity import (
    Likeness,
    Tie,
    alike,
    compare,
    initials_worth,
    spelt_out,
)
from readingroom.bases.federal.schema import fold


@dataclass(frozen=True, slots=True)
class Beside:
    """Where to look, in the records of a registry, for words that are not in their names."""

    kin: Mapping[str, str] = field(default_factory=dict)
    """Fields with ids of what the record belongs to, each with the registry of those."""
    told: tuple[str, ...] = ()
    """Fields whose words may be asked for."""


BESIDE: Mapping[str, Beside] = {
    "committees": Beside({"parent_id": "committees"}),
    "staff_directories": Beside(
        {"bioguide_id": "legislators"},
        ("title", "type", "city", "building", "address", "zip", "accounts"),
    ),
    "committee_memberships": Beside(
        {"committee_id": "committees", "bioguide_id": "legislators"}, ("role", "side")
    ),
    "hearings": Beside({"committees": "committees"}, ("id", "title", "type", "location", "bills")),
    "roll_call_votes": Beside(
        told=("title", "question", "description", "amendment", "result", "type")
    ),
    "lda_filings": Beside(told=("title", "period", "activities")),
    "regulations_dot_gov_dockets": Beside(
        told=("title", "id", "agency", "type", "abstract", "keywords", "program", "organization")
    ),
}
_NOTHING = Beside()
_KIN, _TOLD = 0.97, 0.9
"""What a word is worth that is found there, beside 1 for one in the name."""


_FAR = 0.6
"""What is less than this by itself explains nothing there: an initial among so many words."""
_WORDS = 200
"""How many words of its other fields are looked at: an abstract may be long."""


def letters_beside(record: Mapping[str, Any]) -> str:
    """What an acronym may have besides the initials of a committee: its chamber, `committee`."""
    return f"c{(record.get('chamber') or ' ')[0]}" if record.get("source") == "committees" else ""


def beside(source: str) -> Beside:
    return BESIDE.get(source, _NOTHING)


@dataclass(frozen=True, slots=True)
class Kin:
    """A record that another belongs to, beside the question."""

    record: Mapping[str, Any]
    likeness: Likeness


class Company:
    """Explains words of a question by what stands beside a name; reads each relative once."""

    def __init__(self, db: sqlite3.Connection, source: str, asked: Sequence[str]) -> None:
        self._db = db
        self._beside = beside(source)
        self._asked = asked
        self._kin: dict[str, Kin | None] = {}

    def kin_of(self, record: Mapping[str, Any]) -> list[Kin]:
        """The records that one belongs to, as far as they are here."""
        found = (
            self._read(registry, id)
            for name, registry in self._beside.kin.items()
            for id in _several(record.get(name))
        )
        return [one for one in found if one]

    def _read(self, registry: str, id: str) -> Kin | None:
        if id not in self._kin:
            self._kin[id] = self._compared(registry, id)
        return self._kin[id]

    def _compared(self, registry: str, id: str) -> Kin | None:
        row = self._db.execute(f"SELECT record FROM {registry} WHERE id = ?", (id,)).fetchone()
        names = self._db.execute(
            "SELECT folded FROM name_forms JOIN names USING (name_row) WHERE record_id = ?", (id,)
        ).fetchall()
        if row is None or not names:
            return None
        record = from_json(row["record"])
        near = (self._likeness(tuple(name["folded"].split()), record) for name in names)
        return Kin(record, max(near, key=_closeness))

    def _likeness(self, name: tuple[str, ...], record: Mapping[str, Any]) -> Likeness:
        """Beside a name, of which a word of the question may be the initials."""
        likeness = compare(self._asked, name)
        ties = list(likeness.ties)
        for at, word in enumerate(self._asked):
            if ties[at] is None and 3 <= len(word) <= 6:
                value = initials_worth(word, name, letters_beside(record))
                ties[at] = Tie(word, " ".join(name), value, "stands for") if value else None
        return Likeness(tuple(ties), likeness.asked_share)

    def ties(
        self, name: tuple[str, ...], record: Mapping[str, Any], kin: Iterable[Kin]
    ) -> list[Tie | None]:
        """The best that relatives and other fields say of each word of the question.

        One word may be the initials of a committee whose name others say: `Intel (HPSCI)`.
        """
        words = tuple(islice(self._told(record), _WORDS))
        near = [one.likeness for one in kin]
        if record.get("source") == "committees":
            near.append(self._likeness(name, record))
        return [
            _best([_worth(one.ties[at], _KIN) for one in near] + [_in(word, words)])
            for at, word in enumerate(self._asked)
        ]

    def _told(self, record: Mapping[str, Any]) -> Iterator[str]:
        for name in self._beside.told:
            for text in _texts(record.get(name)):
                yield from fold.all_words(text)


def _closeness(likeness: Likeness) -> tuple[float, float]:
    return sum(tie.value for tie in likeness.ties if tie), likeness.asked_share


def _several(told: Any) -> Sequence[str]:
    return told if isinstance(told, list) else [told] if told else []


def _texts(told: Any) -> Iterator[str]:
    """Every text in a field, however deep, and what it is called there: `twitter`."""
    if isinstance(told, Mapping):
        told = [*told.keys(), *told.values()]
    if isinstance(told, list):
        for one in told:
            yield from _texts(one)
    elif told is not None:
        yield str(told)


def _in(word: str, words: tuple[str, ...]) -> Tie | None:
    """How a word stands among others; an initial says nothing there."""
    if not word:
        return None
    if word in words:
        return Tie(word, word, _TOLD, "stands beside")
    if len(word) < 3:
        return None
    if run := spelt_out(word, words):
        return _worth(Tie(word, " ".join(words[run.start : run.stop]), 0.85, "stands for"), _TOLD)
    return _worth(_best(alike(word, other) for other in set(words) if len(other) > 2), _TOLD)


def _worth(tie: Tie | None, share: float) -> Tie | None:
    if tie is None or tie.value < _FAR:
        return None
    return Tie(tie.word, tie.name_word, tie.value * share, tie.how)


def _best(ties: Iterable[Tie | None]) -> Tie | None:
    return max((tie for tie in ties if tie), key=lambda tie: tie.value, default=None)

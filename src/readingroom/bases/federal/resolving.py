"""Finds the records of a registry that a noisy name may mean, best first, and says why."""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, islice, pairwise
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal import naming
from readingroom.bases.federal.company import Company, Kin, beside, letters_beside
from readingroom.bases.federal.likeness import (
    Likeness,
    Tie,
    compare,
    initials_worth,
    same_spelling,
    spelt_out,
    weight,
)
from readingroom.bases.federal.naming import vocabulary
from readingroom.bases.federal.narrowing import Narrowed
from readingroom.bases.federal.sources import BY_NAME, Source
from readingroom.core.errors import UnrecognizedId
from readingroom.core.ids import BILL_TYPES, federal_id

_NAMES = 300
"""How many names that share pieces with the question are looked at closely."""
_CLOSE = 40
"""For how many of those it is tried to read two words as one."""
_RECORDS = 600
_ROWS = 5_000
_ENOUGH = 0.5
"""What a record must score to be an answer at all."""
_SURE = 0.8
"""What ends the looking. Under it, what stands beside names is asked as well."""
_KIN = 12
"""How many relatives, of the likeliest, lead to their records."""
_PART = 0.9
"""What a subcommittee is worth beside its committee, unless one was asked for."""
_WHERE = ("of", "from")
_FISCAL = re.compile(r"fy(\d{2}|\d{4})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_BILL = re.compile(rf"({'|'.join(BILL_TYPES)})(\d+)")
_NUMBERED = ("district", "congress", "number", "session", "year")
_PAST = 0.95
"""What a committee of the past is worth beside one that sits."""
_KIND, _WRONG_KIND = 0.15, 0.05
"""What a word weighs that names a kind of record: when the record says so too, when it does not."""
_CONTEXT = 0.6
"""What a word like `Mass` or `Sen.` weighs, beside 1 for a name."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question, and what it may say of the record besides its name."""

    text: str
    meaning: tuple[str, str] | None = None
    no_name: bool = False
    """Whether it can only be that: Smith `of Virginia` is not Virginia Smith."""
    of_a_kind: bool = False
    """Whether it may only say which kind of record is looked for: LEGO `lobbying report`."""


@dataclass(frozen=True, slots=True)
class Match:
    """A record that may be meant: how surely, and why."""

    id: str
    score: float
    why: list[str]
    record: dict[str, Any]
    length: int = 1
    """How many words the name has that led here."""


@dataclass(frozen=True)
class Asked:
    """The question, word by word."""

    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str, registry: str) -> "Asked":
        kinds = vocabulary().kinds.get(registry, frozenset())
        words = tuple(
            replace(word, of_a_kind=word.text in kinds)
            for word in _read(tuple(_spread(naming.all_words(text))))
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


# --- the answer ---


def resolve(db: sqlite3.Connection, source: Source, query: str, narrowed: Narrowed) -> list[Match]:
    """Every record that the words may mean, the likeliest first."""
    asked = Asked.of(query, source.name)
    names = _candidates(db, source, asked, narrowed) if asked.words else {}
    found: dict[str, Match] = {}
    ways = (
        _by_id(db, source, query, narrowed),
        _matches(db, source, asked, _close(asked, names), narrowed),
        _by_known_name(db, source, asked, narrowed),
        _by_context(db, source, asked, narrowed),
    )
    _keep_best(found, chain.from_iterable(ways))
    told = beside(source.name)
    if told.kin or (told.told and all(match.score < _SURE for match in found.values())):
        # Names that explain only some of the words, where the record may explain the others.
        wider = _close(asked, names, unsaid=0.8)
        _keep_best(found, _matches(db, source, asked, wider, narrowed))
        _keep_best(found, _by_kin(db, source, asked, narrowed))
    enough = (match for match in found.values() if match.score >= _ENOUGH)
    return sorted(enough, key=_order)


def _keep_best(found: dict[str, Match], matches: Iterable[Match]) -> None:
    for match in matches:
        best = found.get(match.id)
        if best is None or match.score > best.score:
            found[match.id] = match


def _order(match: Match) -> tuple[Any, ...]:
    """By score; of equals, who sits now before who sat, committees before their parts, the newest
    first.
    """
    told = match.record
    return (
        -match.score,
        not told.get("current", True),
        bool(told.get("stub")),
        bool(told.get("parent_id")),
        match.length,
        _newest_first(told.get("published_at")),
        match.id,
    )


def _newest_first(day: str | None) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in day) if day else (0,)


def _by_id(
    db: sqlite3.Connection, source: Source, query: str, narrowed: Narrowed
) -> Iterator[Match]:
    """The question may simply be an id."""
    try:
        found = federal_id(query)
    except UnrecognizedId:
        return
    if found.source == source.name:
        for id, record in _records(db, source, ("id = ?", found.id), narrowed):
            yield Match(id, 1.0, [f"{id} is its id"], record)


def _candidates(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> dict[int, tuple[str, ...]]:
    sharing = _sharing(db, source, asked, narrowed)
    if len(sharing) >= _NAMES:
        # More bear the name than are looked at: of these, not without the state that was said.
        sharing |= _sharing(db, source, asked, _also(narrowed, _told(source, asked)))
    return {**sharing, **_with_initials(db, source, asked.acronym)}


def _matches(
    db: sqlite3.Connection,
    source: Source,
    asked: Asked,
    names: Mapping[int, "Near"],
    narrowed: Narrowed,
) -> Iterator[Match]:
    company = Company(db, source.name, asked.spelt)
    for id, (row, form), record in _named_records(db, source, names, narrowed):
        yield from _match(company, asked, names[row], form, id, record)


def _match(
    company: Company, asked: Asked, near: "Near", form: str, id: str, record: dict[str, Any]
) -> Iterator[Match]:
    of_committees = [one.record for one in company.kin_of(record) if "parent_id" in one.record]
    if any(_of_the_other_chamber(asked, near, one) for one in (record, *of_committees)):
        return
    score, why = _judged(company, asked, near, form, record)
    if _is_of_a_part(record) and not asked.of_a_part:
        score *= _PART
    if record.get("source") == "committees" and not record["current"]:
        score *= _PAST
    yield Match(id, round(score, 4), why, record, len(near.words))


def _is_of_a_part(record: Mapping[str, Any]) -> bool:
    """Whether it is a subcommittee, or a seat on one."""
    id = record["id"] if record.get("source") == "committees" else record.get("committee_id")
    return len(id or "") > 4


def _by_known_name(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    """What everybody calls a record, though no official file does."""
    company = Company(db, source.name, asked.spelt)
    for name, meant in vocabulary().known_as.get(source.name, {}).items():
        near = _near(naming.words(name), asked)
        if near.promise >= _SURE:
            for id, record in _records(db, source, ("id = ?", meant), narrowed):
                yield from _match(company, asked, near, name, id, record)


def _by_kin(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    """What belongs to those that some of the words name: the offices of Pelosi."""
    if not asked.words:
        return
    company = Company(db, source.name, asked.spelt)
    for field, registry in beside(source.name).kin.items():
        relatives = _relatives(db, BY_NAME[registry], asked)
        for id, record in _records_of(db, source, field, relatives, narrowed):
            for folded, form in _forms(db, id):
                yield from _match(company, asked, _near(folded, asked), form, id, record)


def _relatives(db: sqlite3.Connection, registry: Source, asked: Asked) -> list[str]:
    """The likeliest records of a registry that some of the words name."""
    everything = Narrowed(registry.resource.where, (), {})
    names = _sharing(db, registry, asked, everything)
    for word in asked.telling:
        if registry.name == "committees" and 3 <= len(word) <= 6:
            names |= _with_initials(db, registry, word)
    likely = sorted(names, key=lambda row: (-_named(asked, names[row]), row))[:_KIN]
    found = db.execute(
        f"""SELECT DISTINCT record_id FROM name_forms
            WHERE name_row IN ({", ".join("?" * len(likely))}) LIMIT {2 * _KIN}""",
        likely,
    )
    return [row["record_id"] for row in found]


def _named(asked: Asked, name: tuple[str, ...]) -> float:
    """How much of a question names this, whatever the rest of it says."""
    likeness = compare(asked.spelt, name)
    initials = max(
        (initials_worth(word, name, "chsj") for word in asked.telling if 3 <= len(word) <= 6),
        default=0.0,
    )
    values = sum(tie.value * weight(tie.word) for tie in likeness.ties if tie)
    return max(values, initials) + 0.5 * likeness.asked_share


def _by_context(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    """Who is meant when no name is said at all: `senators from Mass`, `CA-11`."""
    told = _told(source, asked)
    if "state" not in told or not all(word.meaning for word in asked.words):
        return
    for id, record in _records(db, source, ("1",), _also(narrowed, told)):
        borne_out, why = _borne_out(asked, asked.nothing, asked.nothing, [record])
        yield Match(id, round(_scored(asked, borne_out, 1.0), 4), why, record)


def _told(source: Source, asked: Asked) -> dict[str, str]:
    """What the question says of the record that a column of the source can be asked for."""
    columns = {column.name for column in source.columns}
    return dict(word.meaning for word in asked.words if word.meaning and word.meaning[0] in columns)


def _also(narrowed: Narrowed, more: Mapping[str, str]) -> Narrowed:
    sql = " AND ".join([narrowed.sql, *(f"{name} = ?" for name in more)])
    return Narrowed(sql, (*narrowed.values, *more.values()), {**narrowed.filters, **more})


# --- names that may be meant ---


def _sharing(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> dict[int, tuple[str, ...]]:
    """The names that share most pieces with the question, and those that are it exactly."""
    first = naming.first_row(source.name)
    rows = (first, first + naming.ROWS)
    one = (
        "SELECT rowid AS name_row FROM names_fts WHERE names_fts MATCH ? AND rowid BETWEEN ? AND ?"
    )
    pieces = dict.fromkeys(piece for word in asked.sought for piece in naming.pieces(word))
    found = db.execute(
        f"""SELECT name_row, count(*) AS shared FROM ({" UNION ALL ".join([one] * len(pieces))})
            GROUP BY name_row ORDER BY shared DESC""",
        [value for piece in pieces for value in (f'"{piece}"', *rows)],
    )
    near = list(islice(_passing(db, source, _nearest(found), narrowed), _NAMES))
    named = db.execute(
        f"""SELECT name_row, folded FROM names WHERE name_row IN ({", ".join("?" * len(near))})
            UNION SELECT name_row, folded FROM names WHERE source = ? AND folded = ?""",
        (*near, source.name, naming.padded(asked.texts)),
    )
    return {row["name_row"]: tuple(row["folded"].split()) for row in named}


def _nearest(found: Iterable[sqlite3.Row]) -> Iterator[int]:
    """Whoever shares less than half of what the best one does is not meant."""
    most = 0
    for row in found:
        most = most or row["shared"]
        if 2 * row["shared"] < most:
            return
        yield row["name_row"]


def _passing(
    db: sqlite3.Connection, source: Source, rows: Iterator[int], narrowed: Narrowed
) -> Iterator[int]:
    """Those of the names that a record bears which passes the filters: asked before any is cut."""
    if not narrowed.filters:
        yield from rows
        return
    bears = f"""SELECT 1 FROM name_forms f CROSS JOIN {source.name} r ON r.id = f.record_id
                WHERE f.name_row = ? AND {narrowed.sql} LIMIT 1"""
    for row in rows:
        if db.execute(bears, (row, *narrowed.values)).fetchone():
            yield row


def _with_initials(
    db: sqlite3.Connection, source: Source, acronym: str | None
) -> dict[int, tuple[str, ...]]:
    """Names whose first letters are the question, with or without chamber and `committee`.

    Also those with more words than it has letters: `THUD` has no R for Related Agencies.
    """
    if not acronym:
        return {}
    letters = sorted(acronym)
    keys = {"".join(some) for size in range(1, 7) for some in combinations(letters, size)}
    found = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials IN ({", ".join("?" * len(keys))}) LIMIT {_NAMES}""",
        (source.name, *keys),
    ).fetchall()
    names = {row["name_row"]: tuple(row["folded"].split()) for row in found}
    if len(acronym) < 3:
        return names
    found = db.execute(
        f"SELECT name_row, folded FROM names WHERE source = ? AND initials LIKE ? LIMIT {_ROWS}",
        (source.name, f"%{'%'.join(letters)}%"),
    ).fetchall()
    more = {row["name_row"]: tuple(row["folded"].split()) for row in found}
    return names | {row: name for row, name in more.items() if spelt_out(acronym, name)}


@dataclass(frozen=True, slots=True)
class Near:
    """A name that may be meant, beside the reading of the question that is nearest to it."""

    words: tuple[str, ...]
    asked: Asked
    likeness: Likeness
    promise: float
    """What it can come to when the record bears out every word that may mean something else."""


def _close(
    asked: Asked, names: Mapping[int, tuple[str, ...]], unsaid: float = 0.0
) -> dict[int, Near]:
    """The names that may come to an answer. Only for the nearest are two words read as one."""
    near = {row: _near(words, asked, unsaid) for row, words in names.items()}
    best = sorted(near, key=lambda row: (-near[row].promise, row))[:_CLOSE]
    near |= {row: max(_readings(near[row]), key=lambda one: one.promise) for row in best}
    return {row: one for row, one in near.items() if one.promise >= _ENOUGH}


def _readings(near: Near) -> Iterator[Near]:
    yield near
    weak = vocabulary().weak
    for at, asked in enumerate(near.asked.joined()):
        apart = any(word.of_a_kind or word.text in weak for word in near.asked.words[at : at + 2])
        if not apart and any(same_spelling(asked.texts[at], word) for word in near.words):
            yield _near(near.words, asked)
    for at, (one, other) in enumerate(pairwise(near.words)):
        if any(same_spelling(word, one + other) for word in near.asked.texts):
            yield _near((*near.words[:at], one + other, *near.words[at + 2 :]), near.asked)


def _near(words: tuple[str, ...], asked: Asked, unsaid: float = 0.0) -> Near:
    """`unsaid` is what a word may come to that the name does not explain."""
    likeness = compare(asked.spelt, words)
    if asked.acronym and initials_worth(asked.acronym, words, "chsj"):
        return Near(words, asked, likeness, 1.0)
    values = [
        1.0 if word.meaning else tie.value if tie else 0.0 if word.of_a_kind else unsaid
        for word, tie in zip(asked.words, likeness.ties, strict=True)
    ]
    return Near(words, asked, likeness, _scored(asked, values, likeness.asked_share))


# --- records ---


def _named_records(
    db: sqlite3.Connection, source: Source, names: Collection[int], narrowed: Narrowed
) -> Iterator[tuple[str, tuple[int, str], dict[str, Any]]]:
    """The newest records that bear each name, with the form in which they bear it."""
    # CROSS JOIN: by the name first, however tempting the index of the newest records looks.
    sql = f"""SELECT r.id, f.form, r.record
              FROM name_forms f CROSS JOIN {source.name} r ON r.id = f.record_id
              WHERE f.name_row = ? AND {narrowed.sql} ORDER BY r.published_at DESC, r.id LIMIT ?"""
    for name in names:
        for row in db.execute(sql, (name, *narrowed.values, max(1, _RECORDS // len(names)))):
            yield row["id"], (name, row["form"]), from_json(row["record"])


def _records_of(
    db: sqlite3.Connection,
    source: Source,
    field: str,
    relatives: Sequence[str],
    narrowed: Narrowed,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The newest records that belong to any of these."""
    many = ", ".join("?" * len(relatives))
    if any(column.name == field for column in source.columns):
        condition = f"{field} IN ({many})"
    else:
        condition = f"id IN (SELECT from_id FROM links WHERE to_id IN ({many}))"
    return _records(db, source, (condition, *relatives), narrowed)


def _forms(db: sqlite3.Connection, id: str) -> Iterator[tuple[tuple[str, ...], str]]:
    found = db.execute(
        "SELECT folded, form FROM name_forms JOIN names USING (name_row) WHERE record_id = ?", (id,)
    )
    for row in found:
        yield tuple(row["folded"].split()), row["form"]


def _records(
    db: sqlite3.Connection, source: Source, where: tuple[Any, ...], narrowed: Narrowed
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The newest records under a condition, which comes with its values."""
    condition, *values = where
    rows = db.execute(
        f"""SELECT id, record FROM {source.name} WHERE {condition} AND {narrowed.sql}
            ORDER BY published_at DESC, id LIMIT ?""",
        (*values, *narrowed.values, _RECORDS),
    )
    for row in rows:
        yield row["id"], from_json(row["record"])


def _judged(
    company: Company, asked: Asked, near: Near, form: str, record: Mapping[str, Any]
) -> tuple[float, list[str]]:
    """How well a record explains the question: by its name, else by what stands beside it."""
    acronym = asked.acronym or ""
    initials = acronym and initials_worth(acronym, near.words, letters_beside(record))
    if initials:
        values, why = _borne_out(asked, asked.nothing, asked.nothing, [record])
        told = [
            initials if word.text in asked.letters else value
            for word, value in zip(asked.words, values, strict=True)
        ]
        said = f"{acronym!r} are the initials of {form!r}"
        return _scored(asked, told, 1.0), [said, *why]
    ties = near.likeness.ties
    kin: list[Kin] = []
    besides: Sequence[Tie | None] = near.asked.nothing
    if near.asked is asked and not all(tie and tie.value == 1.0 for tie in ties):
        kin = company.kin_of(record)
        besides = company.ties(near.words, record, kin)
    if not any(tie and tie.value > 0.5 for tie in (*ties, *besides)):
        return 0.0, []
    values, why = _borne_out(near.asked, ties, besides, [record, *(one.record for one in kin)])
    shares = [near.likeness.asked_share, *(one.likeness.asked_share for one in kin)]
    named = _fully_named(near)
    score = _scored(near.asked, values, sum(shares) / len(shares), 0.5 if named else 1.0)
    return score, [f"named {form!r}", *why]


def _fully_named(near: Near) -> bool:
    """Whether the whole of a name was said, of more than one word: the rest says less then."""
    well = (tie for tie in near.likeness.ties if tie and tie.value > 0.8)
    return sum(weight(tie.word) == 1.0 for tie in well) > 1 and near.likeness.asked_share > 0.9


def _borne_out(
    asked: Asked,
    ties: Sequence[Tie | None],
    besides: Sequence[Tie | None],
    records: Sequence[Mapping[str, Any]],
) -> tuple[list[float | None], list[str]]:
    """What each word comes to, and why; None for one that neither speaks for a record nor against.

    The first record is the one that may be meant; the others are what it belongs to.
    """
    values: list[float | None] = []
    why = []
    for word, tie, other in zip(asked.words, ties, besides, strict=True):
        best = other if other and (tie is None or other.value > tie.value) else tie
        said = next(filter(None, (_says(one, word) for one in records)), None)
        if said and (best is None or best.value < 1.0):
            values.append(1.0)
            why.append(f"{word.text!r} is its {said}")
        elif best:
            values.append(best.value)
            if best.value < 1.0:
                why.append(f"{best.word!r} {best.how} {best.name_word!r}")
        else:
            values.append(None if _says_nothing(word, records[0]) else 0.0)
    return values, why


def _says_nothing(word: Word, record: Mapping[str, Any]) -> bool:
    """Whether a word is no reason against a record that does not bear it out."""
    return bool(
        word.meaning
        and word.meaning[0] == "number"
        and not record.get("published_at")
        and not any(record.get(name) for name in _NUMBERED)
    )


def _of_the_other_chamber(asked: Asked, near: Near, record: Mapping[str, Any]) -> bool:
    """Whether the question names a chamber that is not the record's, nor a word of its name.

    People change chambers, and are called by either; what is joint is of both.
    """
    said = [word for word in asked.words if word.meaning and word.meaning[0] == "chamber"]
    if not said or "terms" in record or record.get("chamber") not in ("house", "senate"):
        return False
    ours = ("chamber", record["chamber"])
    return not any(word.meaning == ours or word.text in near.words for word in said)


def _says(record: Mapping[str, Any], word: Word) -> str | None:
    """What of a record, besides its name, a word may mean."""
    if word.meaning is None:
        return None
    kind, value = word.meaning
    if kind == "kind":
        return "kind" if _is_of_a_part(record) else None
    if kind == "number":
        if len(value) == 4 and (record.get("published_at") or "").startswith(value):
            return "year"
        return next((name for name in _NUMBERED if str(record.get(name)) == value), None)
    past = (term.get(kind) for term in record.get("terms") or ())
    return kind if value in (record.get(kind), *past) else None


def _scored(
    asked: Asked, values: Sequence[float | None], share: float, unexplained: float = 1.0
) -> float:
    """Mostly how much of the question is explained, a little how much of the name was asked for.

    `unexplained` is what a word weighs that nothing explains, beside one that is.
    """
    total = explained = 0.0
    for word, value in zip(asked.words, values, strict=True):
        if value is None:
            continue
        telling = _weight(word, value)
        total += telling if value else telling * unexplained
        explained += telling * value
    return explained / total * (0.85 + 0.15 * share) if total else 0.0


def _weight(word: Word, value: float) -> float:
    """How much a word counts; least when it only names a kind of record, and another one."""
    if word.of_a_kind:
        return _KIND if value else _WRONG_KIND
    telling = weight(word.text)
    return _CONTEXT if word.meaning and telling == 1.0 else telling

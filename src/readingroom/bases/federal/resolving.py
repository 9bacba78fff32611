"""Finds the records of a registry that a noisy name may mean, best first, and says why."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, islice, pairwise
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal import naming
from readingroom.bases.federal.likeness import Likeness, Tie, compare, same_spelling, weight
from readingroom.bases.federal.naming import vocabulary
from readingroom.bases.federal.narrowing import Narrowed
from readingroom.bases.federal.sources import Source
from readingroom.core.errors import UnrecognizedId
from readingroom.core.ids import federal_id

_NAMES = 300
"""How many names that share pieces with the question are looked at closely."""
_CLOSE = 40
"""For how many of those it is tried to read two words as one."""
_RECORDS = 600
_ENOUGH = 0.5
"""What a record must score to be an answer at all."""
_PART = 0.9
"""What a subcommittee is worth beside its committee, unless one was asked for."""
_WHERE = ("of", "from")
_CONTEXT = 0.6
"""What a word like `Mass` or `Sen.` weighs, beside 1 for a name."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question, and what it may say of the record besides its name."""

    text: str
    meaning: tuple[str, str] | None = None
    no_name: bool = False
    """Whether it can only be that: Smith `of Virginia` is not Virginia Smith."""


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
    def of(cls, text: str) -> "Asked":
        words = tuple(_read(naming.all_words(text)))
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
        plain = [word.text for word in self.words if word.text in told and not word.meaning]
        return tuple(plain or told or self.texts)

    @property
    def of_a_part(self) -> bool:
        return any(word.meaning == ("kind", "subcommittee") for word in self.words)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The words that `acronym` is made of: one of several letters, or all of one."""
        return self.texts if all(len(word) == 1 for word in self.texts) else self.telling[:1]

    @cached_property
    def acronym(self) -> str | None:
        """`AOC`, `HASC`, `T&I`: letters that may be the initials of a name."""
        joined = "".join(self.letters)
        if len(self.telling) > 1 and self.letters != self.texts:
            return None
        return joined if 2 <= len(joined) <= 6 and joined.isalpha() else None

    def joined(self) -> Iterator["Asked"]:
        """The same with two neighbours as one word: `van hollen` is `vanhollen`."""
        for at in range(len(self.words) - 1):
            one = Word(self.words[at].text + self.words[at + 1].text)
            yield replace(self, words=(*self.words[:at], one, *self.words[at + 2 :]))


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
    for kind, table in (("chamber", known.chambers), ("party", known.parties)):
        if text in table:
            return kind, table[text]
    if (text,) in known.states:
        return "state", known.states[(text,)]
    if text in known.subcommittee:
        return "kind", "subcommittee"
    return ("number", text) if text.isdecimal() else None


# --- the answer ---


def resolve(db: sqlite3.Connection, source: Source, query: str, narrowed: Narrowed) -> list[Match]:
    """Every record that the words may mean, the likeliest first."""
    asked = Asked.of(query)
    found: dict[str, Match] = {}
    ways = (
        _by_id(db, source, query, narrowed),
        _by_name(db, source, asked, narrowed),
        _by_context(db, source, asked, narrowed),
    )
    for match in chain.from_iterable(ways):
        best = found.get(match.id)
        if best is None or match.score > best.score:
            found[match.id] = match
    enough = (match for match in found.values() if match.score >= _ENOUGH)
    return sorted(enough, key=_order)


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


def _by_name(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    if not asked.words:
        return
    sharing = _sharing(db, source, asked, narrowed)
    if len(sharing) >= _NAMES:
        # More bear the name than are looked at: of these, not without the state that was said.
        sharing |= _sharing(db, source, asked, _also(narrowed, _told(source, asked)))
    names = _close(asked, {**sharing, **_with_initials(db, source, asked)})
    for id, (row, form), record in _named_records(db, source, names, narrowed):
        if _of_the_other_chamber(asked, names[row], record):
            continue
        score, why = _judged(asked, names[row], form, record)
        if record.get("parent_id") and not asked.of_a_part:
            score *= _PART
        yield Match(id, round(score, 4), why, record, len(names[row].words))


def _by_context(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    """Who is meant when no name is said at all: `senators from Mass`, `CA-11`."""
    told = _told(source, asked)
    if "state" not in told or not all(word.meaning for word in asked.words):
        return
    for id, record in _records(db, source, ("1",), _also(narrowed, told)):
        borne_out, why = _borne_out(asked, [None] * len(asked.words), record)
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
    pieces = dict.fromkeys(piece for word in asked.telling for piece in naming.pieces(word))
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
    db: sqlite3.Connection, source: Source, asked: Asked
) -> dict[int, tuple[str, ...]]:
    """Names whose first letters are the question, with or without chamber and `committee`."""
    if not asked.acronym:
        return {}
    letters = sorted(asked.acronym)
    keys = {"".join(some) for size in range(1, 7) for some in combinations(letters, size)}
    found = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials IN ({", ".join("?" * len(keys))}) LIMIT {_NAMES}""",
        (source.name, *keys),
    )
    return {row["name_row"]: tuple(row["folded"].split()) for row in found}


@dataclass(frozen=True, slots=True)
class Near:
    """A name that may be meant, beside the reading of the question that is nearest to it."""

    words: tuple[str, ...]
    asked: Asked
    likeness: Likeness
    promise: float
    """What it can come to when the record bears out every word that may mean something else."""


def _close(asked: Asked, names: Mapping[int, tuple[str, ...]]) -> dict[int, Near]:
    """The names that may come to an answer. Only for the nearest are two words read as one."""
    near = {row: _near(words, asked) for row, words in names.items()}
    best = sorted(near, key=lambda row: (-near[row].promise, row))[:_CLOSE]
    near |= {row: max(_readings(near[row]), key=lambda one: one.promise) for row in best}
    return {row: one for row, one in near.items() if one.promise >= _ENOUGH}


def _readings(near: Near) -> Iterator[Near]:
    yield near
    for at, asked in enumerate(near.asked.joined()):
        if any(same_spelling(asked.texts[at], word) for word in near.words):
            yield _near(near.words, asked)
    for at, (one, other) in enumerate(pairwise(near.words)):
        if any(same_spelling(word, one + other) for word in near.asked.texts):
            yield _near((*near.words[:at], one + other, *near.words[at + 2 :]), near.asked)


def _near(words: tuple[str, ...], asked: Asked) -> Near:
    likeness = compare(asked.spelt, words)
    if asked.acronym and _worth(asked, words, "chsj"):
        return Near(words, asked, likeness, 1.0)
    values = [
        1.0 if word.meaning else tie.value if tie else 0.0
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
    asked: Asked, near: Near, form: str, record: Mapping[str, Any]
) -> tuple[float, list[str]]:
    """How well a record explains the question: by its name, else by what it says of itself."""
    initials = _worth(asked, near.words, _besides(record)) if asked.acronym else 0.0
    if initials:
        values, why = _borne_out(asked, [None] * len(asked.words), record)
        told = [
            initials if word.text in asked.letters else value
            for word, value in zip(asked.words, values, strict=True)
        ]
        said = f"{asked.acronym!r} are the initials of {form!r}"
        return _scored(asked, told, 1.0), [said, *why]
    values, why = _borne_out(near.asked, near.likeness.ties, record)
    if not any(tie and tie.value > 0.5 for tie in near.likeness.ties):
        return 0.0, []
    return _scored(near.asked, values, near.likeness.asked_share), [f"named {form!r}", *why]


def _borne_out(
    asked: Asked, ties: Sequence[Tie | None], record: Mapping[str, Any]
) -> tuple[list[float], list[str]]:
    values, why = [], []
    for word, tie in zip(asked.words, ties, strict=True):
        said = _says(record, word) if word.meaning else None
        if said and (tie is None or tie.value < 1.0):
            values.append(1.0)
            why.append(f"{word.text!r} is its {said}")
        else:
            values.append(tie.value if tie else 0.0)
            if tie and tie.value < 1.0:
                why.append(f"{tie.word!r} {tie.how} {tie.name_word!r}")
    return values, why


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
    assert word.meaning
    kind, value = word.meaning
    if kind == "kind":
        return "kind" if record.get("parent_id") else None
    if kind == "number":
        fields = ("district", "congress", "number", "session", "year")
        return next((name for name in fields if str(record.get(name)) == value), None)
    past = (term.get(kind) for term in record.get("terms") or ())
    return kind if value in (record.get(kind), *past) else None


def _worth(asked: Asked, name: Sequence[str], besides: str = "") -> float:
    """What an acronym is worth as the initials of a name: more when they come in its order.

    It may have letters of words that stand in many names, the H and the C of HASC, and `besides`.
    """
    letters = Counter(asked.acronym or "")
    core = [word[0] for word in name if word not in vocabulary().weak]
    faint = [word[0] for word in name if word in vocabulary().weak]
    extra = letters - Counter(core)
    if Counter(core) - letters or not extra <= Counter(faint) | Counter(besides):
        return 0.0
    if len(core) < 2 and len(letters) < 4:
        return 0.0
    rest = iter(asked.acronym or "")
    value = 0.95 if all(letter in rest for letter in core) else 0.8
    return value - 0.05 if any(len(word) == 1 for word in name) else value


def _besides(record: Mapping[str, Any]) -> str:
    return f"c{(record.get('chamber') or ' ')[0]}" if "parent_id" in record else ""


def _scored(asked: Asked, values: Sequence[float], share: float) -> float:
    """Mostly how much of the question is explained, a little how much of the name was asked for."""
    weights = [
        _CONTEXT if word.meaning and weight(word.text) == 1.0 else weight(word.text)
        for word in asked.words
    ]
    explained = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    return explained * (0.85 + 0.15 * share)

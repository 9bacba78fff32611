"""Finds the records of a registry that a noisy name may mean, best first, and says why."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.filters import Narrowed
from readingroom.bases.federal.names.context import Company, beside
from readingroom.bases.federal.names.query import Asked
from readingroom.bases.federal.names.scoring import (
    ENOUGH,
    Near,
    borne_out,
    close,
    is_of_a_part,
    judged,
    near_of,
    of_the_other_chamber,
    scored,
)
from readingroom.bases.federal.names.similarity import compare, initials_worth, spelt_out, weight
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.fold import vocabulary
from readingroom.bases.federal.schema.ids import federal_id
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.core.errors import UnrecognizedId

_NAMES = 300
"""How many names that share pieces with the question are looked at closely."""
_RECORDS = 600
"""How many records that bear those names, or belong to those who do, are judged."""
_ROWS = 5_000
"""How many names are tried whose initials hold the letters that were asked for."""
_SURE = 0.8
"""What ends the looking. Under it, what stands beside names is asked as well."""
_KIN = 12
"""How many relatives, of the likeliest, lead to their records."""
_PART = 0.9
"""What a subcommittee is worth beside its committee, unless one was asked for."""
_PAST = 0.95
"""What a committee of the past is worth beside one that sits."""


@dataclass(frozen=True, slots=True)
class Match:
    """A record that may be meant: how surely, and why."""

    id: str
    score: float
    why: list[str]
    record: dict[str, Any]
    length: int = 1
    """How many words the name has that led here."""


# --- the answer ---


def resolve(db: sqlite3.Connection, source: Source, query: str, narrowed: Narrowed) -> list[Match]:
    """Every record that the words may mean, the likeliest first."""
    asked = Asked.of(query, source.name)
    names = _candidates(db, source, asked, narrowed) if asked.words else {}
    found: dict[str, Match] = {}
    ways = (
        _by_id(db, source, query, narrowed),
        _matches(db, source, asked, close(asked, names), narrowed),
        _by_known_name(db, source, asked, narrowed),
        _by_context(db, source, asked, narrowed),
    )
    _keep_best(found, chain.from_iterable(ways))
    told = beside(source.name)
    if told.kin or (told.told and all(match.score < _SURE for match in found.values())):
        # Names that explain only some of the words, where the record may explain the others.
        wider = close(asked, names, unsaid=0.8)
        _keep_best(found, _matches(db, source, asked, wider, narrowed))
        _keep_best(found, _by_kin(db, source, asked, narrowed))
    enough = (match for match in found.values() if match.score >= ENOUGH)
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
    if any(of_the_other_chamber(asked, near, one) for one in (record, *of_committees)):
        return
    score, why = judged(company, asked, near, form, record)
    if is_of_a_part(record) and not asked.of_a_part:
        score *= _PART
    if record.get("source") == "committees" and not record["current"]:
        score *= _PAST
    yield Match(id, round(score, 4), why, record, len(near.words))


def _by_known_name(
    db: sqlite3.Connection, source: Source, asked: Asked, narrowed: Narrowed
) -> Iterator[Match]:
    """What everybody calls a record, though no official file does."""
    company = Company(db, source.name, asked.spelt)
    for name, meant in vocabulary().known_as.get(source.name, {}).items():
        near = near_of(fold.words(name), asked)
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
                yield from _match(company, asked, near_of(folded, asked), form, id, record)


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
        values, why = borne_out(asked, asked.nothing, asked.nothing, [record])
        yield Match(id, round(scored(asked, values, 1.0), 4), why, record)


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
    first = fold.first_row(source.name)
    rows = (first, first + fold.ROWS)
    one = (
        "SELECT rowid AS name_row FROM names_fts WHERE names_fts MATCH ? AND rowid BETWEEN ? AND ?"
    )
    pieces = dict.fromkeys(piece for word in asked.sought for piece in fold.pieces(word))
    found = db.execute(
        f"""SELECT name_row, count(*) AS shared FROM ({" UNION ALL ".join([one] * len(pieces))})
            GROUP BY name_row ORDER BY shared DESC""",
        [value for piece in pieces for value in (f'"{piece}"', *rows)],
    )
    near = list(islice(_passing(db, source, _nearest(found), narrowed), _NAMES))
    named = db.execute(
        f"""SELECT name_row, folded FROM names WHERE name_row IN ({", ".join("?" * len(near))})
            UNION SELECT name_row, folded FROM names WHERE source = ? AND folded = ?""",
        (*near, source.name, fold.padded(asked.texts)),
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

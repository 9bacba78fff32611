"""How records refer to each other, read from either end.

A link is stored once, from the record whose file speaks of the other, with the words it stands on.
Both records show it. When two files speak of the same pair, both are its evidence.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from readingroom.bases.federal.schema.ids import federal_id
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import BY_NAME
from readingroom.core.errors import UnrecognizedId


@dataclass(frozen=True, slots=True)
class Linked:
    """The other end of a link, and every piece of evidence for it."""

    kind: str
    id: str
    evidence: list[dict[str, str]]
    source: str | None = None
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """One end of the links of a record: they are found by `end`, and lead to `other`."""

    end: str
    other: str
    id: str


def of(
    db: sqlite3.Connection,
    id: str,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> tuple[list[Linked], tuple[str, str] | None, int]:
    """A page of what a record is linked to, by kind and id; where to go on; how many in all."""
    sides = _sides(id)
    # Each side is in order by its index, so of each only as much is read as a page can show.
    pairs = sorted({pair for side in sides for pair in _pairs(db, side, kind, limit + 1, after)})
    page = pairs[:limit]
    more = page[-1] if len(pairs) > limit else None
    known = named(db, (other for _, other in page))
    linked = [
        Linked(of_kind, other, _evidence(db, sides, of_kind, other), source_of(other),
               **known.get(other, {}))
        for of_kind, other in page
    ]  # fmt: skip
    counted = counts(db, id)
    return linked, more, counted.get(kind, 0) if kind else sum(counted.values())


def counts(db: sqlite3.Connection, id: str) -> dict[str, int]:
    """How many records a record is linked to, by kind."""
    counted: Counter[str] = Counter()
    sides = _sides(id)
    for place, side in enumerate(sides):
        # What an earlier side counted is not counted again; the first is the one that may be long.
        again = "".join(
            f""" AND NOT EXISTS (SELECT 1 FROM links e WHERE e.{one.end} = ?
                 AND e.kind = l.kind AND e.{one.other} = l.{side.other})"""
            for one in sides[:place]
        )
        rows = db.execute(
            f"""SELECT kind, count(*) AS linked FROM (
                    SELECT DISTINCT kind, {side.other} FROM links l WHERE {side.end} = ?{again})
                GROUP BY kind""",
            (side.id, *(one.id for one in sides[:place])),
        )
        counted.update({row["kind"]: row["linked"] for row in rows})
    return dict(sorted(counted.items()))


def _sides(id: str) -> list[_Side]:
    sides = [_Side("to_id", "from_id", id), _Side("from_id", "to_id", id)]
    if (part := wider(id)) != id:
        sides.append(_Side("to_id", "from_id", part))
    return sides


def _pairs(
    db: sqlite3.Connection,
    side: _Side,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> list[tuple[str, str]]:
    where, values = f"{side.end} = ?", [side.id]
    if kind:
        where += " AND kind = ?"
        values.append(kind)
    if after:
        where += f" AND (kind, {side.other}) > (?, ?)"
        values += after
    rows = db.execute(
        f"""SELECT DISTINCT kind, {side.other} FROM links WHERE {where}
            ORDER BY kind, {side.other} LIMIT ?""",
        (*values, limit),
    )
    return [(row[0], row[1]) for row in rows]


def _evidence(
    db: sqlite3.Connection, sides: Sequence[_Side], kind: str, other: str
) -> list[dict[str, str]]:
    found = [
        {"said_by": row["from_id"], "loader": row["loader"], "words": row["evidence"]}
        for side in sides
        for row in db.execute(
            f"SELECT * FROM links WHERE {side.end} = ? AND kind = ? AND {side.other} = ?",
            (side.id, kind, other),
        )
    ]
    return sorted(found, key=lambda one: (one["loader"], one["words"]))


def named(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Title and page of those of these records that are loaded and not withdrawn."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for id in ids:
        if source := source_of(id):
            by_source[source].append(id)
    known: dict[str, dict[str, Any]] = {}
    for source, some in by_source.items():
        marks = ", ".join("?" * len(some))
        for row in db.execute(
            f"""SELECT id, json_extract(record, '$.title') AS title, source_url AS url
                FROM {source} WHERE id IN ({marks}) AND status = 'active'""",
            some,
        ):
            known[row["id"]] = {"title": row["title"], "url": row["url"]}
    return known


def wider(id: str) -> str:
    """What else speaks of a record: a rule names the part of regulations that a section is in."""
    return id.partition(".")[0] if id.startswith("cfr:") else id


def source_of(id: str) -> str | None:
    """The source whose record an id names, where there is such a source."""
    try:
        source = federal_id(id).source
    except UnrecognizedId:
        return None
    return source if source in BY_NAME else None

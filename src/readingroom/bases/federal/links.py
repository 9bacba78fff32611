"""How records refer to each other, read from either end.

A link is stored once, from the record whose file speaks of the other, with the words it stands on.
Both records show it. When two files speak of the same pair, both are its evidence.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.records import LinkKind
from readingroom.bases.federal.sources import BY_NAME
from readingroom.core.errors import UnrecognizedId
from readingroom.core.ids import federal_id


@dataclass(frozen=True, slots=True)
class Linked:
    """The other end of a link, and every piece of evidence for it."""

    kind: str
    id: str
    evidence: list[dict[str, str]]
    source: str | None = None
    title: str | None = None
    url: str | None = None


_EITHER_WAY = """
    SELECT kind, to_id AS other, from_id AS said_by, loader, evidence
    FROM links WHERE from_id = :id {narrowed} {after_to}
    UNION ALL
    SELECT kind, from_id, from_id, loader, evidence
    FROM links WHERE to_id IN (:id, :wider) AND from_id <> :id {narrowed} {after_from}"""


def of(
    db: sqlite3.Connection,
    id: str,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> tuple[list[Linked], tuple[str, str] | None, int]:
    """A page of what a record is linked to, by kind and id; where to go on; how many in all."""
    narrowed = "AND kind = :kind" if kind else ""
    values = {"id": id, "wider": wider(id), "kind": kind, "limit": limit + 1}
    whole = _EITHER_WAY.format(narrowed=narrowed, after_to="", after_from="")
    (total,) = db.execute(
        f"SELECT count(*) FROM (SELECT DISTINCT kind, other FROM ({whole}))", values
    ).fetchone()
    if after:
        values |= {"after_kind": after[0], "after_id": after[1]}
        beyond = "AND (kind, {}) > (:after_kind, :after_id)"
        whole = _EITHER_WAY.format(
            narrowed=narrowed, after_to=beyond.format("to_id"), after_from=beyond.format("from_id")
        )
    found = db.execute(
        f"""SELECT kind, other, json_group_array(json_object(
                       'said_by', said_by, 'loader', loader, 'words', evidence)) AS evidence
            FROM ({whole}) GROUP BY kind, other ORDER BY kind, other LIMIT :limit""",
        values,
    ).fetchall()
    page = found[:limit]
    more = (page[-1]["kind"], page[-1]["other"]) if len(found) > limit else None
    known = named(db, (row["other"] for row in page))
    return [_linked(row, known) for row in page], more, total


def counts(db: sqlite3.Connection, id: str) -> dict[str, int]:
    """How many records a record is linked to, by kind."""
    whole = _EITHER_WAY.format(narrowed="", after_to="", after_from="")
    rows = db.execute(
        f"""SELECT kind, count(*) AS linked FROM (SELECT DISTINCT kind, other FROM ({whole}))
            GROUP BY kind ORDER BY kind""",
        {"id": id, "wider": wider(id)},
    )
    return {row["kind"]: row["linked"] for row in rows}


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


def _linked(row: sqlite3.Row, known: dict[str, dict[str, Any]]) -> Linked:
    told = known.get(row["other"], {})
    evidence = sorted(from_json(row["evidence"]), key=lambda one: (one["loader"], one["words"]))
    return Linked(row["kind"], row["other"], evidence, source_of(row["other"]), **told)

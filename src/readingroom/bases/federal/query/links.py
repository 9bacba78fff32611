"""Links between records, read from either end.

A link is stored once, from the record whose file mentions the other, with the words that do so as
evidence. Both records show it. When two files mention the same pair, both are its evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import BY_NAME
from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import Database


@dataclass(frozen=True, slots=True)
class LinkRow:
    """The record at the other end of a link, and all evidence for the link."""

    kind: str
    id: str
    evidence: list[dict[str, str]]
    source: str | None = None
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class _Direction:
    """Links where the column `end` has the id; the column `other` has the linked records."""

    end: str
    other: str
    id: str


def list_links(
    db: Database,
    id: str,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> tuple[list[LinkRow], tuple[str, str] | None, int]:
    """Return a page of a record's links by kind and id, the last key if more follow, the total."""
    directions = _list_directions(id)
    # Each direction is sorted by its index, so no more is read of each than a page can show.
    kind_id_pairs = sorted(
        {
            pair
            for direction in directions
            for pair in _read_pairs(db, direction, kind, limit + 1, after)
        }
    )
    page_pairs = kind_id_pairs[:limit]
    last_pair = page_pairs[-1] if len(kind_id_pairs) > limit else None
    titles = read_titles(db, (other for _, other in page_pairs))
    rows = [
        LinkRow(
            link_kind,
            other,
            _read_evidence(db, directions, link_kind, other),
            find_source_name(other),
            **titles.get(other, {}),
        )
        for link_kind, other in page_pairs
    ]
    counts = count_links(db, id)
    return rows, last_pair, counts.get(kind, 0) if kind else sum(counts.values())


def count_links(db: Database, id: str) -> dict[str, int]:
    """Return how many records a record is linked to, by kind."""
    counts: Counter[str] = Counter()
    directions = _list_directions(id)
    for index, direction in enumerate(directions):
        # Leave out what an earlier direction counted; the first is the one that may be long.
        earlier = directions[:index]
        not_counted = "".join(
            f""" AND NOT EXISTS (SELECT 1 FROM links e WHERE e.{previous.end} = ?
                 AND e.kind = l.kind AND e.{previous.other} = l.{direction.other})"""
            for previous in earlier
        )
        rows = db.execute(
            f"""SELECT kind, count(*) AS linked FROM (
                    SELECT DISTINCT kind, {direction.other} FROM links l
                    WHERE {direction.end} = ?{not_counted})
                GROUP BY kind""",
            (direction.id, *(previous.id for previous in earlier)),
        )
        counts.update({row["kind"]: row["linked"] for row in rows})
    return dict(sorted(counts.items()))


def _list_directions(id: str) -> list[_Direction]:
    # The links that lead here come first: a topic or a member has thousands of them.
    directions = [_Direction("to_id", "from_id", id), _Direction("from_id", "to_id", id)]
    if (part := get_containing_id(id)) != id:
        directions.append(_Direction("to_id", "from_id", part))
    return directions


def _read_pairs(
    db: Database,
    direction: _Direction,
    kind: LinkKind | None,
    limit: int,
    after: Sequence[str] | None,
) -> list[tuple[str, str]]:
    where, values = f"{direction.end} = ?", [direction.id]
    if kind:
        where += " AND kind = ?"
        values.append(kind)
    if after:
        where += f" AND (kind, {direction.other}) > (?, ?)"
        values += after
    rows = db.execute(
        f"""SELECT DISTINCT kind, {direction.other} FROM links WHERE {where}
            ORDER BY kind, {direction.other} LIMIT ?""",
        (*values, limit),
    )
    return [(row[0], row[1]) for row in rows]


def _read_evidence(
    db: Database, directions: Sequence[_Direction], kind: str, other: str
) -> list[dict[str, str]]:
    evidence = [
        {"said_by": row["from_id"], "loader": row["loader"], "words": row["evidence"]}
        for direction in directions
        for row in db.execute(
            f"SELECT * FROM links WHERE {direction.end} = ? AND kind = ? AND {direction.other} = ?",
            (direction.id, kind, other),
        )
    ]
    return sorted(evidence, key=lambda item: (item["loader"], item["words"]))


def read_titles(db: Database, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return title and URL of those of these records that are loaded and not withdrawn."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for id in ids:
        if source := find_source_name(id):
            by_source[source].append(id)
    titles: dict[str, dict[str, Any]] = {}
    for source, source_ids in by_source.items():
        placeholders = ", ".join("?" * len(source_ids))
        for row in db.execute(
            f"""SELECT id, record ->> 'title' AS title, source_url AS url
                FROM {source} WHERE id IN ({placeholders}) AND status = 'active'""",
            source_ids,
        ):
            titles[row["id"]] = {"title": row["title"], "url": row["url"]}
    return titles


def get_containing_id(id: str) -> str:
    """Return the id whose links a record shows too: for a section of the CFR, that of its part."""
    return id.partition(".")[0] if id.startswith("cfr:") else id


def find_source_name(id: str) -> str | None:
    """Return the source that an id belongs to, or None."""
    try:
        source = parse_federal_id(id).source
    except UnrecognizedId:
        return None
    return source if source in BY_NAME else None

"""What came, changed or was withdrawn since a day: the newest word on each record, in order.

A record stands once, at its last change, so whoever follows the list sees each at most once a round
and never misses one.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.schema.sources import BY_NAME, Source


@dataclass
class Tally:
    """How many records of each source came, changed and went, and which first."""

    new: int = 0
    changed: int = 0
    withdrawn: int = 0
    first: list[str] = field(default_factory=list)


_FIRST = 10  # ids that a tally names

Note = tuple[str, str, ChangeKind, str]
"""The source, the record's id, what happened to it, and when."""


def note(db: sqlite3.Connection, notes: Sequence[Note]) -> None:
    """Write down changes in their order, in the transaction that makes them.

    A record that changes before anything was written down of it came at an unknown time.
    """
    # Asked apart: inside the statement below SQLite would read every change to find the last.
    number = last(db) + 1
    db.executemany(
        """INSERT INTO changes (record_id, source, kind, at, new_at, seq, new_seq)
           VALUES (?1, ?2, ?3, ?4, iif(?3 = 'new', ?4, ''), ?5, iif(?3 = 'new', ?5, 0))
           ON CONFLICT (record_id) DO UPDATE
           SET kind = excluded.kind, at = excluded.at, seq = excluded.seq""",
        [(id, source, kind, at, seq) for seq, (source, id, kind, at) in enumerate(notes, number)],
    )


def last(db: sqlite3.Connection) -> int:
    """The number of the newest change."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])


def tallied(db: sqlite3.Connection, after: int) -> dict[str, Tally]:
    """What has changed after the change of this number, by source."""
    tallies: dict[str, Tally] = {}
    for row in db.execute(
        """SELECT source, record_id,
                  CASE WHEN kind <> 'withdrawn' AND new_seq > ?1 THEN 'new' ELSE kind END AS kind
           FROM changes WHERE seq > ?1 ORDER BY seq""",
        (after,),
    ):
        tally = tallies.setdefault(row["source"], Tally())
        setattr(tally, row["kind"], getattr(tally, row["kind"]) + 1)
        if len(tally.first) < _FIRST:
            tally.first.append(row["record_id"])
    return tallies


def since(
    db: sqlite3.Connection,
    day: str | None,
    source: Source | None,
    kind: ChangeKind | None,
    limit: int,
    after: int,
) -> tuple[list[dict[str, Any]], int, bool]:
    """A page of changes, oldest first, where the next begins, and whether there is one."""
    where: list[str] = ["at >= ?", "seq > ?"]
    values: list[Any] = [day or "", after]
    told = _KIND.format(new="new_at" if day else "new_seq", than=">=" if day else ">")
    seen = day or after
    if source:
        where.append("source = ?")
        values.append(source.name)
    if kind:
        where.append(f"{told} = ?")
        values += [seen, kind]
    found = db.execute(
        f"""SELECT record_id, source, at, seq, {told} AS kind FROM changes
            WHERE {" AND ".join(where)} ORDER BY seq LIMIT ?""",
        (seen, *values, limit + 1),
    ).fetchall()
    page = found[:limit]
    return [_told(db, row) for row in page], page[-1]["seq"] if page else after, len(found) > limit


# Whoever asks from a day or a change on has not seen what came after it, however often it has
# changed since.
_KIND = "CASE WHEN kind <> 'withdrawn' AND {new} {than} ? THEN 'new' ELSE kind END"


def _told(db: sqlite3.Connection, change: sqlite3.Row) -> dict[str, Any]:
    row = db.execute(
        f"""SELECT json_extract(record, '$.title') AS title, source_url AS url, successor_id,
                   tombstone_reason AS reason
            FROM {BY_NAME[change["source"]].name} WHERE id = ?""",
        (change["record_id"],),
    ).fetchone()
    told = {"id": change["record_id"], "source": change["source"], "kind": change["kind"]}
    return {**told, "changed_at": change["at"], **dict(row)}


def successors(
    db: sqlite3.Connection, source: Source, gone: Sequence[str], began: int
) -> dict[str, str]:
    """For records that left: the one that came in the same load under the same title, if one did.

    An id can change where nothing else did: a date corrected, a code reassigned.
    """
    if not gone:
        return {}
    came: dict[str, list[str]] = {}
    for row in db.execute(
        f"""SELECT r.id, json_extract(r.record, '$.title') AS title
            FROM changes c JOIN {source.name} r ON r.id = c.record_id
            WHERE c.new_seq > ? AND c.source = ? AND c.kind <> 'withdrawn'""",
        (began, source.name),
    ):
        came.setdefault(row["title"], []).append(row["id"])
    found: dict[str, str] = {}
    for id in gone:
        (title,) = db.execute(
            f"SELECT json_extract(record, '$.title') FROM {source.name} WHERE id = ?", (id,)
        ).fetchone()
        if len(heirs := came.get(title, [])) == 1:
            found[id] = heirs[0]
    return found

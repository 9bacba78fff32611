"""The list of changes: which records were added, changed or withdrawn since a day, in order.

A record is listed once, at its last change, so whoever follows the list sees each record at most
once a round and never misses one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.storage.database import Database, Row


@dataclass
class Tally:
    """How many records of a source were added, changed and withdrawn, and the first ids."""

    new: int = 0
    changed: int = 0
    withdrawn: int = 0
    first: list[str] = field(default_factory=list)


_MAX_IDS = 10  # ids in a tally

ChangeRow = tuple[str, str, ChangeKind, str]
"""The source, the record's id, what happened to it, and when."""


def add_changes(db: Database, changes: Sequence[ChangeRow]) -> None:
    """Store changes in their order, in the transaction that makes them.

    A record whose first stored change is not `new` was added at an unknown time.
    """
    # A query of its own: inside the statement below SQLite would read every change to find it.
    number = read_last_change(db) + 1
    db.executemany(
        """INSERT INTO changes (record_id, source, kind, at, new_at, seq, new_seq)
           VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (record_id) DO UPDATE
           SET kind = excluded.kind, at = excluded.at, seq = excluded.seq""",
        [
            (id, source, kind, moment, *((moment, seq, seq) if kind == "new" else ("", seq, 0)))
            for seq, (source, id, kind, moment) in enumerate(changes, number)
        ],
    )


def read_last_change(db: Database) -> int:
    """Return the number of the newest change."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])


def tally_changes(db: Database, after: int) -> dict[str, Tally]:
    """Return what has changed after the change of this number, by source."""
    tallies: dict[str, Tally] = {}
    for row in db.execute(
        """SELECT source, record_id,
                  CASE WHEN kind <> 'withdrawn' AND new_seq > ? THEN 'new' ELSE kind END AS kind
           FROM changes WHERE seq > ? ORDER BY seq""",
        (after, after),
    ):
        tally = tallies.setdefault(row["source"], Tally())
        setattr(tally, row["kind"], getattr(tally, row["kind"]) + 1)
        if len(tally.first) < _MAX_IDS:
            tally.first.append(row["record_id"])
    return tallies


def list_changes(
    db: Database,
    day: str | None,
    source: Source | None,
    kind: ChangeKind | None,
    limit: int,
    after: int,
) -> tuple[list[dict[str, Any]], int, bool]:
    """Return a page of changes, oldest first, the number of its last, and whether more follow."""
    where: list[str] = ["at >= ?", "seq > ?"]
    values: list[Any] = [day or "", after]
    kind_sql = _KIND.format(new="new_at" if day else "new_seq", than=">=" if day else ">")
    seen = day or after
    if source:
        where.append("source = ?")
        values.append(source.name)
    if kind:
        where.append(f"{kind_sql} = ?")
        values += [seen, kind]
    rows = db.execute(
        f"""SELECT record_id, source, at, seq, {kind_sql} AS kind FROM changes
            WHERE {" AND ".join(where)} ORDER BY seq LIMIT ?""",
        (seen, *values, limit + 1),
    ).fetchall()
    page = rows[:limit]
    end = page[-1]["seq"] if page else after
    return [_describe(db, row) for row in page], end, len(rows) > limit


# Whoever reads from a day or a change on has not seen records added after it, so they are new,
# however often they have changed since.
_KIND = "CASE WHEN kind <> 'withdrawn' AND {new} {than} ? THEN 'new' ELSE kind END"


def _describe(db: Database, change: Row) -> dict[str, Any]:
    """Return a change with the title of its record."""
    row = db.execute(
        f"""SELECT record ->> 'title' AS title, source_url AS url, successor_id,
                   tombstone_reason AS reason
            FROM {BY_NAME[change["source"]].name} WHERE id = ?""",
        (change["record_id"],),
    ).fetchone()
    return {
        "id": change["record_id"],
        "source": change["source"],
        "kind": change["kind"],
        "changed_at": change["at"],
        **dict(row),
    }


def find_successors(
    db: Database, source: Source, withdrawn: Sequence[str], after: int
) -> dict[str, str]:
    """Return, for withdrawn records, the one added under the same title in the same load.

    An id can change where nothing else did: a date corrected, a code reassigned.
    """
    if not withdrawn:
        return {}
    added: dict[str, list[str]] = {}
    for row in db.execute(
        f"""SELECT r.id, r.record ->> 'title' AS title
            FROM changes c JOIN {source.name} r ON r.id = c.record_id
            WHERE c.new_seq > ? AND c.source = ? AND c.kind <> 'withdrawn'""",
        (after, source.name),
    ):
        added.setdefault(row["title"], []).append(row["id"])
    successors: dict[str, str] = {}
    for id in withdrawn:
        (title,) = db.execute(
            f"SELECT record ->> 'title' FROM {source.name} WHERE id = ?", (id,)
        ).fetchone()
        if len(same_title := added.get(title, [])) == 1:
            successors[id] = same_title[0]
    return successors

"""The list of changes: which records were added, changed or withdrawn since a day, in order.

A record is listed once, at its last change, so whoever follows the list sees each record at most
once a round and never misses one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.storage.database import Database, Row


@dataclass
class ChangeTally:
    """How many records of a source were added, changed and withdrawn, and the first ids."""

    new: int = 0
    changed: int = 0
    withdrawn: int = 0
    first: list[str] = field(default_factory=list)


_MAX_SHOWN_IDS = 10  # ids in a tally

ChangeRow = tuple[str, str, ChangeKind, str]
"""The source, the record's id, what happened to it, and when."""


def add_changes(db: Database, new_changes: Sequence[ChangeRow]) -> None:
    """Store changes in their order, in the transaction that makes them.

    A record whose first stored change is not `new` was added at an unknown time.
    """
    # A query of its own: inside the statement below SQLite would read every change to find it.
    first_change_number = read_last_change_number(db) + 1
    change_row_by_record_id: dict[str, tuple[Any, ...]] = {}
    for change_number, (source_name, record_id, change_kind, changed_at) in enumerate(
        new_changes, first_change_number
    ):
        first_time_and_number = (changed_at, change_number) if change_kind == "new" else ("", 0)
        if earlier_row := change_row_by_record_id.get(record_id):
            first_time_and_number = (earlier_row[4], earlier_row[6])
        first_at, first_number = first_time_and_number
        change_row_by_record_id[record_id] = (
            *(record_id, source_name, change_kind, changed_at),
            *(first_at, change_number, first_number),
        )
    # Each record once: then any number of rows is one statement. One that is new to its table may
    # have been here before, so a stored change is no error.
    db.executemany(
        """INSERT INTO changes (record_id, source, kind, at, new_at, seq, new_seq)
           VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (record_id) DO UPDATE
           SET kind = excluded.kind, at = excluded.at, seq = excluded.seq""",
        list(change_row_by_record_id.values()),
    )


def read_last_change_number(db: Database) -> int:
    """Return the number of the newest change."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()[0])


def tally_changes(db: Database, after_number: int) -> dict[str, ChangeTally]:
    """Return what has changed after the change of this number, by source."""
    tally_by_source: dict[str, ChangeTally] = {}
    for change_row in db.execute(
        """SELECT source, record_id,
                  CASE WHEN kind <> 'withdrawn' AND new_seq > ? THEN 'new' ELSE kind END AS kind
           FROM changes WHERE seq > ? ORDER BY seq""",
        (after_number, after_number),
    ):
        source_tally = tally_by_source.setdefault(change_row["source"], ChangeTally())
        setattr(source_tally, change_row["kind"], getattr(source_tally, change_row["kind"]) + 1)
        if len(source_tally.first) < _MAX_SHOWN_IDS:
            source_tally.first.append(change_row["record_id"])
    return tally_by_source


def read_change_page(
    db: Database,
    since_day_text: str | None,
    record_source: Source | None,
    change_kind: ChangeKind | None,
    max_results: int,
    after_number: int,
) -> tuple[list[dict[str, Any]], int, bool]:
    """Return a page of changes, oldest first, the number of its last, and whether more follow."""
    sql_conditions: list[str] = ["at >= ?", "seq > ?"]
    condition_values: list[Any] = [since_day_text or "", after_number]
    kind_sql = _CHANGE_KIND_SQL.format(
        new="new_at" if since_day_text else "new_seq", than=">=" if since_day_text else ">"
    )
    since_day_or_number = since_day_text or after_number
    if record_source:
        sql_conditions.append("source = ?")
        condition_values.append(record_source.name)
    if change_kind:
        sql_conditions.append(f"{kind_sql} = ?")
        condition_values += [since_day_or_number, change_kind]
    change_rows = db.execute(
        f"""SELECT record_id, source, at, seq, {kind_sql} AS kind FROM changes
            WHERE {" AND ".join(sql_conditions)} ORDER BY seq LIMIT ?""",
        (since_day_or_number, *condition_values, max_results + 1),
    ).fetchall()
    page_rows = change_rows[:max_results]
    last_number = page_rows[-1]["seq"] if page_rows else after_number
    return (
        [_build_change_entry(db, change_row) for change_row in page_rows],
        last_number,
        len(change_rows) > max_results,
    )


# Whoever reads from a day or a change on has not seen records added after it, so they are new,
# however often they have changed since.
_CHANGE_KIND_SQL = "CASE WHEN kind <> 'withdrawn' AND {new} {than} ? THEN 'new' ELSE kind END"


def _build_change_entry(db: Database, change_row: Row) -> dict[str, Any]:
    """Return a change with the title of its record."""
    record_row = db.execute(
        f"""SELECT record ->> 'title' AS title, source_url AS url, successor_id,
                   tombstone_reason AS reason
            FROM {SOURCES_BY_NAME[change_row["source"]].name} WHERE id = ?""",
        (change_row["record_id"],),
    ).fetchone()
    return {
        "id": change_row["record_id"],
        "source": change_row["source"],
        "kind": change_row["kind"],
        "changed_at": change_row["at"],
        **dict(record_row),
    }


def find_successors(
    db: Database, record_source: Source, withdrawn_ids: Sequence[str], after_number: int
) -> dict[str, str]:
    """Return, for withdrawn records, the one added under the same title in the same load.

    An id can change where nothing else did: a date corrected, a code reassigned.
    """
    if not withdrawn_ids:
        return {}
    added_ids_by_title: dict[str, list[str]] = {}
    for added_row in db.execute(
        f"""SELECT r.id, r.record ->> 'title' AS title
            FROM changes c JOIN {record_source.name} r ON r.id = c.record_id
            WHERE c.new_seq > ? AND c.source = ? AND c.kind <> 'withdrawn'""",
        (after_number, record_source.name),
    ):
        added_ids_by_title.setdefault(added_row["title"], []).append(added_row["id"])
    successor_by_id: dict[str, str] = {}
    for withdrawn_id in withdrawn_ids:
        (record_title,) = db.execute(
            f"SELECT record ->> 'title' FROM {record_source.name} WHERE id = ?", (withdrawn_id,)
        ).fetchone()
        if len(same_title_ids := added_ids_by_title.get(record_title, [])) == 1:
            successor_by_id[withdrawn_id] = same_title_ids[0]
    return successor_by_id

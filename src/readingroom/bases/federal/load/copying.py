"""Copies all federal records from a file to a database, or from a database to a file."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.bases.federal.search.full_text import index_passages, index_stored_names
from readingroom.bases.federal.store import FederalPlace, connect, prepare, translate_errors
from readingroom.core.progress import ReportProgressSync, no_progress_sync

# Those that others refer to come first.
_OTHER_TABLES = (
    *("bill_cosponsors", "bill_actions", "bill_committees", "bill_summaries", "member_votes"),
    *("hearing_witnesses", "texts", "documents", "facets", "chunks", "passages", "vectors"),
    *("embedded_elsewhere", "names", "name_forms", "links", "ingestion_logs", "progress"),
    *("coverage", "changes"),
)
_NUMBERED = {"documents": "doc", "vectors": "seq", "ingestion_logs": "log"}
"""Tables that give their rows numbers, each with the column of the number."""
_ROWS_PER_BATCH = 1_000
_SAMPLED_RECORDS = 20


def copy_records(
    source_place: FederalPlace,
    target_place: FederalPlace,
    report_progress: ReportProgressSync = no_progress_sync,
) -> int:
    """Put all records of one place in place of those of another; return how many there are.

    The source is read as it is at one moment, and the target changes in one transaction. Raise
    StorageFailed when either cannot be used.
    """
    prepare(target_place)
    tables = [*(source.name for source in _order_sources()), *_OTHER_TABLES]
    with (
        translate_errors(source_place),
        closing(connect(source_place)) as source_db,
        closing(connect(target_place, writing=True)) as target_db,
        source_db.snapshot(),
        target_db.transaction(),
    ):
        target_db.execute("UPDATE generation SET value = value + 1")
        for table_name in reversed(tables):
            target_db.execute(f"DELETE FROM {table_name}")
        record_count = 0
        for number, table_name in enumerate(tables, 1):
            row_count = _copy_table(source_db, target_db, table_name)
            record_count += row_count if number <= len(SOURCES) else 0
            report_progress(number, len(tables), table_name)
        index_passages(target_db, 0)
        index_stored_names(target_db)
    return record_count


def compare_records(one_place: FederalPlace, other_place: FederalPlace) -> dict[str, int]:
    """Return how many rows each table has, if both places say the same; nothing if not.

    Numbers of rows are compared of every table, and of each source the records themselves, at
    evenly spread places.
    """
    prepare(other_place)
    with closing(connect(one_place)) as one_db, closing(connect(other_place)) as other_db:
        descriptions = [_describe_records(db) for db in (one_db, other_db)]
    return descriptions[0][0] if descriptions[0] == descriptions[1] else {}


def _describe_records(db: Any) -> tuple[dict[str, int], list[Any]]:
    tables = [*(source.name for source in SOURCES), *_OTHER_TABLES]
    counts = {
        table_name: db.execute(f"SELECT count(*) FROM {table_name}").fetchone()[0]
        for table_name in tables
    }
    samples = []
    for source in SOURCES:
        step = max(1, counts[source.name] // _SAMPLED_RECORDS)
        for offset in range(0, counts[source.name], step):
            row = db.execute(
                f"SELECT id, record, status, loader FROM {source.name} ORDER BY id "
                "LIMIT 1 OFFSET ?",
                (offset,),
            ).fetchone()
            samples.append(tuple(row))
    return counts, samples


def _order_sources() -> list[Any]:
    """Return the sources, those that rows of other tables refer to first."""
    return sorted(SOURCES, key=lambda source: source.name not in ("legislators", "committees"))


def _copy_table(source_db: Any, target_db: Any, table_name: str) -> int:
    columns = _list_columns(target_db, table_name)
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT INTO {table_name} ({', '.join(columns)}) VALUES ({marks})"
    row_count = 0
    cursor = source_db.execute(f"SELECT {', '.join(columns)} FROM {table_name}")
    while rows := cursor.fetchmany(_ROWS_PER_BATCH):
        target_db.executemany(insert, [tuple(row) for row in rows])
        row_count += len(rows)
    if target_db.dialect.engine == "postgres" and table_name in _NUMBERED:
        column = _NUMBERED[table_name]
        target_db.execute(
            f"SELECT setval(pg_get_serial_sequence('{table_name}', '{column}'), "
            f"greatest(max({column}), 1)) FROM {table_name}"
        )
    return row_count


def _list_columns(db: Any, table_name: str) -> list[str]:
    """Return the columns of a table that are stored, and not computed from others."""
    return list(_read_columns(db, table_name))


def _read_columns(db: Any, table_name: str) -> Iterator[str]:
    if db.dialect.engine == "sqlite":
        rows = db.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table_name,))
        yield from (row["name"] for row in rows if not row["hidden"])
        return
    rows = db.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
        "AND table_name = ? AND is_generated = 'NEVER' ORDER BY ordinal_position",
        (table_name,),
    )
    yield from (row["column_name"] for row in rows)

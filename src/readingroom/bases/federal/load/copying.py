"""Copies all federal records from a file to a database, or from a database to a file."""

import heapq
import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.lengths import cut_facet_value
from readingroom.bases.federal.schema.sources import SOURCES, SOURCES_BY_NAME, Source
from readingroom.bases.federal.schema.tables import RECORD_COLUMNS
from readingroom.bases.federal.search.full_text import (
    find_passages,
    index_passages,
    index_stored_names,
)
from readingroom.bases.federal.store import (
    NEWEST_FIRST_ORDER_SQL,
    FederalPlace,
    connect,
    prepare_records,
    translate_errors,
)
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.storage.errors import StorageFailed

# Those that others refer to come first.
_TABLE_NAMES_BESIDE_RECORDS = (
    *("bill_cosponsors", "bill_actions", "bill_committees", "bill_summaries", "member_votes"),
    *("hearing_witnesses", "texts", "documents", "facets", "chunks", "passages", "vectors"),
    *("embedded_elsewhere", "names", "name_forms", "links", "ingestion_logs", "progress"),
    *("coverage", "changes"),
)
_NUMBER_COLUMN_BY_TABLE = {"documents": "doc", "vectors": "seq", "ingestion_logs": "log"}
"""Tables that give their rows numbers, each with the column of the number."""
_ROWS_PER_BATCH = 1_000
_SAMPLED_RECORD_COUNT = 20
_SAMPLED_TITLE_COUNT = 5
_SAMPLED_HIT_COUNT = 10


def copy_records(
    original_place: FederalPlace,
    copy_place: FederalPlace,
    report_progress: ReportProgressSync = no_progress_sync,
) -> int:
    """Put all records of one place in place of those of another; return how many there are.

    The original is read as it is at one moment, and the copy changes in one transaction. Raise
    StorageFailed when either cannot be used.
    """
    prepare_records(copy_place)
    table_names = [
        *(record_source.name for record_source in _list_sources_in_copy_order()),
        *_TABLE_NAMES_BESIDE_RECORDS,
    ]
    with (
        translate_errors(original_place),
        closing(connect(original_place)) as original_db,
        closing(connect(copy_place, writing=True)) as copy_db,
        original_db.begin_consistent_read(),
        copy_db.transaction(),
    ):
        copy_db.execute("UPDATE generation SET value = value + 1")
        for table_name in reversed(table_names):
            copy_db.execute(f"DELETE FROM {table_name}")
        record_count = 0
        for table_number, table_name in enumerate(table_names, 1):
            row_count = _copy_table(original_db, copy_db, table_name)
            record_count += row_count if table_number <= len(SOURCES) else 0
            report_progress(table_number, len(table_names), table_name)
        index_passages(copy_db, 0)
        index_stored_names(copy_db)
    with translate_errors(copy_place), closing(connect(copy_place, writing=True)) as copy_db:
        if copy_db.dialect.count_values_sql:
            copy_db.execute(copy_db.dialect.count_values_sql)
    return record_count


def count_same_answers(first_place: FederalPlace, second_place: FederalPlace) -> int:
    """Ask both places for sample lists and searches; return how many answers are the same.

    Raise `StorageFailed` at the first one that differs.
    """
    with closing(connect(first_place)) as first_db, closing(connect(second_place)) as second_db:
        sample_titles = _list_sample_titles(first_db)
        for sample_title in sample_titles:
            if not _rank_passages_alike(first_db, second_db, sample_title):
                raise StorageFailed(
                    f"The federal records in the database are searched for {sample_title[:60]!r} "
                    "with another result than the original; "
                    "report this, and keep serving the original"
                )
        for record_source in SOURCES:
            if _list_newest_ids(first_db, record_source) != _list_newest_ids(
                second_db, record_source
            ):
                raise StorageFailed(
                    f"The list of {record_source.name} in the database differs from the original; "
                    "report this, and keep serving the original"
                )
    return len(sample_titles) + len(SOURCES)


def _list_sample_titles(db: Any) -> list[str]:
    title_rows = db.execute(
        "SELECT title FROM passages WHERE title <> '' ORDER BY chunk LIMIT ?",
        (_SAMPLED_TITLE_COUNT,),
    )
    return [title_row["title"] for title_row in title_rows]


def _rank_passages_alike(first_db: Any, second_db: Any, query_text: str) -> bool:
    """Return whether both find the same passages, and rank the best of them by the same numbers.

    Those that rank alike may be in any order, and so may what each engine adds up to a rank.
    """
    first_ranks_by_chunk_number, second_ranks_by_chunk_number = (
        dict(find_passages(db, query_text, "", ())) for db in (first_db, second_db)
    )
    return first_ranks_by_chunk_number.keys() == second_ranks_by_chunk_number.keys() and all(
        math.isclose(
            first_ranks_by_chunk_number[chunk_number],
            second_ranks_by_chunk_number[chunk_number],
            rel_tol=1e-6,
        )
        for ranks_by_chunk_number in (first_ranks_by_chunk_number, second_ranks_by_chunk_number)
        for chunk_number in heapq.nsmallest(
            _SAMPLED_HIT_COUNT, ranks_by_chunk_number, key=ranks_by_chunk_number.__getitem__
        )
    )


def _list_newest_ids(db: Any, record_source: Source) -> list[str]:
    id_rows = db.execute(
        f"""SELECT id FROM {record_source.name} WHERE status = 'active'
            ORDER BY {NEWEST_FIRST_ORDER_SQL} LIMIT ?""",
        (_SAMPLED_RECORD_COUNT,),
    )
    return [id_row["id"] for id_row in id_rows]


def count_rows_if_same(first_place: FederalPlace, second_place: FederalPlace) -> dict[str, int]:
    """Return how many rows each table has, if both places say the same; nothing if not.

    Numbers of rows are compared of every table, and of each source the records themselves, at
    evenly spread places.
    """
    prepare_records(second_place)
    with closing(connect(first_place)) as first_db, closing(connect(second_place)) as second_db:
        counts_and_samples = [_count_and_sample(db) for db in (first_db, second_db)]
    return counts_and_samples[0][0] if counts_and_samples[0] == counts_and_samples[1] else {}


def _count_and_sample(db: Any) -> tuple[dict[str, int], list[Any]]:
    table_names = [*(record_source.name for record_source in SOURCES), *_TABLE_NAMES_BESIDE_RECORDS]
    row_count_by_table = {
        table_name: db.execute(f"SELECT count(*) FROM {table_name}").fetchone()[0]
        for table_name in table_names
    }
    sample_rows = []
    for record_source in SOURCES:
        sample_interval = max(1, row_count_by_table[record_source.name] // _SAMPLED_RECORD_COUNT)
        for row_offset in range(0, row_count_by_table[record_source.name], sample_interval):
            record_row = db.execute(
                f"SELECT id, record, status, loader FROM {record_source.name} ORDER BY id "
                "LIMIT 1 OFFSET ?",
                (row_offset,),
            ).fetchone()
            sample_rows.append(tuple(record_row))
    return row_count_by_table, sample_rows


def _list_sources_in_copy_order() -> list[Any]:
    """Return the sources, those that rows of other tables refer to first."""
    return sorted(
        SOURCES, key=lambda record_source: record_source.name not in ("legislators", "committees")
    )


def _copy_table(original_db: Any, copy_db: Any, table_name: str) -> int:
    column_names = _list_stored_columns(copy_db, table_name)
    placeholders_sql = ", ".join("?" * len(column_names))
    insert_sql = f"INSERT INTO {table_name} ({', '.join(column_names)}) VALUES ({placeholders_sql})"
    row_count = 0
    db_cursor = original_db.execute(f"SELECT {', '.join(column_names)} FROM {table_name}")
    while batch_rows := db_cursor.fetchmany(_ROWS_PER_BATCH):
        copy_db.executemany(
            insert_sql, [_cut_long_values(table_name, copied_row) for copied_row in batch_rows]
        )
        row_count += len(batch_rows)
    if copy_db.dialect.engine == "postgres" and table_name in _NUMBER_COLUMN_BY_TABLE:
        number_column = _NUMBER_COLUMN_BY_TABLE[table_name]
        copy_db.execute(
            f"SELECT setval(pg_get_serial_sequence('{table_name}', '{number_column}'), "
            f"greatest(max({number_column}), 1)) FROM {table_name}"
        )
    return row_count


def _cut_long_values(table_name: str, copied_row: Any) -> tuple[Any, ...]:
    """Return a row without what no index takes, which a file may have from before it was cut."""
    if table_name == "facets":
        facet_name, facet_value, document_row_id = copied_row
        return (facet_name, cut_facet_value(facet_value), document_row_id)
    if table_name == "names" and len(copied_row["folded"]) > fold.MAX_NAME_LETTERS:
        name_row_number, source_name, folded_name, _ = copied_row
        name_words = fold.fold_stored_name(folded_name)
        return (
            name_row_number,
            source_name,
            fold.pad_words(name_words),
            fold.join_sorted_initials(name_words),
        )
    return tuple(copied_row)


def _list_stored_columns(db: Any, table_name: str) -> list[str]:
    """Return the columns of a table that are stored, and not computed from others."""
    return list(
        RECORD_COLUMNS if table_name in SOURCES_BY_NAME else _read_stored_columns(db, table_name)
    )


def _read_stored_columns(db: Any, table_name: str) -> Iterator[str]:
    if db.dialect.engine == "sqlite":
        column_rows = db.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table_name,))
        yield from (column_row["name"] for column_row in column_rows if not column_row["hidden"])
        return
    column_rows = db.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
        "AND table_name = ? AND is_generated = 'NEVER' ORDER BY ordinal_position",
        (table_name,),
    )
    yield from (column_row["column_name"] for column_row in column_rows)

"""Counts the rows that an aggregate reads, and suggests filters that leave few enough of them."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import SqlFilter
from readingroom.bases.federal.query.aggregate_models import Interval
from readingroom.bases.federal.query.intervals import parse_first_day
from readingroom.bases.federal.schema.sources import RecordTable
from readingroom.storage.database import Database

_LOOKUP_COST_IN_ROWS = 8
"""How many rows of the facts index are read in the time of one lookup by another index."""


def choose_index_hint(
    db: Database, record_table: RecordTable, sql_filter: SqlFilter, max_rows: int
) -> tuple[str, int]:
    """Return the index to read, and how many rows of it: all, or those that pass one filter.

    The rows of a filter are counted only until they cannot be the cheaper way any more, those of a
    period only where all would be more than may be read.
    """
    build_index_hint = db.dialect.build_index_hint_sql
    facts_index_hint = (
        build_index_hint(record_table.covering_index_name)
        if record_table.covering_index_name
        else ""
    )
    index_hint = facts_index_hint
    (row_count,) = db.execute(record_table.row_count_sql).fetchone() or (0,)
    row_count = row_count or 0
    for column_name in record_table.indexed_column_names:
        if column_name in sql_filter.filters:
            matching_count = store.count_rows_up_to(
                db,
                record_table.name,
                column_name,
                sql_filter.filters[column_name],
                row_count // _LOOKUP_COST_IN_ROWS + 1,
            )
            if matching_count * _LOOKUP_COST_IN_ROWS < row_count:
                index_hint = (
                    build_index_hint(f"{record_table.name}_{column_name}")
                    if record_table.covering_index_name
                    else ""
                )
                row_count = matching_count
    has_period = "since" in sql_filter.filters or "until" in sql_filter.filters
    if row_count > max_rows and has_period and record_table.covering_index_name:
        # The facts index is sorted by the date, so nothing outside of the period is read.
        period_row_count = _count_rows_of_period(db, record_table, sql_filter, max_rows + 1)
        if period_row_count <= max_rows:
            return facts_index_hint, period_row_count
    return index_hint, row_count


def _count_rows_of_period(
    db: Database, record_table: RecordTable, sql_filter: SqlFilter, max_count: int
) -> int:
    period_conditions = {
        f"{record_table.date_sql} {comparison} ?": sql_filter.filters[bound_name]
        for bound_name, comparison in (("since", ">="), ("until", "<="))
        if bound_name in sql_filter.filters
    }
    (period_row_count,) = db.execute(
        f"""SELECT count(*) FROM (SELECT 1 FROM {record_table.name}
            WHERE {" AND ".join(period_conditions)} LIMIT ?)""",
        (*period_conditions.values(), max_count),
    ).fetchone()
    return int(period_row_count)


def suggest_recent_period(
    db: Database, record_table: RecordTable, interval: Interval, max_intervals: int
) -> list[dict[str, Any]]:
    """Return the filter that leaves about so many of the newest intervals."""
    (newest_date,) = db.execute(
        f"SELECT max({record_table.date_sql}) FROM {record_table.name}"
    ).fetchone()
    newest_day = parse_first_day(newest_date)
    if newest_day is None:
        return []
    # The shortest that each can be, so that what is suggested never has too many buckets.
    shortest_interval_days = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}[
        interval
    ]
    # Nothing here is older than Congress, and Python has no dates before the year 1.
    days_back = min(
        shortest_interval_days * (max_intervals - 1), (newest_day - date(1789, 1, 1)).days
    )
    return [{"filters": {"since": (newest_day - timedelta(days=days_back)).isoformat()}}]


def suggest_filters(
    db: Database, record_table: RecordTable, sql_filter: SqlFilter, max_records: int
) -> Iterator[dict[str, Any]]:
    """Yield filters that leave at most so many records, each with how many it leaves."""
    for filter_name, newest_value_sql in record_table.newest_value_queries:
        (newest_value,) = db.execute(newest_value_sql).fetchone() or (None,)
        if newest_value is None or filter_name in sql_filter.filters:
            continue
        matching_count = store.count_rows_up_to(
            db, record_table.name, filter_name, newest_value, max_records + 1
        )
        if matching_count <= max_records:
            yield {"filters": {filter_name: newest_value}, "rows": matching_count}
    if record_table.covering_index_name and "since" not in sql_filter.filters:
        yield from _suggest_since_filter(
            db, record_table, sql_filter.filters.get("until"), max_records
        )


def _suggest_since_filter(
    db: Database, record_table: RecordTable, until_day: str | None, max_records: int
) -> Iterator[dict[str, Any]]:
    period_condition = f"{record_table.date_sql} <= ?" if until_day else "true"
    period_values = (until_day,) if until_day else ()
    boundary_date_row = db.execute(
        f"""SELECT {record_table.date_sql} FROM {record_table.name} WHERE {period_condition}
            ORDER BY {record_table.date_sql} DESC NULLS LAST LIMIT 1 OFFSET ?""",
        (*period_values, max_records),
    ).fetchone()
    if (
        boundary_day := parse_first_day(boundary_date_row[0]) if boundary_date_row else None
    ) is not None:
        since_iso_date = (boundary_day + timedelta(days=1)).isoformat()
        (matching_count,) = db.execute(
            f"""SELECT count(*) FROM {record_table.name}
                WHERE {period_condition} AND {record_table.date_sql} >= ?""",
            (*period_values, since_iso_date),
        ).fetchone()
        if matching_count:
            yield {"filters": {"since": since_iso_date}, "rows": matching_count}

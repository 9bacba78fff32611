"""Suggests filters that make an aggregate small enough to be computed."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import SqlFilter
from readingroom.bases.federal.query.aggregate_models import Interval
from readingroom.bases.federal.query.intervals import parse_first_day
from readingroom.bases.federal.schema.sources import RecordTable
from readingroom.storage.database import Database


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
        yield from _suggest_since_filter(db, record_table, max_records)


def _suggest_since_filter(
    db: Database, record_table: RecordTable, max_records: int
) -> Iterator[dict[str, Any]]:
    boundary_date_row = db.execute(
        f"""SELECT {record_table.date_sql} FROM {record_table.name}
            ORDER BY {record_table.date_sql} DESC NULLS LAST LIMIT 1 OFFSET ?""",
        (max_records,),
    ).fetchone()
    if (
        boundary_day := parse_first_day(boundary_date_row[0]) if boundary_date_row else None
    ) is not None:
        since_iso_date = (boundary_day + timedelta(days=1)).isoformat()
        (matching_count,) = db.execute(
            f"SELECT count(*) FROM {record_table.name} WHERE {record_table.date_sql} >= ?",
            (since_iso_date,),
        ).fetchone()
        if matching_count:
            yield {"filters": {"since": since_iso_date}, "rows": matching_count}

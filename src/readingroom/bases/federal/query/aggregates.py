"""Counts, sums and time series over a table, within a budget of rows and time."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import RowFilter
from readingroom.bases.federal.query.aggregate_models import (
    AggregateQuery,
    Bucket,
    Buckets,
    Interval,
    Key,
    QueryCost,
    Series,
    TimeBucket,
    Total,
)
from readingroom.bases.federal.query.intervals import (
    INTERVALS,
    KEY_LENGTH_BY_INTERVAL,
    LAST_DAY,
    count_intervals_between,
    find_interval_start,
    find_largest_groups,
    find_next_interval_start,
    format_interval_label,
    iterate_interval_starts,
    parse_first_day,
)
from readingroom.bases.federal.query.narrowing import suggest_filters, suggest_recent
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Facet, Measure, RecordTable
from readingroom.core.errors import InvalidArguments
from readingroom.core.imports import LazyModule
from readingroom.storage.database import Database, StatementStopped

if TYPE_CHECKING:
    from readingroom.bases.federal.names import filter_values, gaps, group_labels
else:
    filter_values = LazyModule("readingroom.bases.federal.names.filter_values")
    gaps = LazyModule("readingroom.bases.federal.names.gaps")
    group_labels = LazyModule("readingroom.bases.federal.names.group_labels")

AnswerT = TypeVar("AnswerT")

MAX_BUCKETS = 1_000
_STEPS_PER_ROW = 100
"""Steps of SQLite's virtual machine that a row may take; most rows take a tenth of that."""
# Often enough to stop a query within milliseconds, seldom enough to cost it nothing.
_STEPS_BETWEEN_CHECKS = 10_000
_TIME_SHARE_FOR_SUGGESTIONS = 0.08
"""The share of the time limit in which filters to suggest are searched."""
_SAMPLED_RECORD_COUNT = 500
_LOOKUP_COST = 8
"""How many rows of the facts index are read in the time of one lookup by another index."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an aggregate may cost."""

    max_rows: int = 2_000_000
    max_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A requested aggregate: a count, or the sum of `sum_field`."""

    table: RecordTable
    row_filter: RowFilter
    sum_field: str | None = None
    group_by: str | None = None
    top: int = 20
    time_field: str | None = None
    interval: Interval = "month"


@dataclass(slots=True)
class CostMeter:
    """What a query has cost so far, in steps of the database and in time."""

    max_steps: int
    deadline: float
    step_count: int = 0

    def is_exhausted(self) -> bool:
        """The database calls this every _STEPS_BETWEEN_CHECKS steps; True stops the query."""
        self.step_count += _STEPS_BETWEEN_CHECKS
        return self.step_count > self.max_steps or time.perf_counter() > self.deadline


class Aggregator:
    """Computes aggregates on a connection, within a budget."""

    def __init__(self, db: Database, budget: Budget) -> None:
        self._db = db
        self._budget = budget
        self._started_at = time.perf_counter()
        self.meter = CostMeter(0, 0.0)
        """The meter of the last query."""
        self._filters_read: dict[str, Any] | None = None

    def compute_total(self, request: Aggregation) -> Total | Buckets:
        """Return a number, or a number for each group."""
        if request.group_by:
            return self._run_within_budget(request, self._compute_buckets)
        return self._run_within_budget(request, self._compute_total)

    def compute_series(self, request: Aggregation) -> Series:
        """Return a number for each interval of time."""
        return self._run_within_budget(request, self._compute_series)

    def _run_within_budget(
        self, request: Aggregation, read_aggregate: Callable[[Aggregation, AggregateQuery], AnswerT]
    ) -> AnswerT:
        row_filter = filter_values.resolve_filters(self._db, request.table, request.row_filter)
        self._filters_read = filter_values.find_reinterpreted_values(
            request.row_filter.filters, row_filter.filters
        )
        request = replace(request, row_filter=row_filter)
        query = self._build_query(request)
        if query.row_count > self._budget.max_rows:
            raise AggregateTooBroad(
                f"About {query.row_count:,} rows of {request.table.slug} would be read, "
                f"{self._budget.max_rows:,} may be: narrow it",
                **self._suggest_narrowing(
                    request, query.record_count * self._budget.max_rows // query.row_count
                ),
            )
        try:
            with self._limit_cost(self._started_at + self._budget.max_seconds) as meter:
                self.meter = meter
                return read_aggregate(request, query)
        except StatementStopped as error:
            raise self._make_stop_error(request, query, meter) from error

    def _build_common_fields(self, request: Aggregation, query: AggregateQuery) -> dict[str, Any]:
        """Return what every answer has besides its numbers."""
        # How members voted is not a source of its own: it is loaded with the roll calls.
        record_source = SOURCES_BY_NAME.get(request.table.name, SOURCES_BY_NAME["roll_call_votes"])
        return {
            "resource": request.table.slug,
            "unit": query.measure.unit if query.measure else None,
            "filters_read": self._filters_read,
            "note": gaps.describe_gaps(self._db, request.table, request.row_filter.filters),
            "loaded_up_to": store.read_progress(self._db, record_source).loaded_up_to,
            "query_cost": QueryCost(
                rows=query.row_count,
                most_rows=self._budget.max_rows,
                took_ms=round((time.perf_counter() - self._started_at) * 1000, 1),
            ),
        }

    # --- the plan ---

    def _build_query(self, request: Aggregation) -> AggregateQuery:
        record_table, measure = request.table, _choose_measure(request)
        index_hint, record_count = self._choose_index(record_table, request.row_filter)
        from_sql, where_sql = f"{record_table.name} r {index_hint}", request.row_filter.sql
        group_column, joined_row_count = request.group_by, record_count
        facet = next(
            (facet for facet in record_table.plan.facets if facet.name == group_column), None
        )
        if facet:
            joined_row_count += self._estimate_joined_row_count(record_table, facet, record_count)
            reads_whole_facet = "_facts" in index_hint and not measure and not request.time_field
            if reads_whole_facet and facet.search_field:
                from_sql = f"(SELECT doc, value FROM facets WHERE field = '{facet.search_field}')"
                # What is withdrawn is no document any more.
                passing_sql = (
                    f"id IN (SELECT id FROM {record_table.name} {index_hint} WHERE {where_sql})"
                )
                passing_sql = (
                    passing_sql if request.row_filter.filters else f"source = '{record_table.name}'"
                )
                where_sql = f"doc IN (SELECT doc FROM documents WHERE {passing_sql})"
                group_column = "value"
            elif reads_whole_facet:
                # Each row of the facet once, in the order of its values where an index has it.
                from_sql = f"({facet.rows_by_value_sql or facet.rows_sql})"
                where_sql = (
                    f"id IN (SELECT id FROM {record_table.name} {index_hint} WHERE {where_sql})"
                )
                group_column = "value"
            else:
                # From the records to their values: the other way round, each value would search
                # an index for its record that is not sorted by id.
                from_sql += f""" {self._db.dialect.join_in_order_sql}
                    (SELECT id AS facet_id, value AS facet_value FROM ({facet.rows_sql}))
                    ON facet_id = r.id"""
                group_column = "facet_value"
        elif group_column is not None:
            _check_field("group_by", group_column, record_table.plan.groups, record_table)
        time_column = None
        if request.time_field is not None:
            column_by_time_field = dict(record_table.plan.times)
            _check_field(
                "time_field", request.time_field, tuple(column_by_time_field), record_table
            )
            time_column = column_by_time_field[request.time_field]
        return AggregateQuery(
            from_sql,
            where_sql,
            request.row_filter.values,
            measure,
            group_column,
            time_column,
            record_count,
            joined_row_count,
        )

    def _estimate_joined_row_count(
        self, record_table: RecordTable, facet: Facet, record_count: int
    ) -> int:
        """Return about how many values these records have in a facet, by the average of all.

        They are counted only until they cannot be within the budget any more; where that would take
        as long as the answer, of some records only.
        """
        if facet.search_field:
            return int(self._estimate_values_per_record(record_table, facet) * record_count)
        (total_record_count,) = self._db.execute(record_table.size_sql).fetchone() or (0,)
        max_counted_rows = self._budget.max_rows + 1
        (facet_row_count,) = self._db.execute(
            f"""SELECT count(*) FROM (
                SELECT 1 FROM ({facet.rows_by_value_sql or facet.rows_sql})
                LIMIT {max_counted_rows}
            )"""
        ).fetchone()
        return int(facet_row_count * record_count // max(total_record_count or 0, record_count, 1))

    def _estimate_values_per_record(self, record_table: RecordTable, facet: Facet) -> float:
        """Return how many values a record has on average, by some of the records."""
        sample_sql = "SELECT doc FROM documents WHERE source = ? LIMIT ?"
        (facet_row_count, sampled_count) = self._db.execute(
            f"""SELECT (SELECT count(*) FROM facets WHERE field = ? AND doc IN ({sample_sql})),
                       (SELECT count(*) FROM ({sample_sql}))""",
            (facet.search_field, *((record_table.name, _SAMPLED_RECORD_COUNT) * 2)),
        ).fetchone()
        return float(facet_row_count) / max(int(sampled_count), 1)

    def _choose_index(self, record_table: RecordTable, row_filter: RowFilter) -> tuple[str, int]:
        """Return the index to read, and how many rows of it: all, or those that pass one filter.

        The rows of a filter are counted only until they cannot be the cheaper way any more.
        """
        build_index_hint = self._db.dialect.build_index_hint_sql
        index_hint = build_index_hint(record_table.facts_index) if record_table.facts_index else ""
        (row_count,) = self._db.execute(record_table.size_sql).fetchone() or (0,)
        row_count = row_count or 0
        for column_name in record_table.indexed_columns:
            if column_name in row_filter.filters:
                max_counted_rows = row_count // _LOOKUP_COST + 1
                filter_value = row_filter.filters[column_name]
                matching_count = store.count_rows_up_to(
                    self._db, record_table.name, column_name, filter_value, max_counted_rows
                )
                if matching_count * _LOOKUP_COST < row_count:
                    index_hint = (
                        build_index_hint(f"{record_table.name}_{column_name}")
                        if record_table.facts_index
                        else ""
                    )
                    row_count = matching_count
        return index_hint, row_count

    # --- numbers and groups ---

    def _compute_total(self, request: Aggregation, query: AggregateQuery) -> Total:
        (total_value,) = self._db.execute(
            f"SELECT {query.value_sql} FROM {query.from_sql} WHERE {query.where_sql}",
            query.sql_values,
        ).fetchone()
        return Total(
            value=query.to_number(total_value), **self._build_common_fields(request, query)
        )

    def _compute_buckets(self, request: Aggregation, query: AggregateQuery) -> Buckets:
        group_rows = self._db.execute(
            f"""SELECT key, value, count(*) OVER () AS groups FROM (
                    SELECT {query.group_column} AS key, {query.value_sql} AS value
                    FROM {query.from_sql} WHERE {query.where_sql} GROUP BY 1)
                ORDER BY value DESC NULLS LAST, key NULLS FIRST LIMIT ?""",
            (*query.sql_values, request.top),
        ).fetchall()
        group_count = group_rows[0]["groups"] if group_rows else 0
        read_key = _make_key_reader(request)
        label_by_key = group_labels.read_group_labels(
            self._db, request.table, request.group_by, [row["key"] for row in group_rows]
        )
        return Buckets(
            buckets=[
                Bucket(
                    key=read_key(group_row["key"]),
                    value=query.to_number(group_row["value"]),
                    label=label_by_key.get(group_row["key"]),
                )
                for group_row in group_rows
            ],
            total_buckets=group_count,
            truncated=group_count > len(group_rows),
            **self._build_common_fields(request, query),
        )

    # --- time ---

    def _compute_series(self, request: Aggregation, query: AggregateQuery) -> Series:
        values_by_group, undated_value = self._read_values_by_group(request, query)
        first_start, last_start = self._find_first_and_last_start(request, values_by_group)
        group_keys = (
            find_largest_groups(values_by_group, request.top) if request.group_by else [None]
        )
        interval_count = (
            count_intervals_between(request.interval, first_start, last_start)
            if first_start and last_start
            else 0
        )
        if interval_count * len(group_keys) > MAX_BUCKETS:
            raise self._make_bucket_error(request, interval_count, len(group_keys))
        starts = (
            list(iterate_interval_starts(request.interval, first_start, last_start))
            if first_start and last_start
            else []
        )
        read_key = _make_key_reader(request)
        label_by_group = group_labels.read_group_labels(
            self._db, request.table, request.group_by, group_keys
        )
        buckets = [
            TimeBucket(
                key=format_interval_label(request.interval, bucket_start),
                start=bucket_start.isoformat(),
                end=(
                    find_next_interval_start(request.interval, bucket_start) - timedelta(days=1)
                ).isoformat(),
                group=read_key(group_key) if request.group_by else None,
                label=label_by_group.get(group_key),
                value=query.to_number(values_by_group.get(group_key, {}).get(bucket_start, 0)),
            )
            for bucket_start in starts
            for group_key in group_keys
        ]
        return Series(
            interval=request.interval,
            buckets=buckets,
            total_buckets=len(starts) * len(values_by_group) if request.group_by else len(starts),
            truncated=bool(request.group_by) and len(values_by_group) > len(group_keys),
            undated=query.to_number(undated_value),
            **self._build_common_fields(request, query),
        )

    def _read_values_by_group(
        self, request: Aggregation, query: AggregateQuery
    ) -> tuple[dict[Any, dict[date, int]], int]:
        """Return the values by group and start of the interval, and the sum of those undated."""
        date_prefix_length = KEY_LENGTH_BY_INTERVAL[request.interval]
        key_columns_sql = f"{query.group_column}, at" if query.group_column else "at"
        cell_rows = self._db.execute(
            f"""SELECT substr({query.time_column}, 1, {date_prefix_length}) AS at,
                       {query.value_sql} AS value, {query.group_column or "NULL"} AS grp
                FROM {query.from_sql} WHERE {query.where_sql} GROUP BY {key_columns_sql}""",
            query.sql_values,
        )
        values_by_group: dict[Any, dict[date, int]] = defaultdict(lambda: defaultdict(int))
        undated_value = 0
        for cell_row in cell_rows:
            first_day = parse_first_day(cell_row["at"])
            if first_day is None:
                undated_value += cell_row["value"] or 0
            else:
                values_by_group[cell_row["grp"]][
                    find_interval_start(request.interval, first_day)
                ] += cell_row["value"] or 0
        return values_by_group, undated_value

    def _find_first_and_last_start(
        self, request: Aggregation, values_by_group: Mapping[Any, Mapping[date, int]]
    ) -> tuple[date | None, date | None]:
        """Return the first and the last start: those of the filters, else those of the rows."""
        starts = [bucket_start for series in values_by_group.values() for bucket_start in series]
        since_day, until = (
            parse_first_day(request.row_filter.filters.get(bound_name))
            for bound_name in ("since", "until")
        )
        if dict(request.table.plan.times)[request.time_field or ""] not in request.table.date_sql:
            since_day = until = None  # the filters are about another date
        first_start = (
            find_interval_start(request.interval, since_day)
            if since_day
            else min(starts, default=None)
        )
        last_start = (
            find_interval_start(request.interval, until) if until else max(starts, default=None)
        )
        return first_start, min(last_start, LAST_DAY) if last_start else None

    def _make_bucket_error(
        self, request: Aggregation, interval_count: int, group_count: int
    ) -> AggregateTooBroad:
        longer_intervals = INTERVALS[INTERVALS.index(request.interval) + 1 :]
        narrowing_suggestions: list[dict[str, Any]] = [
            {"interval": interval} for interval in longer_intervals[:1]
        ]
        if group_count > 1:
            narrowing_suggestions.append({"top": max(1, MAX_BUCKETS // interval_count)})
        return AggregateTooBroad(
            f"{interval_count:,} intervals for {group_count:,} groups are more than "
            f"{MAX_BUCKETS:,} buckets: take a longer interval, or a shorter time",
            suggest_narrowing=[
                *narrowing_suggestions,
                *suggest_recent(
                    self._db, request.table, request.interval, MAX_BUCKETS // group_count
                ),
            ],
        )

    # --- the budget ---

    @contextmanager
    def _limit_cost(self, deadline: float) -> Iterator[CostMeter]:
        """Interrupt the queries inside at the deadline or after the allowed steps."""
        meter = CostMeter(self._budget.max_rows * _STEPS_PER_ROW, deadline)
        with self._db.stop_when(meter.is_exhausted, _STEPS_BETWEEN_CHECKS):
            yield meter

    def _make_stop_error(
        self, request: Aggregation, query: AggregateQuery, meter: CostMeter
    ) -> AggregateTooBroad | AggregateTimeout:
        if meter.step_count > meter.max_steps:
            return AggregateTooBroad(
                f"Stopped after the work of {self._budget.max_rows:,} rows: narrow it",
                **self._suggest_narrowing(request, query.record_count // 4),
            )
        return AggregateTimeout(
            f"Stopped after {self._budget.max_seconds:g} s: narrow it",
            **self._suggest_narrowing(request, query.record_count // 4),
        )

    def _suggest_narrowing(self, request: Aggregation, max_records: int) -> dict[str, Any]:
        """Return the hint with filters that would fit, and the records that each of them leaves.

        They are searched in a fraction of the time limit: an error must not come later than an
        answer.
        """
        narrowing_suggestions: list[dict[str, Any]] = []
        with (
            suppress(StatementStopped),
            self._limit_cost(
                time.perf_counter() + self._budget.max_seconds * _TIME_SHARE_FOR_SUGGESTIONS
            ),
        ):
            narrowing_suggestions.extend(
                suggest_filters(self._db, request.table, request.row_filter, max_records)
            )
        return {"suggest_narrowing": narrowing_suggestions}


# --- fields that may be requested ---


def _choose_measure(request: Aggregation) -> Measure | None:
    if request.sum_field is None:
        return None
    measure_by_name = {measure.name: measure for measure in request.table.plan.sums}
    _check_field("sum_field", request.sum_field, tuple(measure_by_name), request.table)
    return measure_by_name[request.sum_field]


def _check_field(
    argument_name: str, field_name: str, eligible_fields: Sequence[str], record_table: RecordTable
) -> None:
    """Raise InvalidArguments unless a field is among the eligible ones."""
    if field_name not in eligible_fields:
        choices_text = (
            f"one of {', '.join(eligible_fields)}" if eligible_fields else "none: leave it out"
        )
        problem_text = f"{record_table.slug} has no {field_name[:100]!r} here; {choices_text}"
        raise InvalidArguments([{"field": argument_name, "message": problem_text}])


# --- keys of groups ---


def _make_key_reader(request: Aggregation) -> Callable[[Any], Key]:
    """Return a function that reads the keys of a group: SQLite has no booleans."""
    kind_by_column = {column.name: column.kind for column in request.table.columns}
    is_boolean = kind_by_column.get(request.group_by or "") == "BOOLEAN"

    def read_key(stored_key: Any) -> Key:
        return bool(stored_key) if is_boolean and stored_key is not None else stored_key

    return read_key

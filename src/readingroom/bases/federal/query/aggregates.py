"""Counts, sums and time series over a table, within a budget of rows and time."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import SqlFilter, build_sql_filter
from readingroom.bases.federal.query.aggregate_models import (
    AggregateQuery,
    Bucket,
    Buckets,
    CostMeter,
    Interval,
    QueryCost,
    Series,
    TimeBucket,
    Total,
    check_eligible_field,
    read_group_key,
)
from readingroom.bases.federal.query.intervals import (
    DATE_PREFIX_LENGTH_BY_INTERVAL,
    INTERVALS,
    LATEST_BUCKET_START,
    count_intervals_between,
    format_interval_label,
    get_interval_start,
    get_next_interval_start,
    iterate_interval_starts,
    list_largest_group_keys,
    parse_first_day,
)
from readingroom.bases.federal.query.narrowing import (
    choose_index_hint,
    suggest_filters,
    suggest_recent_period,
)
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Facet, Measure, RecordTable
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


@dataclass(frozen=True, slots=True)
class Budget:
    """What an aggregate may cost."""

    max_rows: int = 2_000_000
    max_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A requested aggregate: a count, or the sum of `sum_field`."""

    table: RecordTable
    sql_filter: SqlFilter
    sum_field: str | None = None
    group_by: str | None = None
    top: int = 20
    time_field: str | None = None
    interval: Interval = "month"


class Aggregator:
    """Computes aggregates on a connection, within a budget."""

    def __init__(self, db: Database, budget: Budget) -> None:
        self._db = db
        self._budget = budget
        self._started_at = time.perf_counter()
        self.meter = CostMeter(0, 0.0, _STEPS_BETWEEN_CHECKS)
        """The meter of the last query."""
        self._filters_read: dict[str, Any] | None = None

    def compute_total(self, aggregation: Aggregation) -> Total | Buckets:
        """Return a number, or a number for each group."""
        if aggregation.group_by:
            return self._run_within_budget(aggregation, self._compute_buckets)
        return self._run_within_budget(aggregation, self._compute_total)

    def compute_series(self, aggregation: Aggregation) -> Series:
        """Return a number for each interval of time."""
        return self._run_within_budget(aggregation, self._compute_series)

    def _run_within_budget(
        self,
        aggregation: Aggregation,
        read_aggregate: Callable[[Aggregation, AggregateQuery], AnswerT],
    ) -> AnswerT:
        sql_filter = filter_values.resolve_filters(
            self._db, aggregation.table, aggregation.sql_filter
        )
        self._filters_read = filter_values.find_reinterpreted_values(
            aggregation.sql_filter.filters, sql_filter.filters
        )
        aggregation = replace(aggregation, sql_filter=sql_filter)
        query = self._build_query(aggregation)
        if query.row_count > self._budget.max_rows:
            raise AggregateTooBroad(
                f"About {query.row_count:,} rows of {aggregation.table.slug} would be read, "
                f"{self._budget.max_rows:,} may be: narrow it",
                **self._suggest_narrowing(
                    aggregation, query.record_count * self._budget.max_rows // query.row_count
                ),
            )
        try:
            with self._limit_cost(self._started_at + self._budget.max_seconds) as meter:
                self.meter = meter
                return read_aggregate(aggregation, query)
        except StatementStopped as error:
            raise self._make_stop_error(aggregation, query, meter) from error

    def _build_common_fields(
        self, aggregation: Aggregation, query: AggregateQuery, *, is_empty: bool
    ) -> dict[str, Any]:
        """Return what every answer has besides its numbers; `is_empty` if they are all 0."""
        # How members voted is not a source of its own: it is loaded with the roll calls.
        record_source = SOURCES_BY_NAME.get(
            aggregation.table.name, SOURCES_BY_NAME["roll_call_votes"]
        )
        return {
            "resource": aggregation.table.slug,
            "unit": query.measure.unit if query.measure else None,
            "filters_read": self._filters_read,
            "note": gaps.describe_gaps(
                self._db, aggregation.table, aggregation.sql_filter.filters, is_empty=is_empty
            ),
            "loaded_up_to": store.read_progress(self._db, record_source).loaded_up_to,
            "query_cost": QueryCost(
                rows=query.row_count,
                most_rows=self._budget.max_rows,
                took_ms=round((time.perf_counter() - self._started_at) * 1000, 1),
            ),
        }

    # --- the plan ---

    def _build_query(self, aggregation: Aggregation) -> AggregateQuery:
        record_table, measure = aggregation.table, _find_sum_measure(aggregation)
        index_hint, record_count = choose_index_hint(
            self._db, record_table, aggregation.sql_filter, self._budget.max_rows
        )
        from_sql, where_sql = f"{record_table.name} r {index_hint}", aggregation.sql_filter.sql
        group_column, joined_row_count = aggregation.group_by, record_count
        facet = next(
            (facet for facet in record_table.aggregation_plan.facets if facet.name == group_column),
            None,
        )
        if facet:
            joined_row_count += self._estimate_joined_row_count(record_table, facet, record_count)
            reads_whole_facet = (
                "_facts" in index_hint and not measure and not aggregation.time_field
            )
            if reads_whole_facet and facet.search_field:
                from_sql = f"(SELECT doc, value FROM facets WHERE field = '{facet.search_field}')"
                # What is withdrawn is no document any more.
                passing_condition = (
                    f"id IN (SELECT id FROM {record_table.name} {index_hint} WHERE {where_sql})"
                )
                passing_condition = (
                    passing_condition
                    if aggregation.sql_filter.filters
                    else f"source = '{record_table.name}'"
                )
                where_sql = f"doc IN (SELECT doc FROM documents WHERE {passing_condition})"
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
            check_eligible_field(
                "group_by", group_column, record_table.aggregation_plan.group_names, record_table
            )
        time_column = None
        if aggregation.time_field is not None:
            column_by_time_field = dict(record_table.aggregation_plan.date_names_and_columns)
            check_eligible_field(
                "time_field", aggregation.time_field, tuple(column_by_time_field), record_table
            )
            time_column = column_by_time_field[aggregation.time_field]
        return AggregateQuery(
            from_sql,
            where_sql,
            aggregation.sql_filter.values,
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
        (total_record_count,) = self._db.execute(record_table.row_count_sql).fetchone() or (0,)
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

    # --- numbers and groups ---

    def _compute_total(self, aggregation: Aggregation, query: AggregateQuery) -> Total:
        (total_value,) = self._db.execute(
            f"SELECT {query.value_sql} FROM {query.from_sql} WHERE {query.where_sql}",
            query.sql_values,
        ).fetchone()
        return Total(
            value=query.to_number(total_value),
            **self._build_common_fields(aggregation, query, is_empty=not total_value),
        )

    def _compute_buckets(self, aggregation: Aggregation, query: AggregateQuery) -> Buckets:
        group_rows = self._db.execute(
            f"""SELECT key, value, count(*) OVER () AS groups FROM (
                    SELECT {query.group_column} AS key, {query.value_sql} AS value
                    FROM {query.from_sql} WHERE {query.where_sql} GROUP BY 1)
                ORDER BY value DESC NULLS LAST, key NULLS FIRST LIMIT ?""",
            (*query.sql_values, aggregation.top),
        ).fetchall()
        group_count = group_rows[0]["groups"] if group_rows else 0
        label_by_group_key = group_labels.read_group_labels(
            self._db,
            aggregation.table,
            aggregation.group_by,
            [group_row["key"] for group_row in group_rows],
        )
        return Buckets(
            buckets=[
                Bucket(
                    key=read_group_key(aggregation.table, aggregation.group_by, group_row["key"]),
                    value=query.to_number(group_row["value"]),
                    label=label_by_group_key.get(group_row["key"]),
                )
                for group_row in group_rows
            ],
            total_buckets=group_count,
            truncated=group_count > len(group_rows),
            **self._build_common_fields(aggregation, query, is_empty=not group_rows),
        )

    # --- time ---

    def _compute_series(self, aggregation: Aggregation, query: AggregateQuery) -> Series:
        values_by_group, undated_total = self._read_values_by_group(aggregation, query)
        first_start, last_start = self._find_first_and_last_start(aggregation, values_by_group)
        group_keys = (
            list_largest_group_keys(values_by_group, aggregation.top)
            if aggregation.group_by
            else [None]
        )
        interval_count = (
            count_intervals_between(aggregation.interval, first_start, last_start)
            if first_start and last_start
            else 0
        )
        if interval_count * len(group_keys) > MAX_BUCKETS:
            raise self._make_bucket_error(aggregation, interval_count, len(group_keys))
        interval_starts = (
            list(iterate_interval_starts(aggregation.interval, first_start, last_start))
            if first_start and last_start
            else []
        )
        label_by_group = group_labels.read_group_labels(
            self._db, aggregation.table, aggregation.group_by, group_keys
        )
        buckets = [
            TimeBucket(
                key=format_interval_label(aggregation.interval, bucket_start),
                start=bucket_start.isoformat(),
                end=(
                    get_next_interval_start(aggregation.interval, bucket_start) - timedelta(days=1)
                ).isoformat(),
                group=read_group_key(aggregation.table, aggregation.group_by, group_key)
                if aggregation.group_by
                else None,
                label=label_by_group.get(group_key),
                value=query.to_number(values_by_group.get(group_key, {}).get(bucket_start, 0)),
            )
            for bucket_start in interval_starts
            for group_key in group_keys
        ]
        any_value = undated_total or any(bucket.value for bucket in buckets)
        return Series(
            interval=aggregation.interval,
            buckets=buckets,
            total_buckets=len(interval_starts) * len(values_by_group)
            if aggregation.group_by
            else len(interval_starts),
            truncated=bool(aggregation.group_by) and len(values_by_group) > len(group_keys),
            undated=query.to_number(undated_total),
            **self._build_common_fields(aggregation, query, is_empty=not any_value),
        )

    def _read_values_by_group(
        self, aggregation: Aggregation, query: AggregateQuery
    ) -> tuple[dict[Any, dict[date, int]], int]:
        """Return the values by group and start of the interval, and the sum of those undated."""
        date_prefix_length = DATE_PREFIX_LENGTH_BY_INTERVAL[aggregation.interval]
        key_columns_sql = f"{query.group_column}, at" if query.group_column else "at"
        cell_rows = self._db.execute(
            f"""SELECT substr({query.time_column}, 1, {date_prefix_length}) AS at,
                       {query.value_sql} AS value, {query.group_column or "NULL"} AS grp
                FROM {query.from_sql} WHERE {query.where_sql} GROUP BY {key_columns_sql}""",
            query.sql_values,
        )
        values_by_group: dict[Any, dict[date, int]] = defaultdict(lambda: defaultdict(int))
        undated_total = 0
        for cell_row in cell_rows:
            first_day = parse_first_day(cell_row["at"])
            if first_day is None:
                undated_total += cell_row["value"] or 0
            else:
                values_by_group[cell_row["grp"]][
                    get_interval_start(aggregation.interval, first_day)
                ] += cell_row["value"] or 0
        return values_by_group, undated_total

    def _find_first_and_last_start(
        self, aggregation: Aggregation, values_by_group: Mapping[Any, Mapping[date, int]]
    ) -> tuple[date | None, date | None]:
        """Return the first and the last start: those of the filters, else those of the rows."""
        bucket_starts = [
            bucket_start
            for value_by_start in values_by_group.values()
            for bucket_start in value_by_start
        ]
        since_day, until_day = (
            parse_first_day(aggregation.sql_filter.filters.get(bound_name))
            for bound_name in ("since", "until")
        )
        date_column_by_name = dict(aggregation.table.aggregation_plan.date_names_and_columns)
        if date_column_by_name[aggregation.time_field or ""] not in aggregation.table.date_sql:
            since_day = until_day = None  # the filters are about another date
        first_start = (
            get_interval_start(aggregation.interval, since_day)
            if since_day
            else min(bucket_starts, default=None)
        )
        last_start = (
            get_interval_start(aggregation.interval, until_day)
            if until_day
            else max(bucket_starts, default=None)
        )
        return first_start, min(last_start, LATEST_BUCKET_START) if last_start else None

    def _make_bucket_error(
        self, aggregation: Aggregation, interval_count: int, group_count: int
    ) -> AggregateTooBroad:
        longer_intervals = INTERVALS[INTERVALS.index(aggregation.interval) + 1 :]
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
                *suggest_recent_period(
                    self._db, aggregation.table, aggregation.interval, MAX_BUCKETS // group_count
                ),
            ],
        )

    # --- the budget ---

    @contextmanager
    def _limit_cost(self, deadline: float) -> Iterator[CostMeter]:
        """Interrupt the queries inside at the deadline or after the allowed steps."""
        counted_steps = _STEPS_BETWEEN_CHECKS if self._db.dialect.counts_steps else 0
        meter = CostMeter(self._budget.max_rows * _STEPS_PER_ROW, deadline, counted_steps)
        with self._db.stop_when(meter.is_exhausted, _STEPS_BETWEEN_CHECKS):
            yield meter

    def _make_stop_error(
        self, aggregation: Aggregation, query: AggregateQuery, meter: CostMeter
    ) -> AggregateTooBroad | AggregateTimeout:
        if meter.step_count > meter.max_steps:
            return AggregateTooBroad(
                f"Stopped after the work of {self._budget.max_rows:,} rows: narrow it",
                **self._suggest_narrowing(aggregation, query.record_count // 4),
            )
        return AggregateTimeout(
            f"Stopped after {self._budget.max_seconds:g} s: narrow it",
            **self._suggest_narrowing(aggregation, query.record_count // 4),
        )

    def _suggest_narrowing(self, aggregation: Aggregation, max_records: int) -> dict[str, Any]:
        """Return the hint with filters that would fit, and the records that each of them leaves.

        The first one is searched for in the time that an answer may take, further ones in a
        fraction of it: an error must not come later than an answer.
        """
        narrowing_suggestions: list[dict[str, Any]] = []
        share_ends_at = time.perf_counter() + self._budget.max_seconds * _TIME_SHARE_FOR_SUGGESTIONS
        time_ends_at = max(share_ends_at, self._started_at + self._budget.max_seconds)

        def is_search_over() -> bool:
            return time.perf_counter() > (share_ends_at if narrowing_suggestions else time_ends_at)

        with (
            suppress(StatementStopped),
            self._db.stop_when(is_search_over, _STEPS_BETWEEN_CHECKS),
        ):
            narrowing_suggestions.extend(
                suggestion
                for suggestion in suggest_filters(
                    self._db, aggregation.table, aggregation.sql_filter, max_records
                )
                if self._is_within_rows(aggregation, suggestion["filters"])
            )
        return {"suggest_narrowing": narrowing_suggestions}

    def _is_within_rows(self, aggregation: Aggregation, added_filters: Mapping[str, Any]) -> bool:
        """Whether an aggregate would not be refused for its rows if it had these filters too."""
        narrowed_filter = build_sql_filter(
            aggregation.table, {**aggregation.sql_filter.filters, **added_filters}
        )
        narrowed_query = self._build_query(replace(aggregation, sql_filter=narrowed_filter))
        return narrowed_query.row_count <= self._budget.max_rows


# --- fields that may be requested ---


def _find_sum_measure(aggregation: Aggregation) -> Measure | None:
    if aggregation.sum_field is None:
        return None
    measure_by_name = {
        measure.name: measure for measure in aggregation.table.aggregation_plan.measures
    }
    check_eligible_field(
        "sum_field", aggregation.sum_field, tuple(measure_by_name), aggregation.table
    )
    return measure_by_name[aggregation.sum_field]

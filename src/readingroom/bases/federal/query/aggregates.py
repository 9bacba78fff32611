"""Counts, sums and time series over a table, within a budget of rows and time."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, TypeVar

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import RowFilter
from readingroom.bases.federal.names.filter_values import (
    REFERENCES,
    describe_missing_numbers,
    describe_reading,
    resolve_filters,
)
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
    KEY_LENGTHS,
    LAST_DAY,
    count_intervals,
    iterate_starts,
    label_of,
    next_start,
    parse_first_day,
    start_of,
)
from readingroom.bases.federal.query.links import read_titles
from readingroom.bases.federal.schema.sources import BY_NAME, Facet, Measure, RecordTable
from readingroom.core.errors import InvalidArguments
from readingroom.storage.database import Database, StatementStopped

T = TypeVar("T")

MAX_BUCKETS = 1_000
_STEPS_PER_ROW = 100
"""Steps of SQLite's virtual machine that a row may take; most rows take a tenth of that."""
# Often enough to stop a query within milliseconds, seldom enough to cost it nothing.
_STEPS_AT_ONCE = 10_000
_HINT_SHARE = 0.08
"""The share of the time limit in which filters to suggest are searched."""
_SAMPLED_RECORDS = 500
_LOOKUP_COST = 8
"""How many rows of the facts index are read in the time of one lookup by another index."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an aggregate may cost."""

    rows: int = 2_000_000
    seconds: float = 2.0


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
class Meter:
    """What a query has cost so far, in steps of the database and in time."""

    max_steps: int
    deadline: float
    steps: int = 0

    def is_exhausted(self) -> bool:
        """The database calls this every _STEPS_AT_ONCE steps; True stops the query."""
        self.steps += _STEPS_AT_ONCE
        return self.steps > self.max_steps or time.perf_counter() > self.deadline


class Aggregator:
    """Computes aggregates on a connection, within a budget."""

    def __init__(self, db: Database, budget: Budget) -> None:
        self._db = db
        self._budget = budget
        self._started = time.perf_counter()
        self.meter = Meter(0, 0.0)
        """The meter of the last query."""
        self._reading: dict[str, Any] | None = None

    def compute_total(self, request: Aggregation) -> Total | Buckets:
        """Return a number, or a number for each group."""
        if request.group_by:
            return self._run_within_budget(request, self._count_groups)
        return self._run_within_budget(request, self._count_all)

    def compute_series(self, request: Aggregation) -> Series:
        """Return a number for each interval of time."""
        return self._run_within_budget(request, self._count_over_time)

    def _run_within_budget(
        self, request: Aggregation, read: Callable[[Aggregation, AggregateQuery], T]
    ) -> T:
        row_filter = resolve_filters(self._db, request.table, request.row_filter)
        self._reading = describe_reading(request.row_filter.filters, row_filter.filters)
        request = replace(request, row_filter=row_filter)
        query = self._plan(request)
        if query.rows > self._budget.rows:
            raise AggregateTooBroad(
                f"About {query.rows:,} rows of {request.table.path} would be read, "
                f"{self._budget.rows:,} may be: narrow it",
                **self._suggest(request, query.records * self._budget.rows // query.rows),
            )
        try:
            with self._limit_cost(self._started + self._budget.seconds) as meter:
                self.meter = meter
                return read(request, query)
        except StatementStopped as error:
            raise self._make_stop_error(request, query, meter) from error

    def _build_common_fields(self, request: Aggregation, query: AggregateQuery) -> dict[str, Any]:
        """Return what every answer has besides its numbers."""
        # How members voted is not a source of its own: it is loaded with the roll calls.
        source = BY_NAME.get(request.table.name, BY_NAME["roll_call_votes"])
        return {
            "resource": request.table.path,
            "unit": query.measure.unit if query.measure else None,
            "filters_read": self._reading,
            "note": describe_missing_numbers(self._db, request.table, request.row_filter.filters),
            "loaded_up_to": store.read_progress(self._db, source).loaded_up_to,
            "query_cost": QueryCost(
                rows=query.rows,
                most_rows=self._budget.rows,
                took_ms=round((time.perf_counter() - self._started) * 1000, 1),
            ),
        }

    # --- the plan ---

    def _plan(self, request: Aggregation) -> AggregateQuery:
        table, measure = request.table, _choose_measure(request)
        index, records = self._choose_index(table, request.row_filter)
        tables, where = f"{table.name} r {index}", request.row_filter.sql
        group_column, rows = request.group_by, records
        facet = next((facet for facet in table.plan.facets if facet.name == group_column), None)
        if facet:
            rows += self._estimate_joined_rows(table, facet, records)
            reads_all = "_facts" in index and not measure and not request.time_field
            if reads_all and facet.search_field:
                tables = f"(SELECT doc, value FROM facets WHERE field = '{facet.search_field}')"
                # What is withdrawn is no document any more.
                passing = f"id IN (SELECT id FROM {table.name} {index} WHERE {where})"
                passing = passing if request.row_filter.filters else f"source = '{table.name}'"
                where = f"doc IN (SELECT doc FROM documents WHERE {passing})"
                group_column = "value"
            elif reads_all:
                # Each row of the facet once, in the order of its values where an index has it.
                tables = f"({facet.rows_by_value or facet.rows})"
                where = f"id IN (SELECT id FROM {table.name} {index} WHERE {where})"
                group_column = "value"
            else:
                # From the records to their values: the other way round, each value would search
                # an index for its record that is not sorted by id.
                tables += f""" {self._db.dialect.join_in_order}
                    (SELECT id AS facet_id, value AS facet_value FROM ({facet.rows}))
                    ON facet_id = r.id"""
                group_column = "facet_value"
        elif group_column is not None:
            _check_field("group_by", group_column, table.plan.groups, table)
        time_column = None
        if request.time_field is not None:
            times = dict(table.plan.times)
            _check_field("time_field", request.time_field, tuple(times), table)
            time_column = times[request.time_field]
        return AggregateQuery(
            tables,
            where,
            request.row_filter.values,
            measure,
            group_column,
            time_column,
            records,
            rows,
        )

    def _estimate_joined_rows(self, table: RecordTable, facet: Facet, records: int) -> int:
        """Return about how many values these records have in a facet, by the average of all.

        They are counted only until they cannot be within the budget any more; where that would take
        as long as the answer, of some records only.
        """
        if facet.search_field:
            return int(self._count_values_in_sample(table, facet) * records)
        (all_records,) = self._db.execute(table.size_sql).fetchone() or (0,)
        limit = self._budget.rows + 1
        (values,) = self._db.execute(
            f"""SELECT count(*) FROM
                (SELECT 1 FROM ({facet.rows_by_value or facet.rows}) LIMIT {limit})"""
        ).fetchone()
        return int(values * records // max(all_records or 0, records, 1))

    def _count_values_in_sample(self, table: RecordTable, facet: Facet) -> float:
        """Return how many values a record has on average, by some of the records."""
        sample = "SELECT doc FROM documents WHERE source = ? LIMIT ?"
        (values, sampled) = self._db.execute(
            f"""SELECT (SELECT count(*) FROM facets WHERE field = ? AND doc IN ({sample})),
                       (SELECT count(*) FROM ({sample}))""",
            (facet.search_field, *((table.name, _SAMPLED_RECORDS) * 2)),
        ).fetchone()
        return float(values) / max(int(sampled), 1)

    def _choose_index(self, table: RecordTable, row_filter: RowFilter) -> tuple[str, int]:
        """Return the index to read, and how many rows of it: all, or those that pass one filter.

        The rows of a filter are counted only until they cannot be the cheaper way any more.
        """
        use_index = self._db.dialect.use_index
        index = use_index(table.facts) if table.facts else ""
        (rows,) = self._db.execute(table.size_sql).fetchone() or (0,)
        rows = rows or 0
        for name in table.lookups:
            if name in row_filter.filters:
                limit = rows // _LOOKUP_COST + 1
                value = row_filter.filters[name]
                count = store.count_up_to(self._db, table.name, name, value, limit)
                if count * _LOOKUP_COST < rows:
                    index = use_index(f"{table.name}_{name}") if table.facts else ""
                    rows = count
        return index, rows

    # --- numbers and groups ---

    def _count_all(self, request: Aggregation, query: AggregateQuery) -> Total:
        (value,) = self._db.execute(
            f"SELECT {query.value_sql} FROM {query.tables} WHERE {query.where}", query.values
        ).fetchone()
        return Total(value=query.to_number(value), **self._build_common_fields(request, query))

    def _count_groups(self, request: Aggregation, query: AggregateQuery) -> Buckets:
        rows = self._db.execute(
            f"""SELECT key, value, count(*) OVER () AS groups FROM (
                    SELECT {query.group_column} AS key, {query.value_sql} AS value
                    FROM {query.tables} WHERE {query.where} GROUP BY 1)
                ORDER BY value DESC NULLS LAST, key LIMIT ?""",
            (*query.values, request.top),
        ).fetchall()
        total = rows[0]["groups"] if rows else 0
        read_key = _make_key_reader(request)
        labels = self._read_labels(request, [row["key"] for row in rows])
        return Buckets(
            buckets=[
                Bucket(
                    key=read_key(row["key"]),
                    value=query.to_number(row["value"]),
                    label=labels.get(row["key"]),
                )
                for row in rows
            ],
            total_buckets=total,
            truncated=total > len(rows),
            **self._build_common_fields(request, query),
        )

    def _read_labels(self, request: Aggregation, keys: Sequence[Any]) -> dict[Any, str]:
        """Return the titles of the records whose ids the keys are; none for other keys."""
        if request.group_by == "president" and request.table.name == "saps":
            rows = self._db.execute(
                """SELECT president, group_concat(DISTINCT
                       (record ->> 'president_name') || ' (' || president_number || ')') AS names
                   FROM saps GROUP BY president"""
            )
            return {row["president"]: row["names"] for row in rows if row["names"]}
        if request.group_by not in REFERENCES:
            return {}
        titles = read_titles(self._db, (key for key in keys if isinstance(key, str)))
        return {id: title["title"] for id, title in titles.items()}

    # --- time ---

    def _count_over_time(self, request: Aggregation, query: AggregateQuery) -> Series:
        cells, undated = self._read_cells(request, query)
        first, last = self._find_span(request, cells)
        groups = _find_largest_groups(cells, request.top) if request.group_by else [None]
        intervals = count_intervals(request.interval, first, last) if first and last else 0
        if intervals * len(groups) > MAX_BUCKETS:
            raise self._make_bucket_error(request, intervals, len(groups))
        starts = list(iterate_starts(request.interval, first, last)) if first and last else []
        read_key = _make_key_reader(request)
        buckets = [
            TimeBucket(
                key=label_of(request.interval, start),
                start=start.isoformat(),
                end=(next_start(request.interval, start) - timedelta(days=1)).isoformat(),
                group=read_key(group) if request.group_by else None,
                value=query.to_number(cells.get(group, {}).get(start, 0)),
            )
            for start in starts
            for group in groups
        ]
        return Series(
            interval=request.interval,
            buckets=buckets,
            total_buckets=len(starts) * len(cells) if request.group_by else len(starts),
            truncated=bool(request.group_by) and len(cells) > len(groups),
            undated=query.to_number(undated),
            **self._build_common_fields(request, query),
        )

    def _read_cells(
        self, request: Aggregation, query: AggregateQuery
    ) -> tuple[dict[Any, dict[date, int]], int]:
        """Return the values by group and start of the interval, and the sum of those undated."""
        length = KEY_LENGTHS[request.interval]
        keys = f"{query.group_column}, at" if query.group_column else "at"
        rows = self._db.execute(
            f"""SELECT substr({query.time_column}, 1, {length}) AS at, {query.value_sql} AS value,
                       {query.group_column or "NULL"} AS grp
                FROM {query.tables} WHERE {query.where} GROUP BY {keys}""",
            query.values,
        )
        cells: dict[Any, dict[date, int]] = defaultdict(lambda: defaultdict(int))
        undated = 0
        for row in rows:
            day = parse_first_day(row["at"])
            if day is None:
                undated += row["value"] or 0
            else:
                cells[row["grp"]][start_of(request.interval, day)] += row["value"] or 0
        return cells, undated

    def _find_span(
        self, request: Aggregation, cells: Mapping[Any, Mapping[date, int]]
    ) -> tuple[date | None, date | None]:
        """Return the first and the last start: those of the filters, else those of the rows."""
        starts = [start for series in cells.values() for start in series]
        since, until = (
            parse_first_day(request.row_filter.filters.get(name)) for name in ("since", "until")
        )
        if dict(request.table.plan.times)[request.time_field or ""] not in request.table.date_sql:
            since = until = None  # the filters are about another date
        first = start_of(request.interval, since) if since else min(starts, default=None)
        last = start_of(request.interval, until) if until else max(starts, default=None)
        return first, min(last, LAST_DAY) if last else None

    def _make_bucket_error(
        self, request: Aggregation, intervals: int, groups: int
    ) -> AggregateTooBroad:
        longer = INTERVALS[INTERVALS.index(request.interval) + 1 :]
        suggestions: list[dict[str, Any]] = [{"interval": interval} for interval in longer[:1]]
        if groups > 1:
            suggestions.append({"top": max(1, MAX_BUCKETS // intervals)})
        return AggregateTooBroad(
            f"{intervals:,} intervals for {groups:,} groups are more than {MAX_BUCKETS:,} buckets: "
            "take a longer interval, or a shorter time",
            suggest_narrowing=[*suggestions, *self._suggest_recent(request, MAX_BUCKETS // groups)],
        )

    def _suggest_recent(self, request: Aggregation, intervals: int) -> list[dict[str, Any]]:
        """Return the filter that leaves about so many of the newest intervals."""
        (newest,) = self._db.execute(
            f"SELECT max({request.table.date_sql}) FROM {request.table.name}"
        ).fetchone()
        last = parse_first_day(newest)
        if last is None:
            return []
        # The shortest that each can be, so that what is suggested never has too many buckets.
        shortest = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}[request.interval]
        # Nothing here is older than Congress, and Python has no dates before the year 1.
        days = min(shortest * (intervals - 1), (last - date(1789, 1, 1)).days)
        return [{"filters": {"since": (last - timedelta(days=days)).isoformat()}}]

    # --- the budget ---

    @contextmanager
    def _limit_cost(self, deadline: float) -> Iterator[Meter]:
        """Interrupt the queries inside at the deadline or after the allowed steps."""
        meter = Meter(self._budget.rows * _STEPS_PER_ROW, deadline)
        with self._db.stop_when(meter.is_exhausted, _STEPS_AT_ONCE):
            yield meter

    def _make_stop_error(
        self, request: Aggregation, query: AggregateQuery, meter: Meter
    ) -> AggregateTooBroad | AggregateTimeout:
        if meter.steps > meter.max_steps:
            return AggregateTooBroad(
                f"Stopped after the work of {self._budget.rows:,} rows: narrow it",
                **self._suggest(request, query.records // 4),
            )
        return AggregateTimeout(
            f"Stopped after {self._budget.seconds:g} s: narrow it",
            **self._suggest(request, query.records // 4),
        )

    def _suggest(self, request: Aggregation, max_records: int) -> dict[str, Any]:
        """Return the hint with filters that would fit, and the records that each of them leaves.

        They are searched in a fraction of the time limit: an error must not come later than an
        answer.
        """
        suggestions: list[dict[str, Any]] = []
        with (
            suppress(StatementStopped),
            self._limit_cost(time.perf_counter() + self._budget.seconds * _HINT_SHARE),
        ):
            suggestions.extend(self._list_suggestions(request, max_records))
        return {"suggest_narrowing": suggestions}

    def _list_suggestions(self, request: Aggregation, max_records: int) -> Iterator[dict[str, Any]]:
        table = request.table
        for name, newest in table.newest_sql:
            (value,) = self._db.execute(newest).fetchone() or (None,)
            if value is None or name in request.row_filter.filters:
                continue
            rows = store.count_up_to(self._db, table.name, name, value, max_records + 1)
            if rows <= max_records:
                yield {"filters": {name: value}, "rows": rows}
        if table.facts and "since" not in request.row_filter.filters:
            yield from self._suggest_since(table, max_records)

    def _suggest_since(self, table: RecordTable, max_records: int) -> Iterator[dict[str, Any]]:
        row = self._db.execute(
            f"""SELECT {table.date_sql} FROM {table.name}
                ORDER BY {table.date_sql} DESC LIMIT 1 OFFSET ?""",
            (max_records,),
        ).fetchone()
        if (day := parse_first_day(row[0]) if row else None) is not None:
            since = (day + timedelta(days=1)).isoformat()
            (rows,) = self._db.execute(
                f"SELECT count(*) FROM {table.name} WHERE {table.date_sql} >= ?", (since,)
            ).fetchone()
            if rows:
                yield {"filters": {"since": since}, "rows": rows}


# --- fields that may be requested ---


def _choose_measure(request: Aggregation) -> Measure | None:
    if request.sum_field is None:
        return None
    sums = {measure.name: measure for measure in request.table.plan.sums}
    _check_field("sum_field", request.sum_field, tuple(sums), request.table)
    return sums[request.sum_field]


def _check_field(argument: str, value: str, eligible: Sequence[str], table: RecordTable) -> None:
    """Raise InvalidArguments unless a field is among the eligible ones."""
    if value not in eligible:
        valid = f"one of {', '.join(eligible)}" if eligible else "none: leave it out"
        problem = f"{table.path} has no {value[:100]!r} here; {valid}"
        raise InvalidArguments([{"field": argument, "message": problem}])


# --- keys of groups ---


def _make_key_reader(request: Aggregation) -> Callable[[Any], Key]:
    """Return a function that reads the keys of a group: SQLite has no booleans."""
    kinds = {column.name: column.kind for column in request.table.columns}
    is_boolean = kinds.get(request.group_by or "") == "BOOLEAN"

    def read_key(value: Any) -> Key:
        return bool(value) if is_boolean and value is not None else value

    return read_key


def _find_largest_groups(cells: Mapping[Any, Mapping[date, int]], top: int) -> list[Any]:
    totals = {group: sum(series.values()) for group, series in cells.items()}
    return sorted(totals, key=lambda group: (-totals[group], str(group)))[:top]

"""Counts, sums and time series over a resource, within a budget of rows and of time."""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import RowFilter, match_stored_case
from readingroom.bases.federal.models import (
    Bucket,
    Buckets,
    Interval,
    Key,
    QueryCost,
    Series,
    TimeBucket,
    Total,
)
from readingroom.bases.federal.schema.sources import BY_NAME, Measure, Resource
from readingroom.core.errors import InvalidArguments

T = TypeVar("T")

MOST_BUCKETS = 1_000
_STEPS_PER_ROW = 100
"""Steps of SQLite's machine that a row may take; most take a tenth of that."""
_STEPS_AT_ONCE = 10_000
_HINT_SHARE = 0.08
_LOOKUP = 8
"""How many rows of the facts are read in the time of finding one by another index."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one aggregate may cost."""

    rows: int = 2_000_000
    seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Aggregation:
    """What is asked: a count, or a sum where `sum_field` names one."""

    resource: Resource
    row_filter: RowFilter
    sum_field: str | None = None
    group_by: str | None = None
    top: int = 20
    time_field: str | None = None
    interval: Interval = "month"


@dataclass(frozen=True, slots=True)
class Query:
    """The same in SQL, with what it is expected to touch."""

    tables: str
    where: str
    values: tuple[Any, ...]
    measure: Measure | None
    grouped: str | None
    timed: str | None
    rows: int

    @property
    def measured(self) -> str:
        return f"sum({self.measure.column})" if self.measure else "count(*)"

    def exact(self, value: int | None) -> int | Decimal:
        """A whole number, or a decimal with the digits its field has; never a float."""
        if self.measure is None or not self.measure.digits:
            return value or 0
        return Decimal(value or 0).scaleb(-self.measure.digits)


@dataclass(slots=True)
class Meter:
    """What a query has cost so far, in steps of SQLite's machine and in time."""

    most: int
    end: float
    steps: int = 0

    def over(self) -> bool:
        """Called every so many steps; true stops the query."""
        self.steps += _STEPS_AT_ONCE
        return self.steps > self.most or time.perf_counter() > self.end


class Aggregator:
    """Answers aggregates from one connection, never for longer than the budget allows."""

    def __init__(self, db: sqlite3.Connection, budget: Budget) -> None:
        self._db = db
        self._budget = budget
        self._started = time.perf_counter()
        self.meter = Meter(0, 0.0)
        """Of the last query."""

    def total(self, asked: Aggregation) -> Total | Buckets:
        """A number, or a number for each group."""
        if asked.group_by:
            return self._within_budget(asked, self._grouped)
        return self._within_budget(asked, self._summed)

    def over_time(self, asked: Aggregation) -> Series:
        """A number for each stretch of time."""
        return self._within_budget(asked, self._series)

    def _within_budget(self, asked: Aggregation, read: Callable[[Aggregation, Query], T]) -> T:
        stored = match_stored_case(self._db, asked.resource, asked.row_filter)
        asked = replace(asked, row_filter=stored)
        query = self._planned(asked)
        if query.rows > self._budget.rows:
            raise AggregateTooBroad(
                f"About {query.rows:,} rows of {asked.resource.path} would be read, "
                f"{self._budget.rows:,} may be: narrow it",
                **self._narrower(asked, self._budget.rows),
            )
        try:
            with self._bounded(self._started + self._budget.seconds) as meter:
                self.meter = meter
                return read(asked, query)
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            raise self._stopped(asked, query, meter) from error

    def _told(self, asked: Aggregation, query: Query) -> dict[str, Any]:
        """What every answer says besides its numbers."""
        source = BY_NAME.get(asked.resource.name, BY_NAME["roll_call_votes"])
        return {
            "resource": asked.resource.path,
            "unit": query.measure.unit if query.measure else None,
            "loaded_up_to": store.progress_of(self._db, source).loaded_up_to,
            "query_cost": QueryCost(
                rows=query.rows,
                most_rows=self._budget.rows,
                took_ms=round((time.perf_counter() - self._started) * 1000, 1),
            ),
        }

    # --- the plan ---

    def _planned(self, asked: Aggregation) -> Query:
        resource, measure = asked.resource, _measure(asked)
        index, rows = self._cheapest(resource, asked.row_filter)
        tables, grouped = f"{resource.name} r {index}", asked.group_by
        facet = next((one for one in resource.plan.facets if one.name == grouped), None)
        if facet:
            tables += f""" JOIN (SELECT id AS facet_id, value AS facet_value FROM ({facet.rows}))
                           ON facet_id = r.id"""
            grouped = "facet_value"
        elif grouped is not None:
            _eligible("group_by", grouped, resource.plan.groups, resource)
        timed = None
        if asked.time_field is not None:
            times = dict(resource.plan.times)
            _eligible("time_field", asked.time_field, tuple(times), resource)
            timed = times[asked.time_field]
        return Query(
            tables,
            asked.row_filter.sql,
            asked.row_filter.values,
            measure,
            grouped,
            timed,
            rows,
        )

    def _cheapest(self, resource: Resource, row_filter: RowFilter) -> tuple[str, int]:
        """The index to read, and how many rows of it: all facts, or those that one filter leaves.

        A filter's rows are counted only as far as they could still be the cheaper way.
        """
        index = f"INDEXED BY {resource.facts}" if resource.facts else ""
        (rows,) = self._db.execute(resource.size_sql).fetchone() or (0,)
        rows = rows or 0
        for name in resource.lookups:
            if name in row_filter.filters:
                some = self._count(
                    f"SELECT 1 FROM {resource.name} WHERE {name} = ? LIMIT {rows // _LOOKUP + 1}",
                    (row_filter.filters[name],),
                )
                if some * _LOOKUP < rows:
                    index = f"INDEXED BY {resource.name}_{name}" if resource.facts else ""
                    rows = some
        return index, rows

    def _count(self, rows: str, values: Sequence[Any]) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM ({rows})", values).fetchone()[0])

    # --- numbers and groups ---

    def _summed(self, asked: Aggregation, query: Query) -> Total:
        (value,) = self._db.execute(
            f"SELECT {query.measured} FROM {query.tables} WHERE {query.where}", query.values
        ).fetchone()
        return Total(value=query.exact(value), **self._told(asked, query))

    def _grouped(self, asked: Aggregation, query: Query) -> Buckets:
        rows = self._db.execute(
            f"""SELECT key, value, count(*) OVER () AS groups FROM (
                    SELECT {query.grouped} AS key, {query.measured} AS value
                    FROM {query.tables} WHERE {query.where} GROUP BY 1)
                ORDER BY value DESC NULLS LAST, key LIMIT ?""",
            (*query.values, asked.top),
        ).fetchall()
        total = rows[0]["groups"] if rows else 0
        key = _reader(asked)
        return Buckets(
            buckets=[Bucket(key=key(row["key"]), value=query.exact(row["value"])) for row in rows],
            total_buckets=total,
            truncated=total > len(rows),
            **self._told(asked, query),
        )

    # --- time ---

    def _series(self, asked: Aggregation, query: Query) -> Series:
        cells, undated = self._cells(asked, query)
        first, last = self._span(asked, cells)
        groups = _largest(cells, asked.top) if asked.group_by else [None]
        stretches = _stretches(asked.interval, first, last) if first and last else 0
        if stretches * len(groups) > MOST_BUCKETS:
            raise self._too_many_buckets(asked, stretches, len(groups))
        starts = list(_starts(asked.interval, first, last)) if first and last else []
        key = _reader(asked)
        buckets = [
            TimeBucket(
                key=_label(asked.interval, start),
                start=start.isoformat(),
                end=(_next_start(asked.interval, start) - timedelta(days=1)).isoformat(),
                group=key(group) if asked.group_by else None,
                value=query.exact(cells.get(group, {}).get(start, 0)),
            )
            for start in starts
            for group in groups
        ]
        return Series(
            interval=asked.interval,
            buckets=buckets,
            total_buckets=len(starts) * len(cells) if asked.group_by else len(starts),
            truncated=bool(asked.group_by) and len(cells) > len(groups),
            undated=query.exact(undated),
            **self._told(asked, query),
        )

    def _cells(self, asked: Aggregation, query: Query) -> tuple[dict[Any, dict[date, int]], int]:
        """Values by group and start of the stretch; how much lies at no time at all."""
        length = _LENGTHS[asked.interval]
        keys = f"{query.grouped}, at" if query.grouped else "at"
        rows = self._db.execute(
            f"""SELECT substr({query.timed}, 1, {length}) AS at, {query.measured} AS value,
                       {query.grouped or "NULL"} AS grp
                FROM {query.tables} WHERE {query.where} GROUP BY {keys}""",
            query.values,
        )
        cells: dict[Any, dict[date, int]] = defaultdict(lambda: defaultdict(int))
        undated = 0
        for row in rows:
            day = _day(row["at"])
            if day is None:
                undated += row["value"] or 0
            else:
                cells[row["grp"]][_start(asked.interval, day)] += row["value"] or 0
        return cells, undated

    def _span(
        self, asked: Aggregation, cells: Mapping[Any, Mapping[date, int]]
    ) -> tuple[date | None, date | None]:
        """From the first to the last that is there, or as far as was asked for."""
        starts = [start for series in cells.values() for start in series]
        since, until = (_day(asked.row_filter.filters.get(name)) for name in ("since", "until"))
        if dict(asked.resource.plan.times)[asked.time_field or ""] not in asked.resource.date_sql:
            since = until = None  # they speak of another date
        first = _start(asked.interval, since) if since else min(starts, default=None)
        last = _start(asked.interval, until) if until else max(starts, default=None)
        return first, min(last, _LAST_DAY) if last else None

    def _too_many_buckets(
        self, asked: Aggregation, stretches: int, groups: int
    ) -> AggregateTooBroad:
        longer = _INTERVALS[_INTERVALS.index(asked.interval) + 1 :]
        fewer = {"top": max(1, MOST_BUCKETS // stretches)} if groups > 1 else {}
        return AggregateTooBroad(
            f"{stretches:,} stretches of time for {groups:,} groups are more than "
            f"{MOST_BUCKETS:,} buckets: take a longer interval, or narrow the time",
            suggest_narrowing=[
                *({"interval": one} for one in longer[:1]),
                *([fewer] if fewer else []),
                *self._recent(asked, MOST_BUCKETS // groups),
            ],
        )

    def _recent(self, asked: Aggregation, stretches: int) -> list[dict[str, Any]]:
        (newest,) = self._db.execute(
            f"SELECT max({asked.resource.date_sql}) FROM {asked.resource.name}"
        ).fetchone()
        last = _day(newest)
        if last is None:
            return []
        back = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}[asked.interval]
        days = min(back * (stretches - 1), (last - date(1789, 1, 1)).days)
        return [{"filters": {"since": (last - timedelta(days=days)).isoformat()}}]

    # --- the budget ---

    @contextmanager
    def _bounded(self, end: float) -> Iterator[Meter]:
        """Stop what is read at the end of its time or its steps, whichever comes first."""
        meter = Meter(self._budget.rows * _STEPS_PER_ROW, end)
        self._db.set_progress_handler(meter.over, _STEPS_AT_ONCE)
        try:
            yield meter
        finally:
            self._db.set_progress_handler(None, 0)

    def _stopped(
        self, asked: Aggregation, query: Query, meter: Meter
    ) -> AggregateTooBroad | AggregateTimeout:
        if meter.steps > meter.most:
            return AggregateTooBroad(
                f"Stopped after the work of {self._budget.rows:,} rows: narrow it",
                **self._narrower(asked, self._budget.rows // 4),
            )
        return AggregateTimeout(
            f"Stopped after {self._budget.seconds:g} s: narrow it",
            **self._narrower(asked, query.rows // 4),
        )

    def _narrower(self, asked: Aggregation, most: int) -> dict[str, Any]:
        """Filters that would fit, each with the rows it leaves: the newest of what there is.

        They are looked for in a tenth of the time an answer may take, so that an error is not
        later than one.
        """
        found: list[dict[str, Any]] = []
        with (
            suppress(sqlite3.OperationalError),
            self._bounded(time.perf_counter() + self._budget.seconds * _HINT_SHARE),
        ):
            found.extend(self._suggestions(asked, most))
        return {"suggest_narrowing": found}

    def _suggestions(self, asked: Aggregation, most: int) -> Iterator[dict[str, Any]]:
        resource = asked.resource
        for name, newest in resource.newest_sql:
            (value,) = self._db.execute(newest).fetchone() or (None,)
            if value is None or name in asked.row_filter.filters:
                continue
            rows = self._count(
                f"SELECT 1 FROM {resource.name} WHERE {name} = ? LIMIT {most + 1}", (value,)
            )
            if rows <= most:
                yield {"filters": {name: value}, "rows": rows}
        if resource.facts and "since" not in asked.row_filter.filters:
            yield from self._since(resource, most)

    def _since(self, resource: Resource, most: int) -> Iterator[dict[str, Any]]:
        row = self._db.execute(
            f"""SELECT {resource.date_sql} FROM {resource.name}
                ORDER BY {resource.date_sql} DESC LIMIT 1 OFFSET ?""",
            (most,),
        ).fetchone()
        if (day := _day(row[0]) if row else None) is not None:
            since = (day + timedelta(days=1)).isoformat()
            rows = self._count(
                f"SELECT 1 FROM {resource.name} WHERE {resource.date_sql} >= ?", (since,)
            )
            if rows:
                yield {"filters": {"since": since}, "rows": rows}


# --- what may be asked ---


def _measure(asked: Aggregation) -> Measure | None:
    if asked.sum_field is None:
        return None
    sums = {one.name: one for one in asked.resource.plan.sums}
    _eligible("sum_field", asked.sum_field, tuple(sums), asked.resource)
    return sums[asked.sum_field]


def _eligible(argument: str, value: str, eligible: Sequence[str], resource: Resource) -> None:
    if value not in eligible:
        valid = f"one of {', '.join(eligible)}" if eligible else "none: leave it out"
        told = f"{resource.path} has no {value[:100]!r} here; {valid}"
        raise InvalidArguments([{"field": argument, "message": told}])


# --- numbers and keys ---


def _reader(asked: Aggregation) -> Any:
    """How the keys of a group are told: SQLite has no booleans."""
    kinds = {column.name: column.kind for column in asked.resource.columns}
    flags = kinds.get(asked.group_by or "") == "BOOLEAN"

    def key(value: Any) -> Key:
        return bool(value) if flags and value is not None else value

    return key


def _largest(cells: Mapping[Any, Mapping[date, int]], top: int) -> list[Any]:
    totals = {group: sum(series.values()) for group, series in cells.items()}
    return sorted(totals, key=lambda group: (-totals[group], str(group)))[:top]


# --- stretches of time ---

_INTERVALS: tuple[Interval, ...] = ("day", "week", "month", "quarter", "year")
_LENGTHS: dict[Interval, int] = {"day": 10, "week": 10, "month": 7, "quarter": 7, "year": 4}
"""How much of a date SQL groups by; weeks and quarters are put together from days and months."""


_LAST_DAY = date(9998, 12, 31)


def _day(text: str | None) -> date | None:
    """The first day that a date, or the beginning of one, speaks of."""
    if not text:
        return None
    try:
        return date.fromisoformat((text + "-01-01" if len(text) == 4 else f"{text}-01")[:10])
    except ValueError:
        return None


def _start(interval: Interval, day: date) -> date:
    if interval == "day":
        return day
    if interval == "week":
        return day - timedelta(days=day.weekday())
    if interval == "year":
        return day.replace(month=1, day=1)
    month = day.month if interval == "month" else (day.month - 1) // 3 * 3 + 1
    return day.replace(month=month, day=1)


def _next_start(interval: Interval, start: date) -> date:
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[interval]
    return _start(interval, start + timedelta(days=days))


def _stretches(interval: Interval, first: date, last: date) -> int:
    """How many there are from the first to the last, without going through them."""
    if interval in ("day", "week"):
        count = (last - first).days // (1 if interval == "day" else 7) + 1
    else:
        months = {"month": 1, "quarter": 3, "year": 12}[interval]
        apart = (last.year - first.year) * 12 + last.month - first.month
        count = apart // months + 1
    return max(0, count)


def _starts(interval: Interval, first: date, last: date) -> Iterator[date]:
    """Every stretch from the first to the last: one in which nothing was is a zero, not a gap."""
    while first <= last:
        yield first
        first = _next_start(interval, first)


def _label(interval: Interval, start: date) -> str:
    if interval == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02}"
    if interval == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return start.isoformat()[: _LENGTHS[interval]]

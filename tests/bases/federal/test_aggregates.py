"""Counts, sums and time series: against plain Python, within their budget, over both faces."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import SqlFilter, parse_filters
from readingroom.bases.federal.query import aggregates
from readingroom.bases.federal.query.aggregate_models import Interval
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.query.intervals import (
    count_intervals_between,
    get_interval_start,
    iterate_interval_starts,
)
from readingroom.bases.federal.schema.sources import (
    MEMBER_VOTES,
    TABLES_BY_NAME,
    Measure,
    get_record_table,
)
from readingroom.bases.federal.store import DATABASE_FILE_NAME, get_database_path
from tests.requirements import requirement
from tests.support.federal.base import load_files, serve_in_process, write_world

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("numbers")
    write_world(data / "files", bills=60, votes=6)
    load_files(data, data / "files", embed=False)
    return data


def remove_cost(answer: dict[str, Any]) -> dict[str, Any]:
    cost = answer.pop("query_cost")
    assert cost["rows"] <= cost["most_rows"] == 2_000_000
    assert cost["took_ms"] >= 0
    return answer


@pytest.mark.parametrize("interval", ["day", "week", "month", "quarter", "year"])
def test_stretches_of_time_are_counted_as_they_are_laid_out(interval: Interval) -> None:
    """They are counted before they are made: three million days are refused at once."""
    for first, last in (
        (date(2024, 1, 1), date(2024, 1, 1)),
        (date(2023, 11, 17), date(2025, 3, 2)),
        (date(2025, 3, 2), date(2023, 11, 17)),
        (date(1999, 12, 31), date(2000, 1, 1)),
    ):
        ends = get_interval_start(interval, first), get_interval_start(interval, last)
        assert count_intervals_between(interval, *ends) == len(
            list(iterate_interval_starts(interval, *ends))
        )


async def test_ten_thousand_years_of_days_are_refused_before_they_are_made(world: Path) -> None:
    async with serve_in_process(world) as ask:
        with patch.object(aggregates, "iterate_interval_starts", side_effect=AssertionError):
            refused = await ask.get(
                "/bills",
                aggregate="count",
                bucket_by_time="published_at",
                time_interval="day",
                since="0001-01-01",
                until="9999-12-31",
            )
        assert refused.json()["error"]["code"] == "aggregate_too_broad"


# --- both faces ---


@requirement("federal:AC-17", "federal:E")
@pytest.mark.parametrize(
    ("tool", "arguments", "path", "params"),
    [
        ("count", {"resource": "bills"}, "/bills", {"aggregate": "count"}),
        (
            "count",
            {"resource": "bills", "group_by": "party", "filters": {"congress": 119}, "top": 2},
            "/bills",
            {"aggregate": "count", "group_by": "party", "congress": 119, "top": 2},
        ),
        (
            "count",
            {"resource": "bills", "group_by": "topic", "filters": {"since": "2025-02-01"}},
            "/bills",
            {"aggregate": "count", "group_by": "topic", "since": "2025-02-01"},
        ),
        (
            "sum",
            {"resource": "bills", "sum_field": "cosponsor_count", "group_by": "sponsor"},
            "/bills",
            {"aggregate": "sum", "sum_field": "cosponsor_count", "group_by": "sponsor"},
        ),
        (
            "time_series",
            {"resource": "bills", "time_field": "introduced_at", "interval": "week"},
            "/bills",
            {"bucket_by_time": "introduced_at", "time_interval": "week"},
        ),
        (
            "count",
            {"resource": "member-votes", "group_by": "position", "filters": {"party": "D"}},
            "/member-votes",
            {"aggregate": "count", "group_by": "position", "party": "D"},
        ),
        (
            "time_series",
            {
                "resource": "roll-call-votes",
                "time_field": "voted_at",
                "interval": "quarter",
                "sum_field": "yea",
                "group_by": "chamber",
            },
            "/roll-call-votes",
            {
                "aggregate": "sum",
                "sum_field": "yea",
                "bucket_by_time": "voted_at",
                "time_interval": "quarter",
                "group_by": "chamber",
            },
        ),
    ],
)
async def test_the_tools_answer_what_rest_answers(
    world: Path, tool: str, arguments: dict[str, Any], path: str, params: dict[str, Any]
) -> None:
    async with serve_in_process(world) as ask:
        told = remove_cost(await ask.answer(tool, **arguments))
        assert told == remove_cost(await ask.record(path, **params))
        assert "loaded_up_to" in told
        assert told.get("value") or told["buckets"]


@requirement("federal:E")
async def test_numbers_agree_with_the_records_they_count(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        assert (await ask.answer("count", resource="bills"))["value"] == len(bills) == 60
        by_party = Counter(one["sponsors"][0]["party"] for one in bills)
        told = await ask.answer("count", resource="bill", group_by="party")
        assert {one["key"]: one["value"] for one in told["buckets"]} == by_party
        assert told["total_buckets"] == len(by_party)
        topics = Counter(topic for one in bills for topic in one["subjects"])
        told = await ask.answer("count", resource="bills", group_by="topic", top=1000)
        counted = {one["key"]: one["value"] for one in told["buckets"]}
        assert {key: counted[key] for key in topics} == topics
        topic = next(iter(topics))
        listed = (await ask.record("/bills", topic=topic, limit=200))["results"]
        assert len(listed) == topics[topic]
        cosponsors = await ask.answer("sum", resource="bills", sum_field="cosponsor_count")
        assert cosponsors["value"] == sum(one["cosponsor_count"] for one in bills)
        positions = await ask.answer("count", resource="member_votes", group_by="position")
        assert (
            sum(one["value"] for one in positions["buckets"])
            == (await ask.answer("count", resource="member-votes"))["value"]
        )


@requirement("federal:AC-18", "federal:E")
async def test_the_plans_are_listed_live_and_nothing_else_is_taken(world: Path) -> None:
    async with serve_in_process(world) as ask:
        listed = {one["name"]: one for one in (await ask.rpc("tools/list", {}))["result"]["tools"]}
        groups = {
            name for one in TABLES_BY_NAME.values() for name in one.aggregation_plan.group_names
        }
        sums = {
            one.name for any in TABLES_BY_NAME.values() for one in any.aggregation_plan.measures
        }
        for name, argument, eligible in (
            ("count", "group_by", groups),
            ("time_series", "group_by", groups),
            ("sum", "sum_field", sums),
        ):
            properties = listed[name]["inputSchema"]["properties"]
            parts = properties[argument].get("anyOf", [properties[argument]])
            assert set(parts[0]["enum"]) == eligible
        for one in TABLES_BY_NAME.values():
            if one.aggregation_plan.group_names:
                told = f"{one.slug}: {', '.join(one.aggregation_plan.group_names)}"
                assert told in listed["count"]["description"]
            assert one.slug in listed["count"]["inputSchema"]["properties"]["resource"]["enum"]
            assert (one.slug in listed["sum"]["inputSchema"]["properties"]["resource"]["enum"]) == (
                bool(one.aggregation_plan.measures)
            )
        for tool, arguments, field in (
            ("count", {"resource": "nonsense"}, "resource"),
            ("count", {"resource": "bills", "group_by": "title"}, "group_by"),
            ("count", {"resource": "bills", "filters": {"colour": "red"}}, "filters.colour"),
            ("sum", {"resource": "bills", "sum_field": "number"}, "sum_field"),
            ("sum", {"resource": "committees", "sum_field": "yea"}, "sum_field"),
            (
                "time_series",
                {"resource": "bills", "time_field": "birthday", "interval": "day"},
                "time_field",
            ),
            (
                "time_series",
                {"resource": "bills", "time_field": "published_at", "interval": "decade"},
                "interval",
            ),
        ):
            told = await ask.rpc("tools/call", {"name": tool, "arguments": arguments})
            assert told["error"]["code"] == -32602, (tool, arguments)
            assert field in told["error"]["message"]
        for params in (
            {"aggregate": "sum"},
            {"sum_field": "cosponsor_count"},
            {"group_by": "party"},
            {"time_interval": "week"},
            {"aggregate": "count", "group_by": "nonsense"},
        ):
            assert (await ask.get("/bills", **params)).status_code == 422, params
        assert (await ask.get("/member-votes")).status_code == 422


# --- the budget ---


@requirement("federal:AC-19", "federal:E")
async def test_what_would_read_too_much_is_refused_with_filters_that_fit(world: Path) -> None:
    async with serve_in_process(world, budget=Budget(max_rows=40)) as ask:
        result = await ask.call("count", resource="bills", group_by="party")
        assert result["isError"]
        assert result["_meta"]["error_code"] == "aggregate_too_broad"
        assert "aggregate_too_broad" in result["content"][0]["text"]
        suggested = result["_meta"]["hint"]["suggest_narrowing"]
        assert suggested
        rest = await ask.get("/bills", aggregate="count", group_by="party")
        assert rest.status_code == 422
        assert rest.json()["error"]["hint"]["suggest_narrowing"] == suggested
    async with serve_in_process(world) as ask:
        for one in suggested:
            fits = await ask.answer("count", resource="bills", filters=one["filters"])
            assert 0 < fits["value"] <= one["rows"] <= 40


@requirement("federal:AC-19")
async def test_what_takes_too_long_is_stopped_and_says_so(world: Path) -> None:
    async with serve_in_process(world, budget=Budget(max_seconds=-1)) as ask:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("readingroom.bases.federal.query.aggregates._STEPS_BETWEEN_CHECKS", 1)
            result = await ask.call("count", resource="bills", group_by="party")
            rest = await ask.get("/bills", aggregate="count", group_by="party")
        assert result["_meta"]["error_code"] == "aggregate_timeout"
        assert isinstance(result["_meta"]["hint"]["suggest_narrowing"], list)
        assert rest.status_code == 503
        # The handler is gone with the query: the same connection goes on answering.
        assert (await ask.record("/bills"))["results"]


@requirement("federal:AC-19")
async def test_too_many_buckets_are_refused_with_a_longer_interval(world: Path) -> None:
    async with serve_in_process(world) as ask:
        series = {"resource": "bills", "time_field": "published_at"}
        result = await ask.call(
            "time_series", **series, interval="day", filters={"since": "1990-01-01"}
        )
        assert result["_meta"]["error_code"] == "aggregate_too_broad"
        longer, recent = result["_meta"]["hint"]["suggest_narrowing"]
        assert longer == {"interval": "week"}
        fits = await ask.answer("time_series", **series, interval="day", filters=recent["filters"])
        assert 0 < len(fits["buckets"]) <= 1000


def test_a_row_budget_is_kept_while_the_query_runs(world: Path) -> None:
    """The estimate can be far too low: what is joined is estimated by an average."""
    with closing(store.connect(get_database_path(world), writing=True)) as db:
        db.execute("BEGIN")
        db.execute("UPDATE progress SET records = 1")
        db.executemany(
            "INSERT INTO bill_committees SELECT ?, id FROM committees LIMIT 1",
            [(row["id"],) for row in db.execute("SELECT id FROM bills")],
        )
        bills = get_record_table("bills")
        broad = Aggregation(bills, parse_filters(bills, {}), group_by="cosponsor")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("readingroom.bases.federal.query.aggregates._STEPS_BETWEEN_CHECKS", 10)
            patch.setattr(Aggregator, "_estimate_joined_row_count", lambda *of: 0)
            aggregator = Aggregator(db, Budget(max_rows=10))
            with pytest.raises(AggregateTooBroad):
                aggregator.compute_total(broad)
            assert 10 * 100 < aggregator.meter.step_count <= 1.1 * 10 * 100
        db.execute("ROLLBACK")


def test_a_failure_that_is_no_budget_is_told_as_it_is(world: Path) -> None:
    with closing(store.connect(get_database_path(world))) as db:
        db.execute("SELECT 1").fetchone()
        broken = Aggregator(db, Budget())
        bills = get_record_table("bills")
        wrong = SqlFilter("no_such_column = 1", (), {})
        with pytest.raises(sqlite3.OperationalError, match="no_such_column"):
            broken.compute_total(Aggregation(bills, wrong))


# --- against plain Python ---

days = some.one_of(
    some.none(), some.dates(date(2023, 11, 20), date(2024, 3, 10)).map(date.isoformat)
)
rows_of_bills = some.lists(
    some.tuples(
        some.sampled_from([118, 119]),
        some.sampled_from(["D", "R", None]),
        days,
        some.integers(0, 10**12),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("blank") / DATABASE_FILE_NAME
    store.prepare_records(path)
    with closing(store.connect(path, writing=True)) as db:
        yield db


@requirement("federal:E")
@given(
    rows_of_bills,
    some.sampled_from(["day", "week", "month", "quarter", "year"]),
    some.sampled_from([None, "party", "congress"]),
    some.sampled_from([{}, {"congress": 119}, {"since": "2023-12-24", "until": "2024-02-29"}]),
)
@settings(max_examples=40, deadline=None)
def test_aggregates_equal_a_naive_computation(
    blank: sqlite3.Connection, rows: Any, interval: Any, group: Any, filters: dict[str, Any]
) -> None:
    blank.execute("BEGIN")
    try:
        _fill(blank, rows)
        bills = get_record_table("bills")
        ask = Aggregation(
            bills,
            parse_filters(bills, filters),
            group_by=group,
            time_field="published_at",
            interval=interval,
            top=1000,
        )
        kept = [row for row in rows if _passes(row, filters)]
        at = {"congress": 0, "party": 1}.get(group)
        groups = Counter(row[at] for row in kept) if at is not None else Counter()
        _check_total(blank, ask, kept, groups)
        _check_series(blank, ask, kept, at, filters)
    finally:
        blank.execute("ROLLBACK")


def _fill(db: sqlite3.Connection, rows: Any) -> None:
    db.executemany(
        """INSERT INTO bills (id, loader, record) VALUES (?, 'test', json_object(
               'congress', ?, 'published_at', ?, 'cosponsor_count', ?,
               'sponsors', json_array(json_object('party', ?))))""",
        [(f"b{n}", row[0], row[2], row[3], row[1]) for n, row in enumerate(rows)],
    )


def _passes(row: Any, filters: dict[str, Any]) -> bool:
    if "congress" in filters and row[0] != filters["congress"]:
        return False
    since, until = filters.get("since", ""), filters.get("until", "9999")
    return not ("since" in filters and not (row[2] and since <= row[2] <= until))


def _check_total(db: sqlite3.Connection, ask: Aggregation, kept: Any, groups: Any) -> None:
    if ask.group_by:
        counted = Aggregator(db, Budget()).compute_total(ask)
        assert {one.key: one.value for one in counted.buckets} == groups  # type: ignore[union-attr]
        values = [one.value for one in counted.buckets]  # type: ignore[union-attr]
        assert values == sorted(values, reverse=True)
        return
    assert Aggregator(db, Budget()).compute_total(ask).value == len(kept)  # type: ignore[union-attr]
    # The same column read as cents: exact to the last one, as a Decimal.
    cents = _in_cents(ask)
    money = Aggregator(db, Budget()).compute_total(cents).value  # type: ignore[union-attr]
    assert isinstance(money, Decimal)
    assert money == sum((Decimal(row[3]) / 100 for row in kept), Decimal())


def _in_cents(ask: Aggregation) -> Aggregation:
    from dataclasses import replace

    plan = replace(
        ask.table.aggregation_plan, measures=(Measure("amount", "cosponsor_count", 2, "USD"),)
    )
    return replace(ask, table=replace(ask.table, aggregation_plan=plan), sum_field="amount")


def _check_series(
    db: sqlite3.Connection, ask: Aggregation, kept: Any, at: int | None, filters: dict[str, Any]
) -> None:
    expected: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in kept:
        if row[2]:
            group = row[at] if at is not None else None
            expected[group][_stretch(ask.interval, date.fromisoformat(row[2]))] += 1
    found = Aggregator(db, Budget()).compute_series(ask)
    assert found.undated == sum(row[2] is None for row in kept)
    told: dict[Any, dict[str, Any]] = defaultdict(dict)
    for one in found.buckets:
        told[one.group][one.key] = one.value
        assert _stretch(ask.interval, date.fromisoformat(one.start)) == one.key
        assert _stretch(ask.interval, date.fromisoformat(one.end)) == one.key
    for group, series in expected.items():
        assert {key: value for key, value in told[group].items() if value} == series
    for group in told:
        starts = [one for one in found.buckets if one.group == group]
        for one, following in pairwise(starts):
            next_day = date.fromisoformat(one.end) + timedelta(days=1)
            assert next_day.isoformat() == following.start, "no gaps"
    if "since" in filters and found.buckets:
        assert found.buckets[0].start <= filters["since"] <= found.buckets[0].end
        assert found.buckets[-1].start <= filters["until"] <= found.buckets[-1].end


def _stretch(interval: str, day: date) -> str:
    if interval == "week":
        return f"{day:%G-W%V}"
    if interval == "quarter":
        return f"{day.year}-Q{(day.month - 1) // 3 + 1}"
    return day.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[interval])


def test_every_resource_can_be_counted_by_every_field_of_its_plan(world: Path) -> None:
    with closing(store.connect(get_database_path(world))) as db:
        for one in TABLES_BY_NAME.values():
            everything = parse_filters(one, {})
            whole = Aggregator(db, Budget()).compute_total(Aggregation(one, everything))
            for group in one.aggregation_plan.group_names:
                found = Aggregator(db, Budget()).compute_total(
                    Aggregation(one, everything, group_by=group, top=1000)
                )
                if group in one.aggregation_plan.group_column_names:
                    total = sum(bucket.value for bucket in found.buckets)  # type: ignore[union-attr]
                    assert total == whole.value  # type: ignore[union-attr]
            for name, _ in one.aggregation_plan.date_names_and_columns:
                Aggregator(db, Budget()).compute_series(
                    Aggregation(one, everything, time_field=name, interval="year")
                )
            for measure in one.aggregation_plan.measures:
                Aggregator(db, Budget()).compute_total(Aggregation(one, everything, measure.name))
        assert MEMBER_VOTES.name in TABLES_BY_NAME


def test_the_time_limit_holds_for_a_query_that_would_run_for_hours(world: Path) -> None:
    with closing(store.connect(get_database_path(world))) as db:
        bills = get_record_table("bills")
        endless = SqlFilter(
            """(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                SELECT count(*) FROM n) > 0""",
            (),
            {},
        )
        with pytest.raises(AggregateTimeout):
            Aggregator(db, Budget(max_rows=10**12, max_seconds=0.05)).compute_total(
                Aggregation(bills, endless)
            )


def multiply_bills(path: Path, times: int) -> None:
    """Add copies of every bill, with its topics, committees and cosponsors."""
    with closing(store.connect(path, writing=True)) as db, db.transaction():
        (docs,) = db.execute("SELECT max(doc) FROM documents").fetchone()
        for copy in range(1, times):
            new_id = f"id || '00{copy}'"
            db.execute(
                f"""INSERT INTO bills (id, record, loader)
                    SELECT {new_id}, json_set(record, '$.id', {new_id}), loader FROM bills
                    WHERE id NOT LIKE '%00_'"""
            )
            for table, columns in (
                ("bill_committees", "committee_id"),
                ("bill_cosponsors", "ordinal, bioguide_id, record"),
            ):
                db.execute(
                    f"""INSERT INTO {table} (bill_id, {columns})
                        SELECT bill_id || '00{copy}', {columns} FROM {table}
                        WHERE bill_id NOT LIKE '%00_'"""
                )
            shift = copy * docs
            db.execute(
                f"""INSERT INTO documents SELECT doc + {shift}, {new_id}, source, published_at
                    FROM documents WHERE source = 'bills' AND doc <= {docs}"""
            )
            db.execute(
                f"""INSERT INTO facets SELECT field, value, f.doc + {shift}
                    FROM facets f JOIN documents d ON d.doc = f.doc
                    WHERE d.source = 'bills' AND f.doc <= {docs}"""
            )
        db.execute(f"UPDATE progress SET records = records * {times} WHERE source = 'bills'")


@pytest.mark.parametrize("group_by", TABLES_BY_NAME["bills"].aggregation_plan.group_names)
def test_counting_by_group_takes_work_in_proportion_to_the_bills(
    world: Path, tmp_path: Path, group_by: str
) -> None:
    """Eight times the bills are eight times the work, and not sixty-four times."""
    path = tmp_path / DATABASE_FILE_NAME
    with closing(sqlite3.connect(get_database_path(world))) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            """INSERT INTO bill_committees SELECT id, 'HSAG' FROM bills WHERE true
               ON CONFLICT DO NOTHING"""
        )
    steps, totals = [], []
    for times in (1, 8):
        if times > 1:
            multiply_bills(path, times)
        with (
            patch.object(aggregates, "_STEPS_BETWEEN_CHECKS", 50),
            closing(store.connect(path)) as db,
        ):
            table = TABLES_BY_NAME["bills"]
            request = Aggregation(table, parse_filters(table, None), group_by=group_by, top=1000)
            aggregator = Aggregator(db, Budget(max_seconds=60.0))
            answer = aggregator.compute_total(request)
            steps.append(aggregator.meter.step_count)
            totals.append(sum(bucket.value for bucket in answer.buckets))  # type: ignore[union-attr]
            if group_by in ("topic", "committee", "cosponsor"):
                assert answer.query_cost.rows >= totals[-1], "joined rows count too"
    assert totals[1] == 8 * totals[0] > 0
    assert steps[1] < 12 * steps[0]

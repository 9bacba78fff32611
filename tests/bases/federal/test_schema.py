"""The tables of the federal base: made at once, and the same as those that 0.1.0 wrote."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.schema.sources import SOURCES, SOURCES_BY_NAME, Source
from readingroom.bases.federal.schema.tables import SCHEMA_VERSION
from readingroom.bases.federal.store import get_database_path
from readingroom.engine.words import make_fts5_tokenizer_option
from readingroom.storage.errors import StorageFailed
from tests.support.federal.base import serve_in_process

pytestmark = pytest.mark.anyio

FIRST_RELEASE = Path(__file__).parents[2] / "fixtures" / "federal-0.1.0.sql"


def write_first_release(data: Path) -> Path:
    """Return the path of a federal file as 0.1.0 wrote it."""
    path = get_database_path(data)
    path.parent.mkdir(parents=True)
    script = FIRST_RELEASE.read_text("utf-8").replace("{tokenizer}", make_fts5_tokenizer_option())
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
        db.commit()
    return path


def read_schema(path: Path) -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {(kind, name, re.sub(r"\s+", " ", sql).strip()) for kind, name, sql in rows}


ADDED_COLUMNS = {
    ("bills", "stage"),
    ("bills", "outcome"),
    ("saps", "position"),
    ("saps", "president_number"),
    ("member_votes", "standard_position"),
}
ADDED_TABLES = {"agencies", "bill_summaries", "coverage", "embedding_leases", "embedded_elsewhere"}


def read_columns(path: Path) -> dict[str, dict[str, str]]:
    """Return the type of every column, by table."""
    with closing(sqlite3.connect(path)) as db:
        tables = [name for kind, name, _ in read_schema(path) if kind == "table"]
        return {
            table: {row[1]: row[2] for row in db.execute(f"PRAGMA table_xinfo({table})")}
            for table in tables
        }


def test_a_new_file_has_the_tables_and_columns_of_the_first_release(tmp_path: Path) -> None:
    store.prepare_records(tmp_path / "new.db")
    new, old = read_columns(tmp_path / "new.db"), read_columns(write_first_release(tmp_path))
    assert new.keys() - old.keys() == ADDED_TABLES
    for table, columns in old.items():
        assert columns.items() <= new[table].items(), table
    added = {(table, column) for table in old for column in new[table].keys() - old[table].keys()}
    assert added == ADDED_COLUMNS


def test_a_file_of_the_first_release_gets_what_was_added_and_loses_nothing(tmp_path: Path) -> None:
    path = write_first_release(tmp_path)
    before = read_columns(path)
    with closing(sqlite3.connect(path)) as db:
        rows_before = {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in before
        }
    store.prepare_records(path)
    store.prepare_records(tmp_path / "new.db")
    after = read_schema(path)
    assert read_columns(path) == read_columns(tmp_path / "new.db")
    indexes = {row for row in after if row[0] == "index"}
    assert indexes == {row for row in read_schema(tmp_path / "new.db") if row[0] == "index"}
    columns = [
        (source.name, column.name)
        for source in SOURCES
        for column in source.record_table.filter_columns
    ]
    assert indexes >= {
        (
            "index",
            f"{table}_{column}",
            f"CREATE INDEX {table}_{column} ON {table} ({column}, published_at DESC, id)",
        )
        for table, column in columns
    }
    with closing(sqlite3.connect(path)) as db:
        # 0.1.0 opens the file still: it looks at the version and the tables only.
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,) == (9,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for table, count in rows_before.items():
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == count, table
    store.prepare_records(path)
    assert read_schema(path) == after


def explain_plans(path: Path, source: Source, filters: dict[str, Any]) -> Iterator[str]:
    """Yield how SQLite reads the first page of a filtered list, the next, and one undated."""
    sql_filter = build_sql_filter(source.record_table, filters)
    with closing(store.connect(path)) as db:
        for after in (None, ("2024-01-31", "a"), (None, "a")):
            statements: list[str] = []
            db.set_trace_callback(statements.append)
            store.list_records(db, source, sql_filter, 20, after)
            db.set_trace_callback(None)
            for statement in statements:
                if not statement.startswith("SELECT id, published_at, record"):
                    continue
                if "since" in filters and "published_at IS NULL" in statement:
                    continue  # nothing passes both
                plan = db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
                yield "; ".join(row["detail"] for row in plan)


def test_no_filtered_list_is_sorted(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    store.prepare_records(path)
    values = {"TEXT": "x", "INTEGER": 118, "BOOLEAN": True}
    for source in SOURCES:
        filters = {
            column.name: values[column.sql_type] for column in source.record_table.filter_columns
        }
        filters["since"] = "2023-01-03"
        for size in (0, 1, 2):
            for names in combinations(filters, size):
                for plan in explain_plans(path, source, {name: filters[name] for name in names}):
                    assert "TEMP B-TREE" not in plan, (source.name, names, plan)
                    assert f"USING INDEX {source.name}_" in plan, (source.name, names, plan)


def test_a_list_is_read_by_the_rarest_of_its_values(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    store.prepare_records(path)
    with closing(store.connect(path, writing=True)) as db:
        db.executemany(
            "INSERT INTO amendments (id, record, loader) VALUES (?, ?, 'test')",
            [
                (f"a{number}", json.dumps(fields | {"published_at": "2020-01-01"}))
                for number in range(6_000)
                for fields in [
                    {
                        "congress": 100 + number % 2,
                        "chamber": ("house", "senate")[number // 2 % 2],
                        "type": "samdt" if number < 10 else "hamdt",
                    }
                ]
            ],
        )
    (plan, *_) = explain_plans(
        path, SOURCES_BY_NAME["amendments"], {"chamber": "house", "type": "samdt"}
    )
    assert "USING INDEX amendments_type " in plan
    # Both are frequent: records of one Congress have dates near each other.
    (plan, *_) = explain_plans(
        path, SOURCES_BY_NAME["amendments"], {"chamber": "house", "congress": 100}
    )
    assert "USING INDEX amendments_congress " in plan


async def test_a_file_of_the_first_release_answers(tmp_path: Path) -> None:
    write_first_release(tmp_path)
    async with serve_in_process(tmp_path) as ask:
        bill = await ask.answer("get_bill", bill_id="hr:119:1")
        assert bill["sponsors"][0]["bioguide_id"] == "F900002"
        hits = await ask.answer("lexical_search", query="prescription drug prices")
        assert [hit["id"] for hit in hits["results"]] == ["hr:119:1"]
        people = await ask.answer("resolve_entity", query="Fairbrok", entity_type="legislators")
        assert [person["id"] for person in people["results"]] == ["F900002"]
        counted = await ask.answer("count", resource="legislators")
        assert counted["value"] == 7


@pytest.mark.parametrize(
    ("version", "advice"),
    [(1, "load the official files again"), (8, "older than 0.1.0"), (10, "install that version")],
)
def test_a_file_of_another_version_is_refused(tmp_path: Path, version: int, advice: str) -> None:
    path = write_first_release(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StorageFailed, match=advice):
        store.prepare_records(path)


def test_a_failed_creation_leaves_an_empty_file_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "federal.db"
    tables = "readingroom.bases.federal.schema.tables._FIXED_TABLE_STATEMENTS"
    with monkeypatch.context() as broken:
        broken.setattr(tables, ("CREATE TABLE nonsense (",))
        with pytest.raises(StorageFailed):
            store.prepare_records(path)
    assert read_schema(path) == set()
    store.prepare_records(path)
    assert read_schema(path)


def test_sources_are_labelled_as_people_write_them() -> None:
    labels = {source.name: source.label for source in SOURCES}
    assert labels["cfr_sections"] == "CFR sections"
    assert labels["saps"] == "Statements of Administration Policy"
    assert labels["roll_call_votes"] == "Roll call votes"
    assert len(set(labels.values())) == len(SOURCES)

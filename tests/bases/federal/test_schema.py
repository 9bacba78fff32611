"""The tables of the federal base: made at once, and the same as those that 0.1.0 wrote."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.schema.tables import SCHEMA_VERSION
from readingroom.bases.federal.store import file_in
from readingroom.engine.words import tokenizer_spec
from readingroom.storage.errors import StorageFailed
from tests.support.federal.base import asked

pytestmark = pytest.mark.anyio

FIRST_RELEASE = Path(__file__).parents[2] / "fixtures" / "federal-0.1.0.sql"


def first_release_in(data: Path) -> Path:
    """Return the path of a federal file as 0.1.0 wrote it."""
    path = file_in(data)
    path.parent.mkdir(parents=True)
    script = FIRST_RELEASE.read_text("utf-8").replace("{tokenizer}", tokenizer_spec())
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
        db.commit()
    return path


def schema_of(path: Path) -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {(kind, name, re.sub(r"\s+", " ", sql).strip()) for kind, name, sql in rows}


def test_a_new_file_has_the_tables_of_the_first_release(tmp_path: Path) -> None:
    store.prepare(tmp_path / "new.db")
    assert schema_of(tmp_path / "new.db") == schema_of(first_release_in(tmp_path))


def test_a_file_of_the_first_release_is_opened_unchanged(tmp_path: Path) -> None:
    path = first_release_in(tmp_path)
    before = schema_of(path)
    store.prepare(path)
    assert schema_of(path) == before
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,) == (9,)


async def test_a_file_of_the_first_release_answers(tmp_path: Path) -> None:
    first_release_in(tmp_path)
    async with asked(tmp_path) as ask:
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
    path = first_release_in(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StorageFailed, match=advice):
        store.prepare(path)


def test_a_failed_creation_leaves_an_empty_file_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "federal.db"
    tables = "readingroom.bases.federal.schema.tables._FIXED_TABLES"
    with monkeypatch.context() as broken:
        broken.setattr(tables, ("CREATE TABLE nonsense (",))
        with pytest.raises(StorageFailed):
            store.prepare(path)
    assert schema_of(path) == set()
    store.prepare(path)
    assert schema_of(path)

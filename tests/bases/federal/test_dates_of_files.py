"""As of when: the date of each record's file, and up to when a source is complete."""

import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.load.coverage import store_sync_date
from readingroom.bases.federal.load.loading import load, update
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.store import SourceProgress, get_database_path
from tests.bases.federal.test_schema import write_first_release
from tests.support.federal.base import serve_in_process, write_world
from tests.support.federal.world_texts import register_issue

pytestmark = pytest.mark.anyio


def read_progress(data: Path, source: str) -> SourceProgress:
    with closing(store.connect(get_database_path(data))) as db:
        return store.read_progress(db, SOURCES_BY_NAME[source])


async def test_a_record_says_the_date_of_its_file_not_that_of_another(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=3)
    load(get_database_path(tmp_path), [tmp_path / "files"], None)
    async with serve_in_process(tmp_path) as ask:
        listed = await ask.record("/bills", limit=50)
        told = {bill["as_of"] for bill in listed["results"] if bill["status_loaded"]}
        stated = {text.partition("<updateDate>")[2][:10] for _, text in world.bills(3)}
        assert told == stated
        statement = await ask.record("/saps/sap:119:2025-03-01:hr1")
        assert statement["as_of"] == "2025-03-02"
        assert statement["loaded_up_to"] == "2025-03-02"
        fetched = await ask.answer("fetch", id="sap:119:2025-03-01:hr1")
        assert fetched["metadata"]["as_of"] == "2025-03-02"


async def test_an_issue_of_the_register_is_complete_for_its_day_alone(tmp_path: Path) -> None:
    (tmp_path / "FR.xml").write_text(register_issue(), "utf-8")
    load(get_database_path(tmp_path), [tmp_path / "FR.xml"], None)
    progress = read_progress(tmp_path, "federal_register")
    assert (progress.loaded_up_to, progress.newest_record_at) == (None, "2018-05-10")
    async with serve_in_process(tmp_path) as ask:
        listed = await ask.answer("list_records", source="federal_register", limit=1)
        assert "all of the issue of 2018-05-10 is loaded" in listed["note"]
        assert listed.get("loaded_up_to") is None
    later_issue = register_issue().replace("2018-05-10", "2018-05-14")
    for dash in "-\u2013":
        later_issue = later_issue.replace(f"2018{dash}9", f"2018{dash}8")
    (tmp_path / "FR2.xml").write_text(later_issue, "utf-8")
    load(get_database_path(tmp_path), [tmp_path / "FR2.xml"], None)
    assert read_progress(tmp_path, "federal_register").loaded_up_to is None
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.answer("count", resource="federal_register")
        assert "2 issues from 2018-05-10 to 2018-05-14" in counted["note"]
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        store_sync_date(db, SOURCES_BY_NAME["federal_register"], None, date(2025, 6, 1))
    load(get_database_path(tmp_path), [tmp_path / "FR.xml"], None)
    assert read_progress(tmp_path, "federal_register").loaded_up_to == "2025-06-01"


async def test_a_date_that_an_earlier_version_took_from_an_issue_is_corrected(
    tmp_path: Path,
) -> None:
    (tmp_path / "FR.xml").write_text(register_issue(), "utf-8")
    load(get_database_path(tmp_path), [tmp_path / "FR.xml"], None)
    with closing(sqlite3.connect(get_database_path(tmp_path))) as db:
        db.execute(
            """UPDATE coverage SET complete_up_to = '2018-05-10',
               known_by = 'files of register-issue' WHERE source = 'federal_register'"""
        )
        db.execute("UPDATE progress SET loaded_up_to = '2018-05-10' WHERE source LIKE 'federal_%'")
        db.commit()
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.answer("count", resource="federal_register")
    assert counted["loaded_up_to"] is None
    assert "the issue of 2018-05-10" in counted["note"]


def test_of_what_is_not_loaded_no_date_is_known(tmp_path: Path) -> None:
    (tmp_path / "FR.xml").write_text(register_issue(), "utf-8")
    load(get_database_path(tmp_path), [tmp_path / "FR.xml"], None)
    bills = read_progress(tmp_path, "bills")
    assert (bills.records, bills.loaded_up_to, bills.is_loaded) == (0, None, False)


def test_a_sync_extends_what_is_complete_only_where_there_is_no_gap(tmp_path: Path) -> None:
    path = get_database_path(tmp_path)
    write_world(tmp_path / "files", bills=1)
    load(path, [tmp_path / "files"], None)
    bills = SOURCES_BY_NAME["bills"]
    with closing(store.connect(path, writing=True)) as db:
        store_sync_date(db, bills, None, date(2025, 6, 1))
        assert store.read_progress(db, bills).loaded_up_to == "2025-06-01"
        store_sync_date(db, bills, date(2025, 5, 30), date(2025, 6, 10))
        assert store.read_progress(db, bills).complete_from is None
        store_sync_date(db, bills, date(2025, 7, 1), date(2025, 7, 10))
        progress = store.read_progress(db, bills)
    assert (progress.complete_from, progress.loaded_up_to) == ("2025-07-01", "2025-07-10")
    load(path, [tmp_path / "files"], None)
    assert read_progress(tmp_path, "bills").loaded_up_to == "2025-07-10"


LEGISLATOR = """\
- id:
    bioguide: S999001
  name:
    first: Ann
    last: Sample
  bio:
    gender: F
  terms:
  - type: sen
    start: '2023-01-03'
    end: '2024-11-30'
    state: OH
    class: 3
    party: Republican
"""
NEWER = """\
- id:
    bioguide: S999002
  name:
    first: Bea
    last: Sample
  terms:
  - type: sen
    start: '2025-02-01'
    end: '2031-01-03'
    state: FL
    class: 1
    party: Democrat
"""


def read_person(data: Path, id: str) -> dict[str, Any]:
    with closing(store.connect(get_database_path(data))) as db:
        return store.read_record(db, SOURCES_BY_NAME["legislators"], id)


def test_an_unchanged_person_gets_the_date_of_the_newer_list(tmp_path: Path) -> None:
    path = tmp_path / "legislators-current.yaml"
    path.write_text(LEGISLATOR, "utf-8")
    load(get_database_path(tmp_path), [path], None)
    first = read_person(tmp_path, "S999001")
    # Who is in the list of current members sits, whatever the printed end of the term.
    assert (first["as_of"], first["current"]) == ("2023-01-03", True)
    path.write_text(LEGISLATOR + NEWER, "utf-8")
    summary = update(get_database_path(tmp_path), [path], None)
    assert summary.changes["legislators"].changed == 0
    again = read_person(tmp_path, "S999001")
    assert (again["as_of"], again["loaded_up_to"]) == ("2025-02-01", "2025-02-01")
    assert again["retrieved_at"] == first["retrieved_at"]


def test_the_newest_date_of_a_first_release_is_no_claim_of_completeness(tmp_path: Path) -> None:
    path = write_first_release(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        (before,) = db.execute(
            "SELECT loaded_up_to FROM progress WHERE source = 'bills'"
        ).fetchone()
    store.prepare_records(path)
    progress = read_progress(tmp_path, "bills")
    assert (progress.loaded_up_to, progress.newest_record_at) == (None, before)

"""A load into PostgreSQL, which takes rows while the load goes on, and the copy of its names."""

import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.load import steps
from readingroom.bases.federal.load.loading import load
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.names.resolver import resolve_name
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.entries import RecordLink
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search import name_copy
from readingroom.bases.federal.search.full_text import find_names_sharing_trigrams
from readingroom.bases.federal.store import SharedRecords, get_database_path
from readingroom.storage.errors import DatabaseFailed, StorageFailed
from tests.support.federal.base import write_world
from tests.support.federal.made_records import (
    FORMAT,
    amendment,
    person,
    withdraw,
    write_records,
)
from tests.support.kit import clean_environment, make_command
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import HANG_SECONDS, wait_until

PEOPLE = SOURCES_BY_NAME["legislators"]
FIRST_ROW = fold.get_first_name_id("legislators")
LAST_ROW = FIRST_ROW + fold.MAX_NAMES_PER_SOURCE


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[SharedRecords]:
    with make_database(postgres) as url:
        shared = SharedRecords(url)
        store.prepare_records(shared)
        yield shared


# --- rows that are taken meanwhile ---


def test_a_row_that_the_database_refuses_takes_its_file_back_and_no_other(
    place: SharedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses it when the file was given to it long ago; those before are committed."""
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 60)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 1})
    with (
        closing(store.connect(place, writing=True)) as db,
        ThreadPoolExecutor(1) as commit_thread,
    ):
        writer = Writer(db, commit_thread)
        with writer.file_savepoint():
            writer.put_records([amendment(1, "Before")], FORMAT)
        with writer.file_savepoint():
            records = [amendment(number, "Refused") for number in range(10, 40)]
            # No table of links takes one without evidence.
            links = [RecordLink(LinkKind.AMENDMENT, "hr:119:1", " ")]
            records.append(replace(amendment(50, "Refused too"), links=links))
            writer.put_records(records, FORMAT)
        with pytest.raises(StorageFailed, match="could not be written"):
            writer.wait_and_report_undone()
        with writer.transaction():
            writer.put_records([amendment(2, "After")], FORMAT)
        writer.wait_and_report_undone()
        assert _list_ids(db, "amendments") == ["samdt:119:1", "samdt:119:2"]
        (documents,) = db.execute("SELECT count(*) FROM documents").fetchone()
        assert documents == 2


def test_a_file_that_breaks_off_leaves_nothing_of_what_was_on_its_way(place: SharedRecords) -> None:
    with closing(store.connect(place, writing=True)) as db:
        writer = Writer(db)
        with pytest.raises(KeyError), writer.file_savepoint():
            records = [amendment(number, f"Number {number}") for number in range(1_500)]
            writer.put_records(records, FORMAT)
            raise KeyError
        with writer.transaction():
            writer.put_records([amendment(7, "Whole"), person(1, "Ada Whole")], FORMAT)
        assert _list_ids(db, "amendments") == ["samdt:119:7"]
        for table in ("documents", "passages", "passage_words", "changes"):
            (rows,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert rows == (2 if table == "changes" else 1), table


def test_work_goes_on_meanwhile_and_its_failure_is_told_by_the_next_statement(
    place: SharedRecords,
) -> None:
    with closing(store.connect(place, writing=True)) as db:
        may_go_on, was_done = threading.Event(), []
        db.execute("BEGIN")
        db.run_in_background(may_go_on.wait)
        db.run_in_background(lambda: db.execute("INSERT INTO nowhere VALUES (1)"))
        db.run_in_background(lambda: was_done.append("after a failure"))
        may_go_on.set()  # nobody has waited until here
        with pytest.raises(DatabaseFailed, match="nowhere"):
            db.execute("SELECT 1")
        db.execute("ROLLBACK")
        assert was_done == []
        db.run_in_background(lambda: db.execute("INSERT INTO nowhere VALUES (1)"))
        db.execute("ROLLBACK")  # whatever it was, it is taken back
        assert db.execute("SELECT 1").fetchone()[0] == 1


def test_a_record_that_is_on_its_way_is_known_to_the_next_file(place: SharedRecords) -> None:
    with closing(store.connect(place, writing=True)) as db:
        writer = Writer(db)
        may_go_on = threading.Event()
        with writer.file_savepoint():
            db.run_in_background(may_go_on.wait)
            result = writer.put_records([amendment(n, "First") for n in range(20)], FORMAT)
            assert result.changed_count == 20
        with (
            writer.file_savepoint()
        ):  # which waits for the first one only when it asks for its rows
            writer.put_records([amendment(n, "Other") for n in range(20, 40)], FORMAT)
            may_go_on.set()
            records = [amendment(n, "First" if n < 19 else "New title") for n in range(21)]
            assert writer.put_records(records, FORMAT).changed_count == 2
        writer.commit_and_report_undone()
        assert _count_rows(db, "amendments") == _count_rows(db, "changes") == 40
        titles = db.execute("SELECT record ->> 'title' AS t, count(*) FROM amendments GROUP BY 1")
        assert dict(map(tuple, titles)) == {"First": 19, "Other": 19, "New title": 2}


def test_turns_of_threads_are_short_only_while_a_connection_has_work(place: SharedRecords) -> None:
    usual_seconds = sys.getswitchinterval()
    with closing(store.connect(place, writing=True)) as db:
        with closing(store.connect(place, writing=True)) as other:
            db.run_in_background(lambda: None)
            other.run_in_background(lambda: None)
            assert sys.getswitchinterval() < usual_seconds
        assert sys.getswitchinterval() < usual_seconds
    assert sys.getswitchinterval() == usual_seconds


def test_rows_are_copied_as_they_are(place: SharedRecords) -> None:
    odd_texts = ["", "\\N", "\\", "a\tb", "a\nb\r", "\\.", "é\\t", "\u2028", "{}", "plain"]
    with closing(store.connect(place, writing=True)) as db:
        rows = [(n, f"id{n}", text, None if n % 2 else text) for n, text in enumerate(odd_texts, 1)]
        db.execute("BEGIN")
        db.insert_in_background(
            "INSERT INTO documents (doc, id, source, published_at) VALUES (?, ?, ?, ?)", rows
        )
        stored = db.execute("SELECT doc, id, source, published_at FROM documents ORDER BY doc")
        assert [tuple(row) for row in stored] == rows
        with pytest.raises(UnicodeEncodeError):  # here, where the file is known
            db.insert_in_background(
                "INSERT INTO documents (doc, id, source, published_at) VALUES (?, ?, ?, ?)",
                [(n, "half \ud800", "x", None) for n in range(100, 120)],
            )
        db.execute("ROLLBACK")


def test_only_what_follows_a_file_waits_for_the_disk(
    place: SharedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 5)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 1})
    statements: list[str] = []
    with closing(store.connect(place, writing=True)) as db:
        writer = Writer(db)
        db.set_trace_callback(statements.append)
        with writer.file_savepoint():
            writer.put_records([amendment(n, f"N{n}") for n in range(20)], FORMAT)
        assert "SET LOCAL synchronous_commit = off" in statements
        statements.clear()
        with writer.transaction():
            writer.put_records([amendment(n, f"N{n}") for n in range(30, 50)], FORMAT)
        assert statements[-1] == "COMMIT"
        assert not [one for one in statements if "synchronous_commit" in one]
        db.set_trace_callback(None)


@pytest.mark.parametrize("victim", ["loader", "backend"])
def test_kill_nine_in_the_middle_of_a_load_loses_nothing_and_repeats_nothing(
    place: SharedRecords, postgres: PostgresServer, tmp_path: Path, victim: str
) -> None:
    """What was on its way is gone with its transaction; the next load brings it."""
    write_world(tmp_path / "files", bills=100)
    with make_database(postgres) as whole_url:
        whole = SharedRecords(whole_url)
        load(whole, [tmp_path / "files"], None)
        for _ in range(2):
            _load_and_kill(place, tmp_path / "files", victim)
        assert load(place, [tmp_path / "files"], None).failed == 0
        with closing(store.connect(place)) as db, closing(store.connect(whole)) as whole_db:
            for table in ("bills", "documents", "texts", "links", "name_forms", "bill_cosponsors"):
                assert _read_texts(db, table) == _read_texts(whole_db, table), table
            for one in (db, whole_db):
                assert _count_rows(one, "passages") == _count_rows(one, "passage_words")
            for table in ("facets", "passages", "names", "changes", "passage_stems"):
                assert _count_rows(db, table) == _count_rows(whole_db, table), table


def _load_and_kill(place: SharedRecords, files: Path, victim: str) -> None:
    """End the loader, or the process that serves it, once it has committed a little more."""
    with closing(store.connect(place, writing=True)) as db:
        bills_before = _count_rows(db, "bills")
        loader = subprocess.Popen(
            make_command("federal", "load", str(files), "--json"),
            env=clean_environment() | {"READINGROOM_DATABASE_URL": place.url},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(
                lambda: loader.poll() is not None or _count_rows(db, "bills") > bills_before + 5
            )
            if victim == "loader":
                loader.kill()
            else:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        finally:
            loader.wait(HANG_SECONDS)


def _count_rows(db: Any, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _read_texts(db: Any, table: str) -> list[str]:
    """The texts of a table's rows, but for when they were read and the numbers they were given."""
    rows = db.execute(f"SELECT to_jsonb(t) - 'doc' - 'name_row' AS text FROM {table} t").fetchall()
    return sorted(re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "", str(row["text"])) for row in rows)


def _list_ids(db: Any, table: str) -> list[str]:
    return [row["id"] for row in db.execute(f"SELECT id FROM {table} ORDER BY id")]


# --- names in memory ---


def _resolve(db: Any, name: str) -> list[tuple[str, float]]:
    sql_filter = build_sql_filter(PEOPLE.record_table, {})
    return [(match.id, match.score) for match in resolve_name(db, PEOPLE, name, sql_filter)]


def _make_people(seed: int, count: int) -> list[Any]:
    chance = random.Random(seed)
    syllables = ["ba", "con", "der", "fi", "gul", "ham", "jo", "ker", "lin", "mo", "ston", "ward"]
    names = [
        f"{chance.choice(('Ada', 'Boris', 'Clara', 'Jo'))} "
        f"{''.join(chance.choices(syllables, k=3)).capitalize()}"
        for _ in range(count)
    ]
    return [person(number, name) for number, name in enumerate(names, 1)]


def test_names_are_found_in_memory_as_in_a_file(place: SharedRecords, tmp_path: Path) -> None:
    people = _make_people(1, 800)
    file_place = get_database_path(tmp_path)
    for each in (place, file_place):
        write_records(each, *people)
    chance = random.Random(2)
    with closing(store.connect(place)) as db, closing(store.connect(file_place)) as file_db:
        _resolve(db, "Somebody Else")
        for _ in range(100):
            name = chance.choice(people).names[0]
            cut = chance.randrange(1, len(name) - 1)
            misspelt = name[:cut] + chance.choice(("", "e", "st")) + name[cut + 1 :]
            assert _resolve(db, misspelt) == _resolve(file_db, misspelt)
        assert name_copy.name_copies.find_copy(db, FIRST_ROW, LAST_ROW) is not None


def test_the_copy_of_names_follows_every_change(
    place: SharedRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_copy, "_MIN_SECONDS_BETWEEN_COPIES", 0)
    write_records(place, person(1, "Ada Lovelace"), person(2, "Charles Babbage"))
    find_copy = name_copy.name_copies.find_copy
    with closing(store.connect(place)) as db:

        def count_sharing(word: str) -> int:
            trigrams = fold.list_trigrams(word)
            return len(find_names_sharing_trigrams(db, [word], trigrams, FIRST_ROW, LAST_ROW))

        assert find_copy(db, FIRST_ROW, LAST_ROW) is None  # a first question is asked of SQL
        copy = find_copy(db, FIRST_ROW, LAST_ROW)
        assert copy is not None
        assert count_sharing("babbage") == 1
        write_records(place, amendment(1, "No name changes"))
        assert find_copy(db, FIRST_ROW, LAST_ROW) is copy
        withdraw(place, "legislators", "X000002")
        write_records(place, person(3, "Grace Hopper"))  # who gets the row of the one who went
        assert [count_sharing("babbage") for _ in range(3)] == [0, 0, 0]
        assert [count_sharing("hopper") for _ in range(3)] == [1, 1, 1]
        assert find_copy(db, FIRST_ROW, LAST_ROW) is not copy


def test_a_copy_is_made_again_only_after_a_while(place: SharedRecords) -> None:
    write_records(place, person(1, "Ada Lovelace"))
    find_copy = name_copy.name_copies.find_copy
    with closing(store.connect(place)) as db:
        assert [find_copy(db, FIRST_ROW, LAST_ROW) is None for _ in range(3)] == [
            True,
            False,
            False,
        ]
        write_records(place, person(2, "Grace Hopper"))
        assert [find_copy(db, FIRST_ROW, LAST_ROW) for _ in range(3)] == [None] * 3
        assert _resolve(db, "Grace Hoper")[0][0] == _resolve(db, "Grace Hopper")[0][0]


def test_a_copy_counts_a_trigram_of_a_name_once_and_none_between_names() -> None:
    copy = name_copy.TrigramCopy([5, 7, 9], ["  anna  ann ", "  hanna ", "  bob "])
    assert copy.find_name_ids(["ann"]) == [5, 7]
    assert copy.find_name_ids(["ann", "nna", "han"]) == [7, 5]
    assert copy.find_name_ids(["bob", "nn "]) == [5, 9]
    assert copy.find_name_ids(["zzz"]) == []
    assert copy.find_name_ids(["n  "]) == []


# --- connections that end ---


def test_a_room_whose_connections_have_ended_opens_new_ones(place: SharedRecords) -> None:
    """The database was started anew, or something between has dropped what was idle."""
    federal_store = store.FederalStore(place)
    with closing(store.connect(place)) as db:
        assert federal_store.query_now(store.list_progress)
        own_pid = db.execute("SELECT pg_backend_pid()").fetchone()[0]
        ended = db.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> ?",
            (own_pid,),
        ).fetchone()[0]
        assert ended >= 1
        wait_until(
            lambda: (
                db.execute(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND backend_type = 'client backend'"
                ).fetchone()[0]
                == 1
            )
        )
        assert federal_store.query_now(store.list_progress)
        # One that ends while it is lent is not lent again.
        with pytest.raises(StorageFailed):
            federal_store.query_now(
                lambda lent: lent.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            )
        assert federal_store.query_now(store.list_progress)
    federal_store.close()

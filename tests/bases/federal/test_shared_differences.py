"""What the two engines do differently by themselves, and must not do here: one test for each."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from readingroom.bases.federal import doctor, store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.shared_tables import (
    SHARED_SCHEMA_VERSION,
    ensure_shared_schema,
)
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search.vectors import store_vectors
from readingroom.bases.federal.store import FederalPlace, SharedRecords, get_database_path
from tests.support.federal.base import HashedWords
from tests.support.federal.made_records import FORMAT, amendment, person, write_records
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import wait_until

AMENDMENTS, PEOPLE = SOURCES_BY_NAME["amendments"], SOURCES_BY_NAME["legislators"]


@pytest.fixture(scope="module")
def places(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FederalPlace, ...]]:
    """The same few records in a file and in a database, each of a kind that engines part over."""
    records = [
        amendment(1, "Without a day", None),
        amendment(2, "Of the first day", "2025-01-01"),
        amendment(3, "Also without a day", None),
        amendment(10, "Of the second day", "2025-01-02", facets={"subject": ["Öl", "Water"]}),
        amendment(9, "A null \0 character", "2025-01-03"),
        amendment(8, "100% of_it \\u0000 {stays}", "2025-01-04"),
        *(amendment(20 + n, title, "2025-02-01") for n, title in enumerate("aBéZz")),
        person(1, "Ada Lovelace", is_current=True),
        person(2, "Charles Babbage", is_current=False),
    ]
    with make_database(postgres) as url:
        folder = tmp_path_factory.mktemp("differences")
        both = get_database_path(folder), SharedRecords(url)
        for place in both:
            write_records(place, *records)
        yield both


def _ask_both(places: tuple[FederalPlace, ...], query: Any) -> Any:
    answers = []
    for place in places:
        with closing(store.connect(place)) as db:
            answers.append(query(db))
    assert answers[0] == answers[1]
    return answers[0]


def _list_ids(db: Any, filters: dict[str, Any], source: Any = AMENDMENTS) -> list[str]:
    sql_filter = build_sql_filter(source.record_table, filters)
    page = store.list_records(db, source, sql_filter, 50, None)
    return [record["id"] for record in page.rows]


def test_records_without_a_day_come_last(places: tuple[FederalPlace, ...]) -> None:
    """PostgreSQL would put them first."""
    listed = _ask_both(places, lambda db: _list_ids(db, {}))
    assert listed[-2:] == ["samdt:119:1", "samdt:119:3"]


def test_ids_are_sorted_by_their_bytes(places: tuple[FederalPlace, ...]) -> None:
    """By a language `samdt:119:10` might follow `samdt:119:9`."""
    sql_filter = build_sql_filter(AMENDMENTS.record_table, {})

    def sort(db: Any) -> list[str]:
        rows = db.execute(f"SELECT id FROM amendments WHERE {sql_filter.sql} ORDER BY id")
        return [row["id"] for row in rows]

    ids = _ask_both(places, sort)
    assert ids == sorted(ids)
    titles = _ask_both(
        places,
        lambda db: [
            row["title"]
            for row in db.execute(
                "SELECT record ->> 'title' AS title FROM amendments "
                "WHERE record ->> 'title' IN ('a', 'B', 'é', 'Z', 'z') ORDER BY 1"
            )
        ],
    )
    assert titles == ["B", "Z", "a", "z", "é"]


def test_facets_are_compared_whatever_the_case_of_their_letters(
    places: tuple[FederalPlace, ...],
) -> None:
    """SQLite folds the case of ASCII letters in `LIKE` and `NOCASE`, PostgreSQL of none."""

    def count(db: Any) -> list[int]:
        return [
            db.execute(
                "SELECT count(*) FROM facets WHERE field = 'subject' AND value = ?", (value,)
            ).fetchone()[0]
            for value in ("water", "WATER", "wate")
        ]

    assert _ask_both(places, count) == [1, 1, 0]


def test_records_come_back_byte_for_byte(places: tuple[FederalPlace, ...]) -> None:
    """`jsonb` would sort the keys and drop spaces."""
    read = _ask_both(places, lambda db: store.read_record_json(db, AMENDMENTS, "samdt:119:10"))
    assert list(json.loads(read))[:3] == ["id", "source", "title"]


def test_truth_values_are_filtered_and_counted_alike(places: tuple[FederalPlace, ...]) -> None:
    """SQLite has 0 and 1, PostgreSQL true and false."""
    assert _ask_both(places, lambda db: _list_ids(db, {"current": True}, PEOPLE)) == ["X000001"]
    assert _ask_both(places, lambda db: _list_ids(db, {"current": False}, PEOPLE)) == ["X000002"]


def test_a_null_character_is_replaced_and_the_rest_of_the_record_stays(
    places: tuple[FederalPlace, ...],
) -> None:
    """PostgreSQL takes no text with U+0000, and none is made of the JSON that has one."""
    titles = []
    for place in places:
        with closing(store.connect(place)) as db:
            titles.append(store.read_record(db, AMENDMENTS, "samdt:119:9")["title"])
    assert titles == ["A null \0 character", "A null \N{REPLACEMENT CHARACTER} character"]
    kept = _ask_both(places, lambda db: store.read_record(db, AMENDMENTS, "samdt:119:8"))
    assert kept["title"] == "100% of_it \\u0000 {stays}"


def test_numbers_are_compared_as_numbers(places: tuple[FederalPlace, ...]) -> None:
    """In SQLite a text that looks like a number equals it, in PostgreSQL it is an error."""

    def list_of_congress(db: Any) -> list[str]:
        return _list_ids(db, {"congress": 119, "type": "samdt"})

    assert len(_ask_both(places, list_of_congress)) == 11
    assert _ask_both(places, lambda db: _list_ids(db, {"congress": 1})) == []


def test_numbers_of_vectors_become_visible_in_their_order(
    places: tuple[FederalPlace, ...],
) -> None:
    """A reader goes on after the highest number it saw: a lower one must not come later."""
    place = places[1]
    embedder = HashedWords()
    with (
        closing(store.connect(place, writing=True)) as slow,
        closing(store.connect(place, writing=True)) as quick,
        closing(store.connect(place)) as reader,
    ):
        chunks = [row["chunk"] for row in reader.execute("SELECT chunk FROM chunks ORDER BY 1")]
        matrix = embedder.embed_batch(["one"])
        slow.execute("BEGIN")
        slow.execute("UPDATE generation SET value = value + 1")
        slow.execute(
            "INSERT INTO vectors (chunk, model, embedding) VALUES (?, 'm', ?)",
            (chunks[0], matrix[0].tobytes()),
        )
        other = threading.Thread(target=store_vectors, args=(quick, chunks[1:2], matrix, "m"))
        other.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: reader.execute(waiting).fetchone()[0] > 0)
        assert reader.execute("SELECT count(*) FROM vectors").fetchone()[0] == 0
        slow.execute("COMMIT")
        other.join()
        rows = reader.execute("SELECT chunk FROM vectors ORDER BY seq").fetchall()
        assert [row["chunk"] for row in rows] == chunks[:2]


def test_two_loads_at_once_take_turns_and_lose_nothing(places: tuple[FederalPlace, ...]) -> None:
    """Both number documents, passages, names and changes after the highest that they see."""
    place = places[1]
    errors: list[BaseException] = []

    def load(first: int) -> None:
        try:
            with closing(store.connect(place, writing=True)) as db:
                writer = Writer(db)
                for number in range(first, first + 5):
                    with writer.transaction():
                        writer.put_records(
                            [
                                amendment(1_000 + number, f"Load {number}", congress=117),
                                person(1_000 + number, f"Loader Number{number}"),
                            ],
                            FORMAT,
                        )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=load, args=(first,)) for first in (0, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with closing(store.connect(place)) as db:
        assert len(_list_ids(db, {"congress": 117})) == 10
        (changes, last) = db.execute("SELECT count(DISTINCT seq), max(seq) FROM changes").fetchone()
        assert last >= changes
        (names,) = db.execute(
            "SELECT count(*) FROM name_forms WHERE form LIKE 'Loader Number%'"
        ).fetchone()
        assert names == 10


def test_tables_whose_columns_were_generated_compute_them_after_an_upgrade(
    postgres: PostgresServer,
) -> None:
    """As version 2 had them, each column parsing the whole record."""
    with make_database(postgres) as url:
        place = SharedRecords(url)
        write_records(place, amendment(1, "Before the upgrade", "2025-01-01"))
        with closing(place.connect(writing=True)) as db:
            for statement in (
                "DROP TRIGGER amendments_computed ON amendments",
                "ALTER TABLE amendments DROP COLUMN congress",
                "ALTER TABLE amendments ADD COLUMN congress bigint "
                "GENERATED ALWAYS AS ((record #>> '{congress}')::bigint) STORED",
                "UPDATE schema_version SET version = 2",
            ):
                db.execute(statement)
            ensure_shared_schema(db)
            ensure_shared_schema(db)
            (version,) = db.execute("SELECT max(version) FROM schema_version").fetchone()
            assert version == SHARED_SCHEMA_VERSION
        write_records(place, amendment(2, "After it", "2025-01-02"))
        with closing(place.connect(writing=True)) as db:
            assert _list_ids(db, {"congress": 119}) == ["samdt:119:2", "samdt:119:1"]
            db.execute(
                "UPDATE amendments SET record = json_build_object('congress', 7, 'published_at', "
                "'2025-01-09') WHERE id = 'samdt:119:1'"
            )
            stored = db.execute("SELECT published_at FROM amendments WHERE congress = 7").fetchall()
            assert [row["published_at"] for row in stored] == ["2025-01-09"]


def test_what_goes_with_a_record_goes_with_it_before_and_after_an_upgrade(
    postgres: PostgresServer,
) -> None:
    """As version 3 had it, by foreign keys; now by triggers of statements."""
    parts = {"facets": "doc", "chunks": "doc", "passages": "chunk", "passage_words": "chunk"}
    parents = {"doc": "documents", "chunk": "chunks"}
    with make_database(postgres) as url:
        place = SharedRecords(url)
        for number in range(1, 4):
            write_records(
                place, amendment(number, f"Roads {number}", facets={"subject": [f"S{number}"]})
            )
        with closing(place.connect(writing=True)) as db:
            db.execute("DELETE FROM documents WHERE id = 'samdt:119:1'")
            for table, key in parts.items():
                assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 2, table
                db.execute(
                    f"ALTER TABLE {table} ADD FOREIGN KEY ({key}) REFERENCES {parents[key]} "
                    "ON DELETE CASCADE"
                )
            db.execute("UPDATE schema_version SET version = 3")
            ensure_shared_schema(db)
            left = db.execute(
                """SELECT conrelid::regclass::text AS name FROM pg_constraint
                   WHERE contype = 'f' AND conrelid = ANY (?::regclass[])""",
                ([*parts],),
            ).fetchall()
            assert left == []
            db.execute("DELETE FROM documents WHERE id = 'samdt:119:2'")
            for table in parts:
                assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 1, table
            (passages,) = db.execute("SELECT passages FROM passage_totals").fetchone()
            assert passages == 1


def test_the_doctor_names_rows_that_belong_to_nothing(postgres: PostgresServer) -> None:
    """A file has foreign keys, which PostgreSQL would check a row at a time."""
    with make_database(postgres) as url:
        shared_records = SharedRecords(url)
        write_records(shared_records, amendment(1, "Kept", "2025-01-01"))
        with closing(shared_records.connect(writing=True)) as db:
            assert list(doctor._check_orphans(db)) == []
            db.execute("ALTER TABLE documents DISABLE TRIGGER USER")
            db.execute("DELETE FROM documents")
            complaints = list(doctor._check_orphans(db))
            assert [complaint.problem for complaint in complaints] == [
                "1 rows of chunks belong to no row of documents"
            ]

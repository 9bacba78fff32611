"""The shared database: its tables, transactions that several stores join, and its differences."""

import gc
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from readingroom.bases.federal.store import SharedRecords, prepare_records
from readingroom.core.errors import InvalidSetting
from readingroom.core.filters import Equals, Filter, In, Metadata, Scalar
from readingroom.storage.chunks import Chunks
from readingroom.storage.database import StatementStopped
from readingroom.storage.errors import (
    DatabaseConflict,
    DatabaseFailed,
    EmbeddingMismatch,
    InvalidDatabaseValue,
    SchemaTooNew,
    StoreUnusable,
)
from readingroom.storage.postgres import database as database_module
from readingroom.storage.postgres import health, preflight
from readingroom.storage.postgres.chunks import PostgresChunkStore, PostgresCollection
from readingroom.storage.postgres.database import PostgresDatabase, open_database
from readingroom.storage.postgres.encoding import encode_words_rows
from readingroom.storage.postgres.files import PostgresFiles
from readingroom.storage.postgres.health import list_problems
from readingroom.storage.postgres.schema import SCHEMA_VERSION
from tests.engine.test_vectors import FILTERS, make_vector
from tests.storage.test_chunks import FIELDS, make_chunks
from tests.support.filters import passes
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import HANG_SECONDS


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresDatabase]:
    with make_database(postgres) as url:
        yield open_database(url)


@pytest.fixture
def collection(database: PostgresDatabase) -> PostgresCollection:
    opened = PostgresChunkStore(database).open_collection("policy_docs", FIELDS)
    opened.split_stems = str.split
    return opened


def test_what_is_put_comes_back_as_it_was(collection: PostgresCollection) -> None:
    put = make_chunks("a", "b", source="NPPF", start=20241212, open=True, weight=0.5)
    collection.upsert_chunks(put)

    got = collection.read_chunks(with_vectors=True)

    assert (got.ids, got.texts, got.metadatas) == (put.ids, put.texts, put.metadatas)
    assert np.array_equal(got.vectors, put.vectors)
    assert collection.count_chunks() == 2
    assert collection.read_chunks(["b", "unknown"]).ids == ["b"]
    assert collection.read_chunks([]).ids == []
    assert collection.read_chunks(limit=1, offset=1).ids == ["b"]


def test_an_upsert_replaces_all_metadata_and_an_update_lays_over_it(
    collection: PostgresCollection,
) -> None:
    collection.upsert_chunks(make_chunks("a", source="A", start=1))
    collection.upsert_chunks(make_chunks("a", source="B"))
    assert collection.read_chunks(["a"]).metadatas == [{"source": "B"}]
    collection.update_metadata(["a", "unknown"], [{"end": 2}, {"end": 3}])
    assert collection.read_chunks().metadatas == [{"source": "B", "end": 2}]
    collection.delete_chunks(["a", "unknown"])
    assert collection.count_chunks() == 0


@given(where=FILTERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_filters_pass_what_the_embedded_store_passes(
    collection: PostgresCollection, where: Filter | None
) -> None:
    metadatas: list[Metadata] = [
        {"source": "A", "start": 1, "open": True},
        {"source": "B", "start": 1.5, "end": 3},
        {"source": "1", "open": False},
        {"source": "A", "end": 2},
        {},
    ]
    ids = [f"chunk {number}" for number in range(len(metadatas))]
    vectors = np.array([make_vector(number, 384) for number in range(len(ids))])
    collection.upsert_chunks(Chunks(ids, ids, metadatas, vectors))
    expected = [
        chunk_id
        for chunk_id, metadata in zip(ids, metadatas, strict=True)
        if passes(metadata, where)
    ]
    assert collection.read_chunks(where=where).ids == expected


def test_counts_of_stems_follow_every_write(collection: PostgresCollection) -> None:
    two = Chunks(
        ["a", "b"],
        ["cycle cycle park", "cycle"],
        [{}, {}],
        np.array([make_vector(0, 384), make_vector(1, 384)]),
    )
    collection.upsert_chunks(two)
    assert collection.count_chunks_and_tokens() == (2, 4)
    assert collection.count_chunks_by_stem(["cycle", "park", "none"]) == {"cycle": 2, "park": 1}
    collection.upsert_chunks(Chunks(["a"], ["park"], [{}], two.vectors[:1]))
    assert collection.count_chunks_and_tokens() == (2, 2)
    assert collection.count_chunks_by_stem(["cycle", "park"]) == {"cycle": 1, "park": 1}
    collection.delete_chunks(["a", "b"])
    assert collection.count_chunks_and_tokens() == (0, 0)
    assert collection.count_chunks_by_stem(["cycle", "park"]) == {}


def test_generations_become_visible_in_their_order(
    database: PostgresDatabase, collection: PostgresCollection
) -> None:
    """A reader that applied the changes up to a generation never misses an earlier one."""
    begun, may_end = threading.Event(), threading.Event()

    def write_slowly() -> None:
        with database.transaction():
            collection.upsert_chunks(make_chunks("slow"))
            begun.set()
            assert may_end.wait(HANG_SECONDS)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert begun.wait(HANG_SECONDS)
    before = collection.generation
    # It began later and is committed first, without waiting for the other.
    collection.upsert_chunks(make_chunks("quick", seed=1))
    first, touched_first = collection.list_changes_since(before)
    may_end.set()
    writer.join()
    second, touched_second = collection.list_changes_since(first)
    assert (touched_first, touched_second) == (["quick"], ["slow"])
    assert before < first < second


def test_a_transaction_that_fails_leaves_no_trace(
    database: PostgresDatabase, collection: PostgresCollection, tmp_path: Path
) -> None:
    files = PostgresFiles(database, "policy", tmp_path / "folder")
    spool = tmp_path / "spool"
    spool.write_bytes(b"x" * 3_000_000)
    generation = collection.generation
    with pytest.raises(RuntimeError), database.transaction():
        collection.upsert_chunks(make_chunks("a"))
        files.move_in(("NPPF", "a.pdf"), spool)
        assert collection.count_chunks() == 1
        raise RuntimeError("the process has other plans")
    assert collection.count_chunks() == 0
    assert collection.generation == generation
    assert not files.has_file(("NPPF", "a.pdf"))


def test_a_statement_that_failed_is_not_forgotten_at_the_end(database: PostgresDatabase) -> None:
    """PostgreSQL ends such a transaction without an error, and without what it wrote."""
    with pytest.raises(DatabaseFailed, match="nothing was written"), database.transaction() as one:
        one.connection.execute("INSERT INTO policies VALUES ('A', '{}')")
        with suppress(DatabaseFailed):
            one.connection.execute("SELECT nonsense")


@pytest.mark.anyio
async def test_threads_of_a_change_join_its_transaction(
    database: PostgresDatabase, collection: PostgresCollection
) -> None:
    with pytest.raises(RuntimeError):
        async with database.begin_change("policy:NPPF"):
            await anyio.to_thread.run_sync(collection.upsert_chunks, make_chunks("a"))
            raise RuntimeError
    assert collection.count_chunks() == 0
    async with database.begin_change("policy:NPPF"):
        await anyio.to_thread.run_sync(collection.upsert_chunks, make_chunks("a"))
        await anyio.to_thread.run_sync(collection.upsert_chunks, make_chunks("b", seed=1))
    assert collection.count_chunks() == 2
    assert collection.generation == 1


def test_a_file_comes_back_whole_and_is_replaced(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    files = PostgresFiles(database, "policy", tmp_path / "folder")
    path = ("NPPF", "rev_1", "document.pdf")
    for content in (b"first" * 500_000, b"second"):
        spool = tmp_path / "spool"
        spool.write_bytes(content)
        files.move_in(path, spool)
        assert files.locate_file(path).read_bytes() == content
        assert not spool.exists()
    files.delete_folder(("NPPF", "rev_1"))
    assert not files.has_file(path)
    assert not files.locate_file(path).exists()


def test_a_lock_of_a_process_that_ended_is_free(database: PostgresDatabase) -> None:
    with database.hold_lock("revision 1") as is_ours:
        assert is_ours
        with database.hold_lock("revision 1") as is_ours_too:
            assert not is_ours_too
        with database.hold_lock("revision 2") as is_other_ours:
            assert is_other_ours
    with database.hold_lock("revision 1") as is_ours:
        assert is_ours


def test_tables_are_made_once_by_processes_that_start_together(postgres: PostgresServer) -> None:
    postgres.execute("DROP DATABASE IF EXISTS fresh")
    postgres.execute("CREATE DATABASE fresh")
    try:
        databases = [PostgresDatabase(postgres.url("fresh")) for _ in range(4)]
        problems: list[Exception] = []

        def prepare(database: PostgresDatabase) -> None:
            try:
                database.prepare()
                PostgresChunkStore(database).open_collection("policy_docs", FIELDS)
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=prepare, args=(one,)) for one in databases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for database in databases:
            database.close()
        assert problems == []
    finally:
        postgres.execute("DROP DATABASE fresh WITH (FORCE)")


def test_a_connection_that_comes_back_after_the_others_were_closed_is_closed(
    database: PostgresDatabase,
) -> None:
    with database.lend_connection() as connection:
        database.close()
    assert not connection.is_usable

    with database.lend_connection() as connection:  # the database itself can be used again
        assert connection.execute("SELECT 1").fetchone()[0] == 1
    assert connection.is_usable


def test_a_database_that_nobody_uses_any_more_closes_its_connections(
    postgres: PostgresServer,
) -> None:
    with make_database(postgres) as url:
        database = open_database(url)
        assert open_database(url) is database
        with database.lend_connection() as connection:
            pass
        del database
        gc.collect()
        assert not connection.is_usable


def test_tables_of_a_newer_version_are_refused(database: PostgresDatabase) -> None:
    with database.connection() as connection:
        connection.execute("UPDATE schema_version SET version = ?", (SCHEMA_VERSION + 1,))
    with pytest.raises(SchemaTooNew, match="install the version that wrote them"):
        database.prepare()


def test_two_revisions_of_a_policy_cannot_share_a_day(database: PostgresDatabase) -> None:
    insert = "INSERT INTO revisions VALUES ('A', ?, '2024-01-01', daterange(?, ?, '[]'), '{}')"
    with pytest.raises(DatabaseConflict), database.transaction() as transaction:
        transaction.connection.execute("INSERT INTO policies VALUES ('A', '{}')")
        transaction.connection.execute(insert, ("one", "2024-01-01", "2024-06-30"))
        transaction.connection.execute(insert, ("two", "2024-06-30", None))


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reference: str) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'")

    monkeypatch.setattr(database_module, "import_reference", fail)
    with pytest.raises(InvalidSetting, match=r"pip install 'readingroom\[postgres\]'"):
        PostgresDatabase("postgresql://nowhere")


def test_a_database_that_does_not_answer_is_an_error_that_says_so(tmp_path: Path) -> None:
    database = PostgresDatabase(f"postgresql://nobody@/room?host={tmp_path}")
    with pytest.raises(StoreUnusable, match="chunk store failed"):
        PostgresChunkStore(database).open_collection("policy_docs", FIELDS)


def test_connections_that_the_server_ended_are_replaced(
    database: PostgresDatabase, collection: PostgresCollection, postgres: PostgresServer
) -> None:
    collection.upsert_chunks(make_chunks("a"))
    name = database.url.partition("?")[0].rpartition("/")[2]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )
    # The end of a connection arrives some time after the server has sent it.
    for _ in range(100):
        try:
            assert collection.count_chunks() == 1
            break
        except StoreUnusable:
            continue


# --- differences of PostgreSQL that no error tells of ---


def test_a_text_with_a_null_character_is_kept_with_its_offsets(
    collection: PostgresCollection,
) -> None:
    put = make_chunks("a", source="one\0two")
    collection.upsert_chunks(Chunks(put.ids, ["cycle\0parking"], put.metadatas, put.vectors))
    (text,) = collection.read_chunks().texts
    assert (len(text), text[:5], text[6:]) == (13, "cycle", "parking")
    assert collection.read_chunks(where=Equals("source", "one\0two")).ids == ["a"]


def test_texts_are_compared_by_their_bytes(collection: PostgresCollection) -> None:
    ids = ["b", "a", "B", "ä", "A", "_"]
    collection.upsert_chunks(make_chunks(*ids))
    with collection.lend_search_connection() as connection:
        rows = connection.execute("SELECT id FROM policy_docs_chunks ORDER BY id").fetchall()
    assert [row[0] for row in rows] == sorted(ids)


def test_numbers_texts_and_truth_values_do_not_meet(collection: PostgresCollection) -> None:
    values: dict[str, Scalar] = {"number": 1, "text": "1", "truth": True, "word": "true"}
    for chunk_id, value in values.items():
        collection.upsert_chunks(make_chunks(chunk_id, source=value))
    for chunk_id, value in values.items():
        assert collection.read_chunks(where=Equals("source", value)).ids == [chunk_id]
    assert collection.read_chunks(where=In("source", (1, "1"))).ids == ["number", "text"]


def test_quotation_marks_and_line_ends_in_a_filter_are_letters(
    collection: PostgresCollection,
) -> None:
    odd = ['a "quoted" name', "back\\slash", "tab\tand\nline", "ß–𝄞", "it's", "100 %", "why?"]
    for number, text in enumerate(odd):
        collection.upsert_chunks(make_chunks(f"chunk {number}", source=text))
    for number, text in enumerate(odd):
        assert collection.read_chunks(where=Equals("source", text)).ids == [f"chunk {number}"]


def test_another_model_is_refused(collection: PostgresCollection) -> None:
    collection.claim_embedding("one")
    collection.claim_embedding("one")
    with pytest.raises(EmbeddingMismatch):
        collection.claim_embedding("another")


def test_a_statement_that_fails_tells_no_values(database: PostgresDatabase) -> None:
    with pytest.raises(DatabaseFailed) as caught, database.connection() as connection:
        connection.execute("SELECT secret_column FROM policies WHERE source = ?", ("hunter2",))
    assert "hunter2" not in caught.value.message


def test_more_words_than_a_row_takes_are_a_value_that_is_refused(
    database: PostgresDatabase,
) -> None:
    """However they are given to it: binary ones it takes for a fault of its own."""
    words = [f"word{number}" for number in range(150_000)]
    with database.transaction() as transaction:
        transaction.connection.execute(
            "CREATE TEMP TABLE kept (number bigint, w tsvector, n bigint)"
        )
        with pytest.raises(InvalidDatabaseValue, match="tsvector"):
            transaction.connection.copy_in("kept", encode_words_rows([(1, [words])]))
        transaction.connection.roll_back()
        transaction.connection.execute("BEGIN")
        with pytest.raises(InvalidDatabaseValue, match="tsvector"):
            transaction.connection.execute("SELECT array_to_tsvector(?)", (words,))
        transaction.connection.roll_back()
        transaction.connection.execute("BEGIN")


@pytest.mark.parametrize(
    "sql_state, advice",
    [
        ("25006", "target_session_attrs=read-write"),
        ("42501", "give the role of the URL the right to it"),
        ("53100", "make room on the disk of the database"),
        ("53300", "raise max_connections of the server, or run fewer processes"),
        ("57P01", "try again when the database answers"),
    ],
)
def test_an_error_that_an_operator_can_mend_says_how(
    database: PostgresDatabase, sql_state: str, advice: str
) -> None:
    with (
        database.connection() as connection,
        pytest.raises(DatabaseFailed, match=f"^It cannot; .*{advice}"),
    ):
        connection.execute(f"DO $$ BEGIN RAISE 'It cannot' USING ERRCODE = '{sql_state}'; END $$")


def test_a_database_that_is_not_there_is_said_to_be_looked_for(postgres: PostgresServer) -> None:
    with pytest.raises(DatabaseFailed, match="does not exist; check the URL of the database"):
        open_database(postgres.url("nosuch")).prepare()


def test_a_connection_beyond_the_limit_gives_back_only_what_it_had(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on without a place, for whoever has the others may wait for it."""
    monkeypatch.setattr(database_module, "_CONNECTION_WAIT_SECONDS", 0.01)
    with ExitStack() as loans:
        for _ in range(18):
            loans.enter_context(database.lend_connection())
    with database.lend_connection() as connection:
        assert connection.execute("SELECT 1").fetchone()[0] == 1


def test_a_question_mark_in_quotation_marks_is_no_place_for_a_value(
    database: PostgresDatabase,
) -> None:
    with database.connection() as connection:
        quoted = connection.execute("SELECT 'it''s?' || ? || '%?', 7 % 4", ("!",)).fetchone()
        plain = connection.execute("SELECT '?%', 7 % 4").fetchone()
    assert (quoted, plain) == (("it's?!%?", 3), ("?%", 3))


def test_a_limit_that_is_reached_between_two_statements_stops_the_next(
    postgres: PostgresServer,
) -> None:
    with (
        make_database(postgres) as url,
        closing(SharedRecords(url).connect(writing=False)) as db,
    ):
        with db.stop_when(lambda: True, 1_000):
            (watcher,) = (one for one in threading.enumerate() if one.name == "statement watch")
            watcher.join()
            with pytest.raises(StatementStopped):
                db.execute("SELECT 1")
            with pytest.raises(StatementStopped):
                db.iterate_tuples("SELECT 1")
            db.execute("RESET enable_seqscan")  # as a search does that has changed it
        with pytest.raises(StatementStopped), db.stop_when(lambda: True, 1_000):
            db.execute("SELECT pg_sleep(600)")
        assert db.execute("SELECT 1").fetchone() == (1,)


# --- the doctor ---


def test_a_sound_database_has_no_problems(
    database: PostgresDatabase, collection: PostgresCollection
) -> None:
    collection.upsert_chunks(make_chunks("a"))
    assert list_problems(database) == []


def test_a_damaged_index_and_an_old_extension_are_named(
    database: PostgresDatabase, collection: PostgresCollection
) -> None:
    with database.connection() as connection:
        connection.execute(
            "UPDATE pg_index SET indisvalid = false "
            "WHERE indexrelid = 'policy_docs_chunks_words'::regclass"
        )
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    problems = [problem.problem for problem in list_problems(database)]
    assert problems == [
        "pgvector 0.7.4 has defects that can damage data",
        "the index policy_docs_chunks_words is not valid",
    ]


def test_the_tables_of_a_base_of_its_own_are_looked_at_too(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_records(SharedRecords(database.url))
    monkeypatch.setattr(health, "_MIN_COUNTED_ROWS", 2)
    with database.connection() as connection:
        for number in range(3):
            connection.execute(
                "INSERT INTO readingroom_federal.progress VALUES (?, 0, NULL)", (f"s{number}",)
            )
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute(
            "UPDATE pg_index SET indisvalid = false "
            "WHERE indexrelid = 'readingroom_federal.bills_newest'::regclass"
        )
    found = {problem.problem: problem for problem in list_problems(database)}
    assert found.keys() == {
        "the index bills_newest is not valid",
        "nothing is known about the rows of progress, so searches may be slow",
    }
    assert found["the index bills_newest is not valid"].fix.endswith(
        "readingroom_federal.bills_newest"
    )


def test_a_standby_that_is_behind_an_old_server_and_its_sorting_are_named() -> None:
    """What a healthy server cannot be made to say is said by a stand-in."""

    class Server:
        def execute(self, sql: str, values: object = ()) -> Any:
            if "server_version_num" in sql:
                return _Rows([(150_004, True)])
            if "'B'::text" in sql:
                return _Rows([(False,)])
            if "datcollversion" in sql:
                return _Rows([(True,)])
            return _Rows([("near", 3.0), ("far", 90.0), ("unknown", None)])

    assert [problem.problem for problem in preflight._check_server(Server())] == [
        "PostgreSQL 15 is too old",
        "this server only reads, as a standby does",
    ]
    assert [problem.problem for problem in health._check_standbys(Server())] == [
        "the standby far is 90 seconds behind"
    ]
    moved, by_language = health._check_collation(Server())
    assert "otherwise than when the database was made" in moved.problem and not moved.is_note
    assert "by the rules of a language" in by_language.problem and by_language.is_note


class _Rows:
    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...]:
        return self._rows[0]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused_with_what_to_do(
    postgres: PostgresServer, encoding: str
) -> None:
    name = f"other_{uuid.uuid4().hex}"
    postgres.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE_PROVIDER libc "
        "LOCALE 'C'"
    )
    try:
        with pytest.raises(DatabaseFailed, match=f"{encoding}.* ENCODING 'UTF8'"):
            open_database(postgres.url(name)).prepare()
    finally:
        postgres.execute(f"DROP DATABASE {name}")

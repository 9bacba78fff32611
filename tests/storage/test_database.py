"""Connections that are lent: one reader each, few of them kept."""

import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from readingroom.storage import database
from readingroom.storage.database import (
    ConnectionPool,
    Database,
    DatabaseError,
    StatementStopped,
    connect,
)
from readingroom.storage.errors import StorageFailed
from tests.requirements import requirement


def make_pool(file: Path, opened: list[Database]) -> ConnectionPool:
    def open_one() -> Database:
        opened.append(connect(file, from_any_thread=True))
        return opened[-1]

    return ConnectionPool(open_one)


def test_threads_that_come_and_go_share_one_connection(tmp_path: Path) -> None:
    opened: list[Database] = []
    pool = make_pool(tmp_path / "file.db", opened)

    def reads() -> None:
        with pool.connection() as db:
            db.execute("SELECT 1").fetchone()

    for _ in range(20):
        reader = Thread(target=reads)
        reader.start()
        reader.join()
    assert len(opened) == 1


def test_readers_at_once_have_one_each_and_few_stay_open_after_a_rush(tmp_path: Path) -> None:
    opened: list[Database] = []
    pool = make_pool(tmp_path / "file.db", opened)
    with ExitStack() as rush:
        lent = [rush.enter_context(pool.connection()) for _ in range(20)]
        assert len(set(map(id, lent))) == 20
    assert sum(map(_is_open, opened)) == 8
    pool.close()
    assert not any(map(_is_open, opened))
    with pool.connection() as db:
        assert _is_open(db)


def test_a_reader_that_fails_gives_its_connection_back(tmp_path: Path) -> None:
    opened: list[Database] = []
    pool = make_pool(tmp_path / "file.db", opened)
    for _ in range(3):
        with pytest.raises(DatabaseError), pool.connection() as db:
            db.execute("SELECT nothing")
    assert len(opened) == 1


def _is_open(db: Database) -> bool:
    try:
        db.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def test_a_transaction_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "file.db", with_named_rows=True)) as db:
        db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        with db.transaction():
            db.execute("INSERT INTO notes (text) VALUES ('kept')")
        with pytest.raises(KeyError), db.transaction():
            db.execute("INSERT INTO notes (text) VALUES ('lost')")
            raise KeyError
        assert not db.in_transaction
        assert [row["text"] for row in db.execute("SELECT text FROM notes")] == ["kept"]
        assert list(db.iterate_tuples("SELECT id, text FROM notes")) == [(1, "kept")]


def test_a_snapshot_does_not_see_what_others_write_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    wal = {"journal_mode": "WAL"}
    with closing(connect(path, pragmas=wal)) as reader, closing(connect(path)) as writer:
        writer.execute("CREATE TABLE notes (text TEXT)")
        with reader.begin_consistent_read():
            assert reader.execute("SELECT count(*) FROM notes").fetchone() == (0,)
            writer.execute("INSERT INTO notes VALUES ('new')")
            assert reader.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        assert reader.execute("SELECT count(*) FROM notes").fetchone() == (1,)


def test_a_statement_that_costs_too_much_is_stopped_and_the_next_one_is_not(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with closing(connect(tmp_path / "file.db")) as db:
        with pytest.raises(StatementStopped), db.stop_when(lambda: True, 1_000):
            db.execute(endless).fetchone()
        with pytest.raises(DatabaseError, match="no such table"), db.stop_when(lambda: True, 1_000):
            db.execute("SELECT * FROM absent")
        assert db.execute("SELECT 1").fetchone() == (1,)


@requirement("room:paths")
def test_threads_that_write_a_small_file_wait_for_each_other_and_none_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQLite itself waits for nobody here, as when a busy machine lets it poll in vain.
    monkeypatch.setattr(database, "connect", partial(connect, timeout=0))
    failures: list[StorageFailed] = []

    def write(number: int) -> None:
        try:
            with database.open_small_database(tmp_path / "small.db", _SMALL_SCHEMA) as db:
                db.execute("INSERT INTO numbers VALUES (?)", (number,))
                time.sleep(0.005)  # the transaction lasts, so that the others meet it
        except StorageFailed as error:
            failures.append(error)

    writers = [Thread(target=write, args=(number,)) for number in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    with database.open_small_database(tmp_path / "small.db", _SMALL_SCHEMA) as db:
        assert db.execute("SELECT COUNT(*) FROM numbers").fetchone() == (20,)


_SMALL_SCHEMA = "CREATE TABLE IF NOT EXISTS numbers (number INTEGER NOT NULL) STRICT"

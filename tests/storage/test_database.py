"""Connections that are lent: one reader each, few of them kept."""

import sqlite3
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from readingroom.storage.database import ConnectionPool


def connections(file: Path, opened: list[sqlite3.Connection]) -> ConnectionPool:
    def connect() -> sqlite3.Connection:
        opened.append(sqlite3.connect(file, check_same_thread=False))
        return opened[-1]

    return ConnectionPool(connect)


def test_threads_that_come_and_go_share_one_connection(tmp_path: Path) -> None:
    opened: list[sqlite3.Connection] = []
    pool = connections(tmp_path / "file.db", opened)

    def reads() -> None:
        with pool.connection() as db:
            db.execute("SELECT 1").fetchone()

    for _ in range(20):
        reader = Thread(target=reads)
        reader.start()
        reader.join()
    assert len(opened) == 1


def test_readers_at_once_have_one_each_and_few_stay_open_after_a_rush(tmp_path: Path) -> None:
    opened: list[sqlite3.Connection] = []
    pool = connections(tmp_path / "file.db", opened)
    with ExitStack() as rush:
        lent = [rush.enter_context(pool.connection()) for _ in range(20)]
        assert len(set(map(id, lent))) == 20
    assert sum(map(_is_open, opened)) == 8
    pool.close()
    assert not any(map(_is_open, opened))
    with pool.connection() as db:
        assert _is_open(db)


def test_a_reader_that_fails_gives_its_connection_back(tmp_path: Path) -> None:
    opened: list[sqlite3.Connection] = []
    pool = connections(tmp_path / "file.db", opened)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError), pool.connection() as db:
            db.execute("SELECT nothing")
    assert len(opened) == 1


def _is_open(db: sqlite3.Connection) -> bool:
    try:
        db.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True

"""A load that is stopped, or loses its store, says what is kept and what to do: on both engines."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.load import loading, steps
from readingroom.bases.federal.schema.entries import FileStamp, ParsedRecord
from tests.support.federal.made_records import amendment
from tests.support.kit import invoke
from tests.support.postgres import PostgresServer, make_database

KEPT = "Files that were in are kept: run the same command again to go on with the others"


@pytest.fixture(params=["embedded", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str | None]:
    """The database of the data directory `data`, if it has one."""
    if request.param == "embedded":
        yield None
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with make_database(server) as url:
        (tmp_path / "data.database").write_text(url)
        yield url


class BrokenOffAmendments:
    """Reads a file of one number as an amendment; the third one breaks the load off."""

    format_id = "numbers/1"
    record_source_names = ("amendments",)
    complete_for_columns = None

    def __init__(self, break_off: object) -> None:
        self.break_off = break_off

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return file_start_reader.name.endswith(".number")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        number = int(raw_file.data)
        if number == 3 and callable(self.break_off):
            self.break_off()
        yield amendment(number, f"Amendment {number}")


def load(
    monkeypatch: pytest.MonkeyPatch, data: Path, break_off: object, *options: str
) -> tuple[int, str, str]:
    """Load four files; return the exit code, and what is printed to both outputs."""
    monkeypatch.setattr(loading, "LOADERS", (BrokenOffAmendments(break_off),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 1)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 1})
    files = data.parent / "files"
    files.mkdir(exist_ok=True)
    for number in range(1, 5):
        (files / f"{number}.number").write_text(str(number))
    done = invoke("federal", "load", str(files), "--data", str(data), *options)
    return done.returncode, done.stdout, done.stderr


def test_ctrl_c_is_told_in_one_line(
    url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_ctrl_c() -> None:
        raise KeyboardInterrupt

    code, printed, told = load(monkeypatch, tmp_path / "data", press_ctrl_c)
    assert (code, printed) == (130, "")
    assert told.splitlines()[-1] == f"Stopped. {KEPT}."
    assert "Aborted" not in told
    code, printed, _ = load(monkeypatch, tmp_path / "data", None)
    assert code == 0
    assert printed.startswith("2 files loaded, 2 unchanged, 0 ignored, 0 failed")


def test_a_store_that_fails_in_between_is_told_with_what_to_do(
    url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_store() -> None:
        if url is None:
            raise sqlite3.OperationalError("database or disk is full")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    code, printed, told = load(monkeypatch, tmp_path / "data", lose_store)
    assert (code, printed) == (1, "")
    line = told.splitlines()[-1]
    assert line.startswith("Error: The ")
    assert line.endswith(f". {KEPT}")
    if url is not None:
        assert "try again when the database answers. " in line
    code, printed, _ = load(monkeypatch, tmp_path / "data", None, "--json")
    assert code == 0
    summary = json.loads(printed)
    assert summary["loaded"] + summary["unchanged"] == 4
    assert summary["unchanged"] >= 1


def test_a_file_of_a_newer_version_is_not_told_to_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    load(monkeypatch, data, None)
    with sqlite3.connect(store.get_database_path(data)) as db:
        db.execute("PRAGMA user_version = 99")
    code, _, told = load(monkeypatch, data, None)
    assert code == 1
    assert "newer Reading Room" in told and KEPT not in told

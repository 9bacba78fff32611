"""A row that the database refuses: its file has failed, and the load goes on, on both engines."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.load import completeness, loading, read_ahead, steps
from readingroom.bases.federal.schema.columns import list_computed_columns
from readingroom.bases.federal.schema.entries import FileStamp, ParsedRecord, RecordLink
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.bases.federal.store import FederalPlace, SharedRecords
from readingroom.storage.postgres import records
from readingroom.storage.postgres.background import WorkThread
from readingroom.storage.postgres.records import RecordsConnection
from tests.support.federal.base import write_world
from tests.support.federal.made_records import amendment
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import HANG_SECONDS, wait_until


class NumberedAmendments:
    """Reads files of numbers, one amendment each; `!` gives the one before it a bad link."""

    format_id = "numbered/1"
    record_source_names = ("amendments",)
    complete_for_columns = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return file_start_reader.name.endswith(".numbers")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for word in raw_file.data.decode().split():
            parsed = amendment(int(word.rstrip("!")), f"Amendment {word}")
            # No table of links takes one without evidence.
            bad_links = [RecordLink(LinkKind.AMENDMENT, "hr:119:1", " ")]
            yield replace(parsed, links=bad_links) if word.endswith("!") else parsed


@pytest.mark.parametrize("rows_per_commit", [5, 10_000], ids=["told later", "told at once"])
def test_a_refused_row_fails_its_file_and_no_other(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_commit: int
) -> None:
    monkeypatch.setattr(loading, "LOADERS", (NumberedAmendments(),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", rows_per_commit)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 1})
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.numbers").write_text(" ".join(map(str, range(20))))
    (files / "b.numbers").write_text(" ".join([*map(str, range(20, 40)), "40!"]))
    (files / "c.numbers").write_text(" ".join(map(str, range(50, 70))))
    summary = loading.load(place, [files], None)
    assert (summary.loaded, summary.failed, summary.records, summary.changed) == (2, 1, 40, 40)
    assert summary.by_loader == {"numbered": 2}
    assert [Path(error["file"]).name for error in summary.errors] == ["b.numbers"]
    with closing(store.connect(place)) as db:
        assert _read_numbers(db) == [*range(20), *range(50, 70)]
        for table in ("documents", "passages", "changes"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 40, table
        assert [Path(row["file"]).name for row in completeness.list_failed_files(db)] == [
            "b.numbers"
        ]
    # Mended, it is loaded; the others were.
    (files / "b.numbers").write_text(" ".join(map(str, range(20, 41))))
    summary = loading.load(place, [files], None)
    assert (summary.loaded, summary.unchanged, summary.failed) == (1, 2, 0)
    with closing(store.connect(place)) as db:
        assert _read_numbers(db) == [*range(41), *range(50, 70)]
        assert not list(completeness.list_failed_files(db))


@pytest.mark.parametrize("is_read_ahead", [False, True], ids=["read here", "read ahead"])
@pytest.mark.parametrize("rows_per_commit", [5, 10_000], ids=["told later", "told at once"])
def test_a_copy_of_a_refused_file_is_refused_too(
    place: FederalPlace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_per_commit: int,
    is_read_ahead: bool,
) -> None:
    """It is no file that was loaded before, whenever the database refuses the first one."""
    monkeypatch.setattr(loading, "LOADERS", (NumberedAmendments(),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", rows_per_commit)
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 0 if is_read_ahead else 10**9)
    for name in ("b.numbers", "c.numbers", "d.numbers"):
        (tmp_path / name).write_text(" ".join([*map(str, range(20, 40)), "40!"]))
    for name in ("a.numbers", "e.numbers", "f.numbers"):
        (tmp_path / name).write_text(" ".join(map(str, range(20))))
    summary = loading.load(place, [tmp_path], None)
    assert (summary.loaded, summary.unchanged, summary.failed) == (1, 2, 3)
    assert summary.records == 20
    assert sorted(Path(error["file"]).name[0] for error in summary.errors) == ["b", "c", "d"]
    assert len({error["error"] for error in summary.errors}) == 1
    with closing(store.connect(place)) as db:
        assert _read_numbers(db) == [*range(20)]
        failures = [Path(row["file"]).name[0] for row in completeness.list_failed_files(db)]
        assert sorted(failures) == ["b", "c", "d"]


def test_a_refused_last_file_is_told_too(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "LOADERS", (NumberedAmendments(),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 5)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 1})
    (tmp_path / "only.numbers").write_text(" ".join([*map(str, range(20)), "20!"]))
    summary = loading.load(place, [tmp_path / "only.numbers"], None)
    assert (summary.loaded, summary.failed, summary.records) == (0, 1, 0)
    with closing(store.connect(place)) as db:
        assert _read_numbers(db) == []
        assert len(list(completeness.list_failed_files(db))) == 1


@pytest.mark.parametrize("told_by", ["a file", "a commit", "the last commit"])
def test_files_that_followed_a_refused_one_are_loaded_again_in_their_order(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_by: str
) -> None:
    """They were given to the database before it refused a row of that one."""
    is_given, may_go_on, waits = threading.Event(), threading.Event(), []
    finish = WorkThread.finish

    def go_on_and_finish(work: WorkThread) -> BaseException | None:
        if is_given.is_set():
            may_go_on.set()
        return finish(work)

    connections: list[RecordsConnection] = []

    class SlowConnection(RecordsConnection):
        """Takes links no sooner than all files were read, or somebody waits."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            connections.append(self)

        def insert_in_background(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
            if "INTO links" in sql and not waits:
                self.run_in_background(lambda: waits.append(may_go_on.wait(HANG_SECONDS)))
                is_given.set()
            super().insert_in_background(sql, rows)

    class WatchedAmendments(NumberedAmendments):
        def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
            is_first_time = not may_go_on.is_set()
            if raw_file.name.startswith("e") and told_by == "a file" and is_first_time:
                may_go_on.set()
                wait_until(lambda: any(one.has_background_failed for one in connections))
            return super().parse(raw_file, file_stamp)

    monkeypatch.setattr(WorkThread, "finish", go_on_and_finish)
    monkeypatch.setattr(records, "RecordsConnection", SlowConnection)
    monkeypatch.setattr(loading, "LOADERS", (WatchedAmendments(),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 50 if told_by == "a commit" else 10_000)
    (tmp_path / "a.numbers").write_text(" ".join(map(str, range(5))))
    (tmp_path / "b.numbers").write_text("10 11 12!")
    (tmp_path / "c.numbers").write_text("no number")
    (tmp_path / "d.numbers").write_text("21 30")
    (tmp_path / "e.numbers").write_text(" ".join(["30", "31", *map(str, range(40, 60))]))
    with make_database(postgres) as url:
        shared = SharedRecords(url)
        summary = loading.load(shared, [tmp_path], None)
        assert waits == [True]
        assert (summary.loaded, summary.failed, summary.unchanged) == (3, 2, 0)
        assert sorted(Path(error["file"]).name[0] for error in summary.errors) == ["b", "c"]
        assert summary.by_loader == {"numbered": 3}
        assert summary.records == 5 + 2 + 22
        assert summary.changes["amendments"].new == 5 + 2 + 21
        with closing(store.connect(shared)) as db:
            assert _read_numbers(db) == [*range(5), 21, 30, 31, *range(40, 60)]
            logged = db.execute("SELECT file, outcome FROM ingestion_logs ORDER BY log")
            assert [(Path(row["file"]).name[0], row["outcome"]) for row in logged] == [
                *(("a", "loaded"), ("b", "failed"), ("c", "failed")),
                *(("d", "loaded"), ("e", "loaded")),
            ]
            for table in ("documents", "passages", "passage_words", "changes"):
                assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 28, table
        assert loading.load(shared, [tmp_path], None).unchanged == 3


def test_a_column_that_a_load_gives_is_what_the_database_computes(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    write_world(tmp_path)
    with make_database(postgres) as url:
        shared = SharedRecords(url)
        assert loading.load(shared, [tmp_path], None).failed == 0
        with closing(store.connect(shared, writing=True)) as db:
            for source in SOURCES:
                columns = ", ".join(list_computed_columns(source.name))
                read_columns = f"SELECT id, {columns} FROM {source.name} ORDER BY id"
                given = [tuple(row) for row in db.execute(read_columns)]
                assert given, source.name
                db.execute(f"UPDATE {source.name} SET record = record")
                assert [tuple(row) for row in db.execute(read_columns)] == given, source.name


def _read_numbers(db: store.Database) -> list[int]:
    rows = db.execute("SELECT id FROM amendments WHERE status = 'active'")
    return sorted(int(row["id"].split(":")[-1]) for row in rows)

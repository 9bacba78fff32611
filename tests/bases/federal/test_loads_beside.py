"""Loads beside each other, on both engines: each file is loaded by one of them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.cli import _format_summary_lines
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.load import loading, read_ahead, steps
from readingroom.bases.federal.load.read_ahead import start_parsing
from readingroom.bases.federal.schema.entries import FileStamp, ParsedRecord
from readingroom.bases.federal.store import FederalPlace
from tests.support.federal.made_records import amendment

SENTENCE = (
    "  Another load ran beside this one: 3 of the unchanged files are in by it, and were not "
    "written again."
)


class CountedAmendments:
    """Reads a file of one number as so many amendments."""

    format_id = "counted/1"
    record_source_names = ("amendments",)
    complete_for_columns = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return file_start_reader.name.endswith(".count")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        first, count = map(int, raw_file.data.split())
        for number in range(first, first + count):
            yield amendment(number, f"Amendment {number}")


@pytest.mark.parametrize("is_read_ahead", [False, True], ids=["read here", "read ahead"])
def test_a_load_that_waited_passes_over_what_the_other_has_loaded(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read_ahead: bool
) -> None:
    """It had read its first file when the other one began."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3):
        (files / f"{number}.count").write_text(f"{10 * number} 10")
    other_summaries: list[loading.LoadSummary] = []

    def load_all_then_parse(*arguments: object) -> object:
        monkeypatch.setattr(loading, "start_parsing", start_parsing)
        other_summaries.append(loading.load(place, [files], None))
        return start_parsing(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "LOADERS", (CountedAmendments(),))
    monkeypatch.setattr(loading, "start_parsing", load_all_then_parse)
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 0 if is_read_ahead else 10**9)
    summary = loading.load(place, [files], None)
    assert other_summaries[0].loaded == 3
    assert (summary.loaded, summary.unchanged, summary.records) == (0, 3, 0)
    assert summary.loaded_beside == 3
    assert _format_summary_lines(summary).count(SENTENCE) == 1
    assert _list_logged(place) == [f"{number}.count" for number in range(3)]
    summary = loading.load(place, [files], None)
    assert (summary.unchanged, summary.loaded_beside) == (3, 0)


def test_loads_that_begin_together_load_each_file_once(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "LOADERS", (CountedAmendments(),))
    monkeypatch.setattr(steps, "_MIN_COMMIT_ROWS", 5)
    monkeypatch.setattr(steps, "_MIN_COMMIT_STEPS_BY_ENGINE", {"sqlite": 1, "postgres": 2})
    files = tmp_path / "files"
    files.mkdir()
    for number in range(40):
        (files / f"{number:02}.count").write_text(f"{10 * number} 10")
    store.prepare_records(place)
    with ThreadPoolExecutor(3) as threads:
        summaries = list(threads.map(lambda _: loading.load(place, [files], None), range(3)))
    assert sum(summary.loaded for summary in summaries) == 40
    assert [summary.loaded + summary.unchanged for summary in summaries] == [40] * 3
    assert _list_logged(place) == [f"{number:02}.count" for number in range(40)]


def _list_logged(place: FederalPlace) -> list[str]:
    with closing(store.connect(place)) as db:
        return sorted(
            Path(row["file"]).name for row in db.execute("SELECT file FROM ingestion_logs")
        )

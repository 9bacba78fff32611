"""Values longer than an index takes: loaded and found alike on both engines, and named."""

import itertools
import string
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.load import completeness, loading, read_ahead
from readingroom.bases.federal.load.copying import copy_records, count_rows_if_same
from readingroom.bases.federal.names.resolver import resolve_name
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
)
from readingroom.bases.federal.schema.lengths import MAX_FACET_BYTES, MAX_SEARCHED_CHARS
from readingroom.bases.federal.schema.records import LinkKind, Record
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search.full_text import count_passages_with_word
from readingroom.bases.federal.store import FederalPlace, SharedRecords
from tests.support.federal.made_records import amendment, person, write_records
from tests.support.postgres import PostgresServer, make_database

WORDS = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=4)]
"""Different words, none longer than its stem, in their order; 2.2 MB of them."""
NOISE = " ".join(WORDS[::47])
"""Words that no database makes much shorter: 48,000 characters."""


class MadeRecords:
    """Reads a file of one word as the records that the test has made under that word."""

    format_id = "made/1"
    record_source_names = ("amendments", "legislators")
    complete_for_columns = None

    def __init__(self, **records: ParsedRecord) -> None:
        self.records = records

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return file_start_reader.name.endswith(".made")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield self.records[raw_file.data.decode()]


def load_made(
    place: FederalPlace, folder: Path, monkeypatch: pytest.MonkeyPatch, **records: ParsedRecord
) -> loading.LoadSummary:
    """Load one file for each of the records."""
    monkeypatch.setattr(loading, "LOADERS", (MadeRecords(**records),))
    for word in records:
        (folder / f"{word}.made").write_text(word)
    return loading.load(place, [folder], None)


def test_a_title_of_two_megabytes_of_words_is_searched_as_far_as_it_goes(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = " ".join(WORDS)
    assert len(title) > 2_000_000
    long_text = RecordText("full", title, "Text", "https://www.govinfo.gov/x", "0" * 64)
    summary = load_made(
        place,
        tmp_path,
        monkeypatch,
        a=amendment(1, "Before"),
        b=amendment(2, title),
        c=replace(amendment(3, "A long text"), text=long_text),
    )
    assert (summary.loaded, summary.failed) == (3, 0)
    (note,) = summary.incomplete
    assert Path(note["file"]).name == "b.made"
    assert note["problem"] == (
        "samdt:119:2: its title has 2,284,879 characters; it is stored whole and searched by its "
        "first 100,000"
    )
    with closing(store.connect(place)) as db:
        record = store.read_record(db, SOURCES_BY_NAME["amendments"], "samdt:119:2")
        assert record["title"] == title
        assert [row["error"] for row in completeness.list_incomplete_files(db)] == [note["problem"]]
        last_searched = title[:MAX_SEARCHED_CHARS].split()[-2]
        # In that title and in that text.
        assert count_passages_with_word(db, last_searched) == 2
        assert count_passages_with_word(db, WORDS[-1]) == 1


def test_a_field_name_or_title_of_nine_thousand_letters_is_loaded(
    place: FederalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(NOISE) > 40_000
    summary = load_made(
        place,
        tmp_path,
        monkeypatch,
        a=amendment(1, "Of one subject", facets={"subject": [NOISE]}),
        b=amendment(2, "Of two", facets={"subject": ["Short", NOISE[::-1]], "state": ["OH"]}),
        c=person(1, f"Ada {NOISE}"),
    )
    assert (summary.loaded, summary.failed) == (3, 0)
    assert [(Path(note["file"]).name, note["problem"][:28]) for note in summary.incomplete] == [
        ("a.made", "samdt:119:1: its subject has"),
        ("b.made", "samdt:119:2: its subject has"),
    ]
    with closing(store.connect(place)) as db:
        facets = db.execute("SELECT field, value, doc FROM facets ORDER BY doc, field, value")
        # Their case is ignored where they are compared.
        assert [tuple(row)[:2] for row in facets] == [
            ("subject", NOISE[:MAX_FACET_BYTES]),
            ("state", "OH"),
            ("subject", NOISE[::-1][:MAX_FACET_BYTES]),
            ("subject", "Short"),
        ]
        people = SOURCES_BY_NAME["legislators"]
        anybody = build_sql_filter(people.record_table, {})
        found = resolve_name(db, people, f"Ada {WORDS[47]}", anybody)
        assert [match.id for match in found] == ["X000001"]


LONG_ID = f"samdt:119:{'1' * 9_000}"


def with_fields(record: ParsedRecord, **fields: str) -> ParsedRecord:
    assert isinstance(record.record, Record)
    return replace(record, record=record.record.model_copy(update=fields))


@pytest.mark.parametrize(
    "record, problem",
    [
        (with_fields(amendment(1, "x"), id=LONG_ID), "its id has 9,010 bytes; 500 are taken"),
        (
            replace(
                amendment(1, "x"), links=[RecordLink(LinkKind.AMENDMENT, LONG_ID, "It says so")]
            ),
            "samdt:119:1: the id of a record that it names has 9,010 bytes; 500 are taken",
        ),
        (
            with_fields(amendment(1, "x"), bill_id=NOISE),
            "samdt:119:1: bill_id and the other values that lists are filtered by have 48,6",
        ),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True], ids=["read here", "read ahead"])
def test_what_is_looked_up_whole_is_refused_alike(
    place: FederalPlace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record: ParsedRecord,
    problem: str,
    is_packed: bool,
) -> None:
    monkeypatch.setattr(read_ahead, "_MIN_LOAD_BYTES", 0 if is_packed else 10**9)
    summary = load_made(place, tmp_path, monkeypatch, a=amendment(5, "Fine"), b=record)
    assert (summary.loaded, summary.failed) == (1, 1)
    (error,) = summary.errors
    assert Path(error["file"]).name == "b.made"
    assert problem in error["error"]


def test_long_values_of_an_older_file_are_copied_to_a_database(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """It was written before anything was cut."""
    file_place = store.get_database_path(tmp_path)
    write_records(file_place, amendment(1, "Short", facets={"subject": ["x"]}), person(1, "Ada"))
    with closing(store.connect(file_place, writing=True)) as db:
        db.execute("DROP TRIGGER passages_changed")
        db.execute("UPDATE passages SET title = ?", (" ".join(WORDS),))
        db.execute("UPDATE facets SET value = ?", (NOISE,))
        db.execute("UPDATE names SET folded = ?, initials = ?", (NOISE, "a" * 9_000))
    with make_database(postgres) as url:
        shared = SharedRecords(url)
        copy_records(file_place, shared)
        assert count_rows_if_same(file_place, shared)

"""Loading federal files: nothing twice, nothing lost, nothing trusted."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.billstatus import BillStatusLoader
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.formats.parts.xml import EntitiesRefused, parse_xml
from readingroom.bases.federal.formats.parts.yaml_files import parse_yaml
from readingroom.bases.federal.formats.uslm import BillTextLoader
from readingroom.bases.federal.formats.votes import HouseVoteLoader
from readingroom.bases.federal.load.completeness import list_failed_files
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.entries import FileStamp
from readingroom.bases.federal.schema.sources import SOURCES, SOURCES_BY_NAME
from readingroom.bases.federal.schema.tables import CITATION_FIELDS, SCHEMA_VERSION
from readingroom.bases.federal.store import DATABASE_FILE_NAME, get_database_path
from readingroom.storage.errors import StorageFailed
from tests.requirements import requirement
from tests.support.federal.base import load_files, read_all_tables, write_world
from tests.support.federal.world import World
from tests.support.kit import clean_environment, make_command, run
from tests.support.papers import make_paper

_OF_THE_LOAD = ("ingestion_logs", "generation", "sqlite_sequence")
ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)


def read_rows(data: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(get_database_path(data))) as db:
        return db.execute(sql, values).fetchall()


def read_everything(data: Path) -> dict[str, list[Any]]:
    """All that a load has written, apart from the log of loads and the moments they were made."""
    with closing(sqlite3.connect(get_database_path(data))) as db:
        tables = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "_fts" not in name and name not in _OF_THE_LOAD
        ]
        return {
            name: db.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in tables
        }


@pytest.mark.data
@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ("SELECT count(*) FROM legislators WHERE record->>'stub' = 0", 537),
        ("SELECT sum(json_array_length(record, '$.terms')) FROM legislators", 2_792),
        ("SELECT count(*) FROM committees WHERE current AND parent_id IS NULL", 49),
        ("SELECT count(*) FROM committees WHERE current AND parent_id IS NOT NULL", 181),
        ("SELECT count(*) FROM committee_memberships", 3_879),
        # Two of the 230 rosters are empty.
        ("SELECT count(DISTINCT committee_id) FROM committee_memberships", 228),
        ("SELECT count(*) FROM saps", 5_627),
        ("SELECT count(*) FROM public_laws", 14),
        ("SELECT count(*) FROM bills WHERE record->>'status_loaded'", 33),
        ("SELECT count(*) FROM amendments WHERE loader <> 'partial'", 1_754),
        # Printed in the Congressional Record of that one day, and told by no bill's status here.
        ("SELECT count(*) FROM amendments WHERE loader = 'partial'", 31),
        ("SELECT count(*) FROM cfr_sections", 344),
        ("SELECT count(*) FROM statute_compilations", 5),
        ("SELECT count(*) FROM cbo_cost_estimates WHERE loader <> 'partial'", 2),
        ("SELECT count(*) FROM cbo_cost_estimates WHERE loader = 'partial'", 51),
        ("SELECT count(*) FROM committee_reports", 19),
        ("SELECT count(*) FROM congressional_record", 191),
        ("SELECT count(*) FROM staff_directories WHERE record->>'type' = 'district_office'", 1_312),
        ("SELECT count(*) FROM hearings", 2),
        ("SELECT count(*) FROM lda_filings", 2),
        ("SELECT count(*) FROM federal_register", 104),
        ("SELECT count(*) FROM presidential_documents", 1),
        ("SELECT count(*) FROM roll_call_votes", 2),
        # Versions of bills, and the edition of each of five compilations.
        ("SELECT count(*) FROM texts WHERE part NOT IN ('text')", 63),
    ],
)
def test_every_official_file_is_in_with_as_many_records_as_it_has(
    official: Path, counted: str, expected: int
) -> None:
    assert read_rows(official, counted) == [(expected,)]


@pytest.mark.data
def test_loading_official_files_again_changes_nothing(
    official: Path, shared_data: Path, tmp_path: Path
) -> None:
    data = shutil.copytree(official, tmp_path / "data")
    again = load_files(data, shared_data / "federal", embed=False)
    assert (again.loaded, again.changed, again.failed) == (0, 0, 0)
    assert read_everything(data) == read_everything(official)


@pytest.mark.data
@pytest.mark.parametrize("bill", ["117hr6658", "117sconres7"])
def test_two_generations_of_one_file_tell_the_same_bill(shared_data: Path, bill: str) -> None:
    older, newer = (
        _bill(shared_data / f"federal/billstatus/samples/formatChange/{age}/BILLSTATUS-{bill}.xml")
        for age in ("current", "future")
    )
    # The newer file was written later, when more had become known of the same bill.
    grown = {"updated_at", "text_versions", "summary", "related_bills", "subjects"}
    grown |= {"cosponsor_count", "summary_versions", "as_of"}
    assert {name: value for name, value in older.items() if name not in grown} == {
        name: value for name, value in newer.items() if name not in grown
    }
    assert set(older["subjects"]) <= set(newer["subjects"])


def _bill(path: Path) -> dict[str, Any]:
    file = RawFile(path.name, path.read_bytes(), lambda name: None)
    entries = [
        entry for entry in BillStatusLoader().parse(file, ORIGIN) if entry.record.source == "bills"
    ]
    return entries[0].record.model_dump()


@pytest.mark.data
def test_an_older_file_never_replaces_what_a_newer_one_said(
    tmp_path: Path, shared_data: Path
) -> None:
    samples = shared_data / "federal/billstatus/samples/formatChange"
    name = "BILLSTATUS-117sconres7.xml"
    load_files(tmp_path, samples / "future" / name, embed=False)
    before = read_rows(tmp_path, "SELECT record FROM bills")
    load_files(tmp_path, samples / "current" / name, embed=False)
    assert read_rows(tmp_path, "SELECT record FROM bills") == before


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("bills/BILLS-115hr1eas2.xml", "To provide for reconciliation pursuant to titles II and V"),
        ("bills/BILLS-114hres99eh.xml", "The House has heard with profound sorrow of the death"),
        ("sample-files/115hconres18enr_good.xml", "Use of rotunda for holocaust days of"),
    ],
)
def test_a_text_without_a_title_is_named_by_what_it_says(
    shared_data: Path, name: str, title: str
) -> None:
    path = shared_data / "federal/uslm" / name
    file = RawFile(path.name, path.read_bytes(), lambda other: None)
    (entry,) = BillTextLoader().parse(file, ORIGIN)
    assert entry.record.title.startswith(title)


@pytest.mark.data
def test_senators_known_by_their_lis_number_alone_are_named(official: Path) -> None:
    voted = read_rows(official, "SELECT bioguide_id, position FROM member_votes WHERE lis = 'S275'")
    assert voted == [("C000127", "Nay")]


@pytest.mark.data
def test_every_person_a_bill_names_is_a_record(official: Path) -> None:
    assert not read_rows(official, "PRAGMA foreign_key_check")
    unknown = """SELECT bioguide_id FROM bill_cosponsors
                 WHERE bioguide_id NOT IN (SELECT id FROM legislators)"""
    assert not read_rows(official, unknown)


def test_every_table_of_a_source_has_the_citation_columns(tmp_path: Path) -> None:
    load_files(tmp_path)
    for source in SOURCES:
        columns = {row[1] for row in read_rows(tmp_path, f"PRAGMA table_xinfo({source.name})")}
        assert {
            *CITATION_FIELDS,
            "status",
            "tombstone_at",
            "tombstone_reason",
            "successor_id",
        } <= columns


def test_loading_a_made_up_world_twice_changes_nothing(tmp_path: Path) -> None:
    write_world(tmp_path / "files")
    first = load_files(tmp_path, tmp_path / "files", embed=False)
    before = read_everything(tmp_path)
    again = load_files(tmp_path, tmp_path / "files", embed=False)
    assert first.loaded == again.unchanged > 30
    assert again.changed == 0
    assert read_everything(tmp_path) == before


def test_one_bad_file_is_logged_and_the_rest_is_loaded(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3)
    (tmp_path / "files" / "BILLSTATUS-119hr99.xml").write_text("<billStatus><bill>", "utf-8")
    (tmp_path / "files" / "BILLSTATUS-119hr98.xml").write_text(
        "<billStatus><bill><number>98</number><type>HR</type></bill></billStatus>", "utf-8"
    )
    (tmp_path / "files" / "broken.zip").write_bytes(b"PK\x03\x04 and then nothing")
    (tmp_path / "files" / "rule.json").write_text('{"document_number": "no id", "title": "x"}')
    summary = load_files(tmp_path, tmp_path / "files", embed=False)
    assert summary.failed == 4
    assert read_rows(tmp_path, "SELECT count(*) FROM bills") == [(3,)]
    failed = read_rows(tmp_path, "SELECT file, error FROM ingestion_logs WHERE outcome = 'failed'")
    assert {Path(name).name for name, _ in failed} == {
        "BILLSTATUS-119hr98.xml",
        "BILLSTATUS-119hr99.xml",
        "broken.zip",
        "rule.json",
    }
    assert any("congress" in error for _, error in failed)


def test_unknown_elements_are_passed_over(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=1)
    ((name, text),) = world.bills(1)
    grown = text.replace("<title>", "<newThing><deep>x</deep></newThing><title>")
    (tmp_path / "files" / name).write_text(grown, "utf-8")
    assert load_files(tmp_path, tmp_path / "files", embed=False).failed == 0
    assert read_rows(tmp_path, "SELECT count(*) FROM bills") == [(1,)]


@pytest.mark.parametrize(
    "hostile",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><billStatus>&b;</billStatus>',
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><billStatus>&f;</billStatus>',
        b'<!DOCTYPE x [<!ENTITY % p SYSTEM "http://example.org/x.dtd"> %p;]><billStatus/>',
    ],
)
def test_entities_are_refused(hostile: bytes) -> None:
    with pytest.raises(EntitiesRefused):
        parse_xml(hostile)


def test_aliases_are_refused_and_a_lone_ampersand_is_none() -> None:
    with pytest.raises(ValueError, match="aliases"):
        parse_yaml(b"- &a [x, x]\n- [*a, *a]\n")
    assert parse_yaml(b"- name: R &D\n- 'at &t'\n") == [{"name": "R &D"}, "at &t"]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"null",
        b"plain",
        b'- 1\n- 1.5\n- 2020-01-02\n- yes\n- ~\n- ""\n- "1"\n- 0x1F\n- .inf\n- 1_000\n-\n- On it\n',
        b"a: {b: [c, {d: e}], 'f': 2001-12-14t21:59:43.10-05:00}\n1: 2\na: last\n",
        b"text: |\n  one\n  two\nfolded: >\n  one\n  two\n",
        b"a: !!str 1\nb: ! 12\n",
        b"<<: {a: 1}\nb: 2\n",
        b"=: 1\n'<<': 3\n",
        b"- &lone x\n",
    ],
)
def test_yaml_means_what_its_library_says(document: bytes) -> None:
    assert repr(parse_yaml(document)) == repr(yaml.safe_load(document))


@pytest.mark.parametrize("document", [b"{", b"*x", b"a: 1\n---\nb: 2\n", b"? [1, 2]\n: x\n"])
def test_yaml_that_its_library_refuses_is_refused(document: bytes) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(document)


def test_an_external_dtd_is_not_fetched() -> None:
    document = b'<!DOCTYPE rollcall-vote PUBLIC "-//x" "file:///etc/passwd"><rollcall-vote/>'
    assert parse_xml(document).tag == "rollcall-vote"


def test_a_zip_loads_like_a_folder(tmp_path: Path) -> None:
    write_world(tmp_path / "files")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in (tmp_path / "files").iterdir():
            archive.write(path, path.name)
    assert load_files(tmp_path / "a", tmp_path / "files").records == (
        load_files(tmp_path / "b", tmp_path / "all.zip").records
    )


def test_a_zip_is_opened_once_for_all_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open one its directory is read, which for ten thousand files takes long."""
    write_world(tmp_path / "files")
    opened: list[Path] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, path: Path, *rest: Any) -> None:
            opened.append(path)
            super().__init__(path, *rest)

    for round in ("first", "second"):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for path in (tmp_path / "files").iterdir():
                archive.writestr(path.name, f"{path.read_text('utf-8')}\n")
            archive.comment = round.encode()
        with monkeypatch.context() as patched:
            patched.setattr(zipfile, "ZipFile", Counted)
            load_files(tmp_path / round, tmp_path / "all.zip", embed=False)
    assert len(opened) == 2, "each of the two, once"
    assert read_all_tables(tmp_path / "first") == read_all_tables(tmp_path / "second")


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_files_saved_on_another_system_are_the_same_files(
    tmp_path: Path, begin: bytes, end: bytes
) -> None:
    write_world(tmp_path / "files", bills=3)
    before = load_files(tmp_path / "before", tmp_path / "files", embed=False)
    for path in (tmp_path / "files").iterdir():
        path.write_bytes(begin + path.read_bytes().replace(b"\n", end))
    after = load_files(tmp_path / "after", tmp_path / "files", embed=False)
    assert after.by_loader == before.by_loader
    assert (after.failed, after.records) == (0, before.records)


def test_names_and_words_that_are_no_text_hold_nothing_up(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=0)
    ((_, bill),) = world.bills(1)
    folder = os.fsencode(tmp_path / "files")
    Path(os.fsdecode(folder + b"/good\xff.xml")).write_text(bill, "utf-8")
    Path(os.fsdecode(folder + b"/bad\xff\n.xml")).write_text("<billStatus><bill>", "utf-8")
    (tmp_path / "files" / "half.json").write_text(
        '{"document_number": "2025-00003", "title": "\\ud800", "type": "Rule"}', "utf-8"
    )
    summary = load_files(tmp_path, tmp_path / "files", embed=False)
    assert summary.by_loader["billstatus"] == 1
    assert sorted(Path(one["file"]).name for one in summary.errors) == [
        "bad\\udcff\n.xml",
        "half.json",
    ]
    json.dumps(summary.errors, ensure_ascii=False).encode()


def test_a_zip_inside_a_zip_is_passed_over_whatever_it_holds(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3)
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as archive:
        for path in sorted((tmp_path / "files").glob("CRPT-*")):
            archive.write(path, path.name)
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(tmp_path / "inner.zip", "inner.zip")
    summary = load_files(tmp_path / "data", tmp_path / "outer.zip", embed=False)
    assert (summary.ignored, summary.loaded, summary.failed) == (1, 0, 0)


def test_what_is_neither_a_file_nor_a_folder_is_told_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    summary = load_files(tmp_path, tmp_path / "pipe.xml", Path("/dev/zero"), embed=False)
    assert summary.failed == 2
    assert "save its contents as a file" in summary.errors[0]["error"]


def test_values_that_no_column_takes_fail_their_file_alone(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=2)
    rule = json.loads((tmp_path / "files" / "2025-00001.json").read_text("utf-8"))
    for place, odd in enumerate((10**30, {"a": 1}, [1])):
        told = rule | {"document_number": f"2025-1000{place}", "topics": [odd]}
        told |= {"docket_ids": [odd], "agencies": [{"name": odd, "slug": odd}]}
        (tmp_path / "files" / f"odd{place}.json").write_text(json.dumps(told), "utf-8")
    summary = load_files(tmp_path, tmp_path / "files", embed=False)
    assert (summary.failed, summary.by_loader["register-json"]) == (3, 2)


def test_a_zip_that_was_damaged_and_is_whole_now_is_no_failure_any_more(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3)
    path = tmp_path / "all.zip"
    path.write_bytes(b"PK")
    assert load_files(tmp_path, path, embed=False).failed == 1
    with zipfile.ZipFile(path, "w") as archive:
        for one in (tmp_path / "files").iterdir():
            archive.write(one, one.name)
    load_files(tmp_path, path, embed=False)
    with closing(store.connect(get_database_path(tmp_path))) as db:
        assert list(list_failed_files(db)) == []


def test_a_load_that_is_interrupted_twice_keeps_no_half_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time while it undoes what was begun."""
    write_world(tmp_path / "files", bills=3)
    undo, interrupts = Writer._roll_back, iter((True,))

    def undo_unless_interrupted(self: Writer, rollback: str) -> None:
        if next(interrupts, False):
            raise KeyboardInterrupt
        undo(self, rollback)

    def amendments(self: BillStatusLoader, *told: Any) -> Any:
        yield from read(self, *told)
        raise KeyboardInterrupt

    read = BillStatusLoader.parse
    monkeypatch.setattr(BillStatusLoader, "parse", amendments)
    monkeypatch.setattr(Writer, "_roll_back", undo_unless_interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_files(tmp_path, tmp_path / "files", embed=False)
    assert read_rows(tmp_path, "SELECT count(*) FROM bills WHERE loader <> 'partial'") == [(0,)]
    monkeypatch.undo()
    assert load_files(tmp_path, tmp_path / "files", embed=False).failed == 0
    load_files(tmp_path / "whole", tmp_path / "files", embed=False)
    assert read_all_tables(tmp_path) == read_all_tables(tmp_path / "whole")
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        db.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)")


def test_a_pdf_named_outside_its_folder_is_not_read(tmp_path: Path) -> None:
    from readingroom.bases.federal.formats.parts.files import find_files

    (tmp_path / "secret").write_text("x", "utf-8")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.yaml").write_text("x", "utf-8")
    (file,) = find_files([tmp_path / "files"])
    assert file.read_file().read_sibling("../secret") is None


def test_kill_nine_in_the_middle_of_a_load_loses_nothing_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    write_world(tmp_path / "files", bills=200)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    load_files(whole, tmp_path / "files", embed=False)
    for _ in range(2):
        _load_and_kill(tmp_path / "files", broken)
    finished = run("federal", "load", str(tmp_path / "files"), "--data", str(broken), "--json")
    assert json.loads(finished.stdout)["failed"] == 0
    for table, there in read_all_tables(whole).items():
        assert read_all_tables(broken)[table] == there, table
    assert not read_rows(broken, "PRAGMA foreign_key_check")
    assert read_rows(broken, "PRAGMA integrity_check") == [("ok",)]


def _load_and_kill(files: Path, data: Path) -> None:
    """Stop the loader by force once it has come a little further."""
    path = get_database_path(data)
    before = _count_bills(path)
    process = subprocess.Popen(
        make_command("federal", "load", str(files), "--data", str(data), "--json"),
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
    )
    while process.poll() is None:
        if _count_bills(path) > before + 20:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    process.wait()


def _count_bills(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM bills").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_a_transaction_that_failed_at_its_end_is_told_and_left_out(tmp_path: Path) -> None:
    """Its end runs on a thread beside the reading; the next one waits for it."""
    store.prepare_records(tmp_path / DATABASE_FILE_NAME)
    with (
        closing(store.connect(tmp_path / DATABASE_FILE_NAME, writing=True)) as db,
        ThreadPoolExecutor(1) as beside,
    ):
        writer = Writer(db, beside)
        with writer.transaction():
            db.execute("PRAGMA defer_foreign_keys = ON")
            db.execute("INSERT INTO chunks (doc, part, ordinal) VALUES (99, 'text', 0)")
        with pytest.raises(StorageFailed, match="FOREIGN KEY"), writer.transaction():
            raise AssertionError("nothing may be written over a failure that nobody has seen")
        with writer.transaction():
            db.execute("INSERT INTO documents (doc, id, source) VALUES (99, 'pl:1-1', 'x')")
        writer.wait_and_report_undone()
    with closing(store.connect(tmp_path / DATABASE_FILE_NAME)) as db:
        assert db.execute("SELECT count(*) FROM chunks").fetchone()[0] == 0
        assert db.execute("SELECT doc FROM documents").fetchone()[0] == 99


def test_readers_are_not_held_up_by_a_load(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=5)
    load_files(tmp_path, tmp_path / "files", embed=False)
    path = get_database_path(tmp_path)
    with closing(store.connect(path, writing=True)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE bills SET status = 'withdrawn'")
        reader = store.FederalStore(path)
        active = "SELECT count(*) FROM bills WHERE status = 'active'"
        assert reader.query_now(lambda db: db.execute(active).fetchone()[0]) == 5
        writer.execute("ROLLBACK")
        reader.close()


def test_the_schema_is_made_once_and_its_version_kept(tmp_path: Path) -> None:
    store.prepare_records(tmp_path / DATABASE_FILE_NAME)
    store.prepare_records(tmp_path / DATABASE_FILE_NAME)
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE_NAME)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@requirement("federal:loaded-up-to")
def test_the_command_loads_and_says_how_far_each_source_has_come(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=4)
    data = ("--data", str(tmp_path / "data"))
    done = run("federal", "load", str(tmp_path / "files"), *data, "--json")
    assert json.loads(done.stdout)["by_loader"]["billstatus"] == 4
    told = json.loads(run("federal", "status", *data, "--json").stdout)
    bills = next(one for one in told["sources"] if one["source"] == "bills")
    assert bills["records"] == 4
    assert bills["chunks"] >= 4
    assert bills["newest_record_at"] > "2025-01-01"
    assert bills["loaded_up_to"] is None  # four bills say nothing about the others
    people = next(one for one in told["sources"] if one["source"] == "legislators")
    assert people["loaded_up_to"] == people["newest_record_at"] == "2025-01-03"


def test_the_command_loads_one_source_when_one_is_named(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=4)
    data = ("--data", str(tmp_path / "data"))
    done = run("federal", "load", "saps", str(tmp_path / "files"), *data, "--json")
    assert json.loads(done.stdout)["by_loader"] == {"saps": 1}
    refused = run("federal", "load", "nonsense", str(tmp_path / "files"), *data)
    assert refused.returncode == 2
    assert "nonsense" in refused.stderr


def test_files_of_no_known_format_are_named_and_alone_they_are_a_failure(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=1)
    (tmp_path / "README.md").write_text("# Not official", "utf-8")
    (tmp_path / "notes.json").write_text('{"a": 1}', "utf-8")
    strange = [str(tmp_path / name) for name in ("README.md", "notes.json")]
    data = ("--data", str(tmp_path / "data"))
    told = run("federal", "load", *strange, *data, "--json")
    assert told.returncode == 1
    summary = json.loads(told.stdout)
    assert (summary["ignored"], summary["unrecognised"]) == (2, strange)
    assert "docs/federal.md" in summary["hint"]
    mixed = run("federal", "load", *strange, str(tmp_path / "files"), *data)
    assert mixed.returncode == 0
    assert "2 ignored" in mixed.stdout
    for name in strange:
        assert f"{name}: ignored, its format is not recognised" in mixed.stdout
    assert "federal load --help" in mixed.stdout


def test_a_load_of_nothing_says_so(tmp_path: Path) -> None:
    """Pictures and the like in a folder are passed over: they lie beside official files."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "README.md").write_text("# Not official", "utf-8")
    data = ("--data", str(tmp_path / "data"))
    said = run("federal", "load", str(tmp_path / "files"), *data)
    assert said.returncode == 1
    assert "No file to load was found" in said.stdout
    assert "federal load --help" in said.stdout


def test_a_file_of_another_source_than_was_named_is_told_as_such(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=1)
    (bill,) = (tmp_path / "files").glob("BILLSTATUS*")
    said = run("federal", "load", "saps", str(bill), "--data", str(tmp_path / "data"))
    assert said.returncode == 1
    assert f"{bill}: ignored, it is not a file of saps" in said.stdout


def test_who_left_a_committee_is_no_longer_on_its_roster(tmp_path: Path) -> None:
    seat = "- name: {0}\n  party: majority\n  rank: {1}\n  bioguide: {2}\n"
    ada, bela = seat.format("Ada Ashgrove", 1, "A900001"), seat.format("Bela Birch", 2, "B900002")
    roster = tmp_path / "committee-membership-current.yaml"
    roster.write_text("HSAG:\n" + ada + bela, "utf-8")
    load_files(tmp_path / "data", roster, embed=False)
    roster.write_text("HSAG:\n" + ada, "utf-8")
    load_files(tmp_path / "data", roster, embed=False)
    told = "SELECT bioguide_id, status FROM committee_memberships ORDER BY 1"
    assert read_rows(tmp_path / "data", told) == [("A900001", "active"), ("B900002", "withdrawn")]


def test_the_same_statement_twice_on_a_day_is_two_records(tmp_path: Path) -> None:
    statement = (
        "- bills:\n  - hr1\n  document_title: {}\n  congress: 119\n"
        "  date_issued: '2025-03-01'\n  url: https://example.org/{}\n"
    )
    text = statement.format("One", 1) + statement.format("Two", 2)
    (tmp_path / "47-Sample.yaml").write_text(text, "utf-8")
    load_files(tmp_path / "data", tmp_path / "47-Sample.yaml", embed=False)
    assert read_rows(tmp_path / "data", "SELECT id FROM saps ORDER BY id") == [
        ("sap:119:2025-03-01:hr1",),
        ("sap:119:2025-03-01:hr1:2",),
    ]


def test_a_pdf_that_comes_later_than_its_statement_is_read_too(tmp_path: Path) -> None:
    files, data = tmp_path / "files", tmp_path / "data"
    (files / "statements").mkdir(parents=True)
    (files / "47-Sample.yaml").write_text(
        "- bills:\n  - hr1\n  document_title: H.R. 1\n  congress: 119\n"
        "  date_issued: '2025-03-01'\n  source: https://example.org/\n"
        "  file: statements/hr1.pdf\n",
        "utf-8",
    )
    load_files(data, files, embed=False)
    assert not read_rows(data, "SELECT * FROM texts")
    (files / "statements" / "hr1.pdf").write_bytes(make_paper("The Administration likes walruses."))
    again = load_files(data, files, embed=False)
    assert (again.loaded, again.changed) == (1, 1)
    assert "walruses" in read_rows(data, "SELECT body FROM texts")[0][0]
    assert load_files(data, files, embed=False).unchanged == 1


def test_a_former_member_takes_the_place_of_the_stub_that_a_bill_made(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=3)
    former = world.members[0]
    (tmp_path / "files" / "legislators-current.yaml").unlink()
    load_files(tmp_path, tmp_path / "files", embed=False)
    stub = "SELECT record->>'stub', current FROM legislators WHERE id = ?"
    (tmp_path / "legislators-historical.yaml").write_text(
        f"- id:\n    bioguide: {former.bioguide}\n    lis: S001\n    govtrack: 400001\n"
        "    icpsr: 507\n  name:\n    first: Ada\n    middle: Q.\n    last: Ashgrove\n"
        "  bio:\n    birthday: '1745-04-02'\n    gender: F\n  terms:\n"
        "  - type: rep\n    start: '1789-03-04'\n    end: '1791-03-03'\n    state: DE\n"
        "    district: -1\n    party: Anti-Administration\n"
        "  - type: sen\n    start: '1791-03-04'\n    end: '1797-03-03'\n    state: DE\n"
        "    class: 2\n    party: Federalist\n",
        "utf-8",
    )
    done = load_files(tmp_path, tmp_path / "legislators-historical.yaml", embed=False)
    assert (done.loaded, done.records) == (1, 1)
    assert read_rows(tmp_path, stub, former.bioguide) == [(0, 0)]
    ((told,),) = read_rows(tmp_path, "SELECT record FROM legislators WHERE id = ?", former.bioguide)
    person = json.loads(told)
    assert (person["name"], person["party"], person["chamber"]) == (
        "Ada Ashgrove",
        "Federalist",
        "senate",
    )
    assert [term["chamber"] for term in person["terms"]] == ["house", "senate"]
    names = read_rows(tmp_path, "SELECT form FROM name_forms WHERE record_id = ?", former.bioguide)
    assert ("Ada Q. Ashgrove",) in names


@pytest.mark.data
def test_the_words_of_a_statement_come_from_its_pdf(official: Path) -> None:
    ((words,),) = read_rows(
        official, "SELECT body FROM texts WHERE record_id = 'sap:111:2009-03-17:hr1388'"
    )
    assert "Volunteerism" in words
    (counted,) = read_rows(official, "SELECT count(*) FROM texts WHERE record_id LIKE 'sap:%'")
    assert counted[0] > 120


def test_the_index_of_words_holds_what_the_passages_say(tmp_path: Path) -> None:
    """Written many at once, apart from the passages: after changes and withdrawals they agree."""
    world = write_world(tmp_path / "files", bills=3)
    load_files(tmp_path, tmp_path / "files", embed=False)
    for change in ("about walruses", "about lighthouses"):
        for name, text in world.bills(3):
            newer = text.replace("and for other purposes", change).replace("T05:", "T06:")
            (tmp_path / "files" / name).write_text(newer, "utf-8")
        load_files(tmp_path, tmp_path / "files", embed=False)
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        writer = Writer(db)
        with writer.transaction():
            ((gone,), *_) = db.execute("SELECT id FROM bills ORDER BY id").fetchall()
            writer.withdraw_record(SOURCES_BY_NAME["bills"], gone, "2025-05-05", "entered in error")
        db.execute("INSERT INTO passages_fts (passages_fts) VALUES ('integrity-check')")
        matching = "SELECT count(*) FROM passages_fts WHERE passages_fts MATCH ?"
        assert db.execute(matching, ("lighthouses AND title:about",)).fetchone()[0] == 2
        assert db.execute(matching, ("walruses",)).fetchone()[0] == 0


@pytest.mark.parametrize(("session", "year"), [("1st", 2023), ("2nd", 2024)])
def test_a_house_vote_without_a_date_has_the_page_of_its_session_s_year(
    session: str, year: int
) -> None:
    ((_, dated),) = World(1, people=3).votes(1, congress=118)
    undated = re.sub("<action-date>.*</action-date>", "", dated)
    undated = re.sub("<session>.*</session>", f"<session>{session}</session>", undated)
    file = RawFile("roll001.xml", undated.encode(), lambda name: None)
    *_, vote = HouseVoteLoader().parse(file, ORIGIN)
    assert vote.record.published_at is None
    assert vote.record.url == f"https://clerk.house.gov/Votes/{year}1"

"""The doctor finds what is wrong around the bases, and says of each what to do."""

import json
import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases import BASES
from readingroom.bases.federal import doctor as federal_doctor
from readingroom.bases.federal.store import SharedRecords, get_database_path, prepare_records
from readingroom.commands import checks
from readingroom.engine.embedding import shared
from readingroom.ingest.confine import landlock
from readingroom.protocol.doctor import Complaint
from readingroom.settings import Settings, load_settings
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.database import open_database
from readingroom.storage.postgres.schema import SCHEMA_VERSION
from tests.requirements import requirement
from tests.support.federal.base import load_files, write_world
from tests.support.kit import Served, invoke, run
from tests.support.processes import find_free_port
from tests.support.valkey import run_valkey


def list_findings(check: str, data: Path, **variables: str) -> list[str]:
    settings: Settings = load_settings({"data": data}, variables)
    complaints = check_all(check, settings)
    assert all(complaint.fix for complaint in complaints)
    return [complaint.problem for complaint in complaints]


def check_all(check: str, settings: Settings) -> list[Complaint]:
    """What one check finds: one of the doctor's own, or that of a base."""
    if check in checks.CHECKS_BY_NAME:
        return list(checks.CHECKS_BY_NAME[check](settings))
    spec = BASES[check]
    assert spec.doctor is not None
    return list(spec.doctor(settings, False, None))


def run_doctor(data: Path, **variables: str) -> tuple[int, Any]:
    ended = run("doctor", "--data", str(data), "--json", env=variables)
    return ended.returncode, json.loads(ended.stdout)


@requirement("room:doctor")
def test_a_new_directory_is_well_and_everything_was_looked_at(tmp_path: Path) -> None:
    code, report = run_doctor(tmp_path)
    assert (code, report["complaints"]) == (0, [])
    looked_at = {
        "disk",
        "model",
        "tesseract",
        "sandbox",
        "Redis",
        "permissions",
        "versions",
        "port",
    }
    assert looked_at <= set(report["checked"])
    ended = run("doctor", "--data", str(tmp_path), anew=True)
    assert ended.stdout.splitlines()[-1].startswith("All is well: ")


@requirement("room:doctor")
def test_secrets_that_others_can_read_are_reported(tmp_path: Path) -> None:
    KeyRing(tmp_path).add_key("reader")
    assert list_findings("permissions", tmp_path) == []
    (tmp_path / "keys.db").chmod(0o644)
    (tmp_path / "readingroom.toml").write_text('api_key = "sesame"')
    (tmp_path / "readingroom.toml").chmod(0o644)
    assert len(list_findings("permissions", tmp_path)) == 2


@requirement("room:doctor")
@pytest.mark.parametrize(("key", "problems"), [("k", 1), ("x" * 19, 1), ("x" * 20, 0), (None, 0)])
def test_a_key_that_can_be_guessed_is_reported(
    tmp_path: Path, key: str | None, problems: int
) -> None:
    settings = load_settings({"data": tmp_path, "api_key": key}, {})
    assert len(list(checks.check_api_key(settings))) == problems


@requirement("room:doctor")
@pytest.mark.parametrize(("mode", "is_note"), [(0o755, False), (0o711, False), (0o750, True)])
def test_a_directory_that_others_can_look_into_is_reported(
    tmp_path: Path, mode: int, is_note: bool
) -> None:
    tmp_path.chmod(mode)
    (finding,) = checks.check_permissions(load_settings({"data": tmp_path}, {}))
    assert (finding.fix, finding.is_note) == (f"chmod 700 {tmp_path}", is_note)
    tmp_path.chmod(0o700)
    assert list_findings("permissions", tmp_path) == []


@requirement("room:doctor")
def test_an_interrupted_restore_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".restoring").mkdir()
    assert list_findings("directory", tmp_path) == ["a restore was interrupted"]
    (tmp_path / ".restoring").rmdir()
    (tmp_path / ".replaced").mkdir()
    (note,) = checks.check_directory(load_settings({"data": tmp_path}, {}))
    assert note.is_note


@requirement("room:doctor")
def test_a_damaged_or_newer_federal_file_is_reported(tmp_path: Path) -> None:
    path = get_database_path(tmp_path)
    prepare_records(path)
    assert list_findings("federal", tmp_path) == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    assert "newer version" in list_findings("federal", tmp_path)[0]
    path.write_bytes(b"no database" * 100)
    assert "cannot be read" in list_findings("federal", tmp_path)[0]


@requirement("room:doctor")
def test_what_is_not_embedded_yet_is_a_note(tmp_path: Path) -> None:
    write_world(tmp_path / "world", bills=3, votes=1)
    load_files(tmp_path, tmp_path / "world", embed=False)
    (note,) = check_all("federal", load_settings({"data": tmp_path}, {}))
    assert (note.is_note, note.fix) == (True, "readingroom federal embed")


@requirement("room:doctor")
def test_missing_parts_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "nowhere")
    assert "but it has no" in list_findings("model", tmp_path, EMBEDDING_MODEL_DIR=missing)[0]
    assert "but it has no" in list_findings("model", tmp_path, READINGROOM_RERANKER=missing)[0]
    monkeypatch.setattr(shared, "find_packaged_reranker", lambda: None)
    assert "no cross-encoder" in list_findings("model", tmp_path)[0]
    assert list_findings("model", tmp_path, READINGROOM_SECOND_LOOK="false") == []
    assert "cannot be read" in list_findings("text", tmp_path, KB_FILE=missing)[0]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_findings("tesseract", tmp_path) == [
        "it is not installed, so scanned pages have no text"
    ]
    assert list_findings("tesseract", tmp_path, ENABLE_OCR="false") == []


@requirement("room:doctor", "ingest:sandbox:confined")
def test_a_tesseract_that_needs_files_outside_the_sandbox_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_findings("tesseract", tmp_path) == []
    (tmp_path / "words").write_text("eng")
    program = tmp_path / "tesseract"
    program.write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/words\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    (problem,) = list_findings("tesseract", tmp_path)

    assert "does not run inside the sandbox" in problem
    assert "Permission denied" in problem


@requirement("room:doctor", "ingest:sandbox:confined")
def test_a_kernel_that_cannot_confine_readers_of_documents_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_findings("sandbox", tmp_path) == []
    monkeypatch.setattr(landlock, "read_landlock_abi", lambda: 0)

    (note,) = check_all("sandbox", load_settings({"data": tmp_path}, {}))

    assert note.is_note
    assert "not kept from files (this needs Landlock" in note.problem


@requirement("room:doctor", "ingest:sandbox:confined")
def test_a_directory_that_readers_of_documents_may_read_is_reported() -> None:
    (problem,) = list_findings("sandbox", Path("/usr/local/share/readingroom"))
    assert "lies inside /usr, which readers of documents may read" in problem


@requirement("room:doctor")
def test_a_port_in_other_hands_is_reported_and_our_own_is_not(room: Served, tmp_path: Path) -> None:
    ours = room.url.rpartition(":")[2]
    assert list_findings("port", tmp_path, READINGROOM_PORT=ours) == []
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        assert list_findings("port", tmp_path, READINGROOM_PORT=taken) == [
            f"another program listens on {taken}"
        ]
    assert list_findings("port", tmp_path, READINGROOM_PORT=taken) == []


@requirement("room:doctor")
def test_a_redis_that_is_away_or_forgets_is_reported(tmp_path: Path) -> None:
    gone = f"unix://{tmp_path}/nobody.sock"
    assert "does not answer" in list_findings("Redis", tmp_path, REDIS_URL=gone)[0]
    with run_valkey(tmp_path) as (url, _):
        assert "append-only" in list_findings("Redis", tmp_path, REDIS_URL=url)[0]


@requirement("room:doctor")
def test_a_base_that_cannot_be_opened_is_a_line_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "policy" / "chroma").mkdir(parents=True)
    (tmp_path / "policy" / "chroma" / "chroma.sqlite3").write_bytes(b"broken" * 1000)
    code, report = run_doctor(tmp_path)
    assert code == 1
    assert [complaint["subject"] for complaint in report["complaints"]] == ["policy"]
    assert "disk" in report["checked"]


def test_a_directory_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a read-only file system, where even root may not write."""
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    result = invoke("doctor", "--data", str(tmp_path))
    assert result.returncode == 1
    assert f"{tmp_path} cannot be written" in result.stdout


def test_a_database_that_a_newer_version_has_written_to_is_told_first_and_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(url)
    database.prepare()
    with database.connection() as connection:
        connection.execute("UPDATE readingroom.schema_version SET version = version + 1")
    # Nothing else is asked of it: a full check of large tables takes its time.
    monkeypatch.setattr(federal_doctor, "check", None)
    monkeypatch.setattr(checks, "list_problems", None)
    (tmp_path / "data.database").write_text(url)
    told = invoke("doctor", "--data", str(tmp_path / "data"), "--json")
    assert told.returncode == 1
    report = json.loads(told.stdout)
    [complaint] = report["complaints"]
    assert complaint["subject"] == "database"
    assert f"of version {SCHEMA_VERSION + 1}" in complaint["problem"]
    assert complaint["fix"].startswith("upgrade this program")
    assert {"documents", "federal", "policy"}.isdisjoint(report["checked"])
    # So says `migrate`, before it copies anything.
    write_world(tmp_path / "files", bills=1, votes=1)
    load_files(tmp_path / "own", tmp_path / "files", embed=False)
    refused = invoke("migrate", "--to", url, "--data", str(tmp_path / "own"))
    assert refused.returncode == 1
    assert "install the version that wrote them" in refused.stderr
    assert "copying" not in refused.stderr


def test_federal_tables_of_a_newer_version_need_a_newer_program(url: str, tmp_path: Path) -> None:
    prepare_records(SharedRecords(url))
    with closing(SharedRecords(url).connect(writing=True)) as db:
        db.execute("INSERT INTO schema_version VALUES (99)")
    (tmp_path / "data.database").write_text(url)
    told = invoke("doctor", "--data", str(tmp_path / "data"), "--json")
    [complaint] = json.loads(told.stdout)["complaints"]
    assert complaint["subject"] == "federal"
    assert "of version 99" in complaint["problem"]
    assert complaint["fix"].startswith("upgrade this program")


def test_a_database_that_does_not_answer_is_waited_for_once(tmp_path: Path) -> None:
    nobody = f"postgresql://nobody@127.0.0.1:{find_free_port()}/room"
    (tmp_path / "data.database").write_text(nobody)
    told = invoke("doctor", "--data", str(tmp_path / "data"), "--json")
    [complaint] = json.loads(told.stdout)["complaints"]
    assert complaint["subject"] == "database"
    assert "nothing listens there" in complaint["problem"]
    assert "READINGROOM_DATABASE_URL" in complaint["fix"]

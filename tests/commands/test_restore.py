"""A restore believes nothing: whatever a backup says, only what `backup` writes comes back."""

import hashlib
import io
import json
import sqlite3
import tarfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from readingroom.bases.federal.backup import BACKUP
from readingroom.bases.federal.schema.tables import ensure_schema
from readingroom.bases.federal.store import get_database_path
from readingroom.cli import main
from readingroom.settings import load_settings
from readingroom.storage.archive import unpack_archive
from readingroom.storage.changes import StoreChangeCoordinator
from readingroom.storage.database import connect
from readingroom.storage.errors import BackupUnusable, StorageFailed
from readingroom.storage.files import resolve_inside
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.documents.base import REF, open_documents_base
from tests.support.model import link_model
from tests.support.policy.base import make_brief_pdf, open_library
from tests.support.valkey import run_valkey

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def backup_files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The files of a true backup: one policy, one document, one key."""
    data = link_model(tmp_path_factory.mktemp("from") / "room")
    anyio.run(_fill, data)
    KeyRing(data).add_key("reader")
    backup = data.parent / "room.backup"
    assert invoke("backup", backup, data).exit_code == 0
    with tarfile.open(backup) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    return files


async def _fill(data: Path) -> None:
    async with open_library(data / "policy") as library:
        await library.add("NPPF")
        await library.revise("NPPF", "December 2024", "2024-12-12")
    async with open_documents_base(data / "documents") as room:
        await room.ingest("Transport_Assessment.pdf", make_brief_pdf("Transport"))


def invoke(verb: str, file: Path, data: Path, *options: str, env: Any = None) -> Result:
    return CliRunner(env=env).invoke(main, [verb, str(file), f"--data={data}", *options])


def write_backup(path: Path, files: Files, entries: Any = None) -> Path:
    """A backup of these files whose manifest fits them, unless it is given other entries."""
    fitting = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
        if name != "manifest.json"
    }
    manifest = {"version": "0.1.0", "created_at": "today", "bases": {}}
    manifest |= json.loads(files.get("manifest.json", b"{}"))
    manifest |= {"files": fitting if entries is None else entries}
    with tarfile.open(path, "w:gz") as tar:
        _add(tar, "manifest.json", json.dumps(manifest).encode())
        for name in fitting:
            _add(tar, name, files[name])
    return path


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def make_database(folder: Path, *statements: str) -> bytes:
    path = folder / "made.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path.read_bytes()


def edit_database(folder: Path, content: bytes, *statements: str) -> bytes:
    path = folder / "edited.db"
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path.read_bytes()


INTENTS = (
    "CREATE TABLE intents (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, "
    "body TEXT NOT NULL) STRICT"
)
REMOVE_VICTIM = """INSERT INTO intents (kind, body)
    VALUES ('remove', '{"document_id": "../../../victim"}')"""


def raw_intents(folder: Path, files: Files) -> Files:
    return {
        "documents/intents.db": make_database(folder, INTENTS, REMOVE_VICTIM),
        "documents/files/x/y": b"x",
    }


def raw_intents_of_a_named_base(folder: Path, files: Files) -> Files:
    return files | raw_intents(folder, files)


def raw_chroma(folder: Path, files: Files) -> Files:
    return files | {"documents/chroma/chroma.sqlite3": make_database(folder, INTENTS)}


def raw_settings(folder: Path, files: Files) -> Files:
    return files | {"readingroom.toml": b'host = "0.0.0.0"'}


def other_base(folder: Path, files: Files) -> Files:
    manifest = json.loads(files["manifest.json"])
    del manifest["bases"]["policy"]
    return files | {"manifest.json": json.dumps(manifest).encode()}


def chunk_of_a_path(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["documents/chunks.db"],
        "UPDATE chunks SET metadata = json_set(metadata, '$.document_id', '../../../victim')",
    )
    return files | {"documents/chunks.db": edited}


def document_of_a_path(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder, files["documents/registry.db"], "UPDATE chunks SET id = '../../../victim'"
    )
    return files | {"documents/registry.db": edited}


def chunks_with_odd_metadata(folder: Path, files: Files) -> Files:
    edited = edit_database(folder, files["policy/chunks.db"], "UPDATE chunks SET metadata = '{}'")
    return files | {"policy/chunks.db": edited}


def policy_of_a_path(folder: Path, files: Files) -> Files:
    return _replace_in_registry(files, "source", "../../../../outside")


def revision_of_a_path(folder: Path, files: Files) -> Files:
    return _replace_in_registry(files, "revision_id", "../../../victim")


def _replace_in_registry(files: Files, field: str, value: str) -> Files:
    registry = json.loads(files["policy/registry.json"])
    for record in (*registry["policies"], *registry["revisions"]):
        if field in record:
            record[field] = value
    return files | {"policy/registry.json": json.dumps(registry).encode()}


def key_of_a_strange_name(folder: Path, files: Files) -> Files:
    edited = edit_database(folder, files["keys.db"], "UPDATE api_keys SET name = char(27) || '[2J'")
    return files | {"keys.db": edited}


def application_of_control_characters(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["documents/applications.db"],
        "INSERT INTO applications (reference) VALUES (char(27) || '[2J')",
    )
    return files | {"documents/applications.db": edited}


def chunks_without_end(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["policy/chunks.db"],
        "ALTER TABLE chunks RENAME TO rows",
        """CREATE VIEW chunks AS WITH RECURSIVE n(rowid) AS
            (SELECT 1 UNION ALL SELECT rowid + 1 FROM n)
            SELECT rows.* , n.rowid AS rowid FROM n, rows""",
    )
    return files | {"policy/chunks.db": edited}


def keys_with_a_trigger(folder: Path, files: Files) -> Files:
    trigger = """CREATE TRIGGER stay AFTER DELETE ON api_keys BEGIN
        INSERT INTO api_keys (name, hash, created_at) VALUES ('back', old.hash, ''); END"""
    return files | {"keys.db": edit_database(folder, files["keys.db"], trigger)}


def applications_that_are_computed(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["documents/applications.db"],
        "ALTER TABLE applications ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))",
    )
    return files | {"documents/applications.db": edited}


def documents_with_short_vectors(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder, files["documents/chunks.db"], "UPDATE chunks SET vector = zeroblob(12)"
    )
    return files | {"documents/chunks.db": edited}


def policies_with_vectors_that_are_no_numbers(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["policy/chunks.db"],
        f"UPDATE chunks SET vector = x'{'0000C07F' * 384}'",
    )
    return files | {"policy/chunks.db": edited}


def read_only_key_of_an_operator(folder: Path, files: Files) -> Files:
    edited = edit_database(
        folder,
        files["keys.db"],
        "UPDATE api_keys SET read_only = 1",
        "CREATE TABLE IF NOT EXISTS key_operators (hash BLOB PRIMARY KEY) STRICT",
        "INSERT OR IGNORE INTO key_operators SELECT hash FROM api_keys",
    )
    return files | {"keys.db": edited}


HOSTILE: dict[Callable[[Path, Files], Files], str] = {
    raw_intents: "a file that no backup has: 'documents/intents.db'",
    raw_intents_of_a_named_base: "a file that no backup has: 'documents/intents.db'",
    raw_chroma: "a file that no backup has: 'documents/chroma/",
    raw_settings: "a file that no backup has: 'readingroom.toml'",
    other_base: "a file that no backup has: 'policy/",
    chunk_of_a_path: "chunks.db of the backup",
    document_of_a_path: "registry.db of the backup",
    chunks_with_odd_metadata: "chunks.db of the backup",
    policy_of_a_path: "The policies of the backup",
    revision_of_a_path: "The policies of the backup",
    key_of_a_strange_name: "The keys of the backup",
    read_only_key_of_an_operator: "The keys of the backup",
    application_of_control_characters: "applications.db of the backup",
    chunks_without_end: "a view 'chunks' that computes",
    keys_with_a_trigger: "a trigger 'stay' that computes",
    applications_that_are_computed: "a table 'applications' that computes",
    documents_with_short_vectors: "a vector is not one of 384 numbers",
    policies_with_vectors_that_are_no_numbers: "a vector is not one of 384 numbers",
}
"""How a backup is changed, and how the refusal begins."""


@requirement("room:restore")
@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: change.__name__)
def test_a_hostile_backup_is_refused_and_touches_nothing(
    backup_files: Files, tmp_path: Path, change: Callable[[Path, Files], Files]
) -> None:
    home = link_model(tmp_path / "home" / "room")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").write_text("kept")
    files = change(tmp_path, backup_files)
    before = {path for path in tmp_path.rglob("*") if ".restoring" not in path.parts}
    evil = write_backup(tmp_path / "evil.backup", files)
    refused = invoke("restore", evil, home, "--json")
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert error["code"] == "backup_unusable"
    assert HOSTILE[change] in error["message"]
    assert set(tmp_path.rglob("*")) == before | {evil}


@requirement("room:restore")
def test_a_refused_backup_deletes_nothing_outside_of_the_data_directory(
    backup_files: Files, tmp_path: Path
) -> None:
    """Policies at REDIS_URL, documents in CHROMA_PERSIST_DIR: --force replaces them, or fails."""
    good = write_backup(tmp_path / "good.backup", backup_files)
    with run_valkey(tmp_path) as (url, _):
        outside = {"REDIS_URL": url, "CHROMA_PERSIST_DIR": str(tmp_path / "chroma")}
        home = link_model(tmp_path / "home")
        assert invoke("restore", good, home, env=outside).exit_code == 0
        before = [count_records(home, base, outside) for base in ("policy", "documents")]
        for change in (
            chunks_with_odd_metadata,
            chunk_of_a_path,
            application_of_control_characters,
        ):
            evil = write_backup(tmp_path / "evil.backup", change(tmp_path, backup_files))
            assert invoke("restore", evil, home, "--force", env=outside).exit_code == 1
        assert [count_records(home, base, outside) for base in ("policy", "documents")] == before
    assert before == [1, 1]


def count_records(data: Path, base: str, env: dict[str, str]) -> int:
    arguments = ["list", f"--data={data}", "--json"]
    arguments += ["--application", REF] if base == "documents" else []
    listed = CliRunner(env=env).invoke(main, [base, *arguments])
    assert listed.exit_code == 0, listed.output
    return len(json.loads(listed.stdout)["documents" if base == "documents" else "policies"])


@requirement("room:restore")
def test_a_true_backup_comes_back_and_its_keys_are_named(
    backup_files: Files, tmp_path: Path
) -> None:
    """Otherwise whoever made the backup has a key, and nobody knows."""
    backup = write_backup(tmp_path / "room.backup", backup_files)
    told = invoke("restore", backup, link_model(tmp_path / "told"))
    assert "Key reader (whoever has it, made " in told.stdout
    as_json = invoke("restore", backup, link_model(tmp_path / "json"), "--json")
    (key,) = json.loads(as_json.stdout)["keys"]
    assert (key["name"], key["read_only"]) == ("reader", False)
    ring = KeyRing(tmp_path / "told")
    ring.revoke_key("reader")
    assert ring.list_keys() == []


@requirement("room:restore")
def test_the_keys_of_the_directory_stay_when_the_backup_has_none(
    backup_files: Files, tmp_path: Path
) -> None:
    """Without a key the server would be open to everybody after the restore."""
    home = link_model(tmp_path / "home")
    KeyRing(home).add_key("operator")
    without_keys = {name: content for name, content in backup_files.items() if name != "keys.db"}
    kept = write_backup(tmp_path / "kept.backup", without_keys)
    told = invoke("restore", kept, home, "--force")
    assert "Key operator of this directory stays valid: the backup has no keys" in told.stdout
    assert [key.name for key in KeyRing(home).list_keys()] == ["operator"]

    others = write_backup(tmp_path / "others.backup", backup_files)
    told = invoke("restore", others, home, "--force")
    assert "Key operator of this directory is not valid any more" in told.stdout
    assert [key.name for key in KeyRing(home).list_keys()] == ["reader"]


@requirement("room:restore")
def test_a_federal_file_has_only_the_triggers_that_we_make(tmp_path: Path) -> None:
    """The file is put in place as it is, and its triggers would act on every later load."""
    settings = load_settings({"data": tmp_path}, {})
    path = get_database_path(tmp_path)
    path.parent.mkdir()
    with closing(connect(path)) as db:
        ensure_schema(db, path)
    assert BACKUP.restore_backup(settings, tmp_path, False, lambda command, settings: {}) is None
    with closing(connect(path)) as db:
        db.execute("CREATE TRIGGER x AFTER INSERT ON bills BEGIN DELETE FROM bills; END")
    with pytest.raises(BackupUnusable, match="a trigger 'x' that computes"):
        BACKUP.restore_backup(settings, tmp_path, False, lambda command, settings: {})


@requirement("room:restore")
def test_a_backup_larger_than_the_disk_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    entries = {"keys.db": {"bytes": 2**60, "sha256": ""}}
    backup = write_backup(tmp_path / "evil.backup", {"keys.db": b"x"}, entries)
    with pytest.raises(BackupUnusable, match="the disk has room for"):
        unpack_archive(backup, tmp_path / "unpacked", lambda manifest: None)
    assert not (tmp_path / "unpacked").exists()


@requirement("room:restore")
def test_of_a_file_larger_than_declared_nothing_is_written(tmp_path: Path) -> None:
    content = bytes(4_000_000)
    entries = {"keys.db": {"bytes": 10, "sha256": hashlib.sha256(content).hexdigest()}}
    backup = write_backup(tmp_path / "evil.backup", {"keys.db": content}, entries)
    with pytest.raises(BackupUnusable):
        unpack_archive(backup, tmp_path / "unpacked", lambda manifest: None)
    assert not (tmp_path / "unpacked").exists()


def _huge_header(tar: tarfile.TarFile) -> None:
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XHDTYPE, 100_000_000
    tar.addfile(header, io.BytesIO(bytes(header.size)))


def _negative_size(tar: tarfile.TarFile) -> None:
    header = tarfile.TarInfo("keys.db")
    header.size = -1024
    tar.fileobj.write(header.tobuf(tarfile.GNU_FORMAT))  # type: ignore[union-attr]


@requirement("room:restore")
@pytest.mark.parametrize("add", [_huge_header, _negative_size])
def test_a_header_of_an_impossible_size_is_refused_without_reading_it(
    tmp_path: Path, add: Callable[[tarfile.TarFile], None]
) -> None:
    backup = tmp_path / "evil.backup"
    entries = {"keys.db": {"bytes": 1, "sha256": ""}}
    with tarfile.open(backup, "w:gz") as tar:
        manifest = {"version": "1", "created_at": "", "bases": {}, "files": entries}
        _add(tar, "manifest.json", json.dumps(manifest).encode())
        add(tar)
    tracemalloc.start()
    try:
        with pytest.raises(BackupUnusable):
            unpack_archive(backup, tmp_path / "unpacked", lambda manifest: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@requirement("room:restore")
@pytest.mark.parametrize("name", ["../victim", "..", ".", "", "a/b", "/etc", "a\0b", "link"])
def test_a_path_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(StorageFailed):
        resolve_inside(folder, name)
    with pytest.raises(StorageFailed):
        resolve_inside(folder, "a", name, "b") if name != "link" else resolve_inside(folder, name)
    assert resolve_inside(folder, "25_1_a1b2c3", "a.pdf") == folder / "25_1_a1b2c3" / "a.pdf"


@requirement("room:restore")
@pytest.mark.anyio
async def test_an_intent_or_a_chunk_that_names_another_folder_deletes_nothing_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However they came into the stores: at the start, and by a repair."""
    folder, victim = tmp_path / "room" / "documents", tmp_path / "victim"
    victim.mkdir(parents=True)
    folder.mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt):
        async with StoreChangeCoordinator(folder / "intents.db").record_intent(
            "remove", document_id="../../../victim"
        ):
            raise KeyboardInterrupt
    async with open_documents_base(folder) as room:
        assert victim.is_dir()
        assert "is not the path of a file in" in caplog.text
        with pytest.raises(StorageFailed):
            await room.service.ingestion.delete_orphan_document("../../../victim")
    assert victim.is_dir()

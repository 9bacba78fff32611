"""A backup as one file: what is in it is listed with checksums, and nothing is believed before.

Databases and chunks are copied by what they hold, not as files that somebody may be writing to.
"""

import gzip
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.storage.chunks import ChunkCollection, Chunks
from readingroom.storage.database import connect, transaction
from readingroom.storage.errors import BackupUnusable, StorageFailed
from readingroom.storage.files import digest_of

FORMAT = 1
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 * 1024 * 1024
_BLOCK = 1024 * 1024
_PAGES = 4096  # of a database, between two reports
_ROWS = 2_000  # chunks read or written at once
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)

_CHUNKS = """
CREATE TABLE chunks (
    id TEXT PRIMARY KEY, text TEXT NOT NULL, metadata TEXT NOT NULL, vector BLOB NOT NULL
) STRICT;
CREATE TABLE about (embedding TEXT) STRICT;
"""


class Entry(BaseModel):
    """A file of a backup, as it must come out again."""

    bytes: int
    sha256: str


class Manifest(BaseModel):
    """What a backup holds: the first thing in it."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    version: str
    created_at: str
    bases: dict[str, dict[str, Any]]
    files: dict[str, Entry]


# --- the file ---


def entries_of(folder: Path) -> dict[str, Entry]:
    """Every file of a folder with its checksum."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _entry(path) for path in files}


def pack(manifest: Manifest, folder: Path, file: Path, report: ReportProgressSync) -> None:
    """Write the folder's files behind their manifest; `file` appears when all of it is on disk.

    Until then it grows beside `folder`, which must be on the disk of `file`.
    """
    part = folder.with_name(f"{folder.name}.packed")
    try:
        with (
            _created(part) as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=3, filename="", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add(tar, _MANIFEST, manifest.model_dump_json(indent=1).encode())
            for done, name in enumerate(manifest.files, 1):
                tar.add(folder / name, name, recursive=False, filter=_plain)
                report(done, len(manifest.files), None)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def unpack(file: Path, folder: Path, report: ReportProgressSync) -> Manifest:
    """Everything in `file`, checked, into `folder`."""
    with _opened(file) as tar:
        manifest = _manifest(tar)
        missing = dict(manifest.files)
        while member := tar.next():
            entry = missing.pop(member.name, None)
            if entry is None or not member.isfile():
                raise BackupUnusable(f"{file} is damaged: {member.name} does not belong in it")
            content = tar.extractfile(member)
            assert content is not None
            if _copy(content, folder / member.name) != entry:
                raise BackupUnusable(f"{file} is damaged: {member.name} is not what was backed up")
            report(len(manifest.files) - len(missing), len(manifest.files), None)
        if missing:
            raise BackupUnusable(f"{file} is damaged: {next(iter(missing))} is missing from it")
    return manifest


def read_manifest(file: Path) -> Manifest:
    """What a backup says it holds."""
    with _opened(file) as tar:
        return _manifest(tar)


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r|gz") as tar:
            yield tar
    except FileNotFoundError as error:
        raise BackupUnusable(f"There is no file {file}") from error
    except _DAMAGE as error:
        raise BackupUnusable(f"{file} is damaged, or not a backup: {error}") from error


def _manifest(tar: tarfile.TarFile) -> Manifest:
    member = tar.next()
    if member is None or member.name != _MANIFEST or member.size > _LARGEST_MANIFEST:
        raise BackupUnusable("The file is not a backup: it does not begin with a manifest")
    content = tar.extractfile(member)
    assert content is not None
    try:
        told = json.loads(content.read())
        if told.get("format", 0) > FORMAT:
            raise BackupUnusable(
                f"The backup was made by a newer Reading Room ({told.get('version')}): install "
                "that version, or a later one, and restore with it"
            )
        manifest = Manifest.model_validate(told)
    except (ValueError, AttributeError, TypeError, ValidationError) as error:
        raise BackupUnusable("The backup is damaged: its manifest cannot be read") from error
    if not all(_is_inside(name) for name in manifest.files):
        raise BackupUnusable("The backup names files outside of itself")
    return manifest


def _is_inside(name: str) -> bool:
    """Whether a file of this name lies in the folder it is unpacked to."""
    parts = name.split("/")
    return not any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)


@contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    """A new file for its owner's eyes, on disk when it is closed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(descriptor)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    tar.addfile(member, io.BytesIO(content))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """No names of this machine's users in what may travel."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _entry(path: Path) -> Entry:
    return Entry(bytes=path.stat().st_size, sha256=digest_of(path))


def _copy(content: IO[bytes], path: Path) -> Entry:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        path.chmod(0o600)
        while block := content.read(_BLOCK):
            digest.update(block)
            size += file.write(block)
    return Entry(bytes=size, sha256=digest.hexdigest())


# --- what goes into it ---


def copy_database(source: Path, copy: Path, report: ReportProgressSync = no_progress_sync) -> None:
    """A SQLite file as it is at this moment, whoever writes to it meanwhile."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(_reader(source)) as reading, closing(connect(copy)) as writing:
            # Held open, it pins one state of the file; else each write would start the copy anew.
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
            reading.backup(
                writing,
                pages=_PAGES,
                progress=lambda status, remaining, total: report(total - remaining, total, None),
            )
            # The copy is one file: a log beside it would be left behind.
            writing.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise StorageFailed(f"{source} cannot be copied: {error}") from error


def _reader(path: Path) -> sqlite3.Connection:
    return connect(path, timeout=30, pragmas={"query_only": "ON"})


def dump_chunks(chunks: ChunkCollection, path: Path) -> int:
    """Every chunk with its vector, in a file that no version of the store has to understand."""
    total = chunks.count()
    with closing(connect(path)) as db:
        db.executescript(_CHUNKS)
        with transaction(db):
            db.execute("INSERT INTO about VALUES (?)", (chunks.embedding,))
            for offset in range(0, total, _ROWS):
                page = chunks.get(vectors=True, limit=_ROWS, offset=offset)
                db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?)", _rows(page))
    return total


def fill_chunks(path: Path, chunks: ChunkCollection) -> int:
    """Put back what `dump_chunks` wrote; returns how many chunks."""
    with closing(_reader(path)) as db:
        (embedding,) = db.execute("SELECT embedding FROM about").fetchone()
        if embedding is not None:
            chunks.claim(embedding)
        cursor = db.execute("SELECT id, text, metadata, vector FROM chunks ORDER BY rowid")
        while rows := cursor.fetchmany(_ROWS):
            chunks.upsert(_page(rows))
    return chunks.count()


def _rows(page: Chunks) -> Iterator[tuple[str, str, str, bytes]]:
    for row, id in enumerate(page.ids):
        metadata = json.dumps(page.metadatas[row])
        yield id, page.texts[row], metadata, page.vectors[row].astype("<f4").tobytes()


def _page(rows: list[tuple[str, str, str, bytes]]) -> Chunks:
    ids, texts, metadatas, vectors = zip(*rows, strict=True)
    held = np.stack([np.frombuffer(vector, "<f4") for vector in vectors]).astype(np.float32)
    return Chunks(list(ids), list(texts), [json.loads(one) for one in metadatas], held)

"""Backups as one file, which begins with a manifest of its files and their checksums.

Databases and chunks are copied by their content, not as files that another process may be writing.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from readingroom.core.arrays import np
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.storage.chunks import Chunks, StoredCollection
from readingroom.storage.database import Database, DatabaseError, connect, open_untrusted
from readingroom.storage.errors import BackupUnusable, StorageFailed
from readingroom.storage.files import hash_file, is_plain_name

FORMAT_VERSION = 1
_MANIFEST_NAME = "manifest.json"
# Read into memory before anything is checked, so it must not be of any size.
_MAX_MANIFEST_BYTES = 64 * 1024 * 1024
_BYTES_PER_BLOCK = 1024 * 1024
_PAGES_PER_REPORT = 4096  # of a database, between two reports
_ROWS_PER_BATCH = 2_000  # chunks read or written at once
# gzip raises EOFError for a file that ends early, and zlib an error of its own for damaged blocks.
_DAMAGED_ARCHIVE_ERRORS = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)

_CHUNKS_SCHEMA_SQL = """
CREATE TABLE chunks (
    id TEXT PRIMARY KEY, text TEXT NOT NULL, metadata TEXT NOT NULL, vector BLOB NOT NULL
) STRICT;
CREATE TABLE about (embedding TEXT) STRICT;
"""


class FileEntry(BaseModel):
    """Size and checksum of a file in a backup."""

    bytes: int = Field(ge=0)
    sha256: str


# Shown to the operator, so they must not be able to move the cursor of a terminal.
_PrintableLine = Annotated[str, Field(pattern=r"^[ -~]{0,60}$")]


class Manifest(BaseModel):
    """The contents of a backup; it is the first file in it."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT_VERSION
    version: _PrintableLine
    created_at: _PrintableLine
    bases: dict[_PrintableLine, dict[_PrintableLine, int]]
    """What the copy of each base holds: `{"policy": {"policies": 6, "chunks": 174}}`."""
    files: dict[str, FileEntry]


# --- the file ---


def make_file_entries(backup_folder: Path) -> dict[str, FileEntry]:
    """Return every file of a folder by its relative path."""
    # Sorted, since a file system lists them in any order, and two manifests should compare.
    file_paths = sorted(file_path for file_path in backup_folder.rglob("*") if file_path.is_file())
    return {
        file_path.relative_to(backup_folder).as_posix(): _make_file_entry(file_path)
        for file_path in file_paths
    }


def pack_archive(
    backup_manifest: Manifest,
    source_folder: Path,
    archive_path: Path,
    report_progress: ReportProgressSync,
) -> None:
    """Write the manifest and the folder's files; `archive_path` appears once all of it is on disk.

    Until then it is written next to `source_folder`, which must be on the same disk as
    `archive_path`.
    """
    partial_archive_path = source_folder.with_name(f"{source_folder.name}.packed")
    try:
        with (
            _create_private_file(partial_archive_path) as archive_file,
            # A low level: vectors hardly compress at any, and a backup should not take long.
            # Without a name and a time, which would be those of the partial file.
            gzip.GzipFile(
                fileobj=archive_file, mode="wb", compresslevel=3, filename="", mtime=0
            ) as compressed_stream,
            tarfile.open(
                fileobj=compressed_stream, mode="w", format=tarfile.PAX_FORMAT
            ) as tar_file,
        ):
            _add_file_to_archive(
                tar_file, _MANIFEST_NAME, backup_manifest.model_dump_json(indent=1).encode()
            )
            for packed_count, file_name in enumerate(backup_manifest.files, 1):
                tar_file.add(
                    source_folder / file_name,
                    file_name,
                    recursive=False,
                    filter=_remove_owner_names,
                )
                report_progress(packed_count, len(backup_manifest.files), None)
        partial_archive_path.replace(archive_path)
    finally:
        partial_archive_path.unlink(missing_ok=True)


def unpack_archive(
    archive_path: Path,
    target_folder: Path,
    check_manifest: Callable[[Manifest], None],
    report_progress: ReportProgressSync = no_progress_sync,
) -> Manifest:
    """Extract and check every file, and return the manifest.

    `check_manifest` is called before anything is written, and raises `BackupUnusable` to refuse the
    backup. So does this when a file is missing, damaged or not in the manifest.
    """
    with _open_archive(archive_path) as tar_file:
        backup_manifest = _read_manifest(tar_file)
        check_manifest(backup_manifest)
        _check_free_space(backup_manifest, target_folder)
        remaining_entries_by_name = dict(backup_manifest.files)
        while archive_member := tar_file.next():
            file_entry = remaining_entries_by_name.pop(archive_member.name, None)
            if file_entry is None or not archive_member.isfile():
                raise BackupUnusable(
                    f"{archive_path} is damaged: {archive_member.name} does not belong in it"
                )
            # Compared first: of a file that is larger than declared nothing is written.
            if (
                archive_member.size != file_entry.bytes
                or _extract_member(tar_file, archive_member, target_folder) != file_entry.sha256
            ):
                raise BackupUnusable(
                    f"{archive_path} is damaged: {archive_member.name} is not what was backed up"
                )
            report_progress(
                len(backup_manifest.files) - len(remaining_entries_by_name),
                len(backup_manifest.files),
                None,
            )
        if remaining_entries_by_name:
            raise BackupUnusable(
                f"{archive_path} is damaged: "
                f"{next(iter(remaining_entries_by_name))} is missing from it"
            )
    return backup_manifest


def _check_free_space(backup_manifest: Manifest, target_folder: Path) -> None:
    """Raise `BackupUnusable` when the disk has no room for the files: they compress a lot."""
    needed_bytes = sum(file_entry.bytes for file_entry in backup_manifest.files.values())
    free_bytes = shutil.disk_usage(target_folder.parent).free
    if needed_bytes > free_bytes:
        raise BackupUnusable(
            f"The backup holds {needed_bytes} bytes, and the disk has room for {free_bytes}"
        )


@contextmanager
def _open_archive(archive_path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with (
            gzip.open(archive_path) as archive_content,
            # A plain tar only: by default tarfile would undo a second compression inside of the
            # first.
            tarfile.open(fileobj=_ForwardReader(archive_content), mode="r:") as tar_file,
        ):
            yield tar_file
    except FileNotFoundError as error:
        raise BackupUnusable(f"There is no file {archive_path}") from error
    except _DAMAGED_ARCHIVE_ERRORS as error:
        raise BackupUnusable(f"{archive_path} is damaged, or not a backup: {error}") from error


class _ForwardReader(io.RawIOBase):
    """The content of a backup, read once from its beginning, some bytes at a time.

    tarfile believes the sizes that headers claim. One could make it fill the memory, or go back
    and read the same members for ever; here such a read is an error.
    """

    def __init__(self, unzipped_content: gzip.GzipFile) -> None:
        self._content = unzipped_content

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BYTES_PER_BLOCK:
            raise tarfile.ReadError("a header claims a size that no header has")
        return self._content.read(size)

    def tell(self) -> int:
        return self._content.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if offset < self.tell():
            raise tarfile.ReadError("a header claims a size below zero")
        return self._content.seek(offset, whence)


def _read_manifest(tar_file: tarfile.TarFile) -> Manifest:
    first_member = tar_file.next()
    if (
        first_member is None
        or first_member.name != _MANIFEST_NAME
        or first_member.size > _MAX_MANIFEST_BYTES
    ):
        raise BackupUnusable("The file is not a backup: it does not begin with a manifest")
    try:
        manifest_fields = json.loads(b"".join(_read_member_blocks(tar_file, first_member)))
        # Before it is validated: the manifest of a newer version may have other fields.
        if manifest_fields.get("format", 0) > FORMAT_VERSION:
            raise BackupUnusable(
                "The backup was made by a newer Reading Room "
                f"({manifest_fields.get('version')!r}): install that version, or a later one, and "
                "restore with it"
            )
        backup_manifest = Manifest.model_validate(manifest_fields)
    except (ValueError, AttributeError, TypeError, RecursionError, ValidationError) as error:
        raise BackupUnusable("The backup is damaged: its manifest cannot be read") from error
    if not all(
        is_plain_name(path_part)
        for file_name in backup_manifest.files
        for path_part in file_name.split("/")
    ):
        raise BackupUnusable("The backup names files outside of itself")
    return backup_manifest


@contextmanager
def _create_private_file(file_path: Path) -> Iterator[IO[bytes]]:
    """Create a file that only its owner may read, and sync it to disk at the end."""
    # O_EXCL: a file that is there already could be somebody else's, or a link to one.
    file_descriptor = os.open(file_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file_descriptor, "wb") as open_file:
        yield open_file
        open_file.flush()
        os.fsync(file_descriptor)


def _add_file_to_archive(tar_file: tarfile.TarFile, file_name: str, file_content: bytes) -> None:
    archive_member = tarfile.TarInfo(file_name)
    archive_member.size = len(file_content)
    archive_member.mode = 0o600
    tar_file.addfile(archive_member, io.BytesIO(file_content))


def _remove_owner_names(archive_member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the member without the names of this machine's users: backups leave the machine."""
    archive_member.uid = archive_member.gid = 0
    archive_member.uname = archive_member.gname = ""
    archive_member.mode = 0o600
    return archive_member


def _make_file_entry(file_path: Path) -> FileEntry:
    return FileEntry(bytes=file_path.stat().st_size, sha256=hash_file(file_path))


def _extract_member(
    tar_file: tarfile.TarFile, archive_member: tarfile.TarInfo, target_folder: Path
) -> str:
    """Write a member to its path below `target_folder`, and return the SHA-256 of its bytes."""
    target_path = target_folder / archive_member.name
    target_path.parent.mkdir(parents=True, exist_ok=True)
    file_digest = hashlib.sha256()
    with target_path.open("wb") as target_file:
        target_path.chmod(0o600)
        for byte_block in _read_member_blocks(tar_file, archive_member):
            file_digest.update(byte_block)
            target_file.write(byte_block)
    return file_digest.hexdigest()


def _read_member_blocks(
    tar_file: tarfile.TarFile, archive_member: tarfile.TarInfo
) -> Iterator[bytes]:
    member_content = tar_file.extractfile(archive_member)
    assert member_content is not None
    while byte_block := member_content.read(_BYTES_PER_BLOCK):
        yield byte_block


# --- what goes into it ---


def copy_database(
    source_path: Path, copy_path: Path, report_progress: ReportProgressSync = no_progress_sync
) -> None:
    """Copy a SQLite file as it is at this moment, even while others write to it.

    Raise `StorageFailed` when it cannot be read or copied.
    """
    copy_path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            closing(_open_database_reader(source_path)) as source_db,
            closing(connect(copy_path)) as copy_db,
        ):
            # An open transaction pins one state of the file; without it each write by another
            # connection would start the copy again from the beginning.
            source_db.execute("BEGIN")
            source_db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            source_db.backup(
                copy_db,
                pages=_PAGES_PER_REPORT,
                progress=lambda copy_status, remaining_pages, total_pages: report_progress(
                    total_pages - remaining_pages, total_pages, None
                ),
            )
            # The copy must be one file: a write-ahead log next to it would be left behind.
            copy_db.execute("PRAGMA journal_mode = DELETE")
    except DatabaseError as error:
        raise StorageFailed(f"{source_path} cannot be copied: {error}") from error


def _open_database_reader(database_path: Path) -> Database:
    return connect(database_path, timeout=30, pragmas={"query_only": "ON"})


def dump_chunks(chunk_collection: StoredCollection, dump_path: Path) -> int:
    """Write every chunk with its vector to a file, and return how many there are.

    The file is SQLite of our own, so that any version of Chroma can be filled from it.
    """
    chunk_count = chunk_collection.count_chunks()
    with closing(connect(dump_path)) as db:
        db.executescript(_CHUNKS_SCHEMA_SQL)
        with db.transaction():
            db.execute("INSERT INTO about VALUES (?)", (chunk_collection.embedding_identity,))
            for batch_offset in range(0, chunk_count, _ROWS_PER_BATCH):
                chunk_batch = chunk_collection.read_chunks(
                    with_vectors=True, limit=_ROWS_PER_BATCH, offset=batch_offset
                )
                db.executemany(
                    "INSERT INTO chunks VALUES (?, ?, ?, ?)", _encode_chunk_rows(chunk_batch)
                )
    return chunk_count


ValidateChunks = Callable[[Chunks], object]
"""Raises `ValueError`, `KeyError` or `TypeError` for chunks that the base never writes."""


def check_chunk_dump(
    dump_path: Path, validate_chunks: ValidateChunks, vector_dimensions: int
) -> None:
    """Raise `BackupUnusable` unless `load_dumped_chunks` can read the file. Nothing is changed."""
    with _translate_damage_errors(dump_path), closing(open_untrusted(dump_path)) as db:
        for _ in _read_chunk_batches(db, validate_chunks, vector_dimensions):
            pass


def load_dumped_chunks(
    dump_path: Path,
    chunk_collection: StoredCollection,
    validate_chunks: ValidateChunks,
    vector_dimensions: int,
) -> int:
    """Add the chunks that `dump_chunks` wrote, and return how many there are.

    Raise `BackupUnusable` for anything that it does not write.
    """
    with _translate_damage_errors(dump_path), closing(open_untrusted(dump_path)) as db:
        (model_identity,) = db.execute("SELECT embedding FROM about").fetchone()
        if model_identity is not None:
            # First: it refuses vectors that another model made than those already here.
            chunk_collection.claim_embedding(str(model_identity))
        for chunk_batch in _read_chunk_batches(db, validate_chunks, vector_dimensions):
            chunk_collection.upsert_chunks(chunk_batch)
    return chunk_collection.count_chunks()


@contextmanager
def _translate_damage_errors(dump_path: Path) -> Iterator[None]:
    try:
        yield
    except (DatabaseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BackupUnusable(
            f"{dump_path.name} of the backup holds what no backup has: {error}"
        ) from error


def _read_chunk_batches(
    db: Database, validate_chunks: ValidateChunks, vector_dimensions: int
) -> Iterator[Chunks]:
    chunk_cursor = db.execute("SELECT id, text, metadata, vector FROM chunks ORDER BY rowid")
    while chunk_rows := chunk_cursor.fetchmany(_ROWS_PER_BATCH):
        chunk_batch = _decode_chunk_rows(chunk_rows)
        if (
            chunk_batch.vectors.shape[1] != vector_dimensions
            or not np.isfinite(chunk_batch.vectors).all()
        ):
            raise ValueError(f"a vector is not one of {vector_dimensions} numbers")
        validate_chunks(chunk_batch)
        yield chunk_batch


def _encode_chunk_rows(chunk_batch: Chunks) -> Iterator[tuple[str, str, str, bytes]]:
    for chunk_index, chunk_id in enumerate(chunk_batch.ids):
        metadata_json = json.dumps(chunk_batch.metadatas[chunk_index])
        yield (
            chunk_id,
            chunk_batch.texts[chunk_index],
            metadata_json,
            chunk_batch.vectors[chunk_index].astype("<f4").tobytes(),
        )


def _decode_chunk_rows(chunk_rows: list[tuple[str, str, str, bytes]]) -> Chunks:
    chunk_ids, chunk_texts, metadata_jsons, vector_blobs = zip(*chunk_rows, strict=True)
    vector_matrix = np.stack(
        [np.frombuffer(vector_blob, "<f4") for vector_blob in vector_blobs]
    ).astype(np.float32)
    return Chunks(
        list(chunk_ids),
        list(chunk_texts),
        [json.loads(metadata_json) for metadata_json in metadata_jsons],
        vector_matrix,
    )

"""Writes the whole documents base to files for a backup, and restores it from them."""

import json
import re
from dataclasses import replace as with_values
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.documents.ids import DOCUMENT_ID_PATTERN
from readingroom.bases.documents.registry.records import DocumentRecord
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.backup import BackupCounts
from readingroom.storage.archive import copy_database
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.files import link_or_copy, move_files, resolve_inside

_ABOUT = "about.json"
_CHUNKS = "chunks.db"
_REGISTRY = "registry.db"
_APPLICATIONS = "applications.db"
_FILES = "files"

BACKUP_FILES = re.compile(
    rf"about\.json|(chunks|registry|applications)\.db|files/{DOCUMENT_ID_PATTERN}/[\w-]+\.\w+",
    re.ASCII,
)
"""The names of the files that `write_backup` makes."""


async def write_backup(service: DocumentsService, folder: Path) -> BackupCounts:
    """Write the base as it is at one moment; changes wait meanwhile, searches do not."""
    async with service.ingestion.pause_changes():
        await anyio.Path(folder).mkdir(parents=True)
        chunk_count = await service.store.dump(folder / _CHUNKS, folder / _REGISTRY)
        records = await service.store.list_records()
        await anyio.to_thread.run_sync(_copy_files, service, records, folder)
    return BackupCounts(counts={"documents": len(records), "chunks": chunk_count})


async def restore_backup(
    service: DocumentsService, folder: Path, home: Path, replace: bool
) -> BackupCounts:
    """Fill an empty base from what `write_backup` wrote.

    `home` is where the base's folder will be in the end: a restore works in a folder beside it.

    Raises:
        BackupUnusable: the files cannot be read, or are not such as `write_backup` writes.
        DataNotEmpty: the base has documents, and `replace` is not set.
    """
    try:
        old_home = Path(json.loads(await anyio.Path(folder / _ABOUT).read_bytes())["folder"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(f"The documents of the backup cannot be read: {error}") from error
    existing = await service.store.list_records()
    if existing and not replace:
        raise DataNotEmpty(
            "CHROMA_PERSIST_DIR holds documents already; choose another folder, or replace them "
            "with --force"
        )
    for record in existing:
        # Through the ingestion, so that a crash halfway is finished at the next start.
        await service.ingestion.remove(record.document_id)
    chunk_count = await service.store.fill(folder / _CHUNKS, folder / _REGISTRY)
    records = await service.store.list_records()
    for record in records:
        # Uploads have no path but that of our copy, which lies in the base's own folder.
        if Path(record.file_path).is_relative_to(old_home):
            path = home / Path(record.file_path).relative_to(old_home)
            await service.store.register(with_values(record, file_path=str(path)))
    await anyio.to_thread.run_sync(_restore_files, service, folder)
    return BackupCounts(counts={"documents": len(records), "chunks": chunk_count})


def _copy_files(service: DocumentsService, records: list[DocumentRecord], folder: Path) -> None:
    (folder / _ABOUT).write_text(json.dumps({"folder": str(service.folder)}), "utf-8")
    if (database := service.folder / _APPLICATIONS).exists():
        # A plain copy of an open SQLite file could miss what is still in its journal.
        copy_database(database, folder / _APPLICATIONS)
    for record in records:
        file = service.ingestion.file_of(record)
        if file.exists():
            link_or_copy(file, resolve_inside(folder / _FILES, record.document_id, file.name))


def _restore_files(service: DocumentsService, folder: Path) -> None:
    if (database := folder / _APPLICATIONS).exists():
        service.applications.restore(database)
    move_files(folder / _FILES, service.folder / _FILES)

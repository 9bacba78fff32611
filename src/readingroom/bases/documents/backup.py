"""The whole documents base as files that another folder can be filled with, and back."""

import json
from dataclasses import replace as with_values
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.documents.records import DocumentRecord
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.backup import BackupCounts
from readingroom.storage.archive import copy_database
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.files import link_or_copy, move_files

_ABOUT = "about.json"
_CHUNKS = "chunks.db"
_REGISTRY = "registry.db"
_APPLICATIONS = "applications.db"
_FILES = "files"


async def write_copy(service: DocumentsService, folder: Path) -> BackupCounts:
    """Everything at one moment: changes wait until it is written, searches do not."""
    async with service.ingestion.paused():
        await anyio.Path(folder).mkdir(parents=True)
        chunks = await service.store.dump(folder / _CHUNKS, folder / _REGISTRY)
        documents = await service.store.documents()
        await anyio.to_thread.run_sync(_copy_files, service, documents, folder)
    return BackupCounts(counts={"documents": len(documents), "chunks": chunks})


async def read_copy(
    service: DocumentsService, folder: Path, home: Path, replace: bool
) -> BackupCounts:
    """Fill an empty base; `home` is where its folder will lie in the end."""
    try:
        came_from = json.loads(await anyio.Path(folder / _ABOUT).read_bytes())["folder"]
    except (OSError, ValueError, KeyError) as error:
        raise BackupUnusable(f"The documents of the backup cannot be read: {error}") from error
    held = await service.store.documents()
    if held and not replace:
        raise DataNotEmpty(
            "CHROMA_PERSIST_DIR holds documents already; choose another folder, or replace them "
            "with --force"
        )
    for one in held:
        await service.ingestion.remove(one.document_id)
    chunks = await service.store.fill(folder / _CHUNKS, folder / _REGISTRY)
    documents = await service.store.documents()
    for one in documents:
        if Path(one.file_path).is_relative_to(came_from):
            path = home / Path(one.file_path).relative_to(came_from)
            await service.store.register(with_values(one, file_path=str(path)))
    await anyio.to_thread.run_sync(_put_back, service, folder)
    return BackupCounts(counts={"documents": len(documents), "chunks": chunks})


def _copy_files(service: DocumentsService, documents: list[DocumentRecord], folder: Path) -> None:
    (folder / _ABOUT).write_text(json.dumps({"folder": str(service.folder)}), "utf-8")
    if (book := service.folder / _APPLICATIONS).exists():
        copy_database(book, folder / _APPLICATIONS)
    for one in documents:
        file = service.ingestion.file_of(one)
        if file.exists():
            link_or_copy(file, folder / _FILES / one.document_id / file.name)


def _put_back(service: DocumentsService, folder: Path) -> None:
    if (book := folder / _APPLICATIONS).exists():
        copy_database(book, service.folder / _APPLICATIONS)
    move_files(folder / _FILES, service.folder / _FILES)

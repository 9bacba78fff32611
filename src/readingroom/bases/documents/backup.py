"""Writes the whole documents base to files for a backup, and restores it from them."""

import json
import re
from dataclasses import replace as with_values
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.documents.ids import DOCUMENT_ID_REGEX
from readingroom.bases.documents.registry.records import DocumentRecord
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.backup import BackupCounts
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.files import link_or_copy, resolve_inside
from readingroom.storage.postgres.changes import open_restore

_ABOUT_FILE_NAME = "about.json"
_CHUNKS_FILE_NAME = "chunks.db"
_REGISTRY_FILE_NAME = "registry.db"
_APPLICATIONS_FILE_NAME = "applications.db"
_FILES_FOLDER_NAME = "files"

BACKUP_FILE_NAME_PATTERN = re.compile(
    rf"about\.json|(chunks|registry|applications)\.db|files/{DOCUMENT_ID_REGEX}/[\w-]+\.\w+",
    re.ASCII,
)
"""The names of the files that `write_backup` makes."""


async def write_backup(documents_service: DocumentsService, backup_folder: Path) -> BackupCounts:
    """Write the base as it is at one moment; changes wait meanwhile, searches do not."""
    async with documents_service.ingestion.pause_changes():
        await anyio.Path(backup_folder).mkdir(parents=True)
        chunk_count = await documents_service.store.write_dumps(
            backup_folder / _CHUNKS_FILE_NAME, backup_folder / _REGISTRY_FILE_NAME
        )
        document_records = await documents_service.store.list_records()
        await anyio.to_thread.run_sync(
            _back_up_files, documents_service, document_records, backup_folder
        )
    return BackupCounts(counts={"documents": len(document_records), "chunks": chunk_count})


async def restore_backup(
    documents_service: DocumentsService,
    backup_folder: Path,
    final_base_folder: Path,
    is_replacing: bool,
) -> BackupCounts:
    """Fill an empty base from what `write_backup` wrote.

    `final_base_folder` is where the base's folder will be in the end; until then it is filled
    elsewhere.

    Raises:
        BackupUnusable: the files cannot be read, or are not such as `write_backup` writes.
        DataNotEmpty: the base has documents, and `is_replacing` is not set.
    """
    try:
        original_base_folder = Path(
            json.loads(await anyio.Path(backup_folder / _ABOUT_FILE_NAME).read_bytes())["folder"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(f"The documents of the backup cannot be read: {error}") from error
    dump_paths = (backup_folder / _CHUNKS_FILE_NAME, backup_folder / _REGISTRY_FILE_NAME)
    # All of it is read before anything is removed from a store outside of the data directory.
    await documents_service.store.check_dumps(*dump_paths)
    async with open_restore(documents_service.database, "documents"):
        return await _restore_documents(
            documents_service,
            dump_paths,
            original_base_folder,
            backup_folder,
            final_base_folder,
            is_replacing,
        )


async def _restore_documents(
    documents_service: DocumentsService,
    dump_paths: tuple[Path, Path],
    original_base_folder: Path,
    backup_folder: Path,
    final_base_folder: Path,
    is_replacing: bool,
) -> BackupCounts:
    # Before anything is removed: it refuses what is no application.
    await anyio.to_thread.run_sync(_restore_applications, documents_service, backup_folder)
    existing_records = await documents_service.store.list_records()
    if existing_records and not is_replacing:
        raise DataNotEmpty(
            "CHROMA_PERSIST_DIR or the database at READINGROOM_DATABASE_URL holds documents "
            "already; choose another one, or replace them with --force"
        )
    for document_record in existing_records:
        # Through the ingestion, so that a crash halfway is finished at the next start.
        await documents_service.ingestion.remove_document(document_record.document_id)
    chunk_count = await documents_service.store.load_from_dumps(*dump_paths)
    restored_records = await documents_service.store.list_records()
    for document_record in restored_records:
        # Uploads have no path but that of our copy, which lies in the base's own folder.
        if Path(document_record.file_path).is_relative_to(original_base_folder):
            restored_file_path = final_base_folder / Path(document_record.file_path).relative_to(
                original_base_folder
            )
            await documents_service.store.register_document(
                with_values(document_record, file_path=str(restored_file_path))
            )
    await anyio.to_thread.run_sync(
        _restore_files, documents_service, backup_folder / _FILES_FOLDER_NAME
    )
    return BackupCounts(counts={"documents": len(restored_records), "chunks": chunk_count})


def _back_up_files(
    documents_service: DocumentsService, document_records: list[DocumentRecord], backup_folder: Path
) -> None:
    (backup_folder / _ABOUT_FILE_NAME).write_text(
        json.dumps({"folder": str(documents_service.folder)}), "utf-8"
    )
    documents_service.applications.dump_to_file(backup_folder / _APPLICATIONS_FILE_NAME)
    for document_record in document_records:
        copy_path = documents_service.ingestion.locate_copy(document_record)
        if copy_path.exists():
            link_or_copy(
                copy_path,
                resolve_inside(
                    backup_folder / _FILES_FOLDER_NAME, document_record.document_id, copy_path.name
                ),
            )


def _restore_applications(documents_service: DocumentsService, backup_folder: Path) -> None:
    if (applications_file := backup_folder / _APPLICATIONS_FILE_NAME).exists():
        documents_service.applications.delete_all_rows()
        documents_service.applications.restore_rows(applications_file)


def _restore_files(documents_service: DocumentsService, backup_files_folder: Path) -> None:
    for file_path in sorted(
        found_path for found_path in backup_files_folder.rglob("*") if found_path.is_file()
    ):
        documents_service.ingestion.move_copy_in(file_path.parent.name, file_path)

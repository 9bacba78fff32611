"""Writes the whole policy base to files for a backup, and restores it from them.

Registry and chunks are written as plain records, not as files of their stores, so a backup
outlives the version of either store and can move from our own registry to one at REDIS_URL.
"""

import re
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import BaseModel

from readingroom.bases.policy.registry.records import (
    REVISION_ID_PATTERN,
    SLUG_PATTERN,
    Policy,
    Revision,
)
from readingroom.bases.policy.service import PolicyService
from readingroom.ingest.read.formats.detect import POLICY_EXTENSIONS
from readingroom.protocol.backup import BackupCounts
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.files import link_or_copy, resolve_inside
from readingroom.storage.postgres.changes import open_restore

_REGISTRY_FILE_NAME = "registry.json"
_CHUNKS_FILE_NAME = "chunks.db"
_FILES_FOLDER_NAME = "files"

BACKUP_FILE_NAME_PATTERN = re.compile(
    rf"registry\.json|chunks\.db|files/{SLUG_PATTERN}/{REVISION_ID_PATTERN}"
    r"\.(?:pdf|docx|md|html?)",
    re.ASCII,
)
"""The names of the files that `write_backup` makes."""


class _RegistryDump(BaseModel):
    """The registry, as a backup holds it."""

    policies: list[Policy]
    revisions: list[Revision]


async def write_backup(policy_service: PolicyService, backup_folder: Path) -> BackupCounts:
    """Write the base as it is at one moment; changes wait meanwhile, searches do not."""
    async with policy_service.ingestion.pause_changes():
        policy_catalogue = await policy_service.registry.read_catalogue()
        await anyio.Path(backup_folder).mkdir(parents=True)
        chunk_count = await policy_service.store.write_dump(backup_folder / _CHUNKS_FILE_NAME)
        revisions = [
            revision
            for policy_timeline in policy_catalogue.timelines_by_slug.values()
            for revision in policy_timeline
        ]
        await anyio.to_thread.run_sync(
            _copy_revision_files, policy_service, revisions, backup_folder / _FILES_FOLDER_NAME
        )
    # Outside of the pause: it is in memory already, and changes need not wait for it.
    registry_dump = _RegistryDump(
        policies=list(policy_catalogue.policies_by_slug.values()), revisions=revisions
    )
    await anyio.Path(backup_folder / _REGISTRY_FILE_NAME).write_text(
        registry_dump.model_dump_json(), "utf-8"
    )
    return _make_backup_counts(registry_dump, chunk_count)


async def restore_backup(
    policy_service: PolicyService, backup_folder: Path, final_folder: Path, is_replacing: bool
) -> BackupCounts:
    """Fill an empty base from what `write_backup` wrote.

    `final_folder` is where the base's folder will be in the end; until then it is filled elsewhere.

    Raises:
        BackupUnusable: the files cannot be read, or are not such as `write_backup` writes.
        DataNotEmpty: the registry has policies, and `is_replacing` is not set.
    """
    try:
        registry_dump = _RegistryDump.model_validate_json(
            await anyio.Path(backup_folder / _REGISTRY_FILE_NAME).read_bytes()
        )
    except (OSError, ValueError) as error:
        raise BackupUnusable(f"The policies of the backup cannot be read: {error}") from error
    async with open_restore(policy_service.database, "policy"):
        return await _restore_base(
            policy_service, registry_dump, backup_folder, final_folder, is_replacing
        )


async def _restore_base(
    policy_service: PolicyService,
    registry_dump: _RegistryDump,
    backup_folder: Path,
    final_folder: Path,
    is_replacing: bool,
) -> BackupCounts:
    if (await policy_service.registry.read_catalogue()).policies_by_slug:
        if not is_replacing:
            raise DataNotEmpty(
                "The registry at REDIS_URL or the database at READINGROOM_DATABASE_URL holds "
                "policies already; choose another database there, or replace them with --force"
            )
        if policy_service.ingestion.is_shared:  # a folder is put aside whole
            await policy_service.store.delete_all()
            await anyio.to_thread.run_sync(policy_service.ingestion.files.delete_all)
    chunk_count = await policy_service.store.load_from_dump(backup_folder / _CHUNKS_FILE_NAME)
    await anyio.to_thread.run_sync(
        _restore_revision_files, policy_service, registry_dump, backup_folder / _FILES_FOLDER_NAME
    )
    relocated_revisions = [
        _relocate_revision(revision, policy_service, final_folder)
        for revision in registry_dump.revisions
    ]
    # The registry last: until then no search resolves to what is only half restored, and a backup
    # that is refused has deleted nothing.
    await policy_service.registry.delete_all()
    await policy_service.registry.restore_records(registry_dump.policies, relocated_revisions)
    return _make_backup_counts(registry_dump, chunk_count)


def _make_backup_counts(registry_dump: _RegistryDump, chunk_count: int) -> BackupCounts:
    return BackupCounts(
        counts={
            "policies": len(registry_dump.policies),
            "revisions": len(registry_dump.revisions),
            "chunks": chunk_count,
        }
    )


def _copy_revision_files(
    policy_service: PolicyService, revisions: list[Revision], backup_files_folder: Path
) -> None:
    for revision in revisions:
        file_path = policy_service.ingestion.files.locate_file(
            revision.source, revision.revision_id
        )
        if file_path.exists():
            link_or_copy(
                file_path, _build_backup_file_path(backup_files_folder, revision, file_path.suffix)
            )


def _build_backup_file_path(
    backup_files_folder: Path, revision: Revision, file_extension: str
) -> Path:
    return resolve_inside(
        backup_files_folder, revision.source, f"{revision.revision_id}{file_extension}"
    )


def _restore_revision_files(
    policy_service: PolicyService, registry_dump: _RegistryDump, backup_files_folder: Path
) -> None:
    for revision in registry_dump.revisions:
        for file_extension in POLICY_EXTENSIONS:
            backup_file_path = _build_backup_file_path(
                backup_files_folder, revision, file_extension
            )
            if backup_file_path.exists():
                policy_service.ingestion.files.move_into_place(
                    backup_file_path, revision.source, revision.revision_id, file_extension
                )
                break


def _relocate_revision(
    revision: Revision, policy_service: PolicyService, final_folder: Path
) -> Revision:
    """Return the revision with the path its file will have below `final_folder`."""
    file_path = policy_service.ingestion.files.get_file_path(revision.source, revision.revision_id)
    return revision.model_copy(
        update={"file_path": str(final_folder / file_path.relative_to(policy_service.folder))}
    )

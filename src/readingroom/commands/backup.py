"""`readingroom backup`: everything of a data directory in one file, which `restore` reads.

A backup may be taken while the server serves. What other programs made is not in it: the embedding
model, `readingroom.toml`, the text base's file, and the inboxes.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from readingroom import __version__
from readingroom.bases import BASES
from readingroom.console.options import (
    add_common_options,
    explain_interrupt,
    make_tenths_printer,
    print_result,
    run_command,
)
from readingroom.core import clock
from readingroom.core.settings import SAMPLE_MARK_FILE_NAME, RoomSettings
from readingroom.protocol.backup import BaseBackup
from readingroom.protocol.command import Command
from readingroom.storage.archive import Manifest, copy_database, make_file_entries, pack_archive
from readingroom.storage.errors import BackupUnusable, FolderInUse
from readingroom.storage.keys import KEYS_FILE_NAME
from readingroom.storage.lock import FolderLock, FolderOwner, read_folder_owner
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys

_WORKSPACE_PREFIX = ".backup-"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@add_common_options
def backup(file: Path, settings: RoomSettings, as_json: bool) -> None:
    """Write everything of the data directory to FILE, also while a server runs on it.

    Changes wait while a base is copied; searches do not. FILE holds hashed keys and your documents,
    so only you may read it. readingroom.toml and the embedding model are not in it.
    """
    # With a database there may be none: no base keeps in it what a backup is of.
    if not settings.database_url and not settings.data.is_dir():
        raise BackupUnusable(f"There is no data directory {settings.data}")
    file = file.absolute()
    if not file.parent.is_dir():
        raise BackupUnusable(
            f"There is no folder {file.parent} to write the backup to: make it first"
        )
    with (
        explain_interrupt(f"Nothing was written to {file}: run the same command again"),
        _open_backup_workspace(file.parent) as copies_folder,
    ):
        backup_manifest = _copy_all_stores(settings, copies_folder)
        pack_archive(
            backup_manifest, copies_folder, file, make_tenths_printer("packing: {} of {} files")
        )
    archive_byte_count = file.stat().st_size
    manifest_fields = backup_manifest.model_dump(mode="json", exclude={"files"})
    manifest_fields |= {
        "file": str(file),
        "files": len(backup_manifest.files),
        "bytes": archive_byte_count,
    }
    print_result(
        as_json,
        manifest_fields,
        f"{file}: {describe_backup_contents(backup_manifest)}; {archive_byte_count / 1e6:.1f} MB",
    )


def load_backup_handlers() -> dict[str, BaseBackup]:
    """Return how each base that has data of its own is backed up."""
    return {
        base_name: base_spec.backup.import_value()
        for base_name, base_spec in BASES.items()
        if base_spec.backup
    }


def run_base_command(
    base_name: str, base_command: Command, settings: RoomSettings
) -> dict[str, Any]:
    """Run a command of a base, here or in the server that owns its folder."""
    return run_command(base_command, BASES[base_name], settings)


@contextmanager
def _open_backup_workspace(parent_folder: Path) -> Iterator[Path]:
    """Give an empty folder to collect copies in, deleted at the end; sweep those of killed backups.

    A kill leaves the folder behind and releases its lock. So a folder whose lock names an owner,
    and that nobody holds, belongs to a backup that was killed.
    """
    _delete_abandoned_workspaces(parent_folder)
    # Beside the backup: the folder for temporary files may be small, or in memory.
    backup_workspace = Path(tempfile.mkdtemp(prefix=_WORKSPACE_PREFIX, dir=parent_folder))
    workspace_lock = _lock_workspace(backup_workspace)
    copies_folder = backup_workspace / "collected"
    copies_folder.mkdir()
    try:
        yield copies_folder
    finally:
        _delete_workspace(backup_workspace, workspace_lock)


def _delete_abandoned_workspaces(parent_folder: Path) -> None:
    """Delete the workspaces of backups that were killed."""
    for backup_workspace in parent_folder.glob(f"{_WORKSPACE_PREFIX}*"):
        if read_folder_owner(backup_workspace) is not None:
            with suppress(FolderInUse):  # another backup is being made
                _delete_workspace(backup_workspace, _lock_workspace(backup_workspace))


def _lock_workspace(backup_workspace: Path) -> FolderLock:
    workspace_lock = FolderLock(backup_workspace)
    workspace_lock.acquire()
    workspace_lock.write_folder_owner(FolderOwner(url="", key="", pid=os.getpid()))
    return workspace_lock


def _delete_workspace(backup_workspace: Path, workspace_lock: FolderLock) -> None:
    """Delete a workspace, its lock last: if we are killed meanwhile, the next backup sweeps it."""
    for workspace_path in backup_workspace.iterdir():
        if workspace_path.is_dir():
            shutil.rmtree(workspace_path)
        elif workspace_path != workspace_lock.path:
            workspace_path.unlink()
    shutil.rmtree(backup_workspace)
    workspace_lock.release()


def _copy_all_stores(settings: RoomSettings, copies_folder: Path) -> Manifest:
    """Copy every store into `copies_folder` and return the manifest of the copies."""
    if settings.is_sample:  # else what is restored from it would pass for the real thing
        shutil.copyfile(
            settings.data / SAMPLE_MARK_FILE_NAME, copies_folder / SAMPLE_MARK_FILE_NAME
        )
    key_ring = open_keys(settings)
    if isinstance(key_ring, SharedKeyRing):
        key_ring.dump_keys(copies_folder)
    elif (settings.data / KEYS_FILE_NAME).exists():
        copy_database(settings.data / KEYS_FILE_NAME, copies_folder / KEYS_FILE_NAME)
    record_counts_by_base: dict[str, dict[str, Any]] = {}
    for base_name, backup_handler in load_backup_handlers().items():
        if backup_handler.has_data(settings):
            click.echo(f"{base_name}: copying", err=True)
            counted_noun = "tables" if settings.database_url else "pages"
            report_copied_share = make_tenths_printer(
                f"{base_name}: {{}} of {{}} {counted_noun} copied"
            )
            record_counts_by_base[base_name] = backup_handler.write_backup(
                settings, copies_folder, partial(run_base_command, base_name), report_copied_share
            )
    return Manifest(
        version=__version__,
        created_at=clock.format_now(),
        bases=record_counts_by_base,
        files=make_file_entries(copies_folder),
    )


def describe_backup_contents(backup_manifest: Manifest) -> str:
    """Return what a backup holds, in words: `policy (6 policies, 174 chunks)`."""
    base_summaries = []
    for base_name, record_counts in backup_manifest.bases.items():
        counts_text = ", ".join(
            _join_count_and_noun(record_noun, record_count)
            for record_noun, record_count in record_counts.items()
        )
        base_summaries.append(f"{base_name} ({counts_text})")
    return ", ".join(base_summaries) or "no base"


def _join_count_and_noun(plural_noun: str, record_count: int) -> str:
    return f"schema {record_count}" if plural_noun == "schema" else f"{record_count} {plural_noun}"

"""`readingroom restore`: a data directory filled from a backup, whole or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from readingroom import __version__
from readingroom.commands.backup import (
    describe_backup_contents,
    load_backup_handlers,
    run_base_command,
)
from readingroom.console.options import (
    add_common_options,
    explain_interrupt,
    make_tenths_printer,
    print_result,
)
from readingroom.core import clock
from readingroom.core.settings import (
    CONFIGURATION_FILE_NAME,
    MODELS_FOLDER_NAME,
    SAMPLE_MARK_FILE_NAME,
    RoomSettings,
)
from readingroom.interrupts import change_kept_sentence, defer_interrupts
from readingroom.protocol.backup import BaseBackup
from readingroom.storage.archive import Manifest, unpack_archive
from readingroom.storage.errors import BackupUnusable, DataNotEmpty, StorageFailed
from readingroom.storage.keys import KEYS_FILE_NAME, Key, KeyRing
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys
from readingroom.storage.postgres.preflight import check_database

# Both are inside the data directory: on one file system, putting in place is a rename.
STAGING_FOLDER_NAME = ".restoring"
REPLACED_FOLDER_NAME = ".replaced"
_UNCHANGED_SENTENCE = "The data directory is as it was: run the same command again"
_IN_DATABASE_SENTENCE = (
    "Each base is in the database whole or not at all: run it again with --force, which replaces "
    "those that are"
)
_RESTORED_SENTENCE = "The backup is in place whole: check it with `readingroom doctor`"
# What a restore leaves where it is.
_NEVER_REPLACED_NAMES = (MODELS_FOLDER_NAME, CONFIGURATION_FILE_NAME)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Move aside what is in the data directory.")
@add_common_options
def restore(file: Path, force: bool, settings: RoomSettings, as_json: bool) -> None:
    """Fill the data directory from the backup FILE.

    Nothing is put in place before all of FILE has been read and checked. With --force what was
    there is kept in the folder `.replaced` of the data directory. The keys in FILE come back too,
    and are listed: whoever has one of them may call. If it has none, the keys that are here stay.
    """
    # Before the directory is looked at: whoever mistyped the name should not empty that first.
    if not file.exists():
        raise click.BadParameter(f"There is no file {file}", param_hint="'FILE'")
    data_directory = settings.data
    backup_handler_by_base = load_backup_handlers()
    _check_directory_empty(data_directory, force)
    check_database(settings)
    data_directory.mkdir(parents=True, exist_ok=True)
    staging_folder = data_directory / STAGING_FOLDER_NAME
    kept_sentence = _IN_DATABASE_SENTENCE if settings.database_url else _UNCHANGED_SENTENCE
    with (
        explain_interrupt(kept_sentence),
        _lock_all_bases(backup_handler_by_base, data_directory),
    ):
        # What a restore that was killed has left.
        shutil.rmtree(staging_folder, ignore_errors=True)
        try:
            report_unpacked_files = make_tenths_printer("unpacking: {} of {} files")
            backup_manifest = unpack_archive(
                file,
                staging_folder,
                partial(_check_before_unpacking, backup_handler_by_base, settings, force),
                report_unpacked_files,
            )
            restored_keys = _restore_keys(staging_folder)
            has_key_file = (staging_folder / KEYS_FILE_NAME).exists()
            old_keys = _list_old_keys(settings)
            restored_counts_by_base = _restore_bases(
                backup_manifest, backup_handler_by_base, settings, force
            )
            _move_keys_to_database(settings, staging_folder)
            with defer_interrupts():
                _move_restored_files(staging_folder, data_directory)
                change_kept_sentence(_RESTORED_SENTENCE)
        finally:
            shutil.rmtree(staging_folder, ignore_errors=True)
    result_fields = {
        "data": str(data_directory),
        "created_at": backup_manifest.created_at,
        "bases": backup_manifest.bases | restored_counts_by_base,
        "keys": [asdict(restored_key) for restored_key in restored_keys],
        "keys_kept": [] if has_key_file else [old_key.name for old_key in old_keys],
        "keys_removed": [old_key.name for old_key in old_keys] if has_key_file else [],
    }
    result_lines = [
        f"Restored {describe_backup_contents(backup_manifest)} to {data_directory}. "
        "Check it: readingroom doctor"
    ]
    result_lines += [_describe_restored_key(restored_key) for restored_key in restored_keys]
    result_lines += [_describe_old_key(old_key, has_key_file) for old_key in old_keys]
    print_result(as_json, result_fields, "\n".join(result_lines))


def _check_directory_empty(data_directory: Path, is_forced: bool) -> None:
    existing_names = sorted(old_path.name for old_path in _list_replaceable_paths(data_directory))
    if existing_names and not is_forced:
        raise DataNotEmpty(
            f"{data_directory} is not empty ({', '.join(existing_names[:5])}). Choose another "
            "directory with --data, or move what is there aside with --force."
        )


def _list_replaceable_paths(data_directory: Path) -> list[Path]:
    """Return what is in a data directory that a restore would replace."""
    if not data_directory.is_dir():
        return []
    return [
        entry_path
        for entry_path in data_directory.iterdir()
        if entry_path.name not in _NEVER_REPLACED_NAMES and entry_path.name[0] != "."
    ]


@contextmanager
def _lock_all_bases(
    backup_handler_by_base: dict[str, BaseBackup], data_directory: Path
) -> Iterator[None]:
    """Keep servers out of the directory. Raise `FolderInUse` when one is running on it."""
    with ExitStack() as lock_stack:
        for backup_handler in backup_handler_by_base.values():
            lock_stack.enter_context(backup_handler.lock_base(data_directory))
        yield


def _check_before_unpacking(
    backup_handler_by_base: dict[str, BaseBackup],
    settings: RoomSettings,
    may_replace: bool,
    backup_manifest: Manifest,
) -> None:
    """Raise what `_check_manifest` raises, and `DataNotEmpty` for a database that is filled."""
    _check_manifest(backup_handler_by_base, backup_manifest)
    if not may_replace:
        for base_name in backup_manifest.bases:
            run_command_here = partial(run_base_command, base_name)
            backup_handler_by_base[base_name].refuse_to_overwrite(settings, run_command_here)


def _check_manifest(
    backup_handler_by_base: dict[str, BaseBackup], backup_manifest: Manifest
) -> None:
    """Raise `BackupUnusable` for a file that `backup` would not write, or of a newer version."""
    for base_name, record_counts in backup_manifest.bases.items():
        if base_name not in backup_handler_by_base or not backup_handler_by_base[
            base_name
        ].can_read_backup(record_counts):
            raise BackupUnusable(
                f"The backup was made by a newer Reading Room ({backup_manifest.version}), "
                f"which knows more than this one ({__version__}): restore it with that version, "
                "or a later one"
            )
    for file_name in backup_manifest.files:
        # Everything else would get to the data directory as it is, read by nobody before.
        if file_name not in (KEYS_FILE_NAME, SAMPLE_MARK_FILE_NAME) and not any(
            backup_handler_by_base[base_name].is_backup_file(file_name)
            for base_name in backup_manifest.bases
        ):
            raise BackupUnusable(f"The backup holds a file that no backup has: {file_name!r}")


def _restore_keys(staging_folder: Path) -> list[Key]:
    """Replace the unpacked key file by a new one with the same keys, and return them."""
    if not (staging_folder / KEYS_FILE_NAME).exists():
        return []
    untrusted_copy_path = (staging_folder / KEYS_FILE_NAME).rename(
        staging_folder / f".{KEYS_FILE_NAME}"
    )
    restored_keys = KeyRing(staging_folder).restore_keys(untrusted_copy_path)
    untrusted_copy_path.unlink()
    return restored_keys


def _move_keys_to_database(settings: RoomSettings, staging_folder: Path) -> None:
    """Move the restored keys to the database, where the settings name one."""
    key_ring, keys_path = open_keys(settings), staging_folder / KEYS_FILE_NAME
    if isinstance(key_ring, SharedKeyRing) and keys_path.exists():
        key_ring.replace_all_keys(keys_path)
        keys_path.unlink()


def _list_old_keys(settings: RoomSettings) -> list[Key]:
    """Return the keys that are there before the restore; none of a file that is damaged."""
    try:
        return open_keys(settings).list_keys()
    except StorageFailed:
        return []


def _describe_restored_key(restored_key: Key) -> str:
    rights_text = (
        ", read-only"
        if restored_key.read_only
        else ", an operator's"
        if restored_key.operator
        else ""
    )
    holder_text = (
        f"OAuth subject {restored_key.subject!r}" if restored_key.subject else "whoever has it"
    )
    return (
        f"Key {restored_key.name} ({holder_text}, made {restored_key.created_at}{rights_text}) "
        "is valid from now on"
    )


def _describe_old_key(old_key: Key, is_key_replaced: bool) -> str:
    if is_key_replaced:
        return f"Key {old_key.name} of this directory is not valid any more: the backup has others"
    return f"Key {old_key.name} of this directory stays valid: the backup has no keys"


def _restore_bases(
    backup_manifest: Manifest,
    backup_handler_by_base: dict[str, BaseBackup],
    settings: RoomSettings,
    may_replace: bool,
) -> dict[str, dict[str, int]]:
    """Fill each base in the staging directory from its copy there."""
    staging_folder = settings.data / STAGING_FOLDER_NAME
    setting_changes: dict[str, Any] = {"data": staging_folder}
    for backup_handler in backup_handler_by_base.values():
        setting_changes |= backup_handler.relocate_paths(settings, staging_folder)
    staged_settings = settings.model_copy(update=setting_changes)
    restored_counts_by_base = {}
    for base_name in backup_manifest.bases:
        click.echo(f"{base_name}: putting back", err=True)
        run_command_here = partial(run_base_command, base_name)
        restored_record_counts = backup_handler_by_base[base_name].restore_backup(
            staged_settings, settings.data, may_replace, run_command_here
        )
        if restored_record_counts is not None:
            restored_counts_by_base[base_name] = restored_record_counts
    return restored_counts_by_base


def _move_restored_files(staging_folder: Path, data_directory: Path) -> None:
    """Rename only: what was there goes aside, what was restored takes its place."""
    replaceable_paths = _list_replaceable_paths(data_directory)
    if not (staging_folder / KEYS_FILE_NAME).exists():
        # A server without keys is open: nobody asked for that by restoring documents.
        replaceable_paths = [
            old_path for old_path in replaceable_paths if old_path.name != KEYS_FILE_NAME
        ]
    if replaceable_paths:
        replaced_folder = (
            data_directory / REPLACED_FOLDER_NAME / clock.now().strftime("%Y%m%dT%H%M%S%f")
        )
        replaced_folder.mkdir(parents=True)
        for old_path in replaceable_paths:
            old_path.rename(replaced_folder / old_path.name)
    for staged_path in staging_folder.iterdir():
        if staged_path.name not in _NEVER_REPLACED_NAMES:
            staged_path.rename(data_directory / staged_path.name)

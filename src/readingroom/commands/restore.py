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
from readingroom.commands.backup import base_backups, run_command, summarise
from readingroom.console.options import common, print_result, print_tenths
from readingroom.core import clock
from readingroom.core.settings import CONFIGURATION, MODELS, SAMPLE_MARK, RoomSettings
from readingroom.protocol.backup import BaseBackup
from readingroom.storage.archive import Manifest, unpack
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.keys import KEYS, Key, KeyRing

# Both are inside the data directory: on one file system, putting in place is a rename.
RESTORING = ".restoring"
REPLACED = ".replaced"
# What a restore leaves where it is.
_UNTOUCHED = (MODELS, CONFIGURATION)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Move aside what is in the data directory.")
@common
def restore(file: Path, force: bool, settings: RoomSettings, as_json: bool) -> None:
    """Fill the data directory from the backup FILE.

    Nothing is put in place before all of FILE has been read and checked. With --force what was
    there is kept in the folder `.replaced` of the data directory. The keys in FILE come back too,
    and are listed: whoever has one of them may call.
    """
    home = settings.data
    bases = base_backups()
    _check_empty(home, force)
    home.mkdir(parents=True, exist_ok=True)
    staging = home / RESTORING
    with _lock_bases(bases, home):
        # What a restore that was killed has left.
        shutil.rmtree(staging, ignore_errors=True)
        try:
            report = print_tenths("unpacking: {} of {} files")
            manifest = unpack(file, staging, partial(_check_manifest, bases), report)
            keys = _restore_keys(staging)
            counts = _restore_bases(manifest, bases, settings, force)
            _put_in_place(staging, home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    body = {
        "data": str(home),
        "created_at": manifest.created_at,
        "bases": manifest.bases | counts,
        "keys": [asdict(key) for key in keys],
    }
    lines = [f"Restored {summarise(manifest)} to {home}. Check it: readingroom doctor"]
    lines += [_describe_key(key) for key in keys]
    print_result(as_json, body, "\n".join(lines))


def _check_empty(home: Path, force: bool) -> None:
    names = sorted(path.name for path in _list_replaceable(home))
    if names and not force:
        raise DataNotEmpty(
            f"{home} is not empty ({', '.join(names[:5])}). Choose another directory with --data, "
            "or move what is there aside with --force."
        )


def _list_replaceable(home: Path) -> list[Path]:
    """Return what is in a data directory that a restore would replace."""
    if not home.is_dir():
        return []
    return [path for path in home.iterdir() if path.name not in _UNTOUCHED and path.name[0] != "."]


@contextmanager
def _lock_bases(bases: dict[str, BaseBackup], home: Path) -> Iterator[None]:
    """Keep servers out of the directory. Raise `FolderInUse` when one is running on it."""
    with ExitStack() as stack:
        for base in bases.values():
            stack.enter_context(base.lock(home))
        yield


def _check_manifest(bases: dict[str, BaseBackup], manifest: Manifest) -> None:
    """Raise `BackupUnusable` for a file that `backup` would not write, or of a newer version."""
    for name, counts in manifest.bases.items():
        if name not in bases or not bases[name].can_read(counts):
            raise BackupUnusable(
                f"The backup was made by a newer Reading Room ({manifest.version}), which knows "
                f"more than this one ({__version__}): restore it with that version, or a later one"
            )
    for file_name in manifest.files:
        # Everything else would get to the data directory as it is, read by nobody before.
        if file_name not in (KEYS, SAMPLE_MARK) and not any(
            bases[name].is_backup_file(file_name) for name in manifest.bases
        ):
            raise BackupUnusable(f"The backup holds a file that no backup has: {file_name!r}")


def _restore_keys(staging: Path) -> list[Key]:
    """Replace the unpacked key file by a new one with the same keys, and return them."""
    if not (staging / KEYS).exists():
        return []
    copy = (staging / KEYS).rename(staging / f".{KEYS}")
    keys = KeyRing(staging).restore(copy)
    copy.unlink()
    return keys


def _describe_key(key: Key) -> str:
    rights = ", read-only" if key.read_only else ""
    holder = f"OAuth subject {key.subject!r}" if key.subject else "whoever has it"
    return f"Key {key.name} ({holder}, made {key.created_at}{rights}) is valid from now on"


def _restore_bases(
    manifest: Manifest, bases: dict[str, BaseBackup], settings: RoomSettings, replace: bool
) -> dict[str, dict[str, int]]:
    """Fill each base in the staging directory from its copy there."""
    staging = settings.data / RESTORING
    changes: dict[str, Any] = {"data": staging}
    for base in bases.values():
        changes |= base.relocate(settings, staging)
    staged = settings.model_copy(update=changes)
    restored = {}
    for name in manifest.bases:
        click.echo(f"{name}: putting back", err=True)
        run = partial(run_command, name)
        counts = bases[name].restore(staged, settings.data, replace, run)
        if counts is not None:
            restored[name] = counts
    return restored


def _put_in_place(staging: Path, home: Path) -> None:
    """Rename only: what was there goes aside, what was restored takes its place."""
    replaceable = _list_replaceable(home)
    if replaceable:
        aside = home / REPLACED / clock.now().strftime("%Y%m%dT%H%M%S%f")
        aside.mkdir(parents=True)
        for path in replaceable:
            path.rename(aside / path.name)
    for path in staging.iterdir():
        if path.name not in _UNTOUCHED:
            path.rename(home / path.name)

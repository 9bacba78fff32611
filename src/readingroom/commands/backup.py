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
from readingroom.console.options import common, print_result, print_tenths, run
from readingroom.core import clock
from readingroom.core.settings import SAMPLE_MARK, RoomSettings
from readingroom.protocol.backup import BaseBackup
from readingroom.protocol.command import Command
from readingroom.storage.archive import Manifest, copy_database, list_entries, pack
from readingroom.storage.errors import BackupUnusable, FolderInUse
from readingroom.storage.keys import KEYS
from readingroom.storage.lock import FolderLock, Owner, read_owner

_PREFIX = ".backup-"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common
def backup(file: Path, settings: RoomSettings, as_json: bool) -> None:
    """Write everything of the data directory to FILE, also while a server runs on it.

    Changes wait while a base is copied; searches do not. FILE holds hashed keys and your documents,
    so only you may read it. readingroom.toml and the embedding model are not in it.
    """
    if not settings.data.is_dir():
        raise BackupUnusable(f"There is no data directory {settings.data}")
    file = file.absolute()
    with _open_workspace(file.parent) as folder:
        manifest = _collect(settings, folder)
        pack(manifest, folder, file, print_tenths("packing: {} of {} files"))
    size = file.stat().st_size
    body = manifest.model_dump(mode="json", exclude={"files"})
    body |= {"file": str(file), "files": len(manifest.files), "bytes": size}
    print_result(as_json, body, f"{file}: {summarise(manifest)}; {size / 1e6:.1f} MB")


def base_backups() -> dict[str, BaseBackup]:
    """Return how each base that has data of its own is backed up."""
    return {name: spec.backup.load() for name, spec in BASES.items() if spec.backup}


def run_command(base: str, command: Command, settings: RoomSettings) -> dict[str, Any]:
    """Run a command of a base, here or in the server that owns its folder."""
    return run(command, BASES[base], settings)


@contextmanager
def _open_workspace(parent: Path) -> Iterator[Path]:
    """Give an empty folder to collect copies in, deleted at the end; sweep those of killed backups.

    A kill leaves the folder behind and releases its lock. So a folder whose lock names an owner,
    and that nobody holds, belongs to a backup that was killed.
    """
    _sweep(parent)
    # Beside the backup: the folder for temporary files may be small, or in memory.
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = _lock(folder)
    collected = folder / "collected"
    collected.mkdir()
    try:
        yield collected
    finally:
        _clear(folder, lock)


def _sweep(parent: Path) -> None:
    """Delete the workspaces of backups that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        if read_owner(folder) is not None:
            with suppress(FolderInUse):  # another backup is being made
                _clear(folder, _lock(folder))


def _lock(folder: Path) -> FolderLock:
    lock = FolderLock(folder)
    lock.acquire()
    lock.announce(Owner(url="", key="", pid=os.getpid()))
    return lock


def _clear(folder: Path, lock: FolderLock) -> None:
    """Delete a workspace, its lock last: if we are killed meanwhile, the next backup sweeps it."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != lock.path:
            path.unlink()
    shutil.rmtree(folder)
    lock.release()


def _collect(settings: RoomSettings, folder: Path) -> Manifest:
    """Copy every store into `folder` and return the manifest of the copies."""
    if settings.sample:  # else what is restored from it would pass for the real thing
        shutil.copyfile(settings.data / SAMPLE_MARK, folder / SAMPLE_MARK)
    if (settings.data / KEYS).exists():
        copy_database(settings.data / KEYS, folder / KEYS)
    bases: dict[str, dict[str, Any]] = {}
    for name, base in base_backups().items():
        if base.exists(settings):
            click.echo(f"{name}: copying", err=True)
            report = print_tenths(name + ": {} of {} pages copied")
            bases[name] = base.write(settings, folder, partial(run_command, name), report)
    return Manifest(
        version=__version__,
        created_at=clock.stamp(),
        bases=bases,
        files=list_entries(folder),
    )


def summarise(manifest: Manifest) -> str:
    """Return what a backup holds, in words: `policy (6 policies, 174 chunks)`."""
    parts = [
        f"{name} ({', '.join(_format_count(*item) for item in counts.items())})"
        for name, counts in manifest.bases.items()
    ]
    return ", ".join(parts) or "no base"


def _format_count(noun: str, count: int) -> str:
    return f"schema {count}" if noun == "schema" else f"{count} {noun}"

"""`readingroom restore`: a data directory filled from a backup, whole or not at all."""

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readingroom import __version__
from readingroom.bases.documents.commands import RestoreDocuments
from readingroom.bases.policy.commands import RestorePolicies
from readingroom.commands.backup import FEDERAL, steps, summary
from readingroom.commands.console import common, run, say
from readingroom.core import clock
from readingroom.core.settings import CONFIGURATION, MODELS, Settings, load
from readingroom.protocol.backup import ReadCopy
from readingroom.storage.database import connect
from readingroom.storage.errors import BackupUnusable, DataNotEmpty, FolderInUse
from readingroom.storage.handover import HANDOVER
from readingroom.storage.lock import FolderLock

if TYPE_CHECKING:
    from readingroom.storage.archive import Manifest

RESTORING = ".restoring"
REPLACED = ".replaced"
# What a restore leaves where it is.
_STAYS = (MODELS, CONFIGURATION)

# The bases that are filled by the process that owns their folder, and how.
_FILLED: dict[str, type[ReadCopy]] = {"documents": RestoreDocuments, "policy": RestorePolicies}


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Move aside what is in the data directory.")
@common
def restore(file: Path, force: bool, data: str | None, as_json: bool) -> None:
    """Fill the data directory from the backup FILE.

    Nothing is put in place before all of FILE has been read and checked. With --force what was
    there is kept in the folder `.replaced` of the data directory.
    """
    settings = load({"data": data})
    home = settings.data
    _refuse_unless_empty(home, force)
    home.mkdir(parents=True, exist_ok=True)
    staging = home / RESTORING
    with _stopped(home):
        shutil.rmtree(staging, ignore_errors=True)
        try:
            manifest = _unpacked(file, staging)
            counts = {name: _put_back(name, settings, force) for name in _in(manifest)}
            _put_in_place(staging, home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    body = {"data": str(home), "created_at": manifest.created_at, "bases": manifest.bases | counts}
    say(as_json, body, f"Restored {summary(manifest)} to {home}. Check it: readingroom doctor")


def _refuse_unless_empty(home: Path, force: bool) -> None:
    held = sorted(path.name for path in _covered(home))
    if held and not force:
        raise DataNotEmpty(
            f"{home} is not empty ({', '.join(held[:5])}). Choose another directory with --data, "
            "or move what is there aside with --force."
        )


def _covered(home: Path) -> list[Path]:
    """What is in a data directory that a restore would put in question."""
    if not home.is_dir():
        return []
    return [one for one in home.iterdir() if one.name not in _STAYS and one.name[0] != "."]


@contextmanager
def _stopped(home: Path) -> Iterator[None]:
    """Nobody serves from this directory, and nobody begins to."""
    from readingroom.bases.federal.store import file_in

    with ExitStack() as held:
        for name in _FILLED:
            if (home / name).is_dir():
                lock = FolderLock(home / name)
                lock.acquire()
                held.callback(lock.release)
        if _in_use(file_in(home)):
            raise FolderInUse(f"{file_in(home)} is in use; stop the server first")
        yield


def _in_use(database: Path) -> bool:
    """Whether another process has this file open: then it cannot be had alone."""
    if not database.exists():
        return False
    with closing(connect(database, timeout=0)) as db:
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        except sqlite3.DatabaseError:  # damaged, so nobody can serve from it
            return False
    return False


def _unpacked(file: Path, staging: Path) -> "Manifest":
    from readingroom.bases.federal.schema.tables import SCHEMA_VERSION
    from readingroom.storage.archive import read_manifest, unpack

    told = read_manifest(file)
    unknown = [name for name in told.bases if name not in (FEDERAL, *_FILLED)]
    newer = told.bases.get(FEDERAL, {}).get("schema", 0) > SCHEMA_VERSION
    if unknown or newer:
        raise BackupUnusable(
            f"The backup was made by a newer Reading Room ({told.version}), which knows more than "
            f"this one ({__version__}): restore it with that version, or a later one"
        )
    return unpack(file, staging, steps("unpacking: {} of {} files"))


def _in(manifest: "Manifest") -> list[str]:
    return [name for name in _FILLED if name in manifest.bases]


def _put_back(name: str, settings: Settings, replace: bool) -> dict[str, Any]:
    """Fill a base in the staging directory from its copy there."""
    staging = settings.data / RESTORING
    handed = uuid.uuid4().hex
    copy = staging / name / HANDOVER / handed
    # Out of the way first: the base's own folder takes the place of its copy.
    aside = staging / handed
    (staging / name).rename(aside)
    copy.parent.mkdir(parents=True)
    aside.rename(copy)
    click.echo(f"{name}: putting back", err=True)
    try:
        command = _FILLED[name](folder=handed, home=str(settings.data / name), replace=replace)
        counts: dict[str, int] = run(command, _staged(settings, staging))["counts"]
        return counts
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _staged(settings: Settings, staging: Path) -> Settings:
    """The same settings in the staging directory; a store that lies outside stays where it is."""
    moved: dict[str, Any] = {"data": staging}
    chroma = settings.chroma_persist_dir
    if chroma and Path(chroma).is_relative_to(settings.data):
        moved["chroma_persist_dir"] = str(staging / Path(chroma).relative_to(settings.data))
    return settings.model_copy(update=moved)


def _put_in_place(staging: Path, home: Path) -> None:
    """Renames alone: what was there goes aside, what was restored takes its place."""
    covered = _covered(home)
    if covered:
        aside = home / REPLACED / clock.now().strftime("%Y%m%dT%H%M%S%f")
        aside.mkdir(parents=True)
        for one in covered:
            one.rename(aside / one.name)
    for one in staging.iterdir():
        if one.name not in _STAYS:
            one.rename(home / one.name)

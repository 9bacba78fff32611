"""`readingroom backup` and `readingroom restore`: everything of a data directory in one file.

A backup may be taken while the server serves. What other programs made is not in it: the embedding
model, `readingroom.toml`, the text base's file, and the inboxes.
"""

import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readingroom import __version__
from readingroom.bases.documents.commands import BackUpDocuments, RestoreDocuments
from readingroom.bases.policy.commands import BackUpPolicies, RestorePolicies
from readingroom.commands.options import common, run, say
from readingroom.core import clock
from readingroom.core.errors import BackupUnusable, DataNotEmpty, FolderInUse
from readingroom.core.settings import CONFIGURATION, MODELS, SAMPLE_MARK, Settings, load
from readingroom.protocol.copies import ReadCopy, WriteCopy
from readingroom.storage.handover import HANDOVER
from readingroom.storage.keys import KEYS
from readingroom.storage.lock import FolderLock, Owner, owner_of

if TYPE_CHECKING:
    from readingroom.storage.archive import Manifest

_FEDERAL = "federal"
_WORKSHOP = ".backup-"
RESTORING = ".restoring"
REPLACED = ".replaced"
# What a restore leaves where it is.
_STAYS = (MODELS, CONFIGURATION)

# The bases that are copied by the process that owns their folder, and how.
_COPIED: dict[str, tuple[type[WriteCopy], type[ReadCopy]]] = {
    "documents": (BackUpDocuments, RestoreDocuments),
    "policy": (BackUpPolicies, RestorePolicies),
}


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common
def backup(file: Path, data: str | None, as_json: bool) -> None:
    """Write everything of the data directory to FILE, also while a server runs on it.

    Changes wait while a base is copied; searches do not. FILE holds hashed keys and your documents,
    so only you may read it. readingroom.toml and the embedding model are not in it.
    """
    settings = load({"data": data})
    if not settings.data.is_dir():
        raise BackupUnusable(f"There is no data directory {settings.data}")
    file = file.absolute()
    with _workshop(file.parent) as made:
        manifest = _collected(settings, made)
        _pack(manifest, made, file)
    body = manifest.model_dump(mode="json", exclude={"files"}) | _size(manifest, file)
    say(as_json, body, f"{file}: {_summary(manifest)}; {file.stat().st_size / 1e6:.1f} MB")


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
    say(as_json, body, f"Restored {_summary(manifest)} to {home}. Check it: readingroom doctor")


# --- backing up ---


@contextmanager
def _workshop(place: Path) -> Iterator[Path]:
    """An empty folder to collect copies in, gone when this is left; those of the dead are swept.

    A kill leaves the folder and lets go of its lock. A lock that names its owner was held before
    it did: if nobody holds it now, nobody will.
    """
    _sweep(place)
    made = Path(tempfile.mkdtemp(prefix=_WORKSHOP, dir=place))
    lock = _held(made)
    collected = made / "collected"
    collected.mkdir()
    try:
        yield collected
    finally:
        _clear(made, lock)


def _sweep(place: Path) -> None:
    """Delete what killed backups left here."""
    for left in place.glob(f"{_WORKSHOP}*"):
        if owner_of(left) is not None:
            with suppress(FolderInUse):  # another backup is being made
                _clear(left, _held(left))


def _held(workshop: Path) -> FolderLock:
    lock = FolderLock(workshop)
    lock.acquire()
    lock.announce(Owner(url="", key="", pid=os.getpid()))
    return lock


def _clear(workshop: Path, lock: FolderLock) -> None:
    """Delete a workshop, its lock last: killed meanwhile, it is still known for what it is."""
    for one in workshop.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        elif one != lock.path:
            one.unlink()
    shutil.rmtree(workshop)
    lock.release()


def _collected(settings: Settings, folder: Path) -> "Manifest":
    """Every store copied into `folder`."""
    from readingroom.bases.federal.store import file_in
    from readingroom.storage.archive import Manifest, copy_database, entries_of

    bases: dict[str, dict[str, Any]] = {}
    if settings.sample:  # else what is restored from it would pass for the real thing
        shutil.copyfile(settings.data / SAMPLE_MARK, folder / SAMPLE_MARK)
    if (settings.data / KEYS).exists():
        copy_database(settings.data / KEYS, folder / KEYS)
    if (database := file_in(settings.data)).exists():
        copy = file_in(folder)
        copy_database(database, copy, _steps("federal: {} of {} pages copied"))
        bases[_FEDERAL] = {"schema": _schema(copy)}
    for name in _COPIED:
        if (settings.data / name).is_dir():
            bases[name] = _copied(name, settings, folder / name)
    return Manifest(
        version=__version__,
        created_at=clock.now().isoformat(timespec="seconds"),
        bases=bases,
        files=entries_of(folder),
    )


def _copied(name: str, settings: Settings, folder: Path) -> dict[str, Any]:
    """A base as the owner of its folder copied it, here or in the server that runs on it."""
    handed = uuid.uuid4().hex
    copy = settings.data / name / HANDOVER / handed
    click.echo(f"{name}: copying", err=True)
    try:
        counts: dict[str, int] = run(_COPIED[name][0](folder=handed), settings)["counts"]
        shutil.move(copy, folder)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return counts


def _pack(manifest: "Manifest", folder: Path, file: Path) -> None:
    from readingroom.storage.archive import pack

    pack(manifest, folder, file, _steps("packing: {} of {} files"))


def _size(manifest: "Manifest", file: Path) -> dict[str, Any]:
    return {"file": str(file), "files": len(manifest.files), "bytes": file.stat().st_size}


# --- restoring ---


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
        for name in _COPIED:
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
    with closing(sqlite3.connect(database, timeout=0)) as db:
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
    from readingroom.bases.federal.schema import MIGRATIONS
    from readingroom.storage.archive import read_manifest, unpack

    told = read_manifest(file)
    unknown = [name for name in told.bases if name not in (_FEDERAL, *_COPIED)]
    newer = told.bases.get(_FEDERAL, {}).get("schema", 0) > len(MIGRATIONS)
    if unknown or newer:
        raise BackupUnusable(
            f"The backup was made by a newer Reading Room ({told.version}), which knows more than "
            f"this one ({__version__}): restore it with that version, or a later one"
        )
    return unpack(file, staging, _steps("unpacking: {} of {} files"))


def _in(manifest: "Manifest") -> list[str]:
    return [name for name in _COPIED if name in manifest.bases]


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
        command = _COPIED[name][1](folder=handed, home=str(settings.data / name), replace=replace)
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


# --- both ---


def _schema(database: Path) -> int:
    with closing(sqlite3.connect(database)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _summary(manifest: "Manifest") -> str:
    told = [
        f"{name} ({', '.join(_counted(*one) for one in counts.items())})"
        for name, counts in manifest.bases.items()
    ]
    return ", ".join(told) or "no base"


def _counted(what: str, count: int) -> str:
    return f"schema {count}" if what == "schema" else f"{count} {what}"


def _steps(sentence: str) -> Callable[[int, int], None]:
    """Progress on standard error, at every tenth."""
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        tenth = 10 * done // total if total else 10
        if tenth > told:
            told = tenth
            click.echo(sentence.format(done, total), err=True)

    return tell

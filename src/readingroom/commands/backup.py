"""`readingroom backup`: everything of a data directory in one file, which `restore` reads.

A backup may be taken while the server serves. What other programs made is not in it: the embedding
model, `readingroom.toml`, the text base's file, and the inboxes.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readingroom import __version__
from readingroom.bases.documents.commands import BackUpDocuments
from readingroom.bases.policy.commands import BackUpPolicies
from readingroom.commands.console import common, run, say
from readingroom.core import clock
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import SAMPLE_MARK, Settings, load
from readingroom.protocol.backup import WriteCopy
from readingroom.storage.database import connect
from readingroom.storage.errors import BackupUnusable, FolderInUse
from readingroom.storage.handover import HANDOVER
from readingroom.storage.keys import KEYS
from readingroom.storage.lock import FolderLock, Owner, owner_of

if TYPE_CHECKING:
    from readingroom.storage.archive import Manifest

FEDERAL = "federal"
_WORKSHOP = ".backup-"

# The bases that are copied by the process that owns their folder, and how.
_COPIED: dict[str, type[WriteCopy]] = {"documents": BackUpDocuments, "policy": BackUpPolicies}


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
    say(as_json, body, f"{file}: {summary(manifest)}; {file.stat().st_size / 1e6:.1f} MB")


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
        copy_database(database, copy, steps("federal: {} of {} pages copied"))
        bases[FEDERAL] = {"schema": _schema(copy)}
    for name in _COPIED:
        if (settings.data / name).is_dir():
            bases[name] = _copied(name, settings, folder / name)
    return Manifest(
        version=__version__,
        created_at=clock.stamp(),
        bases=bases,
        files=entries_of(folder),
    )


def _copied(name: str, settings: Settings, folder: Path) -> dict[str, Any]:
    """A base as the owner of its folder copied it, here or in the server that runs on it."""
    handed = uuid.uuid4().hex
    copy = settings.data / name / HANDOVER / handed
    click.echo(f"{name}: copying", err=True)
    try:
        counts: dict[str, int] = run(_COPIED[name](folder=handed), settings)["counts"]
        shutil.move(copy, folder)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return counts


def _pack(manifest: "Manifest", folder: Path, file: Path) -> None:
    from readingroom.storage.archive import pack

    pack(manifest, folder, file, steps("packing: {} of {} files"))


def _size(manifest: "Manifest", file: Path) -> dict[str, Any]:
    return {"file": str(file), "files": len(manifest.files), "bytes": file.stat().st_size}


def _schema(database: Path) -> int:
    with closing(connect(database)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def summary(manifest: "Manifest") -> str:
    told = [
        f"{name} ({', '.join(_counted(*one) for one in counts.items())})"
        for name, counts in manifest.bases.items()
    ]
    return ", ".join(told) or "no base"


def _counted(what: str, count: int) -> str:
    return f"schema {count}" if what == "schema" else f"{count} {what}"


def steps(sentence: str) -> ReportProgressSync:
    """Progress on standard error, at every tenth."""
    told = -1

    def tell(done: float, total: float | None, message: str | None) -> None:
        nonlocal told
        tenth = int(10 * done // total) if total else 10
        if tenth > told:
            told = tenth
            click.echo(sentence.format(done, total), err=True)

    return tell

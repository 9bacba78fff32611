"""How a base is backed up and restored: as files, in a folder that `backup` packs."""

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import Command, RunCommand
from readingroom.protocol.tool import Answer
from readingroom.storage.handover import HANDOVER_FOLDER, HandoverName
from readingroom.storage.lock import FolderLock


class BaseBackup(Protocol):
    """What `readingroom backup` and `restore` ask of a base."""

    def exists(self, settings: RoomSettings) -> bool:
        """Return whether the data directory holds anything of this base."""

    def write(
        self, settings: RoomSettings, folder: Path, run: RunCommand, report: ReportProgressSync
    ) -> dict[str, int]:
        """Copy the base into `folder` and return what the copy holds: `{"chunks": 174}`."""

    def can_read(self, counts: Mapping[str, Any]) -> bool:
        """Return whether a backup with these counts was made by a version no newer than this."""

    def is_backup_file(self, file_name: str) -> bool:
        """Return whether `write` gives a file this name in the backup: `policy/chunks.db`."""

    def lock(self, data: Path) -> AbstractContextManager[None]:
        """Keep every other process out of the base. Raise `FolderInUse` when one is in it."""

    def relocate(self, settings: RoomSettings, data: Path) -> dict[str, Any]:
        """Return settings with paths inside the data directory, changed to another one."""
        return {}

    def restore(
        self, staged: RoomSettings, home: Path, replace: bool, run: RunCommand
    ) -> dict[str, int] | None:
        """Turn the copy in the staged data directory into the base's folder there.

        Return what was restored, or None when the copy is the folder already. `home` is the data
        directory it will lie in. `replace`: clear first what lies outside of it.
        """


class BackupCounts(Answer):
    """What a copy holds: `{"policies": 6, "chunks": 174}`."""

    counts: dict[str, int]


class WriteBackup(Command):
    """Write a copy of the whole base where the process that asked finds it."""

    folder: HandoverName


class ReadBackup(Command):
    """Fill an empty base from such a copy."""

    folder: HandoverName
    home: str
    """Where the base's folder will lie when everything is in place."""
    replace: bool = False
    """Whether to clear first what lies outside of the folder."""


class OwnerBackup(BaseBackup):
    """Backup of a base whose folder has one owner, which reads and writes the copies."""

    def __init__(
        self, base: str, write: type[WriteBackup], read: type[ReadBackup], files: re.Pattern[str]
    ) -> None:
        """`files` matches the names of the files that `write` makes, relative to its folder."""
        self._base = base
        self._write = write
        self._read = read
        self._files = files

    def exists(self, settings: RoomSettings) -> bool:
        return (settings.data / self._base).is_dir()

    def write(
        self, settings: RoomSettings, folder: Path, run: RunCommand, report: ReportProgressSync
    ) -> dict[str, int]:
        name = uuid.uuid4().hex
        # In the owner's own folder, the only one that it writes to.
        copy = settings.data / self._base / HANDOVER_FOLDER / name
        try:
            counts: dict[str, int] = run(self._write(folder=name), settings)["counts"]
            shutil.move(copy, folder / self._base)
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return counts

    def can_read(self, counts: Mapping[str, Any]) -> bool:
        return True

    def is_backup_file(self, file_name: str) -> bool:
        folder, _, name = file_name.partition("/")
        return folder == self._base and self._files.fullmatch(name) is not None

    @contextmanager
    def lock(self, data: Path) -> Iterator[None]:
        if not (data / self._base).is_dir():
            yield
            return
        lock = FolderLock(data / self._base)
        lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def restore(
        self, staged: RoomSettings, home: Path, replace: bool, run: RunCommand
    ) -> dict[str, int]:
        folder = staged.data / self._base
        name = uuid.uuid4().hex
        copy = folder / HANDOVER_FOLDER / name
        # Out of the way first: the base's own folder takes the place of its copy.
        aside = staged.data / name
        folder.rename(aside)
        copy.parent.mkdir(parents=True)
        aside.rename(copy)
        try:
            command = self._read(folder=name, home=str(home / self._base), replace=replace)
            counts: dict[str, int] = run(command, staged)["counts"]
            return counts
        finally:
            shutil.rmtree(copy, ignore_errors=True)

"""How a base is backed up and restored: as files, in a folder that `backup` packs."""

import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import Command, RunCommand
from readingroom.protocol.tool import Answer
from readingroom.storage.errors import DataNotEmpty
from readingroom.storage.handover import HANDOVER_FOLDER_NAME, HandoverName
from readingroom.storage.lock import FolderLock


class BaseBackup(Protocol):
    """What `readingroom backup` and `restore` ask of a base."""

    def has_data(self, settings: RoomSettings) -> bool:
        """Return whether the data directory holds anything of this base."""

    def write_backup(
        self,
        settings: RoomSettings,
        copies_folder: Path,
        run_command: RunCommand,
        report_progress: ReportProgressSync,
    ) -> dict[str, int]:
        """Copy the base into `copies_folder` and return what the copy holds: `{"chunks": 174}`."""

    def can_read_backup(self, backup_counts: Mapping[str, Any]) -> bool:
        """Return whether a backup with these counts was made by a version no newer than this."""

    def is_backup_file(self, file_name: str) -> bool:
        """Return whether `write_backup` gives a file this name: `policy/chunks.db`."""

    def lock_base(self, data_directory: Path) -> AbstractContextManager[None]:
        """Keep every other process out of the base. Raise `FolderInUse` when one is in it."""

    def relocate_paths(self, settings: RoomSettings, data_directory: Path) -> dict[str, Any]:
        """Return settings with paths inside the data directory, changed to another one."""
        return {}

    def refuse_to_overwrite(self, settings: RoomSettings, run_command: RunCommand) -> None:
        """Raise `DataNotEmpty` when a database that the settings name holds data of this base.

        It is asked before anything is unpacked; the data directory itself is looked at elsewhere.
        """

    def restore_backup(
        self,
        staged_settings: RoomSettings,
        home_directory: Path,
        is_replacing: bool,
        run_command: RunCommand,
    ) -> dict[str, int] | None:
        """Turn the copy in the staged data directory into the base's folder there.

        Return what was restored, or None when the copy is the folder already. `home_directory` is
        the data directory it will lie in. `is_replacing`: clear first what lies outside of it.
        """

    def migrate_base(
        self, settings: RoomSettings, target_settings: RoomSettings, is_replacing: bool
    ) -> dict[str, Any] | None:
        """Copy the base to a database and compare; return the outcome.

        None where the base has no way of its own: it is then moved as a backup is.
        """
        return None


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
        self,
        base_name: str,
        write_command_type: type[WriteBackup],
        read_command_type: type[ReadBackup],
        file_name_pattern: re.Pattern[str],
        holds_anything: Callable[[RunCommand, RoomSettings], bool],
    ) -> None:
        """`file_name_pattern` matches the files that `write_backup` makes in its folder.

        `holds_anything` asks the base whether it has what a restore would replace.
        """
        self._holds_anything = holds_anything
        self._base_name = base_name
        self._write_command_type = write_command_type
        self._read_command_type = read_command_type
        self._file_name_pattern = file_name_pattern

    def has_data(self, settings: RoomSettings) -> bool:
        # A database has every base, if an empty one.
        return bool(settings.database_url) or (settings.data / self._base_name).is_dir()

    def refuse_to_overwrite(self, settings: RoomSettings, run_command: RunCommand) -> None:
        has_store_elsewhere = settings.database_url or settings.redis_url
        if has_store_elsewhere and self._holds_anything(run_command, settings):
            raise DataNotEmpty(
                f"The {self._base_name} base in the database holds data already; choose another "
                "database, or replace what is there with --force"
            )

    def write_backup(
        self,
        settings: RoomSettings,
        copies_folder: Path,
        run_command: RunCommand,
        report_progress: ReportProgressSync,
    ) -> dict[str, int]:
        copy_folder_name = uuid.uuid4().hex
        # In the owner's own folder, the only one that it writes to.
        copy_folder = settings.data / self._base_name / HANDOVER_FOLDER_NAME / copy_folder_name
        try:
            backup_counts: dict[str, int] = run_command(
                self._write_command_type(folder=copy_folder_name), settings
            )["counts"]
            shutil.move(copy_folder, copies_folder / self._base_name)
        finally:
            shutil.rmtree(copy_folder, ignore_errors=True)
        return backup_counts

    def can_read_backup(self, backup_counts: Mapping[str, Any]) -> bool:
        return True

    def is_backup_file(self, file_name: str) -> bool:
        folder_name, _, file_name_in_folder = file_name.partition("/")
        is_known_file = self._file_name_pattern.fullmatch(file_name_in_folder) is not None
        return folder_name == self._base_name and is_known_file

    @contextmanager
    def lock_base(self, data_directory: Path) -> Iterator[None]:
        if not (data_directory / self._base_name).is_dir():
            yield
            return
        base_lock = FolderLock(data_directory / self._base_name)
        base_lock.acquire()
        try:
            yield
        finally:
            base_lock.release()

    def restore_backup(
        self,
        staged_settings: RoomSettings,
        home_directory: Path,
        is_replacing: bool,
        run_command: RunCommand,
    ) -> dict[str, int]:
        base_folder = staged_settings.data / self._base_name
        copy_folder_name = uuid.uuid4().hex
        copy_folder = base_folder / HANDOVER_FOLDER_NAME / copy_folder_name
        # Out of the way first: the base's own folder takes the place of its copy.
        unpacked_copy_folder = staged_settings.data / copy_folder_name
        base_folder.rename(unpacked_copy_folder)
        copy_folder.parent.mkdir(parents=True)
        unpacked_copy_folder.rename(copy_folder)
        try:
            restore_command = self._read_command_type(
                folder=copy_folder_name,
                home=str(home_directory / self._base_name),
                replace=is_replacing,
            )
            backup_counts: dict[str, int] = run_command(restore_command, staged_settings)["counts"]
            return backup_counts
        finally:
            shutil.rmtree(copy_folder, ignore_errors=True)

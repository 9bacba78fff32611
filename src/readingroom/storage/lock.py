"""Locks that give a base's folder one owner, and record where the owner can be reached."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from readingroom.storage.errors import FolderInUse, StorageFailed


@dataclass(frozen=True, slots=True)
class FolderOwner:
    """The process that owns a folder: its address, and the key that its admin route requires."""

    url: str
    key: str
    pid: int


class FolderLock:
    """A lock on `<folder>/lock`, held until it is released or the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; raise `FolderInUse`, which names the owner, if another process has it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file_descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(f"{self.path} cannot be opened: {error.strerror}") from error
        # The kernel releases it with the process, so a file left by a dead one locks nobody out.
        try:
            fcntl.flock(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file_descriptor)
            raise FolderInUse(_describe_folder_owner(self.path)) from error
        # An owner that was killed has left its address, where nobody answers now.
        os.ftruncate(file_descriptor, 0)
        self._descriptor = file_descriptor

    def write_folder_owner(self, folder_owner: FolderOwner) -> None:
        """Write where the owner answers, so that commands can find it."""
        assert self._descriptor is not None, "write_folder_owner() needs the lock"
        owner_json = json.dumps(asdict(folder_owner)).encode()
        # Emptied first, or the end of a longer address would stay behind the new one.
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, owner_json, 0)

    def release(self) -> None:
        if self._descriptor is not None:
            # While the lock is still held: the next owner may write its own address at once.
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def read_folder_owner(folder: Path) -> FolderOwner | None:
    """Return the owner that a folder's lock file names; None when it names nobody."""
    try:
        return FolderOwner(**json.loads((folder / "lock").read_text("utf-8")))
    # An owner may be writing it at this moment, and another version may have other fields.
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _describe_folder_owner(lock_path: Path) -> str:
    folder_owner = read_folder_owner(lock_path.parent)
    owner_text = (
        f"process {folder_owner.pid} at {folder_owner.url}" if folder_owner else "another process"
    )
    return (
        f"{lock_path.parent} is in use by {owner_text}; "
        "stop it, or choose another directory with --data"
    )

"""One owner per base folder: a kernel lock that also says where the owner can be reached."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from readingroom.storage.errors import FolderInUse, StorageFailed


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a folder: its address and the key its admin route asks for."""

    url: str
    key: str
    pid: int


class FolderLock:
    """Holds `<folder>/lock` until closed or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the folder, or say who has it. A lock file left by a dead process is free."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(f"{self.path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise FolderInUse(_in_use(self.path)) from error
        os.ftruncate(descriptor, 0)
        self._descriptor = descriptor

    def announce(self, owner: Owner) -> None:
        """Write down where the owner answers, so that commands can find it."""
        assert self._descriptor is not None, "announce() needs the lock"
        body = json.dumps(asdict(owner)).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, body, 0)

    def release(self) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def owner_of(folder: Path) -> Owner | None:
    """Who a folder's lock file names; None when it names nobody."""
    try:
        return Owner(**json.loads((folder / "lock").read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _in_use(path: Path) -> str:
    owner = owner_of(path.parent)
    who = f"process {owner.pid} at {owner.url}" if owner else "another process"
    return f"{path.parent} is in use by {who}; stop it, or choose another directory with --data"

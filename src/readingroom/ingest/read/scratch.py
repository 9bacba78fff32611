"""Scratch folders of the processes that read files: deleted at the end, swept after a kill -9."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

_SCRATCH_FOLDER_PREFIX = "readingroom-scratch-"


class ScratchFolders:
    """Makes scratch folders inside one folder, and first deletes those that killed servers left.

    Whoever makes one holds a lock on it. The kernel releases the lock with the process, so a folder
    that is not locked has no owner any more.
    """

    def __init__(self, parent_folder: Path) -> None:
        self._parent_folder = parent_folder
        self._is_swept = False

    async def delete_abandoned_folders(self) -> None:
        """Delete the folders that killed servers left."""
        self._is_swept = True
        await anyio.to_thread.run_sync(self._delete_unlocked_folders)

    @asynccontextmanager
    async def make_scratch_folder(self) -> AsyncIterator[str]:
        """Yield the path of an empty folder, which is deleted at the end."""
        if not self._is_swept:
            await self.delete_abandoned_folders()
        scratch_folder, lock_descriptor = self._make_locked_folder()
        try:
            yield str(scratch_folder)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(shutil.rmtree, scratch_folder, True)
            os.close(lock_descriptor)

    def _make_locked_folder(self) -> tuple[Path, int]:
        self._parent_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            scratch_folder = Path(
                tempfile.mkdtemp(prefix=_SCRATCH_FOLDER_PREFIX, dir=self._parent_folder)
            )
            try:
                lock_descriptor = os.open(scratch_folder, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # another process swept it before it was opened
            with suppress(OSError):  # NFS locks no folders; there, nothing is swept either
                fcntl.flock(lock_descriptor, fcntl.LOCK_EX)
            if scratch_folder.exists():
                return scratch_folder, lock_descriptor
            os.close(lock_descriptor)  # another process swept it before it was locked

    def _delete_unlocked_folders(self) -> None:
        for scratch_folder in self._parent_folder.glob(f"{_SCRATCH_FOLDER_PREFIX}*"):
            with suppress(OSError), _lock_folder_if_free(scratch_folder):
                shutil.rmtree(scratch_folder)


@contextmanager
def _lock_folder_if_free(scratch_folder: Path) -> Iterator[None]:
    """Hold the lock on a folder; raise `BlockingIOError` if another process does."""
    lock_descriptor = os.open(scratch_folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock_descriptor)

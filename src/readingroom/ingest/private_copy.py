"""Opens files for ingestion: copied once into a private file, and hashed as they are copied.

What was hashed is what is parsed: both come from one private, unlinked copy, so nobody can
exchange the file in between.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import anyio.to_thread

from readingroom.ingest.errors import ExtractionFailed, FileNotFound

_COPY_BLOCK_BYTES = 1 << 20

# Somebody who names the root of a disk should get an error, not a day of reading.
MAX_FOLDER_FILES = 5_000
"""In one folder that is ingested as a whole."""

# A folder may be searchable without being readable, so open it with O_PATH where that exists.
_OPEN_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_FOLLOW_NO_LINK_FLAG = getattr(os, "O_NOFOLLOW", 0)
# Without O_NONBLOCK, opening a named pipe would wait for a writer that may never come.
_OPEN_FILE_FLAGS = (
    os.O_RDONLY | _FOLLOW_NO_LINK_FLAG | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class PrivateCopy:
    """A copy of a file that only this process can reach, with its size and hash."""

    file_name: str
    size_bytes: int
    sha256: str
    file: FileIO

    def read_first_bytes(self, byte_count: int) -> bytes:
        """Return the first bytes."""
        self.file.seek(0)
        return self.file.read(byte_count)


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """The folders that files may come from, and how large a file may be."""

    setting_name: str
    """Name of the setting that lists the folders, for error messages."""
    folders: tuple[Path, ...]
    max_file_bytes: int
    copies_folder: Path | None = None
    """Where private copies are made; by default in the folder for temporary files."""

    def open_copy_in_thread(self, requested_path: str) -> AbstractAsyncContextManager[PrivateCopy]:
        """Do the same as `open_private_copy` in a thread: copying a large file takes time."""
        return enter_copy_in_thread(self.open_copy(requested_path))

    @contextmanager
    def open_copy(self, requested_path: str) -> Iterator[PrivateCopy]:
        """Open the file at a path below a root; links may not lead out.

        Raise `FileNotFound`, or `ExtractionFailed` when the file is too large.
        """
        root_folder, real_path = self._resolve_path(requested_path)
        try:
            file_descriptor = _open_file_without_links(
                root_folder, real_path.relative_to(root_folder).parts
            )
        except OSError as error:
            raise FileNotFound(
                f"The file {requested_path!r} cannot be opened: {error.strerror}"
            ) from error
        try:
            if not stat.S_ISREG(os.fstat(file_descriptor).st_mode):
                raise FileNotFound(f"{requested_path!r} is not a regular file")
            with _open_private_copy(
                file_descriptor, real_path.name, self.max_file_bytes, self.copies_folder
            ) as private_copy:
                yield private_copy
        finally:
            os.close(file_descriptor)

    def list_paths_by_relative_name(self, requested_path: str) -> dict[str, str]:
        """Return the files below a root or a folder inside one: full paths by relative names.

        Hidden files are left out. Being listed does not mean being allowed: `open` checks each
        file, because there may be links and pipes among them.
        """
        _, real_path = self._resolve_path(requested_path, is_root_allowed=True)
        if not real_path.is_dir():
            raise FileNotFound(f"{requested_path!r} is not a folder")
        paths_by_relative_name: dict[str, str] = {}
        for walked_folder, subfolder_names, file_names in os.walk(real_path):
            subfolder_names[:] = sorted(
                folder_name for folder_name in subfolder_names if not folder_name.startswith(".")
            )
            file_paths = [
                Path(walked_folder, file_name)
                for file_name in sorted(file_names)
                if file_name[0] != "."
            ]
            paths_by_relative_name |= {
                str(file_path.relative_to(real_path)): str(file_path) for file_path in file_paths
            }
            if len(paths_by_relative_name) > MAX_FOLDER_FILES:
                raise FileNotFound(
                    f"{requested_path!r} holds more than {MAX_FOLDER_FILES:,} files; "
                    "name a folder inside it"
                )
        return paths_by_relative_name

    def _resolve_path(
        self, requested_path: str, is_root_allowed: bool = False
    ) -> tuple[Path, Path]:
        """Return the root and the real path below it.

        Raise `FileNotFound` for a path outside, in the same words whether or not it exists.
        """
        try:
            # Links are followed first, so that the real path is what must lie below a root.
            real_path = Path(requested_path).resolve()
            for root_folder in (allowed_folder.resolve() for allowed_folder in self.folders):
                is_inside_root = real_path.is_relative_to(root_folder) and (
                    is_root_allowed or real_path != root_folder
                )
                if Path(requested_path).is_absolute() and is_inside_root:
                    return root_folder, real_path
        except (OSError, ValueError, RuntimeError) as error:
            raise FileNotFound(f"{requested_path!r} is not a path to a file") from error
        raise FileNotFound(
            f"{requested_path!r} is outside {self.setting_name}; move it inside, "
            "and give its absolute path"
        )


@contextmanager
def open_stored_file(stored_path: Path, file_name: str, max_bytes: int) -> Iterator[PrivateCopy]:
    """Open a file that this server stored, under the name that its sender gave it.

    Raise `ExtractionFailed` when the file is too large.
    """
    with (
        stored_path.open("rb", buffering=0) as opened_file,
        _open_private_copy(
            opened_file.fileno(), Path(file_name).name, max_bytes, stored_path.parent
        ) as private_copy,
    ):
        yield private_copy


@asynccontextmanager
async def enter_copy_in_thread(
    copy_context: AbstractContextManager[PrivateCopy],
) -> AsyncIterator[PrivateCopy]:
    """Enter a context that copies a file in a thread: copying a large file takes time."""
    # Only entering takes long; leaving closes a file and can be done on the event loop.
    private_copy = await anyio.to_thread.run_sync(copy_context.__enter__)
    with ExitStack() as exit_stack:
        exit_stack.push(copy_context)
        yield private_copy


def _open_file_without_links(root_folder: Path, relative_path_parts: Sequence[str]) -> int:
    """Return a descriptor of the file, opened step by step without following links."""
    # One call with the whole path would follow a link that somebody swaps in for a folder.
    if os.open not in os.supports_dir_fd:  # Windows
        return os.open(root_folder.joinpath(*relative_path_parts), _OPEN_FILE_FLAGS)
    *folder_names, file_name = relative_path_parts
    parent_descriptor = os.open(root_folder, _OPEN_FOLDER_FLAGS)
    try:
        for folder_name in folder_names:
            child_descriptor = os.open(
                folder_name, _OPEN_FOLDER_FLAGS | _FOLLOW_NO_LINK_FLAG, dir_fd=parent_descriptor
            )
            os.close(parent_descriptor)
            parent_descriptor = child_descriptor
        return os.open(file_name, _OPEN_FILE_FLAGS, dir_fd=parent_descriptor)
    finally:
        os.close(parent_descriptor)


@contextmanager
def _open_private_copy(
    file_descriptor: int, file_name: str, max_bytes: int, copies_folder: Path | None
) -> Iterator[PrivateCopy]:
    """Copy an open file; raise `ExtractionFailed` when it is too large."""
    # Before a byte is copied: a sparse file of many gigabytes takes no room where it lies.
    _check_file_size(os.fstat(file_descriptor).st_size, file_name, max_bytes)
    sha256_hash = hashlib.sha256()
    size_bytes = 0
    if copies_folder is not None:
        copies_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Without a buffer: its position would be wrong once another process reads the descriptor.
    with tempfile.TemporaryFile(buffering=0, dir=copies_folder) as copied_file:
        while byte_block := os.read(file_descriptor, _COPY_BLOCK_BYTES):
            size_bytes += len(byte_block)
            _check_file_size(size_bytes, file_name, max_bytes)  # it may grow while it is copied
            sha256_hash.update(byte_block)
            unwritten_bytes = memoryview(byte_block)
            while unwritten_bytes:
                unwritten_bytes = unwritten_bytes[copied_file.write(unwritten_bytes) :]
        # A name that is not valid Unicode can be opened, but neither stored nor sent in JSON.
        valid_file_name = file_name.encode("utf-8", "replace").decode("utf-8")
        yield PrivateCopy(valid_file_name, size_bytes, sha256_hash.hexdigest(), copied_file)


def _check_file_size(size_bytes: int, file_name: str, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise ExtractionFailed(
            f"The file {file_name!r} is larger than {max_bytes // 2**20} MB",
            largest_bytes=max_bytes,
        )

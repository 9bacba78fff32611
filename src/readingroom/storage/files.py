"""Files: those that a base keeps, hashing and moving them, and paths inside their folder."""

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Protocol

from readingroom.storage.errors import StorageFailed, describe_cause

logger = logging.getLogger(__name__)


def hash_file(file_path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with file_path.open("rb") as open_file:
        return hashlib.file_digest(open_file, "sha256").hexdigest()


def resolve_inside(root_folder: Path, *path_names: str) -> Path:
    """Return `folder / name / …`; raise `StorageFailed` when that leads anywhere else.

    The names come out of a store, and whoever wrote the store chose them: `../..` is one too.
    """
    inner_path = root_folder.joinpath(*path_names)
    # Resolved as well: a plain name may be that of a symbolic link which leads elsewhere.
    if (
        not all(map(is_plain_name, path_names))
        or root_folder.resolve() not in inner_path.resolve().parents
    ):
        raise StorageFailed(
            f"{'/'.join(path_names)[:200]!r} is not the path of a file in {root_folder.name}"
        )
    return inner_path


def is_plain_name(file_name: str) -> bool:
    """Return whether this names a file of the folder it is looked up in, and of no other."""
    return file_name not in ("", ".", "..") and not any(
        unsafe_character in file_name for unsafe_character in "/\\\0"
    )


@contextmanager
def translate_os_errors(problem_text: str) -> Iterator[None]:
    """Raise `StorageFailed` in place of an `OSError`, whose paths are only told to the log."""
    try:
        yield
    except OSError as error:
        logger.error("%s: %s", problem_text, error)
        raise StorageFailed(f"{problem_text}: {describe_cause(error)}") from error


def copy_stream(open_file: IO[bytes], target_path: Path) -> None:
    """Write an open file, from its beginning, to `target_path`.

    Raise `StorageFailed` when that fails, as on a full disk; nothing is left of `target_path` then.
    """
    with translate_os_errors("The file cannot be kept"):
        target_path.parent.mkdir(parents=True, exist_ok=True)
        open_file.seek(0)
        try:
            with target_path.open("wb") as target_file:
                shutil.copyfileobj(open_file, target_file)
        except OSError:
            with suppress(OSError):
                target_path.unlink()
            raise


def link_or_copy(existing_path: Path, new_path: Path) -> None:
    """Give a file a second name, or copy it where the two folders are on different disks.

    Only for files that are replaced and never rewritten: both names share the bytes.
    """
    new_path.parent.mkdir(parents=True, exist_ok=True)
    try:
        new_path.hardlink_to(existing_path)
    except OSError:
        shutil.copyfile(existing_path, new_path)


def delete_old_files(parent_folder: Path, current_time: datetime) -> None:
    """Delete the files below a folder that nobody has written to for a day, and empty folders."""
    oldest_kept_time = (current_time - timedelta(days=1)).timestamp()
    # In reverse, so that what is in a folder comes before it: only an empty one can be removed.
    for old_path in sorted(parent_folder.glob("**/*"), reverse=True):
        with suppress(OSError):  # another process may be deleting it at this moment
            if old_path.lstat().st_mtime >= oldest_kept_time:
                continue
            if old_path.is_dir():
                old_path.rmdir()
            else:
                old_path.unlink()


class OwnFiles(Protocol):
    """Files by their paths relative to the base's folder. Every method blocks."""

    def locate_file(self, path_segments: Sequence[str]) -> Path:
        """Return where a file can be read now; nothing is there when we do not have it."""
        ...

    def has_file(self, path_segments: Sequence[str]) -> bool:
        """Return whether we have a file."""
        ...

    def list_paths(self, files_folder: str) -> list[tuple[str, ...]]:
        """Return the paths of all files below a folder."""
        ...

    def move_in(self, path_segments: Sequence[str], spool_path: Path) -> None:
        """Keep a file in place of one of the same path; `spool_path` is gone afterwards.

        Raise `StorageFailed` when it cannot be kept.
        """
        ...

    def write_file(self, path_segments: Sequence[str], content_file: IO[bytes]) -> None:
        """Keep what an open file holds in place of a file of the same path.

        Raise `StorageFailed` when it cannot be kept.
        """
        ...

    def delete_file(self, path_segments: Sequence[str]) -> None:
        """Delete a file; one that does not exist is fine."""
        ...

    def delete_folder(self, path_segments: Sequence[str]) -> None:
        """Delete every file below a folder; one that does not exist is fine."""
        ...


class LocalFiles(OwnFiles):
    """Files in the folder of the base."""

    def __init__(self, root_folder: Path) -> None:
        self._folder = root_folder

    def locate_file(self, path_segments: Sequence[str]) -> Path:
        return resolve_inside(self._folder, *path_segments)

    def has_file(self, path_segments: Sequence[str]) -> bool:
        return self.locate_file(path_segments).exists()

    def list_paths(self, files_folder: str) -> list[tuple[str, ...]]:
        file_paths = (self._folder / files_folder).rglob("*.*")
        return [stored_path.relative_to(self._folder).parts for stored_path in file_paths]

    def move_in(self, path_segments: Sequence[str], spool_path: Path) -> None:
        final_path = self.locate_file(path_segments)
        with translate_os_errors("The file cannot be kept"):
            final_path.parent.mkdir(parents=True, exist_ok=True)
            # A rename in one file system is atomic: a reader sees the old file or the new one.
            spool_path.replace(final_path)

    def write_file(self, path_segments: Sequence[str], content_file: IO[bytes]) -> None:
        final_path = self.locate_file(path_segments)
        partial_path = final_path.with_name("partial")
        copy_stream(content_file, partial_path)
        # Renamed when whole: a file under its own name is never half written.
        with translate_os_errors("The file cannot be kept"):
            partial_path.replace(final_path)

    def delete_file(self, path_segments: Sequence[str]) -> None:
        with translate_os_errors("The file cannot be deleted"):
            self.locate_file(path_segments).unlink(missing_ok=True)

    def delete_folder(self, path_segments: Sequence[str]) -> None:
        shutil.rmtree(resolve_inside(self._folder, *path_segments), ignore_errors=True)

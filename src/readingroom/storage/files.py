"""Files: hashing, linking and moving them, and paths that stay inside their folder."""

import hashlib
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from readingroom.storage.errors import StorageFailed, describe_cause

logger = logging.getLogger(__name__)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resolve_inside(folder: Path, *names: str) -> Path:
    """Return `folder / name / …`; raise `StorageFailed` when that leads anywhere else.

    The names come out of a store, and whoever wrote the store chose them: `../..` is one too.
    """
    path = folder.joinpath(*names)
    if not all(map(is_plain_name, names)) or folder.resolve() not in path.resolve().parents:
        raise StorageFailed(f"{'/'.join(names)[:200]!r} is not the path of a file in {folder.name}")
    return path


def is_plain_name(name: str) -> bool:
    """Return whether this names a file of the folder it is looked up in, and of no other."""
    return name not in ("", ".", "..") and not any(character in name for character in "/\\\0")


@contextmanager
def translate_os_errors(problem: str) -> Iterator[None]:
    """Raise `StorageFailed` in place of an `OSError`, whose paths are only told to the log."""
    try:
        yield
    except OSError as error:
        logger.error("%s: %s", problem, error)
        raise StorageFailed(f"{problem}: {describe_cause(error)}") from error


def copy_stream(content: IO[bytes], target: Path) -> None:
    """Write an open file, from its beginning, to `target`.

    Raise `StorageFailed` when that fails, as on a full disk; nothing is left of `target` then.
    """
    with translate_os_errors("The file cannot be kept"):
        target.parent.mkdir(parents=True, exist_ok=True)
        content.seek(0)
        try:
            with target.open("wb") as copy:
                shutil.copyfileobj(content, copy)
        except OSError:
            with suppress(OSError):
                target.unlink()
            raise


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the two folders are on different disks.

    Only for files that are replaced and never rewritten: both names share the bytes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def move_files(source: Path, target: Path) -> None:
    """Move every file below one folder to the same relative path below another."""
    # Listed first: moving files changes the folders that `rglob` walks through.
    for file_path in [path for path in source.rglob("*") if path.is_file()]:
        destination = target / file_path.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file_path, destination)

"""Files as they are kept: hashed, given a second name, moved."""

import hashlib
import shutil
from pathlib import Path


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file that is replaced but never rewritten; a copy across disks."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def move_files(source: Path, target: Path) -> None:
    """Every file below one folder to the same place below another."""
    for file in [path for path in source.rglob("*") if path.is_file()]:
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, place)

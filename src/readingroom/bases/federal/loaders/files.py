"""Finds the files of a load: named ones, those of folders, those inside zips, one at a time."""

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

LARGEST = 256 * 1024 * 1024
_NEVER = {".pdf", ".md", ".txt", ".gif", ".jpg", ".png", ".xsl", ".css", ".dtd"}
_HEAD = 4096


@dataclass(frozen=True)
class RawFile:
    """A file of official bytes; `beside` reads another that it refers to."""

    name: str
    data: bytes
    beside: Callable[[str], bytes | None]

    @property
    def head(self) -> bytes:
        return self.data[:_HEAD]

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class TooLarge(ValueError):
    """The file is larger than any official one we know."""


Opened = tuple[str, Callable[[], RawFile]]
"""A name, and how to read it; another process can be asked to."""


def found(paths: Iterable[Path]) -> Iterator[Opened]:
    """Every file under these paths by name, and how to read it when its turn comes."""
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.is_file())
            for one in inside:
                yield from _file(one)
        else:
            yield from _file(path)


def _file(path: Path) -> Iterator[Opened]:
    if path.suffix.lower() == ".zip":
        yield from _zipped(path)
    elif path.suffix.lower() not in _NEVER:
        yield str(path), partial(_plain, path)


def _plain(path: Path) -> RawFile:
    return RawFile(path.name, _read(path), partial(_beside, path))


def _read(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise TooLarge(f"larger than {LARGEST // 1024 // 1024} MB")
    return path.read_bytes()


def _beside(path: Path, name: str) -> bytes | None:
    """A file that this one names, below its own folder: a name that leads out is not followed."""
    folder = path.parent.resolve()
    target = (folder / name).resolve()
    if not target.is_relative_to(folder) or not target.is_file():
        return None
    return target.read_bytes() if target.stat().st_size <= LARGEST else None


def _zipped(path: Path) -> Iterator[Opened]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [one for one in archive.infolist() if not one.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        yield str(path), partial(_fail, error)
        return
    for member in sorted(names, key=lambda one: one.filename):
        if Path(member.filename).suffix.lower() not in _NEVER:
            yield f"{path}!{member.filename}", partial(_member, path, member)


def _fail(error: Exception) -> RawFile:
    """A file that is told as unreadable when its turn comes, like any other."""
    raise error


def _member(path: Path, member: zipfile.ZipInfo) -> RawFile:
    # The size a zip declares is checked as it is read: a bomb lies in its directory too.
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge(f"larger than {LARGEST // 1024 // 1024} MB")
    return RawFile(Path(member.filename).name, data, lambda name: None)


def load_yaml(data: bytes) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times as fast
    return yaml.load(data, Loader=loader)

"""Finds the files of a load: named ones, those of folders, those inside zips, one at a time."""

import hashlib
import lzma
import os
import re
import sqlite3
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import yaml
from pydantic import ValidationError

from readingroom.core.errors import UnrecognizedId

# What a file can do wrong; anything else is ours, and ends the load.
BAD_FILE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    *(OSError, EOFError, RuntimeError),
    *(ExpatError, yaml.YAMLError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(ValidationError, UnrecognizedId),
    *(sqlite3.IntegrityError, sqlite3.ProgrammingError),  # a value that no column takes
)

LARGEST = 256 * 1024 * 1024
_NEVER = {".pdf", ".md", ".txt", ".gif", ".jpg", ".png", ".xsl", ".css", ".dtd"}
_HEAD = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ANCHOR = re.compile(rb"(?:^|[\s\[{,:-])&\w")
_PACKED = re.compile(r"(.+?\.zip)!(.+)", re.I | re.S)


@dataclass(frozen=True)
class RawFile:
    """A file of official bytes; `beside` reads another that it refers to."""

    name: str
    data: bytes
    beside: Callable[[str], bytes | None]

    @cached_property
    def head(self) -> bytes:
        return self.begin(_HEAD)

    def begin(self, size: int) -> bytes:
        """How it begins, on whatever system it was saved."""
        return self.data[:size].removeprefix(_BYTE_ORDER_MARK).replace(b"\r\n", b"\n")

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class TooLarge(ValueError):
    """The file is larger than any official one we know."""


Opened = tuple[str, Callable[[], RawFile]]
"""A name, and how to read it; another process can be asked to."""


def found(paths: Iterable[Path]) -> Iterator[Opened]:
    """Every file under these paths by name, and how to read it when its turn comes.

    What only lies in a folder is passed over where it cannot be meant; what was named is not.
    """
    for path in paths:
        if path.is_dir():
            yield from _inside(path)
        else:
            yield from _file(path)


def package_of(name: str) -> tuple[str, str] | None:
    """The zip that a file came in, and its name there; None when it lies by itself."""
    packed = _PACKED.fullmatch(name)
    return (packed[1], packed[2]) if packed else None


def _inside(folder: Path) -> Iterator[Opened]:
    closed: list[OSError] = []
    walked = [
        Path(root, name)
        for root, _, names in os.walk(folder, onerror=closed.append)
        for name in names
    ]
    for path in sorted(one for one in walked if one.is_file()):
        if path.suffix.lower() not in _NEVER:
            yield from _file(path)
    for error in closed:
        yield written(error.filename), partial(_fail, error)


def _file(path: Path) -> Iterator[Opened]:
    if path.suffix.lower() == ".zip":
        yield from _zipped(path)
    else:
        yield written(path), partial(_plain, path)


def written(name: str | Path) -> str:
    """A name, or what is said of one, as text: bytes that are none are spelt out."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def _plain(path: Path) -> RawFile:
    return RawFile(written(path.name), _read(path), partial(_beside, path))


def _read(path: Path) -> bytes:
    told = path.stat()
    if not stat.S_ISREG(told.st_mode):
        raise ValueError("neither a file nor a folder; save what it gives as a file first")
    if told.st_size > LARGEST:
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
        names = [one for one in _archive(*_as_it_is(path)).infolist() if not one.is_dir()]
    except BAD_FILE as error:
        yield written(path), partial(_fail, error)
        return
    for member in sorted(names, key=lambda one: one.filename):
        if Path(member.filename).suffix.lower() not in _NEVER:
            yield written(f"{path}!{member.filename}"), partial(_member, path, member)


def _fail(error: Exception) -> RawFile:
    """A file that is told as unreadable when its turn comes, like any other."""
    raise error


def _member(path: Path, member: zipfile.ZipInfo) -> RawFile:
    # The size a zip declares is checked as it is read: a bomb lies in its directory too.
    with _archive(*_as_it_is(path)).open(member) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge(f"larger than {LARGEST // 1024 // 1024} MB")
    return RawFile(written(Path(member.filename).name), data, lambda name: None)


def _as_it_is(path: Path) -> tuple[Path, int, int, int]:
    """A zip as it is now, for this process: a copy of the process would share the place in it."""
    told = path.stat()
    return path, told.st_mtime_ns, told.st_size, os.getpid()


@lru_cache(maxsize=1)
def _archive(path: Path, changed: int, size: int, process: int) -> zipfile.ZipFile:
    """Kept open for the next of its files: to open it, the names of ten thousand are read."""
    return zipfile.ZipFile(path)


def load_yaml(data: bytes) -> Any:
    """What a file says, without aliases: a few lines of those can stand for a thousand million."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times as fast
    if _ANCHOR.search(data) and any(
        isinstance(event, yaml.AliasEvent) for event in yaml.parse(data, Loader=loader)
    ):
        raise ValueError("it has aliases, which no official file of ours has")
    return yaml.load(data, Loader=loader)

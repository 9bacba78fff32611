"""Finds the files to load (named ones, those in folders, those inside zips) and reads them."""

import hashlib
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import NoReturn
from xml.parsers.expat import ExpatError

import yaml
from pydantic import ValidationError

from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import INVALID_VALUE_ERRORS

# What a bad file can raise in a loader. Anything else is a bug of ours and ends the load.
BAD_FILE_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    *(OSError, EOFError, RuntimeError),
    *(ExpatError, yaml.YAMLError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(ValidationError, UnrecognizedId),
    *INVALID_VALUE_ERRORS,
)

# A file is read as a whole, so this bounds the memory of a load. No official file is as large.
MAX_FILE_BYTES = 256 * 1024 * 1024
_IGNORED_SUFFIXES = {".pdf", ".md", ".txt", ".gif", ".jpg", ".png", ".xsl", ".css", ".dtd"}
# Most formats show in their first lines; a loader that has to see more calls `read_start`.
_FIRST_BYTE_COUNT = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ZIP_MEMBER_PATH_PATTERN = re.compile(r"(.+?\.zip)!(.+)", re.I | re.S)

SiblingReader = Callable[[str], bytes | None]
SiblingCheck = Callable[[str], bool]


def _has_no_sibling(sibling_name: str) -> bool:
    return False


class OversizedFile(ValueError):
    """The file is larger than any official file we know of."""


@dataclass(frozen=True)
class FileStartReader:
    """The name and the beginning of a file, by which loaders recognise its format."""

    name: str
    read_bytes: Callable[[int], bytes]

    @cached_property
    def first_bytes(self) -> bytes:
        return self.read_start(_FIRST_BYTE_COUNT)

    def read_start(self, max_bytes: int) -> bytes:
        """Return the first `max_bytes` bytes without byte order mark and Windows line ends."""
        return self.read_bytes(max_bytes).removeprefix(_BYTE_ORDER_MARK).replace(b"\r\n", b"\n")


@dataclass(frozen=True)
class RawFile:
    """The bytes of an official file; `read_sibling` reads a file next to it by name."""

    name: str
    data: bytes
    read_sibling: SiblingReader
    has_sibling: SiblingCheck = _has_no_sibling
    file_date: str | None = None
    """The day it was found to be the newest at its publisher, if it was fetched from there."""

    @property
    def start_reader(self) -> FileStartReader:
        return FileStartReader(self.name, lambda max_bytes: self.data[:max_bytes])

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file to load that has not been read yet."""

    path: str
    """Where it lies, as text; a member of a zip is `folder/package.zip!member.xml`."""
    size: int
    """As the folder or the zip states it; a zip may state less than there is."""
    read_bytes: Callable[[int], bytes]
    """Return at most so many bytes of the file, or raise one of `BAD_FILE_ERRORS`."""
    read_sibling: SiblingReader
    has_sibling: SiblingCheck = _has_no_sibling
    file_date: str | None = None

    def read_file(self) -> RawFile:
        """Read the whole file. Raise `OversizedFile` if it exceeds `MAX_FILE_BYTES`."""
        file_bytes = b"" if self.size > MAX_FILE_BYTES else self.read_bytes(MAX_FILE_BYTES + 1)
        if max(self.size, len(file_bytes)) > MAX_FILE_BYTES:
            raise OversizedFile(f"larger than {MAX_FILE_BYTES // 1024 // 1024} MB")
        return RawFile(
            self._file_name, file_bytes, self.read_sibling, self.has_sibling, self.file_date
        )

    @property
    def start_reader(self) -> FileStartReader:
        """The beginning, read when a loader looks at it."""
        return FileStartReader(self._file_name, self.read_bytes)

    @property
    def _file_name(self) -> str:
        _, member_name = split_zip_member(self.path) or ("", self.path)
        return Path(member_name).name


def find_files(given_paths: Iterable[Path], file_date: str | None = None) -> Iterator[FileRef]:
    """Yield every file under these paths; `file_date` is the day they were found to be current.

    Inside a folder or a zip, files of a type that no loader reads are left out; a file that was
    named by itself never is.
    """
    for given_path in given_paths:
        for file_ref in (
            _find_files_in_folder(given_path) if given_path.is_dir() else _find_files_at(given_path)
        ):
            yield replace(file_ref, file_date=file_date) if file_date else file_ref


def find_pdf_paths(given_paths: Iterable[Path]) -> Iterator[str]:
    """Yield every PDF in these folders and zips: no loader reads one unless another file names it.

    A PDF that was named by itself is not among them: `find_files` yields it.
    """
    for given_path in given_paths:
        if given_path.is_dir():
            for folder_path, _, file_names in sorted(os.walk(given_path)):
                for file_name in sorted(file_names):
                    file_path = Path(folder_path, file_name)
                    if _is_pdf(file_name):
                        yield escape_undecodable(file_path)
                    elif file_path.suffix.lower() == ".zip":
                        yield from _find_pdfs_in_zip(file_path)
        elif given_path.suffix.lower() == ".zip":
            yield from _find_pdfs_in_zip(given_path)


def _find_pdfs_in_zip(zip_path: Path) -> Iterator[str]:
    with suppress(*BAD_FILE_ERRORS):  # one that cannot be opened is reported when it is read
        for member_name in sorted(_open_zip(*_read_zip_cache_key(zip_path)).namelist()):
            if _is_pdf(member_name):
                yield escape_undecodable(f"{zip_path}!{member_name}")


def _is_pdf(file_name: str) -> bool:
    return file_name.lower().endswith(".pdf")


def split_zip_member(file_path: str) -> tuple[str, str] | None:
    """Split `package.zip!member` into zip and member; return None for a file that is in no zip."""
    member_match = _ZIP_MEMBER_PATH_PATTERN.fullmatch(file_path)
    return (member_match[1], member_match[2]) if member_match else None


def escape_undecodable(path_or_name: str | Path) -> str:
    """Return a file name or message as valid text, with undecodable bytes escaped."""
    return str(path_or_name).encode("utf-8", "backslashreplace").decode()


def _find_files_in_folder(folder_path: Path) -> Iterator[FileRef]:
    # Without a callback os.walk silently passes over folders that it may not read.
    walk_errors: list[OSError] = []
    file_paths = [
        Path(subfolder_path, file_name)
        for subfolder_path, _, file_names in os.walk(folder_path, onerror=walk_errors.append)
        for file_name in file_names
    ]
    # Sorted, so that two loads of a folder write the same rows in the same order.
    for file_path in sorted(file_path for file_path in file_paths if file_path.is_file()):
        if file_path.suffix.lower() not in _IGNORED_SUFFIXES:
            yield from _find_files_at(file_path)
    for error in walk_errors:
        yield _make_unreadable_file_ref(error.filename, error)


def _find_files_at(file_path: Path) -> Iterator[FileRef]:
    if file_path.suffix.lower() == ".zip":
        yield from _find_files_in_zip(file_path)
        return
    try:
        file_size = file_path.stat().st_size
    except OSError as error:
        yield _make_unreadable_file_ref(file_path, error)
    else:
        yield FileRef(
            escape_undecodable(file_path),
            file_size,
            partial(_read_file_bytes, file_path),
            partial(_read_sibling, file_path),
            partial(_has_sibling, file_path),
        )


def _find_files_in_zip(zip_path: Path) -> Iterator[FileRef]:
    try:
        zip_members = _open_zip(*_read_zip_cache_key(zip_path)).infolist()
    except BAD_FILE_ERRORS as error:
        yield _make_unreadable_file_ref(zip_path, error)
        return
    for zip_member in sorted(zip_members, key=lambda zip_member: zip_member.filename):
        is_ignored = Path(zip_member.filename).suffix.lower() in _IGNORED_SUFFIXES
        if not is_ignored and not zip_member.is_dir():
            member_path = escape_undecodable(f"{zip_path}!{zip_member.filename}")
            read_member = partial(_read_member, zip_path, zip_member)
            yield FileRef(member_path, zip_member.file_size, read_member, _read_no_sibling)


def _make_unreadable_file_ref(file_path: str | Path, error: Exception) -> FileRef:
    """A file that fails when its turn comes, so that it is reported like any other."""
    return FileRef(
        escape_undecodable(file_path), 0, partial(_raise_read_error, error), _read_no_sibling
    )


def _raise_read_error(error: Exception, max_bytes: int) -> NoReturn:
    raise error


def _read_no_sibling(sibling_name: str) -> None:
    return None


def _read_file_bytes(file_path: Path, max_bytes: int) -> bytes:
    file_stat = file_path.stat()
    # Opening a named pipe would wait for somebody to write into it.
    if not stat.S_ISREG(file_stat.st_mode):
        raise ValueError("neither a file nor a folder; save its contents as a file first")
    with file_path.open("rb") as file_stream:
        # Python reserves as much memory as it is asked to read.
        return file_stream.read(max_bytes) if max_bytes < file_stat.st_size else file_stream.read()


def _read_sibling(file_path: Path, sibling_name: str) -> bytes | None:
    """Read a file below the folder of `file_path`; return None for a name that leads out of it."""
    sibling_path = _find_sibling(file_path, sibling_name)
    if sibling_path is None or sibling_path.stat().st_size > MAX_FILE_BYTES:
        return None
    return sibling_path.read_bytes()


def _has_sibling(file_path: Path, sibling_name: str) -> bool:
    return _find_sibling(file_path, sibling_name) is not None


def _find_sibling(file_path: Path, sibling_name: str) -> Path | None:
    folder_path = file_path.parent.resolve()
    # Resolved before the check: the name comes from the file, and may be `..` or a link.
    sibling_path = (folder_path / sibling_name).resolve()
    return (
        sibling_path
        if sibling_path.is_relative_to(folder_path) and sibling_path.is_file()
        else None
    )


def _read_member(zip_path: Path, zip_member: zipfile.ZipInfo, max_bytes: int) -> bytes:
    # At most `max_bytes`, whatever the zip's directory says: that of a zip bomb lies.
    with _open_zip(*_read_zip_cache_key(zip_path)).open(zip_member) as member_stream:
        return member_stream.read(max_bytes)


def _read_zip_cache_key(zip_path: Path) -> tuple[Path, int, int]:
    file_stat = zip_path.stat()
    return zip_path, file_stat.st_mtime_ns, file_stat.st_size


# One, because members are read zip by zip. Time and size are part of the key, because a zip may be
# replaced by a newer one while this process lives.
@lru_cache(maxsize=1)
def _open_zip(zip_path: Path, modified_ns: int, zip_size: int) -> zipfile.ZipFile:
    """Open a zip and keep it open for its next member: its directory may list ten thousand."""
    return zipfile.ZipFile(zip_path)

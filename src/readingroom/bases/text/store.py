"""Reads the text base's file: once, whole and unmodified, or with an error a person understands."""

import os
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import anyio.to_thread

from readingroom.core import clock
from readingroom.core.errors import TextUnreadable

LARGEST = 64 * 1024 * 1024
SAMPLE = Path(__file__).with_name("sample.txt")


@dataclass(frozen=True, slots=True)
class Text:
    """A file as it was when it was read."""

    content: str
    size_bytes: int
    modified: datetime


class TextFile:
    """One file, kept in memory once it has been read.

    A reading that failed is tried again at the next call, so that a passing fault (a lock, a mount
    that was late) heals without a restart; a reading that succeeded is never repeated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text: Text | None = None

    def load(self) -> Text:
        if self._text is None:
            self._text = _read(self.path)
        return self._text

    async def text(self) -> Text:
        if self._text is not None:
            return self._text
        return await anyio.to_thread.run_sync(self.load)


def _read(path: Path) -> Text:
    try:
        raw, status = _bytes(path)
    except FileNotFoundError as error:
        raise TextUnreadable(f"The file {path.name!r} does not exist.") from error
    except OSError as error:
        raise TextUnreadable(
            f"The file {path.name!r} cannot be read: {error.strerror or error}. "
            "Another program may have it locked, or its permissions forbid reading."
        ) from error
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextUnreadable(
            f"The file {path.name!r} is not UTF-8 text: byte 0x{raw[error.start]:02x} at position "
            f"{error.start}. Save it as UTF-8."
        ) from error
    return Text(content, len(raw), clock.moment(status.st_mtime))


def _bytes(path: Path) -> tuple[bytes, os.stat_result]:
    # Without O_NONBLOCK, opening a named pipe would wait for a writer that may never come.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        _check(path, status)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            raw = file.read(LARGEST + 1)
    finally:
        os.close(descriptor)
    if len(raw) > LARGEST:
        raise _too_large(path)
    return raw, status


def _check(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise TextUnreadable(f"{path.name!r} is a directory. Name the text file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise TextUnreadable(f"{path.name!r} is not a regular file.")
    if status.st_size > LARGEST:
        raise _too_large(path)


def _too_large(path: Path) -> TextUnreadable:
    return TextUnreadable(
        f"The file {path.name!r} is larger than {LARGEST // 1024 // 1024} MB. "
        "This base gives a text whole; a corpus of this size belongs in the documents base."
    )

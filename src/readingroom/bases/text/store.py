"""Reads the text base's file: once, whole and unmodified, or with an error a person understands."""

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import anyio.to_thread

from readingroom.bases.text.errors import TextUnreadable
from readingroom.core import clock

LARGEST = 64 * 1024 * 1024
_RETRY_SECONDS = 1.0
SAMPLE = Path(__file__).with_name("sample.txt")


@dataclass(frozen=True, slots=True)
class Text:
    """A file as it was when it was read."""

    content: str
    size_bytes: int
    modified: datetime


class TextFile:
    """One file, kept in memory once it has been read.

    A reading that failed is tried again at a later call, so that a passing fault (a lock, a mount
    that was late) heals without a restart; a reading that succeeded is never repeated.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._text: Text | None = None
        self._failure: tuple[str, float] | None = None
        self._one_at_a_time = anyio.Lock()

    def load(self) -> Text:
        """The text, read now if it was not yet; a failure counts for a moment, so that a stampede
        on a bad file reads it once.
        """
        if self._text is not None:
            return self._text
        if self._failure and self._clock() - self._failure[1] < _RETRY_SECONDS:
            raise TextUnreadable(self._failure[0])
        try:
            self._text = _read(self.path)
        except TextUnreadable as failure:
            self._failure = (failure.message, self._clock())
            raise
        return self._text

    async def text(self) -> Text:
        if self._text is not None:
            return self._text
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(self.load)


def _read(path: Path) -> Text:
    try:
        raw, status = _bytes(path)
    except FileNotFoundError as error:
        raise TextUnreadable(f"The file {path.name!r} does not exist.") from error
    except (OSError, ValueError) as error:
        raise TextUnreadable(
            f"The file {path.name!r} cannot be read: {getattr(error, 'strerror', None) or error}. "
            "Another program may have it locked, or its permissions forbid reading."
        ) from error
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # Without `from error`: it would keep all the bytes alive as long as the message.
        raise TextUnreadable(
            f"The file {path.name!r} is not UTF-8 text: byte 0x{raw[error.start]:02x} at position "
            f"{error.start}. Save it as UTF-8."
        ) from None
    return Text(content, len(raw), clock.moment(status.st_mtime))


def _bytes(path: Path) -> tuple[bytes, os.stat_result]:
    # Without O_NONBLOCK, opening a named pipe would wait for a writer that may never come.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        _check(path, status)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            raw = file.read(LARGEST + 1) or b""
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

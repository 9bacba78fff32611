"""Reads the text base's file: once, complete and unmodified."""

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

# The whole text goes into one answer; beyond this no client could use it.
MAX_TEXT_BYTES = 64 * 1024 * 1024
_RETRY_SECONDS = 1.0
SAMPLE_FILE = Path(__file__).with_name("sample.txt")


@dataclass(frozen=True, slots=True)
class LoadedText:
    """The content of the file when it was read."""

    content: str
    size_bytes: int
    modified_at: datetime


class TextFile:
    """One file, which stays in memory once it has been read.

    A failed read is repeated at a later call, so that a passing fault (a lock, a mount that was
    late) heals without a restart. A successful read is never repeated.
    """

    def __init__(self, text_path: Path, read_clock: Callable[[], float] = time.monotonic) -> None:
        self.path = text_path
        self._read_clock = read_clock
        self._loaded_text: LoadedText | None = None
        self._last_failure: tuple[str, float] | None = None
        self._lock = anyio.Lock()

    def load_text(self) -> LoadedText:
        """Return the text, reading the file if that has not succeeded yet; raise `TextUnreadable`.

        A failure is remembered for a moment, so that many calls at once read a bad file only once.
        """
        if self._loaded_text is not None:
            return self._loaded_text
        if self._last_failure and self._read_clock() - self._last_failure[1] < _RETRY_SECONDS:
            raise TextUnreadable(self._last_failure[0])
        try:
            self._loaded_text = _read_text_file(self.path)
        except TextUnreadable as failure:
            self._last_failure = (failure.message, self._read_clock())
            raise
        return self._loaded_text

    async def read_text(self) -> LoadedText:
        if self._loaded_text is not None:
            return self._loaded_text
        # One read for all callers that arrive before the first has ended.
        async with self._lock:
            return await anyio.to_thread.run_sync(self.load_text)


def _read_text_file(text_path: Path) -> LoadedText:
    try:
        raw_bytes, file_stat = _read_file_bytes(text_path)
    except FileNotFoundError as error:
        raise TextUnreadable(f"The file {text_path.name!r} does not exist.") from error
    except (OSError, ValueError) as error:
        raise TextUnreadable(
            f"The file {text_path.name!r} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}. "
            "Another program may have it locked, or its permissions forbid reading."
        ) from error
    try:
        decoded_text = raw_bytes.decode("utf-8")
    except UnicodeDecodeError as error:
        # Without `from error`: it would keep all the bytes alive as long as the message.
        raise TextUnreadable(
            f"The file {text_path.name!r} is not UTF-8 text: byte 0x{raw_bytes[error.start]:02x} "
            f"at position {error.start}. Save it as UTF-8."
        ) from None
    return LoadedText(decoded_text, len(raw_bytes), clock.from_timestamp(file_stat.st_mtime))


def _read_file_bytes(text_path: Path) -> tuple[bytes, os.stat_result]:
    # Without O_NONBLOCK, opening a named pipe would wait for a writer that may never come.
    file_descriptor = os.open(text_path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        file_stat = os.fstat(file_descriptor)
        _check_is_text_file(text_path, file_stat)
        with os.fdopen(file_descriptor, "rb", closefd=False) as open_file:
            # One byte more than allowed, because the file may have grown since its size was read.
            raw_bytes = open_file.read(MAX_TEXT_BYTES + 1) or b""
    finally:
        os.close(file_descriptor)
    if len(raw_bytes) > MAX_TEXT_BYTES:
        raise _make_too_large_error(text_path)
    return raw_bytes, file_stat


def _check_is_text_file(text_path: Path, file_stat: os.stat_result) -> None:
    if stat.S_ISDIR(file_stat.st_mode):
        raise TextUnreadable(f"{text_path.name!r} is a directory. Name the text file in it.")
    if not stat.S_ISREG(file_stat.st_mode):
        raise TextUnreadable(f"{text_path.name!r} is not a regular file.")
    if file_stat.st_size > MAX_TEXT_BYTES:
        raise _make_too_large_error(text_path)


def _make_too_large_error(text_path: Path) -> TextUnreadable:
    return TextUnreadable(
        f"The file {text_path.name!r} is larger than {MAX_TEXT_BYTES // 1024 // 1024} MB. "
        "This base returns a text in one piece; put a corpus of this size into the documents base."
    )

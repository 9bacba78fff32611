"""Reads the files of a load in their order, and parses the next ones in a second process."""

import gc
import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process, parent_process
from multiprocessing.context import ForkContext, SpawnContext

from readingroom.bases.federal.formats import HasCompanions, Loader
from readingroom.bases.federal.formats.parts.files import (
    BAD_FILE_ERRORS,
    FileRef,
    RawFile,
    escape_undecodable,
)
from readingroom.bases.federal.schema.entries import FileProblem, ParsedRecord, Provenance
from readingroom.core import clock
from readingroom.engine.embedding.machine import count_cores

_MAX_BYTES_AHEAD = 4 * 1024 * 1024
"""How many bytes of files may be read before their turn; a larger file never is."""
_MIN_FILE_COST = 64 * 1024
"""What a file counts at least: the records of a small one take more memory than its bytes."""
_MIN_LOAD_BYTES = 8 * 1024 * 1024
"""A smaller load would be over by the time a second process had started."""

_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b")
"""How zips and gzips begin: one inside another may show the first lines of what it holds."""


class UnreadableFile(ValueError):
    """A file that the second process could not parse; the message is the whole description."""


@dataclass(slots=True)
class PendingFile:
    """A file that waits for its turn, and the loader that will parse it."""

    ref: FileRef
    loader: Loader | None = None
    """None for a file that no loader recognises, or that cannot be opened."""
    sha256: str = ""
    """Known once the file has been read."""

    @property
    def may_be_read_ahead(self) -> bool:
        alone = self.loader is not None and not isinstance(self.loader, HasCompanions)
        return alone and self.ref.size <= _MAX_BYTES_AHEAD


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file says, when it was read, and the hash of all that was read for it."""

    read_at: str
    identity: str
    entries: Iterable[ParsedRecord | FileProblem]
    companions: tuple[str, ...] = ()
    """The names of the files next to it that were read with it."""


ReadContents = Callable[[], Contents]
IsNeeded = Callable[[PendingFile], bool]


def identify(file_ref: FileRef, loaders: Sequence[Loader]) -> PendingFile:
    """Find the loader of a file; one that cannot be opened is reported when it is read."""
    with suppress(*BAD_FILE_ERRORS):
        file_start = file_ref.start
        if not file_start.head.startswith(_COMPRESSED):
            return PendingFile(
                file_ref, next((each for each in loaders if each.matches(file_start)), None)
            )
    return PendingFile(file_ref)


def read_in_order(
    pending_files: Sequence[PendingFile], is_needed: IsNeeded
) -> Iterator[tuple[PendingFile, ReadContents]]:
    """Yield each file with a function that returns its contents, or raises what is wrong with it.

    `is_needed` says, of a file whose hash is known, whether its contents will be asked for.
    """
    if not _is_worth_a_process(pending_files):
        yield from ((file, partial(_read_here, file)) for file in pending_files)
        return
    with closing(_ReadAhead(pending_files, is_needed)) as ahead:
        for index, file in enumerate(pending_files):
            yield file, partial(ahead.read, index)


def describe_error(error: BaseException) -> str:
    """Return what is wrong with a file, for the log and the summary of the load."""
    if isinstance(error, UnreadableFile):
        return str(error)
    missing = "it has no " if isinstance(error, KeyError) else ""
    return escape_undecodable(f"{type(error).__name__}: {missing}{error}"[:500])


def _is_worth_a_process(pending_files: Iterable[PendingFile]) -> bool:
    total_size = sum(
        pending_file.ref.size for pending_file in pending_files if pending_file.may_be_read_ahead
    )
    # A daemonic process may not have children.
    return total_size >= _MIN_LOAD_BYTES and count_cores() >= 2 and not current_process().daemon


def _read_here(pending_file: PendingFile) -> Contents:
    read_at, raw = clock.format_now(), pending_file.ref.read()
    pending_file.sha256 = raw.sha256
    if pending_file.loader is None:
        return Contents(read_at, raw.sha256, ())
    parsed_records = pending_file.loader.read(raw, Provenance(read_at, raw.sha256, raw.file_date))
    companions = _list_companions(pending_file.loader, raw)
    return Contents(read_at, _hash_with_companions(raw, companions), parsed_records, companions)


def _list_companions(loader: Loader, raw: RawFile) -> tuple[str, ...]:
    return tuple(loader.list_companions(raw)) if isinstance(loader, HasCompanions) else ()


def _hash_with_companions(raw: RawFile, companions: Sequence[str]) -> str:
    """Return the hash of all that a loader reads: the file, and the files it names."""
    if not companions:
        return raw.sha256
    hashed = hashlib.sha256(raw.data)
    for companion_name in companions:
        companion_bytes = raw.read_sibling(companion_name)
        companion_sha256 = hashlib.sha256(companion_bytes).hexdigest() if companion_bytes else ""
        hashed.update(f"{companion_name}\0{companion_sha256}".encode())
    return hashed.hexdigest()


@dataclass(slots=True)
class _FileAhead:
    """A file that was read before its turn; `parsed` is None when nobody needs its contents."""

    raw: RawFile
    cost: int
    parsed: Future[Contents | str] | None


class _ReadAhead:
    """Reads and hashes files a little ahead, here; a second process parses those that are needed.

    Whatever happens to that process, its files are parsed here instead.
    """

    def __init__(self, files: Sequence[PendingFile], is_needed: IsNeeded) -> None:
        self._files = files
        self._is_needed = is_needed
        self._ahead: dict[int, _FileAhead] = {}
        self._bytes_ahead = 0
        self._next = 0
        """Index of the first file that has not been looked at."""
        self._pool: ProcessPoolExecutor | None = None
        self._pool_failed = False

    def read(self, index: int) -> Contents:
        self._look_ahead(index)
        pending_file, ahead = self._files[index], self._ahead.pop(index, None)
        if ahead is None:
            return _read_here(pending_file)
        self._bytes_ahead -= ahead.cost
        if ahead.parsed is None or pending_file.loader is None:
            return Contents(clock.format_now(), pending_file.sha256, ())
        return self._get_result(pending_file.loader, ahead)

    def _look_ahead(self, index: int) -> None:
        self._next = max(self._next, index)
        while self._next < len(self._files) and self._bytes_ahead < _MAX_BYTES_AHEAD:
            if self._files[self._next].may_be_read_ahead and not self._pool_failed:
                # One that cannot be read is read again, and reported, when its turn comes.
                with suppress(*BAD_FILE_ERRORS):
                    self._read_raw(self._next)
            self._next += 1

    def _read_raw(self, index: int) -> None:
        pending_file = self._files[index]
        raw = pending_file.ref.read()
        pending_file.sha256 = raw.sha256
        parsed = (
            self._submit(pending_file.loader, raw)
            if pending_file.loader and self._is_needed(pending_file)
            else None
        )
        cost = max(len(raw.data), _MIN_FILE_COST)
        self._ahead[index] = _FileAhead(raw, cost, parsed)
        self._bytes_ahead += cost

    def _submit(self, loader: Loader, raw: RawFile) -> Future[Contents | str]:
        try:
            self._pool = self._pool or ProcessPoolExecutor(1, _choose_context(), _start_worker)
            return self._pool.submit(_parse_all, loader, raw)
        except (OSError, RuntimeError) as error:  # no process could be started, or it was killed
            self._pool_failed = True
            failed: Future[Contents | str] = Future()
            failed.set_exception(error)
            return failed

    def _get_result(self, loader: Loader, ahead: _FileAhead) -> Contents:
        assert ahead.parsed is not None
        try:
            parsed_contents = ahead.parsed.result()
        except Exception:  # if it is a bug of ours, parsing here raises it with its traceback
            parsed_contents = _parse_all(loader, ahead.raw)
        if isinstance(parsed_contents, str):
            raise UnreadableFile(parsed_contents)
        return parsed_contents

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)


def _choose_context() -> ForkContext | SpawnContext:
    """A copy of this process starts at once, but is safe only where no other thread runs."""
    alone = sys.platform == "linux" and threading.active_count() == 1
    return ForkContext() if alone else SpawnContext()


# --- in the second process ---


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is interrupted, and ends us
    # As in the first process: parsed files are many objects without cycles.
    gc.disable()
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    if loading_process := parent_process():
        loading_process.join()
    os._exit(1)  # a pool's worker would wait for ever for a parent that was killed


def _parse_all(loader: Loader, raw: RawFile) -> Contents | str:
    read_at = clock.format_now()
    try:
        parsed_records = list(loader.read(raw, Provenance(read_at, raw.sha256, raw.file_date)))
    except BAD_FILE_ERRORS as error:
        return describe_error(error)  # not every error can be pickled
    return Contents(read_at, raw.sha256, parsed_records)

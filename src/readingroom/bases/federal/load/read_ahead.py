"""Reads the files of a load in their order, and parses the next ones in a second process."""

import gc
import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from multiprocessing import current_process, parent_process
from multiprocessing.context import ForkContext, SpawnContext

from readingroom.bases.federal.formats import HasCompanionFiles, Loader
from readingroom.bases.federal.formats.parts.files import (
    BAD_FILE_ERRORS,
    FileRef,
    RawFile,
    escape_undecodable,
)
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    FileStamp,
    PackedRecord,
    ParsedRecord,
)
from readingroom.bases.federal.schema.records import Record
from readingroom.core import clock
from readingroom.engine.embedding.machine import count_cores
from readingroom.interrupts import shield_new_processes

_MAX_BYTES_AHEAD = 4 * 1024 * 1024
"""How many bytes of files may be read before their turn; a larger file never is."""
_MIN_COUNTED_BYTES = 64 * 1024
"""What a file counts at least: the records of a small one take more memory than its bytes."""
_MIN_LOAD_BYTES = 8 * 1024 * 1024
"""A smaller load would be over by the time a second process had started."""

_COMPRESSION_MAGIC_BYTES = (b"PK\x03\x04", b"\x1f\x8b")
"""How zips and gzips begin: one inside another may show the first lines of what it holds."""


class UnreadableFile(ValueError):
    """A file that the second process could not parse; the message is the whole description."""


@dataclass(slots=True)
class PendingFile:
    """A file that waits for its turn, and the loader that will parse it."""

    file_ref: FileRef
    loader: Loader | None = None
    """None for a file that no loader recognises, or that cannot be opened."""
    sha256: str = ""
    """Known once the file has been read."""

    @property
    def may_be_read_ahead(self) -> bool:
        has_no_companions = self.loader is not None and not isinstance(
            self.loader, HasCompanionFiles
        )
        return has_no_companions and self.file_ref.size <= _MAX_BYTES_AHEAD


@dataclass(frozen=True, slots=True)
class FileContents:
    """What a file says, when it was read, and the hash of all that was read for it."""

    read_at: str
    combined_sha256: str
    parsed_entries: Iterable[ParsedRecord | FileProblem]
    companion_names: tuple[str, ...] = ()
    """The names of the files next to it that were read with it."""


ContentsReader = Callable[[], FileContents]
NeedsContents = Callable[[PendingFile], bool]


def make_pending_file(file_ref: FileRef, loaders: Sequence[Loader]) -> PendingFile:
    """Find the loader of a file; one that cannot be opened is reported when it is read."""
    with suppress(*BAD_FILE_ERRORS):
        file_start_reader = file_ref.start_reader
        if not file_start_reader.first_bytes.startswith(_COMPRESSION_MAGIC_BYTES):
            return PendingFile(
                file_ref,
                next(
                    (loader for loader in loaders if loader.recognizes_file(file_start_reader)),
                    None,
                ),
            )
    return PendingFile(file_ref)


def read_in_order(
    pending_files: Sequence[PendingFile],
    needs_contents: NeedsContents,
    *,
    includes_column_values: bool = False,
) -> Iterator[tuple[PendingFile, ContentsReader]]:
    """Yield each file with a function that returns its contents, or raises what is wrong with it.

    `needs_contents` says, of a file whose hash is known, whether its contents will be asked for.
    With `includes_column_values` packed records have the values of their columns beside them.
    """
    if not _is_worth_a_process(pending_files):
        yield from (
            (pending_file, partial(read_in_this_process, pending_file))
            for pending_file in pending_files
        )
        return
    with closing(_ReadAhead(pending_files, needs_contents, includes_column_values)) as read_ahead:
        for file_index, pending_file in enumerate(pending_files):
            yield pending_file, partial(read_ahead.read_file_at, file_index)


def describe_error(error: BaseException) -> str:
    """Return what is wrong with a file, for the log and the summary of the load."""
    if isinstance(error, UnreadableFile):
        return str(error)
    missing_key_prefix = "it has no " if isinstance(error, KeyError) else ""
    return escape_undecodable(f"{type(error).__name__}: {missing_key_prefix}{error}"[:500])


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """A file is hundreds of thousands of objects and no cycles: nothing for the collector here."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def start_parsing(
    parsed_records: Iterable[ParsedRecord | FileProblem],
) -> Iterator[ParsedRecord | FileProblem]:
    """Return the same entries after parsing the first.

    For that a loader parses its whole file, which can go on while the file before it is committed
    on the other thread.
    """
    remaining_records = iter(parsed_records)
    first_records = list(islice(remaining_records, 1))
    return chain(first_records, remaining_records)


def _is_worth_a_process(pending_files: Iterable[PendingFile]) -> bool:
    total_bytes = sum(
        pending_file.file_ref.size
        for pending_file in pending_files
        if pending_file.may_be_read_ahead
    )
    # A daemonic process may not have children.
    return total_bytes >= _MIN_LOAD_BYTES and count_cores() >= 2 and not current_process().daemon


def read_in_this_process(pending_file: PendingFile) -> FileContents:
    """Return what a file says, parsed as its records are asked for."""
    read_at, raw_file = clock.format_now(), pending_file.file_ref.read_file()
    pending_file.sha256 = raw_file.sha256
    if pending_file.loader is None:
        return FileContents(read_at, raw_file.sha256, ())
    parsed_records = pending_file.loader.parse(
        raw_file, FileStamp(read_at, raw_file.sha256, raw_file.file_date)
    )
    companion_names = _list_companions(pending_file.loader, raw_file)
    return FileContents(
        read_at, _hash_with_companions(raw_file, companion_names), parsed_records, companion_names
    )


def _list_companions(loader: Loader, raw_file: RawFile) -> tuple[str, ...]:
    return tuple(loader.list_companions(raw_file)) if isinstance(loader, HasCompanionFiles) else ()


def _hash_with_companions(raw_file: RawFile, companion_names: Sequence[str]) -> str:
    """Return the hash of all that a loader reads: the file, and the files it names."""
    if not companion_names:
        return raw_file.sha256
    combined_hash = hashlib.sha256(raw_file.data)
    for companion_name in companion_names:
        companion_bytes = raw_file.read_sibling(companion_name)
        companion_sha256 = hashlib.sha256(companion_bytes).hexdigest() if companion_bytes else ""
        combined_hash.update(f"{companion_name}\0{companion_sha256}".encode())
    return combined_hash.hexdigest()


@dataclass(slots=True)
class _FileAhead:
    """A file that was read before its turn; without `parsing_future` nobody needs its contents."""

    raw_file: RawFile
    counted_bytes: int
    parsing_future: Future[FileContents | str] | None


class _ReadAhead:
    """Reads and hashes files a little ahead, here; a second process parses those that are needed.

    Whatever happens to that process, its files are parsed here instead.
    """

    def __init__(
        self,
        pending_files: Sequence[PendingFile],
        needs_contents: NeedsContents,
        includes_column_values: bool,
    ) -> None:
        self._pending_files = pending_files
        self._needs_contents = needs_contents
        self._includes_column_values = includes_column_values
        self._ahead_by_index: dict[int, _FileAhead] = {}
        self._bytes_ahead = 0
        self._next_index = 0
        """Index of the first file that has not been looked at."""
        self._pool: ProcessPoolExecutor | None = None
        self._has_pool_failed = False

    def read_file_at(self, file_index: int) -> FileContents:
        self._queue_next_files(file_index)
        pending_file, file_ahead = (
            self._pending_files[file_index],
            self._ahead_by_index.pop(file_index, None),
        )
        if file_ahead is None:
            return read_in_this_process(pending_file)
        self._bytes_ahead -= file_ahead.counted_bytes
        if file_ahead.parsing_future is None and self._needs_contents(pending_file):
            return read_in_this_process(pending_file)  # the same one before it was refused since
        if file_ahead.parsing_future is None or pending_file.loader is None:
            return FileContents(clock.format_now(), pending_file.sha256, ())
        return self._get_contents(pending_file.loader, file_ahead)

    def _queue_next_files(self, file_index: int) -> None:
        self._next_index = max(self._next_index, file_index)
        while self._next_index < len(self._pending_files) and self._bytes_ahead < _MAX_BYTES_AHEAD:
            if (
                self._pending_files[self._next_index].may_be_read_ahead
                and not self._has_pool_failed
            ):
                # One that cannot be read is read again, and reported, when its turn comes.
                with suppress(*BAD_FILE_ERRORS):
                    self._queue_file(self._next_index)
            self._next_index += 1

    def _queue_file(self, file_index: int) -> None:
        pending_file = self._pending_files[file_index]
        raw_file = pending_file.file_ref.read_file()
        pending_file.sha256 = raw_file.sha256
        parsing_future = (
            self._submit_parsing(pending_file.loader, raw_file)
            if pending_file.loader and self._needs_contents(pending_file)
            else None
        )
        counted_bytes = max(len(raw_file.data), _MIN_COUNTED_BYTES)
        self._ahead_by_index[file_index] = _FileAhead(raw_file, counted_bytes, parsing_future)
        self._bytes_ahead += counted_bytes

    def _submit_parsing(self, loader: Loader, raw_file: RawFile) -> Future[FileContents | str]:
        try:
            self._pool = self._pool or ProcessPoolExecutor(
                1, _choose_process_context(), _start_worker
            )
            with shield_new_processes():
                return self._pool.submit(
                    _parse_in_worker, loader, raw_file, self._includes_column_values
                )
        except (OSError, RuntimeError) as error:  # no process could be started, or it was killed
            self._has_pool_failed = True
            failed_future: Future[FileContents | str] = Future()
            failed_future.set_exception(error)
            return failed_future

    def _get_contents(self, loader: Loader, file_ahead: _FileAhead) -> FileContents:
        assert file_ahead.parsing_future is not None
        try:
            contents_or_error = file_ahead.parsing_future.result()
        except Exception:  # if it is a bug of ours, parsing here raises it with its traceback
            contents_or_error = _parse_in_worker(
                loader, file_ahead.raw_file, self._includes_column_values
            )
        if isinstance(contents_or_error, str):
            raise UnreadableFile(contents_or_error)
        return contents_or_error

    def close(self) -> None:
        if self._pool:
            # Files that still wait are not wanted any more; only what is being parsed is waited
            # for.
            self._pool.shutdown(cancel_futures=True)


def _choose_process_context() -> ForkContext | SpawnContext:
    """A copy of this process starts at once, but is safe only where no other thread runs."""
    may_fork = sys.platform == "linux" and threading.active_count() == 1
    return ForkContext() if may_fork else SpawnContext()


# --- in the second process ---


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is interrupted, and ends us
    # As in the first process: parsed files are many objects without cycles.
    gc.disable()
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    if main_process := parent_process():
        main_process.join()
    # Not `sys.exit`, which would end this thread and leave the process.
    os._exit(1)  # a pool's worker would wait for ever for a parent that was killed


def _parse_in_worker(
    loader: Loader, raw_file: RawFile, includes_column_values: bool
) -> FileContents | str:
    read_at = clock.format_now()
    try:
        file_stamp = FileStamp(read_at, raw_file.sha256, raw_file.file_date)
        parsed_records = list(
            _pack_records(loader.parse(raw_file, file_stamp), includes_column_values)
        )
    except BAD_FILE_ERRORS as error:
        return describe_error(error)  # not every error can be pickled
    return FileContents(read_at, raw_file.sha256, parsed_records)


def _pack_records(
    parsed_entries: Iterable[ParsedRecord | FileProblem], includes_column_values: bool
) -> Iterator[ParsedRecord | FileProblem]:
    """Yield what a file says with its records packed, and each mention of a record once."""
    mentioned_ids: set[str] = set()
    for parsed_entry in parsed_entries:
        if isinstance(parsed_entry, FileProblem) or not isinstance(parsed_entry.record, Record):
            yield parsed_entry
            continue
        if parsed_entry.is_mention and not parsed_entry.is_fallback:
            if parsed_entry.record.id in mentioned_ids:
                continue
            mentioned_ids.add(parsed_entry.record.id)
        packed_record = PackedRecord.pack(
            parsed_entry.record, includes_columns=includes_column_values
        )
        yield replace(parsed_entry, record=packed_record)

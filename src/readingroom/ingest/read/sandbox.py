"""Reads each file in a process of its own, within limits, so that the server survives any file.

The process has its own group and is killed as a group, whatever happened. Its output is data and is
validated. An abort, a hang or running out of memory becomes an `ExtractionFailed`.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from io import FileIO
from pathlib import Path
from typing import IO, Literal, NoReturn

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import Base64Bytes, TypeAdapter, ValidationError

from readingroom.core.errors import KnowledgeError
from readingroom.core.ids import current_caller_id
from readingroom.core.progress import ReportProgress, no_progress
from readingroom.core.settings import make_sandbox_environment
from readingroom.core.work_slots import WorkSlots
from readingroom.engine.embedding.machine import count_cores
from readingroom.ingest.confine.process import Confinement, hide_process_memory
from readingroom.ingest.confine.program_paths import find_program_paths
from readingroom.ingest.document import (
    ContainedEntry,
    Document,
    PageWord,
    PictureFormat,
    ReadOptions,
    RefusalCode,
    SkippedFile,
)
from readingroom.ingest.errors import ExtractionFailed, NoChunks, NoContent, UnsupportedFileType
from readingroom.ingest.read.consumption import measure_folder_bytes, measure_process_group_memory
from readingroom.ingest.read.job import Job
from readingroom.ingest.read.scratch import ScratchFolders

# Not `-m`, and no garbage is collected during the imports: every file has a process of its own, and
# both take a tenth of the time that a short document needs.
WORKER_COMMAND = (
    *(sys.executable, "-P", "-c"),
    "import gc; gc.disable(); from readingroom.ingest.read.worker import main; main()",
)

_ERROR_CLASSES_BY_REFUSAL_CODE: dict[RefusalCode, type[KnowledgeError]] = {
    "unsupported_file_type": UnsupportedFileType,
    "extraction_failed": ExtractionFailed,
    "no_content": NoContent,
    "no_chunks": NoChunks,
}
# Exit status of Python after an exception; C libraries exit in other ways.
_UNCAUGHT_EXCEPTION_EXIT_STATUS = 1
# How often it is looked at what a process and its children take.
_SECONDS_BETWEEN_LIMIT_CHECKS = 1.0
# Of the standard error of a process that failed unexpectedly.
_MAX_LOGGED_TRACEBACK_BYTES = 8_000

_log = logging.getLogger("readingroom.ingest")


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What reading one file may cost."""

    memory_bytes: int = 1536 * 2**20
    group_memory_bytes: int = 3 * 2**30
    """Of the process and all that it started: the kernel bounds each of them alone."""
    scratch_bytes: int = 4 * 2**30
    cpu_seconds: int = 900
    wall_seconds: float = 300.0
    silent_seconds: float = 300.0
    """Without progress: a hang is noticed, however much time was given to long scans."""
    answer_bytes: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """One line of output of the process."""

    progress: tuple[int, int, str] | None = None
    refusal: tuple[RefusalCode, str] | None = None
    document: Document | None = None
    skipped_file: SkippedFile | None = None
    picture: Base64Bytes | None = None
    words: tuple[PageWord, ...] | None = None
    unpacked: tuple[ContainedEntry, ...] | None = None


class ConfinedReader:
    """Starts confined processes: for one caller as many at once as there are cores, by default."""

    def __init__(
        self,
        job_limits: ReadingLimits | None = None,
        processes_per_caller: int | None = None,
        worker_command: tuple[str, ...] = WORKER_COMMAND,
        scratch_parent: Path | None = None,
    ) -> None:
        # From the processes that it starts: they have our account, and our environment has keys.
        hide_process_memory()
        self._limits = job_limits or ReadingLimits()
        self._work_slots = WorkSlots(slots_per_caller=processes_per_caller or count_cores())
        self._worker_command = worker_command
        self.scratch_parent = scratch_parent or Path(tempfile.gettempdir())
        self._scratch_folders = ScratchFolders(self.scratch_parent)

    async def read_document(
        self,
        input_file: FileIO,
        file_name: str,
        read_options: ReadOptions,
        report_progress: ReportProgress,
    ) -> Document | SkippedFile:
        """Return the document in a file, or `SkippedFile`; raise the error of a refusal."""
        worker_message = await self._run_job(
            input_file, Job(file_name, read_options), report_progress
        )
        read_result = worker_message.document or worker_message.skipped_file
        if read_result is None:
            raise ExtractionFailed("The program that reads files gave no answer")
        return read_result

    async def render_page(
        self,
        input_file: FileIO,
        file_name: str,
        read_options: ReadOptions,
        page_number: int,
        dpi: int,
        picture_format: PictureFormat = "png",
    ) -> bytes:
        """Return one page of a file as a picture."""
        reading_job = Job(file_name, read_options, "draw", page_number, dpi, picture_format)
        worker_message = await self._run_job(input_file, reading_job, no_progress)
        if worker_message.picture is None:
            raise ExtractionFailed("The program that reads files gave no picture")
        return worker_message.picture

    async def find_page_words(
        self, input_file: FileIO, file_name: str, read_options: ReadOptions, page_number: int
    ) -> tuple[PageWord, ...]:
        """Return the words of one page with their places."""
        reading_job = Job(file_name, read_options, "find_words", page_number)
        worker_message = await self._run_job(input_file, reading_job, no_progress)
        if worker_message.words is None:
            raise ExtractionFailed("The program that reads files gave no words")
        return worker_message.words

    @asynccontextmanager
    async def unpack_files(
        self, input_file: FileIO, file_name: str, read_options: ReadOptions
    ) -> AsyncIterator[tuple[tuple[str, Path], ...]]:
        """Yield the files inside a message or an archive: their names, and where they lie.

        They are gone when the context ends.
        """
        reading_job = Job(file_name, read_options, "unpack")
        async with self._scratch_folders.make_scratch_folder() as scratch_folder:
            worker_message = await self._run_job_in_folder(
                scratch_folder, input_file, reading_job, no_progress
            )
            yield tuple(
                # Its last part alone: the process may have been taken over.
                (
                    unpacked_file.file_name,
                    Path(scratch_folder, Path(unpacked_file.scratch_name).name),
                )
                for unpacked_file in worker_message.unpacked or ()
            )

    async def _run_job(
        self, input_file: FileIO, reading_job: Job, report_progress: ReportProgress
    ) -> WorkerMessage:
        """Return the last message of a process; raise the error that it reports or ends with."""
        async with self._scratch_folders.make_scratch_folder() as scratch_folder:
            return await self._run_job_in_folder(
                scratch_folder, input_file, reading_job, report_progress
            )

    async def _run_job_in_folder(
        self,
        scratch_folder: str,
        input_file: FileIO,
        reading_job: Job,
        report_progress: ReportProgress,
    ) -> WorkerMessage:
        async with (
            self._work_slots.hold_slot(current_caller_id.get()),
            self._start_process(input_file, reading_job, scratch_folder) as worker_process,
        ):
            try:
                # Counted from here: how long it waited for a place is not the file's fault.
                with anyio.fail_after(self._limits.wall_seconds):
                    worker_message = await self._receive_result(
                        worker_process, scratch_folder, report_progress
                    )
            except TimeoutError as error:
                raise self._make_timeout_error() from error
            if worker_message is None:
                await self._raise_exit_error(worker_process, scratch_folder)
        if worker_message.refusal is not None:
            raise make_error_from_refusal(*worker_message.refusal)
        return worker_message

    @asynccontextmanager
    async def _start_process(
        self, input_file: FileIO, reading_job: Job, scratch_folder: str
    ) -> AsyncIterator[Process]:
        # One thread for tesseract: it is ten times slower with more threads than cores.
        environment_variables = make_sandbox_environment(
            TMPDIR=scratch_folder, OMP_THREAD_LIMIT="1"
        )
        confinement = Confinement(
            readable_paths=find_program_paths(environment_variables),
            writable_paths=(scratch_folder, os.devnull),
            memory_bytes=self._limits.memory_bytes,
            cpu_seconds=self._limits.cpu_seconds,
        )
        reading_job = replace(reading_job, parent_id=os.getpid(), confinement=confinement)
        with (
            _reopen_for_reading(input_file) as stdin_file,
            _open_stderr_file(scratch_folder, "wb") as stderr_file,
        ):
            worker_process = await anyio.open_process(
                [*self._worker_command, reading_job.to_json()],
                stdin=stdin_file,
                # A file and not a pipe: nobody reads it while the process runs, and a full pipe
                # would stop it.
                stderr=stderr_file,
                cwd=scratch_folder,
                env=environment_variables,
                # A group of its own, so that tesseract is killed together with the process that
                # started it.
                start_new_session=True,
            )
        try:
            yield worker_process
        finally:
            _kill_process_group(worker_process)
            # Shielded: a caller who leaves must not leave a process that nobody has waited for.
            with anyio.CancelScope(shield=True):
                await worker_process.aclose()

    async def _receive_result(
        self, worker_process: Process, scratch_folder: str, report_progress: ReportProgress
    ) -> WorkerMessage | None:
        """Return the result, reporting progress until then; None when the process ends first."""
        assert worker_process.stdout is not None
        output_stream = BufferedByteReceiveStream(worker_process.stdout)
        while True:
            try:
                with anyio.fail_after(self._limits.silent_seconds):
                    output_line = await self._receive_line(
                        output_stream, worker_process, scratch_folder
                    )
            except anyio.IncompleteRead:
                return None
            except anyio.DelimiterNotFound as error:
                raise ExtractionFailed("The file holds more text than is accepted") from error
            # In a thread: the last line of a large document has many megabytes of JSON.
            worker_message = await anyio.to_thread.run_sync(_parse_message, output_line)
            if worker_message.progress is None:
                return worker_message
            await report_progress(*worker_message.progress)

    async def _receive_line(
        self, output_stream: BufferedByteReceiveStream, worker_process: Process, scratch_folder: str
    ) -> bytes:
        """Return the next line of output, and kill the process if it takes too much meanwhile."""
        while True:
            with anyio.move_on_after(_SECONDS_BETWEEN_LIMIT_CHECKS):
                return await output_stream.receive_until(b"\n", self._limits.answer_bytes)
            # In a thread: it goes through /proc and through a folder that may hold very many files.
            if await anyio.to_thread.run_sync(
                self._has_exceeded_limits, worker_process.pid, scratch_folder
            ):
                _log.warning("a process that reads a file took too much memory or disk: killed")
                _kill_process_group(worker_process)

    def _has_exceeded_limits(self, process_group_id: int, scratch_folder: str) -> bool:
        return (
            measure_process_group_memory(process_group_id) > self._limits.group_memory_bytes
            or measure_folder_bytes(scratch_folder) > self._limits.scratch_bytes
        )

    def _make_timeout_error(self) -> ExtractionFailed:
        return ExtractionFailed(
            f"Reading the file took more than {self._limits.wall_seconds:g} seconds in all, "
            f"or more than {self._limits.silent_seconds:g} for one step. Split it into several "
            "files, or raise READINGROOM_INGEST_SECONDS"
        )

    async def _raise_exit_error(self, worker_process: Process, scratch_folder: str) -> NoReturn:
        """Raise the error that explains why the process ended without a result."""
        exit_status = await worker_process.wait()
        # Both mean a limit: of processor time, of the machine's memory, or one that is looked at
        # here.
        if exit_status < 0 and -exit_status in (signal.SIGKILL, signal.SIGXCPU):
            raise ExtractionFailed(
                f"Reading the file took more than {self._limits.cpu_seconds} processor seconds, "
                "or too much memory or disk"
            )
        if exit_status != _UNCAUGHT_EXCEPTION_EXIT_STATUS:
            exit_cause = (
                signal.Signals(-exit_status).name
                if exit_status < 0
                else f"exit status {exit_status}"
            )
            raise ExtractionFailed(
                f"The file stopped the program that reads it ({exit_cause}): "
                "it is damaged, or needs too much memory"
            )
        with _open_stderr_file(scratch_folder, "rb") as stderr_file:
            # From its end, which is where Python names the exception.
            stderr_file.seek(max(0, stderr_file.seek(0, os.SEEK_END) - _MAX_LOGGED_TRACEBACK_BYTES))
            worker_traceback = stderr_file.read().decode("utf-8", "replace")
        _log.error("a file could not be read because of an unexpected error:\n%s", worker_traceback)
        raise ExtractionFailed("The file cannot be read; the server's log has the reason")


@contextmanager
def _reopen_for_reading(input_file: FileIO) -> Iterator[FileIO]:
    """Open an open file a second time, from its start and for reading alone.

    The process could else change the copy that is kept after it has been read.
    """
    try:
        file_descriptor = os.open(
            f"/proc/self/fd/{input_file.fileno()}", os.O_RDONLY | os.O_CLOEXEC
        )
    except FileNotFoundError:  # not Linux: the process inherits our descriptor with its position
        input_file.seek(0)
        yield input_file
        return
    with FileIO(file_descriptor) as reopened_file:
        yield reopened_file


def _open_stderr_file(scratch_folder: str, open_mode: Literal["rb", "wb"]) -> IO[bytes]:
    """Open the file for the process's standard error: empty, or a traceback for the log."""
    return Path(scratch_folder, "errors").open(open_mode)


def make_error_from_refusal(refusal_code: RefusalCode, refusal_message: str) -> KnowledgeError:
    """Return the error that callers see for a refusal inside the sandbox."""
    return _ERROR_CLASSES_BY_REFUSAL_CODE[refusal_code](refusal_message)


def _kill_process_group(worker_process: Process) -> None:
    """Kill the process and all that it started; usually they have ended already."""
    if not hasattr(os, "killpg"):  # Windows
        with suppress(ProcessLookupError):
            worker_process.kill()
        return
    # macOS forbids signals to a group that consists of a dead leader alone.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(worker_process.pid, signal.SIGKILL)


def _parse_message(output_line: bytes) -> WorkerMessage:
    try:
        return _make_message_adapter().validate_json(output_line)
    except ValidationError as error:
        raise ExtractionFailed("The program that reads files gave no sensible answer") from error


@cache
def _make_message_adapter() -> TypeAdapter[WorkerMessage]:
    # Not at import: every command that opens a base imports this module, and few read a file.
    return TypeAdapter(WorkerMessage)

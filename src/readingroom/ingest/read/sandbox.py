"""Runs each document's reading in a process of its own, within limits, so that the server survives.

The process has its own group and is killed as a group, whatever happened; what it says comes back
as data and is checked; an abort, a hang or running out of memory becomes an error of ours.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import IO, Literal, NoReturn

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import Base64Bytes, TypeAdapter, ValidationError

from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress, no_progress
from readingroom.core.settings import bare_environment
from readingroom.engine.embedding.machine import cores
from readingroom.ingest.document import Document, Options, RefusalCode, Skipped
from readingroom.ingest.errors import ExtractionFailed, NoChunks, NoContent, UnsupportedFileType
from readingroom.ingest.read.job import Job

WORKER = (sys.executable, "-P", "-m", "readingroom.ingest.read.worker")

_REFUSALS: dict[RefusalCode, type[KnowledgeError]] = {
    "unsupported_file_type": UnsupportedFileType,
    "extraction_failed": ExtractionFailed,
    "no_content": NoContent,
    "no_chunks": NoChunks,
}
_TRACEBACK = 1
"""How Python exits after an exception; the C library, out of memory, exits in other ways."""
_MOST_TOLD = 8_000
"""Bytes of an unforeseen failure that reach the log."""

_log = logging.getLogger("readingroom.ingest")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may cost."""

    memory_bytes: int = 1536 * 2**20
    cpu_seconds: int = 900
    wall_seconds: float = 1800.0
    silent_seconds: float = 300.0
    """Without a page finished. A hang is seen long before a thousand scans could be read."""
    answer_bytes: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Message:
    """One line from the process."""

    progress: tuple[int, int, str] | None = None
    refusal: tuple[RefusalCode, str] | None = None
    document: Document | None = None
    skipped: Skipped | None = None
    picture: Base64Bytes | None = None


_MESSAGE = TypeAdapter(Message)


class Sandbox:
    """Starts confined processes, at most as many at once as there are cores."""

    def __init__(
        self,
        limits: Limits | None = None,
        at_once: int | None = None,
        command: tuple[str, ...] = WORKER,
    ) -> None:
        self._limits = limits or Limits()
        self._seats = anyio.CapacityLimiter(at_once or cores())
        self._command = command

    async def read(
        self, file: FileIO, name: str, options: Options, report: ReportProgress
    ) -> Document | Skipped:
        """What the file holds, or an error that says why it cannot be told."""
        return _result(await self._said(file, self._job(name, options), report))

    async def picture(
        self, file: FileIO, name: str, options: Options, page: int, dpi: int
    ) -> bytes:
        """One page of the file as a PNG."""
        job = replace(self._job(name, options), page=page, dpi=dpi)
        said = _accepted(await self._said(file, job, no_progress))
        if said.picture is None:
            raise ExtractionFailed("The program that reads files gave no picture")
        return said.picture

    def _job(self, name: str, options: Options) -> Job:
        limits = self._limits
        return Job(name, options, os.getpid(), limits.memory_bytes, limits.cpu_seconds)

    async def _said(self, file: FileIO, job: Job, report: ReportProgress) -> Message:
        async with self._seats:
            with tempfile.TemporaryDirectory(prefix="readingroom-") as scratch:
                async with self._started(file, job, scratch) as process:
                    try:
                        with anyio.fail_after(self._limits.wall_seconds):
                            said = await self._last_word(process, report)
                    except TimeoutError as error:
                        raise self._too_slow() from error
                    if said is None:
                        await self._explain(process, scratch)
        return said

    @asynccontextmanager
    async def _started(self, file: FileIO, job: Job, scratch: str) -> AsyncIterator[Process]:
        file.seek(0)
        with _errors(scratch, "wb") as stderr:
            process = await anyio.open_process(
                [*self._command, job.to_json()],
                stdin=file,
                stderr=stderr,
                cwd=scratch,
                # One thread for tesseract, which is ten times slower with more than there are.
                env=bare_environment(TMPDIR=scratch, OMP_THREAD_LIMIT="1"),
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _end(process)
            with anyio.CancelScope(shield=True):
                await process.aclose()

    async def _last_word(self, process: Process, report: ReportProgress) -> Message | None:
        """Pass the progress on until the outcome comes; None when the process ends without one."""
        assert process.stdout is not None
        stream = BufferedByteReceiveStream(process.stdout)
        while True:
            try:
                with anyio.fail_after(self._limits.silent_seconds):
                    line = await stream.receive_until(b"\n", self._limits.answer_bytes)
            except anyio.IncompleteRead:
                return None
            except anyio.DelimiterNotFound as error:
                raise ExtractionFailed("The file holds more text than is accepted") from error
            message = await anyio.to_thread.run_sync(_parsed, line)
            if message.progress is None:
                return message
            await report(*message.progress)

    def _too_slow(self) -> ExtractionFailed:
        return ExtractionFailed(
            f"Reading the file took more than {self._limits.wall_seconds:g} seconds in all, "
            f"or more than {self._limits.silent_seconds:g} for one step"
        )

    async def _explain(self, process: Process, scratch: str) -> NoReturn:
        """Say why the process ended without a word."""
        code = await process.wait()
        if code < 0 and -code in (signal.SIGKILL, signal.SIGXCPU):
            raise ExtractionFailed(
                f"Reading the file took more than {self._limits.cpu_seconds} processor seconds, "
                "or more memory than the system had"
            )
        if code != _TRACEBACK:
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            raise ExtractionFailed(
                f"The file stopped the program that reads it ({how}): "
                "it is damaged, or needs too much memory"
            )
        with _errors(scratch, "rb") as complaint:
            complaint.seek(max(0, complaint.seek(0, os.SEEK_END) - _MOST_TOLD))
            written = complaint.read().decode("utf-8", "replace")
        _log.error("a file could not be read, for a reason nobody foresaw:\n%s", written)
        raise ExtractionFailed("The file cannot be read; the server's log has the reason")


def _errors(scratch: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """What the process says on standard error: nothing, or a traceback for our log."""
    return Path(scratch, "errors").open(mode)


def refused(code: RefusalCode, message: str) -> KnowledgeError:
    """A refusal, as the error that callers are told."""
    return _REFUSALS[code](message)


def _end(process: Process) -> None:
    """Kill the process and all it has started; most often they are gone already."""
    if not hasattr(os, "killpg"):  # Windows
        with suppress(ProcessLookupError):
            process.kill()
        return
    # macOS forbids to signal a group of which only the dead leader is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _parsed(line: bytes) -> Message:
    try:
        return _MESSAGE.validate_json(line)
    except ValidationError as error:
        raise ExtractionFailed("The program that reads files gave no sensible answer") from error


def _accepted(said: Message) -> Message:
    if said.refusal is not None:
        code, message = said.refusal
        raise refused(code, message)
    return said


def _result(said: Message) -> Document | Skipped:
    said = _accepted(said)
    result = said.document or said.skipped
    if result is None:
        raise ExtractionFailed("The program that reads files gave no answer")
    return result

"""Reads files: checks their name and first bytes, then reads them in the sandbox."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

import anyio.to_thread

from readingroom.core.progress import ReportProgress
from readingroom.ingest.document import (
    Document,
    PageWord,
    PictureFormat,
    ReadOptions,
    Refusal,
    SkippedFile,
)
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.private_copy import AllowedFolders, PrivateCopy
from readingroom.ingest.read.formats.detect import (
    CONTAINER_FORMATS,
    DETECTION_BYTE_COUNT,
    READABLE_EXTENSIONS,
    check_file_name,
    detect_format,
)
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits, make_error_from_refusal

MIN_GOOD_CONFIDENCE = 70.0
"""Per cent; a page that OCR is less sure of than this is logged as a warning."""

MAX_DOCUMENT_CHUNKS = 20_000
"""Of one document, some twelve million characters: each chunk is embedded and kept in memory."""

_log = logging.getLogger("readingroom.ingest")

# Somebody waits for a page that is shown, so it may take much less than reading a file.
_PAGE_RENDERING_LIMITS = ReadingLimits(cpu_seconds=60, wall_seconds=90, silent_seconds=90)
# Of a page that is shown to a reader.
_MAX_PAGE_PICTURE_PIXELS = 16_000_000


@dataclass(frozen=True, slots=True)
class UnpackedFile:
    """A file that was inside another: the name it had there, and where it lies for now."""

    file_name: str
    path: Path
    max_bytes: int

    @contextmanager
    def open_private_copy(self) -> Iterator[PrivateCopy]:
        """Open the file under the name it had; raise `FileNotFound` or `ExtractionFailed`."""
        # As a file of the folder and no link out of it: a process that was taken over wrote it.
        allowed_folders = AllowedFolders(
            "the folder of unpacked files", (self.path.parent,), self.max_bytes
        )
        with allowed_folders.open_copy(str(self.path)) as private_copy:
            yield replace(private_copy, file_name=self.file_name)


class Pipeline:
    """Reads files, each in its own sandboxed process."""

    def __init__(
        self, confined_reader: ConfinedReader, read_options: ReadOptions | None = None
    ) -> None:
        self._confined_reader = confined_reader
        self._options = read_options or ReadOptions()
        # A confined reader of its own, so that showing a page does not wait for a thousand scans.
        self._confined_renderer = ConfinedReader(
            _PAGE_RENDERING_LIMITS, scratch_parent=confined_reader.scratch_parent
        )

    async def check_file_type(
        self, private_copy: PrivateCopy, allowed_extensions: tuple[str, ...] = READABLE_EXTENSIONS
    ) -> None:
        """Raise for a file that its name or its first bytes rule out, before it is read.

        A base that reads fewer formats names the extensions that it takes.
        """
        try:
            check_file_name(private_copy.file_name, allowed_extensions)
            detect_format(
                await anyio.to_thread.run_sync(private_copy.read_first_bytes, DETECTION_BYTE_COUNT),
                private_copy.file_name,
            )
        except Refusal as refusal:
            raise make_error_from_refusal(refusal.code, refusal.message) from refusal

    async def read_document(
        self,
        private_copy: PrivateCopy,
        report_progress: ReportProgress,
        *,
        find_sections: bool = False,
    ) -> Document | SkippedFile:
        """Return a file's document, or `SkippedFile` when it holds nothing but pictures.

        Raise `UnsupportedFileType`, `ExtractionFailed`, `NoContent` or `NoChunks`.
        """
        # Before a process is started: most refused files have the wrong type.
        await self.check_file_type(private_copy)
        read_options = replace(self._options, find_sections=find_sections)
        read_result = await self._confined_reader.read_document(
            private_copy.file, private_copy.file_name, read_options, report_progress
        )
        if isinstance(read_result, Document):
            _check_chunk_count(read_result)
            _log_poor_pages(read_result, private_copy)
        return read_result

    @asynccontextmanager
    async def unpack_files(
        self, private_copy: PrivateCopy, max_file_bytes: int
    ) -> AsyncIterator[tuple[UnpackedFile, ...]]:
        """Yield the files inside a message or an archive; none for any other file.

        They are gone when the context ends. Raise `ExtractionFailed` or `NoContent`.
        """
        first_bytes = await anyio.to_thread.run_sync(
            private_copy.read_first_bytes, DETECTION_BYTE_COUNT
        )
        if detect_format(first_bytes, private_copy.file_name) not in CONTAINER_FORMATS:
            yield ()
            return
        async with self._confined_reader.unpack_files(
            private_copy.file, private_copy.file_name, self._options
        ) as unpacked_files:
            yield tuple(
                UnpackedFile(unpacked_name, unpacked_path, max_file_bytes)
                for unpacked_name, unpacked_path in unpacked_files
            )

    async def render_page(
        self,
        opened_file: FileIO,
        file_name: str,
        page_number: int,
        dpi: int,
        picture_format: PictureFormat = "png",
    ) -> bytes:
        """Return one page as a lossless picture."""
        read_options = replace(self._options, max_pixels=_MAX_PAGE_PICTURE_PIXELS)
        return await self._confined_renderer.render_page(
            opened_file, file_name, read_options, page_number, dpi, picture_format
        )

    async def find_page_words(
        self, opened_file: FileIO, file_name: str, page_number: int
    ) -> tuple[PageWord, ...]:
        """Return the words of one page with their places, by OCR where it has no text layer."""
        return await self._confined_renderer.find_page_words(
            opened_file, file_name, self._options, page_number
        )


def _check_chunk_count(parsed_document: Document) -> None:
    # Here and not in the sandbox, where a hostile file may have taken over.
    if len(parsed_document.chunks) > MAX_DOCUMENT_CHUNKS:
        raise ExtractionFailed(
            f"The file has {len(parsed_document.chunks):,} chunks of text; "
            f"at most {MAX_DOCUMENT_CHUNKS:,} are ingested. Split it into several files"
        )


def _log_poor_pages(parsed_document: Document, private_copy: PrivateCopy) -> None:
    # By the file's hash: its name may be confidential.
    for document_page in parsed_document.pages:
        if document_page.confidence is not None and document_page.confidence < MIN_GOOD_CONFIDENCE:
            _log.warning(
                "OCR is unsure of a page",
                extra={
                    "fields": {
                        "sha256": private_copy.sha256,
                        "page": document_page.number,
                        "confidence": document_page.confidence,
                    }
                },
            )

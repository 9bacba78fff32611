"""The way of a file: its name and first bytes looked at, then read in the sandbox."""

import logging
from dataclasses import replace
from io import FileIO

import anyio.to_thread

from readingroom.core.progress import ReportProgress
from readingroom.ingest.document import Document, Options, Refusal, Skipped
from readingroom.ingest.intake import Intake
from readingroom.ingest.read.formats.detect import HEAD, check_name, sniff
from readingroom.ingest.read.sandbox import Limits, Sandbox, refused

POOR = 70.0
"""A page whose words OCR is less sure of than this, in per cent, is worth a warning."""

_log = logging.getLogger("readingroom.ingest")


_GLANCE = Limits(cpu_seconds=60, wall_seconds=90, silent_seconds=90)
_MOST_SHOWN = 16_000_000
"""Pixels of a page that somebody looks at."""


class Pipeline:
    """Reads files, each in a process of its own."""

    def __init__(self, sandbox: Sandbox, options: Options | None = None) -> None:
        self._sandbox = sandbox
        self._options = options or Options()
        # Seats of its own: whoever looks at a page does not wait for a thousand scans.
        self._glances = Sandbox(_GLANCE)

    async def check(self, intake: Intake) -> None:
        """Refuse a file by its name or its first bytes, before anything is read."""
        try:
            check_name(intake.name)
            sniff(await anyio.to_thread.run_sync(intake.head, HEAD), intake.name)
        except Refusal as refusal:
            raise refused(refusal.code, refusal.message) from refusal

    async def read(
        self, intake: Intake, report: ReportProgress, *, find_sections: bool = False
    ) -> Document | Skipped:
        """Text, pages, sections and chunks of a file; `Skipped` when it is nothing but pictures."""
        await self.check(intake)
        options = replace(self._options, find_sections=find_sections)
        found = await self._sandbox.read(intake.file, intake.name, options, report)
        if isinstance(found, Document):
            _warn(found, intake)
        return found

    async def picture(self, file: FileIO, name: str, page: int, dpi: int) -> bytes:
        """One page as a PNG."""
        options = replace(self._options, most_pixels=_MOST_SHOWN)
        return await self._glances.picture(file, name, options, page, dpi)


def _warn(document: Document, intake: Intake) -> None:
    """Name the pages that OCR was unsure of, by the file's hash: its name is not ours to log."""
    for page in document.pages:
        if page.confidence is not None and page.confidence < POOR:
            _log.warning(
                "OCR is unsure of a page",
                extra={
                    "fields": {
                        "sha256": intake.sha256,
                        "page": page.number,
                        "confidence": page.confidence,
                    }
                },
            )

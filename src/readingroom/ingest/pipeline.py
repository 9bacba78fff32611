"""The way of a file: its name and first bytes looked at, then read in the sandbox."""

import logging
from dataclasses import replace

import anyio.to_thread

from readingroom.core.settings import Settings
from readingroom.ingest.document import Document, Options, Refusal, Skipped
from readingroom.ingest.formats import HEAD, check_name, sniff
from readingroom.ingest.intake import Intake
from readingroom.ingest.sandbox import Limits, Report, Sandbox, refused

POOR = 70.0
"""A page whose words OCR is less sure of than this, in per cent, is worth a warning."""

_log = logging.getLogger("readingroom.ingest")


class Pipeline:
    """Reads files, each in a process of its own."""

    def __init__(self, sandbox: Sandbox, options: Options | None = None) -> None:
        self._sandbox = sandbox
        self._options = options or Options()

    async def check(self, intake: Intake) -> None:
        """Refuse a file by its name or its first bytes, before anything is read."""
        try:
            check_name(intake.name)
            sniff(await anyio.to_thread.run_sync(intake.head, HEAD), intake.name)
        except Refusal as refusal:
            raise refused(refusal.code, refusal.message) from refusal

    async def read(
        self, intake: Intake, report: Report, *, find_sections: bool = False
    ) -> Document | Skipped:
        """Text, pages, sections and chunks of a file; `Skipped` when it is nothing but pictures."""
        await self.check(intake)
        options = replace(self._options, find_sections=find_sections)
        found = await self._sandbox.read(intake.file, intake.name, options, report)
        if isinstance(found, Document):
            _warn(found, intake)
        return found


def pipeline_of(settings: Settings) -> Pipeline:
    """A pipeline as the operator wants it; one serves the whole process, for it holds the seats."""
    options = Options(
        enable_ocr=settings.enable_ocr,
        image_ratio_threshold=settings.image_ratio_threshold,
        image_skip=settings.image_skip,
    )
    return Pipeline(Sandbox(Limits(wall_seconds=settings.ingest_seconds)), options)


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

"""The words of PDFs that lie beside a loader's file, each read in a confined process of its own."""

import logging
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import anyio

from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.sandbox import Limits, Sandbox

log = logging.getLogger(__name__)

_LIMITS = Limits(wall_seconds=60.0, cpu_seconds=60)


def pdf_texts(files: Sequence[bytes]) -> list[str]:
    """What each says, in order; nothing for one that cannot be read or has no words."""
    if not files:
        return []
    # On a thread of its own: whoever loads may be inside an event loop already.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(anyio.run, _read_all, files).result()


async def _read_all(files: Sequence[bytes]) -> list[str]:
    sandbox = Sandbox(_LIMITS)
    said = [""] * len(files)

    async def read(place: int) -> None:
        said[place] = await _read(sandbox, files[place])

    async with anyio.create_task_group() as reading:
        for place in range(len(files)):
            reading.start_soon(read, place)
    return said


async def _read(sandbox: Sandbox, data: bytes) -> str:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        try:
            found = await sandbox.read(
                file, "statement.pdf", ReadOptions(enable_ocr=False), no_progress
            )
        except KnowledgeError as error:
            log.warning("a PDF could not be read: %s", error.message)
            return ""
    return found.text if isinstance(found, Document) else ""

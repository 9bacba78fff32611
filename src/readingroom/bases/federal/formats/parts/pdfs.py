"""Extracts the text of PDFs next to a loader's file, each in a confined process of its own."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import anyio

from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits

# A statement has a page or two: a PDF that takes longer is damaged, or made to do harm.
_READING_LIMITS = ReadingLimits(wall_seconds=60.0, cpu_seconds=60)


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of a PDF, or why it has none."""

    text: str
    problem_text: str | None = None


def read_pdf_texts(pdf_contents: Sequence[bytes]) -> list[PdfText]:
    """Return the text of each PDF, in order; an empty one, with the reason, if it has none."""
    if not pdf_contents:
        return []
    # On a thread of its own: whoever loads may be inside an event loop already.
    with ThreadPoolExecutor(1) as thread_executor:
        return thread_executor.submit(anyio.run, _read_all_pdfs, pdf_contents).result()


async def _read_all_pdfs(pdf_contents: Sequence[bytes]) -> list[PdfText]:
    confined_reader = ConfinedReader(_READING_LIMITS)
    pdf_texts = [PdfText("")] * len(pdf_contents)

    async def read_text_at(pdf_index: int) -> None:
        pdf_texts[pdf_index] = await _read_pdf(confined_reader, pdf_contents[pdf_index])

    async with anyio.create_task_group() as task_group:
        for pdf_index in range(len(pdf_contents)):
            task_group.start_soon(read_text_at, pdf_index)
    return pdf_texts


async def _read_pdf(confined_reader: ConfinedReader, pdf_content: bytes) -> PdfText:
    with tempfile.TemporaryFile(buffering=0) as pdf_file:
        pdf_file.write(pdf_content)
        try:
            read_result = await confined_reader.read_document(
                pdf_file, "statement.pdf", ReadOptions(enable_ocr=False), no_progress
            )
        except KnowledgeError as error:
            return PdfText("", error.message)
    plain_text = read_result.text if isinstance(read_result, Document) else ""
    return PdfText(
        plain_text, None if plain_text.strip() else "it has no text, only pictures of pages"
    )

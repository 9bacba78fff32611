"""Documents for tests: an application's files, and a documents base on a folder of its own."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from readingroom.bases.documents.ingest.ingestion import FileIngestOutcome
from readingroom.bases.documents.models import (
    DocumentHits,
    IngestDocument,
    SearchApplicationDocs,
)
from readingroom.bases.documents.service import DocumentsService
from readingroom.core.progress import no_progress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Chunk, Classification, Document, Page
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders, PrivateCopy
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.support import engines
from tests.support.model import EMBEDDER, WordEmbedder, link_model

TODAY = datetime(2026, 2, 14, 10, 30, tzinfo=UTC)
REF = "25/01178/REM"


class PlainPipeline:
    """Reads what `plain` writes: every paragraph is a chunk and a page. No process, no PDF."""

    async def check_file_type(self, private_copy: PrivateCopy) -> None:
        """Everything is accepted."""

    @contextlib.asynccontextmanager
    async def unpack_files(
        self, private_copy: PrivateCopy, max_file_bytes: int
    ) -> AsyncIterator[tuple[()]]:
        """No file has others inside it."""
        yield ()

    async def read_document(self, private_copy: PrivateCopy, report: Any) -> Document:
        text = private_copy.read_first_bytes(1 << 20).decode().partition("\n")[2]
        chunks, pages, at = [], [], 0
        for index, paragraph in enumerate(text.split("\n\n")):
            end = at + len(paragraph)
            chunks.append(Chunk(index, at, end, (index + 1,), None, ()))
            pages.append(Page(index + 1, "", at, end, paragraph, "text_layer", 0.0, None, None))
            at = end + 2
        kind = Classification("other", "fallback", "low")
        return Document(text, tuple(pages), (), tuple(chunks), "text_layer", 0.0, False, kind)


PLAIN: dict[str, Any] = {"pipeline": PlainPipeline(), "embedder": WordEmbedder()}
"""For tests of consistency, which make many changes: without the edges that take long."""


@dataclass
class Desk:
    """An open documents base and the ways a test fills it."""

    service: DocumentsService
    inbox: Path

    def file(self, name: str, content: bytes) -> str:
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    async def ingest(
        self, name: str, content: bytes, ref: str = REF, document_type: Any = None
    ) -> FileIngestOutcome:
        question = IngestDocument(
            file_path=self.file(name, content), application_ref=ref, document_type=document_type
        )
        return await self.service.ingest_document(question, no_progress)

    async def search(self, query: str, **asked: Any) -> DocumentHits:
        return await self.service.search_documents(SearchApplicationDocs(query=query, **asked))


@contextlib.asynccontextmanager
async def open_documents_base(
    folder: Path,
    on_step: Callable[[str], None] = lambda step: None,
    embedder: Any = EMBEDDER,
    pipeline: Any = None,
    in_memory: bool = False,
) -> AsyncIterator[Desk]:
    """A documents base on this folder, open."""
    roots = AllowedFolders("DOCUMENT_ROOTS", (folder / "inbox",), 256 * 2**20)
    database = None if in_memory else engines.find_database(folder)
    context = IngestContext(
        pipeline or Pipeline(ConfinedReader()), embedder, roots, lambda: TODAY, on_step, database
    )
    service = DocumentsService(folder, None if in_memory else folder / "chroma", context)
    async with service.run_service():
        yield Desk(service, folder / "inbox")


def make_data_with_model(data: Path) -> Path:
    """A data directory that shares the tests' model; its documents inbox."""
    inbox = link_model(data) / "documents" / "inbox"
    inbox.mkdir(parents=True)
    return inbox

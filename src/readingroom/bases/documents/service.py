"""What the documents base can do, with no word of MCP or HTTP in it."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path

import anyio

from readingroom.bases.documents.applications import ApplicationBook
from readingroom.bases.documents.ingestion import Ingestion, Outcome, not_found
from readingroom.bases.documents.models import (
    ChunkMetadata,
    DocumentHit,
    DocumentHits,
    DocumentList,
    DocumentText,
    GetDocumentText,
    IngestDocument,
    ListedDocument,
    ListIngestedDocuments,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    WhyEmpty,
)
from readingroom.bases.documents.records import DocumentRecord, StoredChunk, citation, runs, text_of
from readingroom.bases.documents.store import DocumentStore
from readingroom.core import clock
from readingroom.core.errors import NoChunks, PageNotFound
from readingroom.core.ids import doc_id, fold_dashes
from readingroom.engine.embedding import Embedder
from readingroom.ingest.intake import Roots, in_thread
from readingroom.ingest.pipeline import Pipeline
from readingroom.protocol.tool import Report
from readingroom.storage.changes import Step, unnoticed


class DocumentsService:
    """The documents of applications: ingested, listed, searched, read."""

    def __init__(
        self,
        folder: Path,
        chroma: Path | None,
        embedder: Embedder,
        pipeline: Pipeline,
        roots: Roots,
        now: Callable[[], datetime] = clock.now,
        at: Step = unnoticed,
    ) -> None:
        """`chroma` is where chunks are kept; None keeps everything in memory."""
        self.folder = folder
        self._chroma = chroma
        self._embedder = embedder
        self._pipeline = pipeline
        self._roots = roots
        self._now = now
        self._at = at
        self.store: DocumentStore
        self.book: ApplicationBook
        self.ingestion: Ingestion

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the stores and finish what was interrupted; closed when it is left."""
        with self._state() as state:
            self.store = DocumentStore(self._chroma, state / "words.db", self._embedder)
            self.book = ApplicationBook(state / "applications.db")
            self.ingestion = Ingestion(
                state,
                self.store,
                self.book,
                self._pipeline,
                self._embedder,
                self._now,
                self._at,
            )
            await self.store.open()
            try:
                await self.ingestion.recover()
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.store.close()

    @contextmanager
    def _state(self) -> Iterator[Path]:
        """Where all but the chunks is kept: what belongs to chunks in memory ends with them."""
        if self._chroma is not None:
            yield self.folder
        else:
            with tempfile.TemporaryDirectory(prefix="readingroom-documents-") as folder:
                yield Path(folder)

    # --- reading ---

    async def search(self, question: SearchApplicationDocs) -> DocumentHits:
        """The passages that answer best, of one application or of all."""
        ranking = await self.store.ranked(
            question.query,
            question.max_results,
            question.application_ref,
            question.document_types,
            question.mode,
        )
        chunks = await self.store.named([found.chunk_id for found in ranking.found])
        known = await self.store.known(list({one.document_id for one in chunks.values()}))
        results = [
            _hit(chunk, found.score)
            for found in ranking.found
            # A document that comes or goes at this moment is there when its entry is.
            if (chunk := chunks.get(found.chunk_id)) and chunk.document_id in known
        ]
        return DocumentHits(
            query=question.query,
            results_count=len(results),
            results=results,
            degraded=ranking.degraded,
            empty_because=None if results else await self._why_empty(question),
        )

    async def text(self, question: GetDocumentText) -> DocumentText:
        """A document's text, whole, or some of its pages, or as much as fits."""
        record = await self.record(question.document_id)
        chunks = await self.store.chunks_of(record.document_id)
        if not chunks:
            raise NoChunks(
                f"{record.document_id} is registered, but has no chunks; ingest it again"
            )
        pages = _pages(question.pages, record)
        whole = text_of(chunks)
        wanted = whole if pages is None else _of_pages(whole, pages, record)
        end = len(wanted)
        if question.max_chars is not None:
            end = min(end, question.offset + question.max_chars)
        return DocumentText(
            document_id=record.document_id,
            file_path=record.file_path,
            document_type=record.document_type,
            chunk_count=record.chunk_count,
            text=wanted[question.offset : end],
            page_count=record.page_count,
            total_chars=len(wanted),
            next_offset=end if end < len(wanted) else None,
            citation=citation(record.source_file, pages or ()),
            id=doc_id(record.document_id, pages[0] if pages and len(pages) == 1 else None),
        )

    async def documents(self, question: ListIngestedDocuments) -> DocumentList:
        """The documents of one application; none is not an error."""
        found = await self.store.documents(question.application_ref)
        return DocumentList(
            application_ref=question.application_ref,
            document_count=len(found),
            documents=[listed(record) for record in found],
        )

    async def record(self, document_id: str) -> DocumentRecord:
        """A document's entry, or the error that says how to find its id."""
        record = await self.store.record(fold_dashes(document_id))
        if record is None:
            raise not_found(document_id)
        return record

    # --- writing ---

    async def ingest(self, question: IngestDocument, report: Report) -> Outcome:
        """Read a file of an allowed folder into an application."""
        async with in_thread(self._roots.open(question.file_path)) as intake:
            return await self.ingestion.ingest(
                intake, question.application_ref, question.file_path, question.document_type, report
            )

    async def remove(self, question: RemoveDocument) -> RemovedDocument:
        """Delete a document: its entry, its chunks, and our copy of its file."""
        document_id = fold_dashes(question.document_id)
        gone = await self.ingestion.remove(document_id)
        return RemovedDocument(document_id=document_id, chunks_removed=gone)

    # --- parts ---

    async def _why_empty(self, question: SearchApplicationDocs) -> WhyEmpty:
        documents = await self.store.documents(question.application_ref)
        if not documents:
            return "no_documents"
        wanted = question.document_types
        if wanted is not None and not any(one.document_type in wanted for one in documents):
            return "no_documents_of_these_types"
        return "nothing_matches"


def listed(record: DocumentRecord) -> ListedDocument:
    return ListedDocument.model_validate(record, from_attributes=True)


def _hit(chunk: StoredChunk, score: float) -> DocumentHit:
    return DocumentHit(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        relevance_score=round(score, 6),
        metadata=ChunkMetadata(
            application_ref=chunk.application_ref,
            document_id=chunk.document_id,
            source_file=chunk.source_file,
            document_type=chunk.document_type,
            page_numbers=",".join(map(str, chunk.pages)),
            chunk_index=chunk.chunk_index,
            total_chunks=chunk.total_chunks,
            extraction_method=chunk.extraction_method,
            char_count=len(chunk.text),
            word_count=len(chunk.text.split()),
        ),
        citation=citation(chunk.source_file, chunk.pages),
        id=doc_id(chunk.document_id, chunk.pages[0]),
    )


def _pages(asked: str | None, record: DocumentRecord) -> list[int] | None:
    """`1,4-6` as page numbers, in order, each once."""
    if asked is None:
        return None
    pages: set[int] = set()
    for run in fold_dashes(asked).split(","):
        first, _, last = run.strip().partition("-")
        start, end = int(first), int(last or first)
        if not 1 <= start <= end <= record.page_count:
            raise PageNotFound(
                f"{record.document_id} has pages 1 to {record.page_count}, not {run.strip()}",
                page_count=record.page_count,
            )
        pages.update(range(start, end + 1))
    return sorted(pages)


def _of_pages(whole: str, pages: Sequence[int], record: DocumentRecord) -> str:
    """The text of some pages; where others are left out, a blank line stands."""
    bounds = (*record.page_starts, len(whole))
    parts = [whole[bounds[first - 1] : bounds[last]].rstrip() for first, last in runs(pages)]
    return "\n\n".join(parts)

"""What the documents base can do, with no word of MCP or HTTP in it."""

import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.bases.documents.applications import ApplicationBook
from readingroom.bases.documents.batch import Batch, Offered
from readingroom.bases.documents.errors import ApplicationNotFound, PageNotFound
from readingroom.bases.documents.ids import DocumentRef, format_doc_id, parse_doc_id
from readingroom.bases.documents.ingestion import Ingestion, Outcome, not_found
from readingroom.bases.documents.models import (
    EXPECTED_TYPES,
    ApplicationList,
    ApplicationOverview,
    ApplicationRecord,
    ApplicationSet,
    ChunkMetadata,
    DocumentHit,
    DocumentHits,
    DocumentList,
    DocumentText,
    FolderIngested,
    GetDocumentText,
    IngestDocument,
    IngestFolder,
    ListedApplication,
    ListedDocument,
    ListIngestedDocuments,
    Overview,
    OverviewDocument,
    OverviewType,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    SetApplication,
    UnreadFile,
    WhyEmpty,
)
from readingroom.bases.documents.records import (
    Application,
    DocumentRecord,
    StoredChunk,
    citation,
    text_of,
)
from readingroom.bases.documents.store import DocumentStore
from readingroom.core.dates import parse_day
from readingroom.core.pages import runs
from readingroom.core.progress import ReportProgress, no_progress
from readingroom.core.text import fold_dashes
from readingroom.ingest.context import IngestContext
from readingroom.ingest.errors import FileNotFound, NoChunks
from readingroom.ingest.intake import Intake, open_in_thread, open_own_file
from readingroom.storage.handover import sweep_handover


class DocumentsService:
    """The documents of applications: ingested, listed, searched, read."""

    def __init__(
        self,
        folder: Path,
        chroma: Path | None,
        context: IngestContext,
    ) -> None:
        """`chroma` is where chunks are kept; None keeps everything in memory."""
        self.folder = folder
        self._chroma = chroma
        self._bench = context
        self.store: DocumentStore
        self.book: ApplicationBook
        self.ingestion: Ingestion

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the stores and finish what was interrupted; closed when it is left."""
        with self._state() as state:
            self.store = DocumentStore(self._chroma, state / "words.db", self._bench.embedder)
            self.book = ApplicationBook(state / "applications.db")
            self.ingestion = Ingestion(state, self.store, self.book, self._bench)
            await self.store.open()
            try:
                await self.ingestion.recover()
                await anyio.to_thread.run_sync(self._sweep_uploads)
                await anyio.to_thread.run_sync(sweep_handover, self.folder, self._bench.now())
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
        chunks = await self.store.named([hit.chunk_id for hit in ranking.hits])
        known = await self.store.known(list({one.document_id for one in chunks.values()}))
        results = [
            _hit(chunk, hit.score)
            for hit in ranking.hits
            # A document that comes or goes at this moment is there when its entry is.
            if (chunk := chunks.get(hit.chunk_id)) and chunk.document_id in known
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
        named = _named(question.document_id)
        record = await self.record(named.document_id)
        chunks = await self.store.chunks_of(record.document_id)
        if not chunks:
            raise NoChunks(
                f"{record.document_id} is registered, but has no chunks; ingest it again"
            )
        pages = _pages(question.pages or (str(named.page) if named.page else None), record)
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
            id=format_doc_id(record.document_id, pages[0] if pages and len(pages) == 1 else None),
        )

    async def documents(self, question: ListIngestedDocuments) -> DocumentList:
        """The documents of one application; none is not an error."""
        found = await self.store.documents(question.application_ref)
        return DocumentList(
            application_ref=question.application_ref,
            document_count=len(found),
            documents=[listed(record) for record in found],
        )

    async def all_documents(self) -> list[DocumentRecord]:
        """The documents of every application."""
        return await self.store.documents()

    async def application(self, reference: str) -> Application | None:
        """An application's own record; None when it has none."""
        return await anyio.to_thread.run_sync(self.book.application, reference)

    async def overview(self, question: ApplicationOverview) -> Overview:
        """An application's record, its documents by type, and what could not be read."""
        reference = question.application_ref
        application = await self.application(reference)
        unread = await anyio.to_thread.run_sync(self.book.unread, reference)
        documents = await self.store.documents(reference)
        if application is None and not unread and not documents:
            raise ApplicationNotFound(
                f"Nothing is known of the application {reference}", use_tool="ingest_document"
            )
        types = [_of_type(name, documents) for name in EXPECTED_TYPES]
        there = {one.document_type for one in documents}
        there |= {one.document_type for one in unread if one.outcome == "skipped"}
        return Overview(
            application_ref=reference,
            application=_told(application) if application else None,
            document_count=len(documents),
            page_count=sum(one.page_count for one in documents),
            word_count=sum(one.total_words for one in documents),
            types=[one for one in types if one.documents],
            not_ingested=[UnreadFile.model_validate(one, from_attributes=True) for one in unread],
            missing_types=[
                name for name in EXPECTED_TYPES if name not in there and name != "other"
            ],
        )

    async def applications(self) -> ApplicationList:
        """Every application that has a record or a document."""
        records = await anyio.to_thread.run_sync(self.book.applications)
        known = {one.reference: one for one in records}
        counts = Counter(one.application_ref for one in await self.store.documents())
        listed = [
            ListedApplication(
                reference=reference,
                document_count=counts[reference],
                validation_date=known[reference].validation_date if reference in known else None,
            )
            for reference in sorted({*known, *counts})
        ]
        return ApplicationList(application_count=len(listed), applications=listed)

    async def page_image(self, document_id: str, page: int, dpi: int) -> bytes:
        """A page as a PNG, drawn from our copy of the file in a process of its own."""
        record = await self.record(document_id)
        _pages(str(page), record)
        try:
            with self.ingestion.file_of(record).open("rb", buffering=0) as file:
                return await self._bench.pipeline.render_page(file, record.source_file, page, dpi)
        except FileNotFoundError as error:
            raise FileNotFound(
                f"Our copy of {record.document_id} is gone; remove it and ingest it again"
            ) from error

    async def record(self, document_id: str) -> DocumentRecord:
        """A document's entry, or the error that says how to find its id."""
        record = await self.store.record(fold_dashes(document_id))
        if record is None:
            raise not_found(document_id)
        return record

    # --- writing ---

    async def ingest(self, question: IngestDocument, report: ReportProgress) -> Outcome:
        """Read a file of an allowed folder into an application."""
        async with open_in_thread(self._bench.roots.open(question.file_path)) as intake:
            return await self.ingestion.ingest(
                intake, question.application_ref, question.file_path, question.document_type, report
            )

    async def ingest_folder(self, question: IngestFolder, report: ReportProgress) -> FolderIngested:
        """Read all files below an allowed folder into an application."""
        paths = await anyio.to_thread.run_sync(self._bench.roots.list_files, question.path)
        offered = [
            Offered(name, partial(self._bench.roots.open, path), path)
            for name, path in paths.items()
        ]
        return await self.ingest_all(offered, question.application_ref, None, report)

    async def ingest_all(
        self,
        files: Sequence[Offered],
        application_ref: str,
        document_type: str | None,
        report: ReportProgress,
    ) -> FolderIngested:
        """Read several files into an application, several at once."""
        return await Batch(self.ingestion, application_ref, document_type, report).run(files)

    async def take(
        self,
        file: Path,
        name: str,
        application_ref: str,
        document_type: str | None,
        report: ReportProgress,
    ) -> Outcome:
        """Read a file that was handed to us into an application, under the name it was given."""
        async with open_in_thread(self.taking(file, name)) as intake:
            return await self.ingestion.ingest(intake, application_ref, None, document_type, report)

    def taking(self, file: Path, name: str) -> AbstractContextManager[Intake]:
        """A file that was handed to us, under the name it was given."""
        return open_own_file(file, name, self._bench.roots.max_file_bytes)

    async def ingest_again(self, record: DocumentRecord) -> None:
        """Read a document anew from our copy of its file, when some of it is missing."""
        kept = self.ingestion.file_of(record)
        async with open_in_thread(self.taking(kept, record.source_file)) as intake:
            await self.ingestion.ingest(
                intake, record.application_ref, record.file_path, record.document_type, no_progress
            )

    @property
    def largest(self) -> int:
        """The largest file that is taken, in bytes."""
        return self._bench.roots.max_file_bytes

    async def set_application(self, question: SetApplication) -> ApplicationSet:
        """Write down what is known of an application; what is not given stays, "" clears it.

        A null is not given: a command travels as JSON, which has one for all that was left out.
        """
        given = question.model_dump(exclude_none=True, exclude={"reference"})
        values = {name: value or None for name, value in given.items()}
        if day := values.get("validation_date"):
            values["validation_date"] = parse_day(day)
        record = await anyio.to_thread.run_sync(
            self.book.set, question.reference, values, self._bench.now()
        )
        return ApplicationSet(application=_told(record))

    async def remove(self, question: RemoveDocument) -> RemovedDocument:
        """Delete a document: its entry, its chunks, and our copy of its file."""
        document_id = fold_dashes(question.document_id)
        gone = await self.ingestion.remove(document_id)
        return RemovedDocument(document_id=document_id, chunks_removed=gone)

    # --- parts ---

    def spool(self) -> Path:
        """Where a file that is being sent goes: hidden, for no folder is ingested with it."""
        return self.folder / "uploads" / f".{uuid.uuid4().hex}"

    def _sweep_uploads(self) -> None:
        """What is hidden there was left by an upload that never ended."""
        for path in (self.folder / "uploads").glob(".*"):
            path.unlink(missing_ok=True)

    async def _why_empty(self, question: SearchApplicationDocs) -> WhyEmpty:
        documents = await self.store.documents(question.application_ref)
        if not documents:
            return "no_documents"
        wanted = question.document_types
        if wanted is not None and not any(one.document_type in wanted for one in documents):
            return "no_documents_of_these_types"
        return "nothing_matches"


def _named(id: str) -> DocumentRef:
    """A document by its own id, or by the id of a passage's page as a search tells it."""
    return parse_doc_id(id) if id.lower().startswith("doc:") else DocumentRef(id, None)


def _told(application: Application) -> ApplicationRecord:
    return ApplicationRecord.model_validate(application, from_attributes=True)


def _of_type(document_type: str, documents: Sequence[DocumentRecord]) -> OverviewType:
    found = [one for one in documents if one.document_type == document_type]
    return OverviewType(
        document_type=document_type,
        document_count=len(found),
        page_count=sum(one.page_count for one in found),
        word_count=sum(one.total_words for one in found),
        documents=[
            OverviewDocument(
                document_id=one.document_id,
                source_file=one.source_file,
                page_count=one.page_count,
                word_count=one.total_words,
                extraction_method=one.extraction_method,
                contains_drawings=one.contains_drawings,
                pages_without_text=list(one.blank_pages),
                id=format_doc_id(one.document_id),
            )
            for one in found
        ],
    )


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
        id=format_doc_id(chunk.document_id, chunk.pages[0]),
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

"""What the documents base can do, independent of MCP and HTTP."""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from readingroom.bases.documents.answers import (
    get_empty_reason,
    group_chunks_by_passage,
    make_application_record,
    make_document_hit,
    make_list_entry,
    make_type_overview,
)
from readingroom.bases.documents.errors import ApplicationNotFound
from readingroom.bases.documents.ids import format_doc_id, parse_document_ref
from readingroom.bases.documents.models import (
    EXPECTED_TYPES,
    ApplicationList,
    ApplicationOverview,
    ApplicationSet,
    DocumentHits,
    DocumentList,
    DocumentText,
    EmptyReason,
    FolderIngested,
    GetDocumentText,
    IngestDocument,
    IngestFolder,
    ListedApplication,
    ListIngestedDocuments,
    Overview,
    PageMarks,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    SetApplication,
    UnreadFile,
)
from readingroom.bases.documents.registry.applications import ApplicationStore
from readingroom.bases.documents.registry.pages import join_page_texts, parse_page_selection
from readingroom.bases.documents.registry.records import (
    Application,
    DocumentRecord,
    format_citation,
    join_chunk_texts,
)
from readingroom.core.dates import parse_day
from readingroom.core.imports import LazyModule
from readingroom.core.progress import ReportProgress, no_progress
from readingroom.core.text import fold_dashes
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.hybrid import count_spare_hits
from readingroom.ingest.context import IngestContext
from readingroom.ingest.errors import FileNotFound, NoChunks
from readingroom.ingest.page_pictures import PagePictures, StoredFile
from readingroom.ingest.private_copy import PrivateCopy, enter_copy_in_thread, open_stored_file
from readingroom.protocol.resources import PageMark
from readingroom.storage.files import delete_old_files
from readingroom.storage.handover import delete_old_handovers

# What an open base needs no sooner than it is served.
if TYPE_CHECKING:
    from readingroom.bases.documents import store
    from readingroom.bases.documents.ingest import batch, ingestion
else:
    store = LazyModule("readingroom.bases.documents.store")
    batch = LazyModule("readingroom.bases.documents.ingest.batch")
    ingestion = LazyModule("readingroom.bases.documents.ingest.ingestion")


class DocumentsService:
    """The documents of applications: ingested, listed, searched, read."""

    def __init__(
        self, base_folder: Path, chroma_directory: Path | None, ingest_context: IngestContext
    ) -> None:
        """`chroma_directory` is where chunks are stored; None keeps everything in memory."""
        self.folder = base_folder
        self._chroma_directory = chroma_directory
        self._context = ingest_context
        self.database = ingest_context.database
        self.store: store.DocumentStore
        self.applications: ApplicationStore
        self.pictures: PagePictures
        self.ingestion: ingestion.Ingestion

    @asynccontextmanager
    async def run_service(self) -> AsyncIterator[None]:
        """Open the stores and finish interrupted changes; close the stores on exit."""
        with self._open_state_folder() as state_folder:
            self.store = store.DocumentStore(
                self._chroma_directory,
                state_folder / "words.db",
                self._context.embedder,
                self.database,
            )
            self.applications = ApplicationStore(state_folder / "applications.db", self.database)
            self.pictures = PagePictures(self._context.pipeline, state_folder / "pages")
            self.ingestion = ingestion.Ingestion(
                state_folder, self.store, self.applications, self.pictures, self._context
            )
            await self.store.open()
            try:
                # Before anything is served: a half-stored document must not be found.
                await self.ingestion.finish_interrupted_changes()
                # No request is running yet, so whatever lies there was cut off.
                await anyio.to_thread.run_sync(self._delete_old_uploads)
                await anyio.to_thread.run_sync(
                    delete_old_handovers, self.folder, self._context.get_now()
                )
                yield
            finally:
                # A shutdown arrives as a cancellation, which would otherwise interrupt the close
                # itself.
                with anyio.CancelScope(shield=True):
                    await self.store.close()

    @contextmanager
    def _open_state_folder(self) -> Iterator[Path]:
        """Yield the folder of everything but the chunks.

        Chunks in memory are lost at the end, so what belongs to them must be lost as well.
        """
        if self._chroma_directory is not None or self.database is not None:
            yield self.folder
        else:
            with tempfile.TemporaryDirectory(prefix="readingroom-documents-") as temporary_folder:
                yield Path(temporary_folder)

    async def check_ready(self) -> None:
        """Raise `StoreUnusable` while no document can be read."""
        await self.store.check_readable()

    async def warm_up(self) -> None:
        """Load what the first search waits for; raise `ModelUnavailable` without a model."""
        await self.store.warm_up()

    # --- reading ---

    async def search_documents(self, arguments: SearchApplicationDocs) -> DocumentHits:
        """Return the best passages, of one application or of all."""
        ranking = await self.store.rank_chunks(
            arguments.query,
            arguments.max_results + count_spare_hits(arguments.mode),
            arguments.application_ref,
            arguments.document_types,
            arguments.mode,
        )
        hits_by_chunk_id = {hit.chunk_id: hit for hit in ranking.hits}
        chunks_by_id = await self.store.get_chunks_by_id([*hits_by_chunk_id])
        document_ids = {chunk.document_id for chunk in chunks_by_id.values()}
        records_by_id = await self.store.get_records(list(document_ids))
        ranked_chunks = [
            chunk
            for chunk_id in hits_by_chunk_id
            # A document that is being added or removed right now exists if its entry does.
            if (chunk := chunks_by_id.get(chunk_id)) and chunk.document_id in records_by_id
        ]
        document_hits = [
            make_document_hit(chunks, hits_by_chunk_id[chunks[0].chunk_id])
            for chunks in group_chunks_by_passage(ranked_chunks, arguments.mode)
        ][: arguments.max_results]
        answer_confidence = judge_confidence(
            [hit.score for hit in ranking.hits], document_hits[0].citation if document_hits else ""
        )
        return DocumentHits(
            query=arguments.query,
            results_count=len(document_hits),
            results=document_hits,
            confidence=answer_confidence.level,
            confidence_reason=answer_confidence.reason,
            degraded=ranking.degraded_reason,
            empty_because=None if document_hits else await self._get_empty_reason(arguments),
        )

    async def get_text(self, arguments: GetDocumentText) -> DocumentText:
        """Return a document's text: all of it, some of its pages, or as much as fits.

        Raises:
            DocumentNotFound: no document has this id.
            PageNotFound: the document does not have one of the pages.
            NoChunks: the document is registered, but its chunks are gone.
        """
        document_ref = parse_document_ref(arguments.document_id)
        document_record = await self.get_record(document_ref.document_id)
        chunks = await self.store.get_chunks(document_record.document_id)
        if not chunks:
            raise NoChunks(
                f"{document_record.document_id} is registered, but has no chunks; ingest it again"
            )
        page_numbers = parse_page_selection(
            arguments.pages
            or (str(document_ref.page_number) if document_ref.page_number else None),
            document_record,
        )
        # Put together from the chunks: the text is stored once, and is what searches quote.
        full_text = join_chunk_texts(chunks)
        selected_text = (
            full_text
            if page_numbers is None
            else join_page_texts(full_text, page_numbers, document_record)
        )
        end_offset = len(selected_text)
        if arguments.max_chars is not None:
            end_offset = min(end_offset, arguments.offset + arguments.max_chars)
        return DocumentText(
            document_id=document_record.document_id,
            file_path=document_record.file_path,
            document_type=document_record.document_type,
            chunk_count=document_record.chunk_count,
            text=selected_text[arguments.offset : end_offset],
            page_count=document_record.page_count,
            total_chars=len(selected_text),
            next_offset=end_offset if end_offset < len(selected_text) else None,
            citation=format_citation(document_record.source_file, page_numbers or ()),
            id=format_doc_id(
                document_record.document_id,
                page_numbers[0] if page_numbers and len(page_numbers) == 1 else None,
            ),
        )

    async def list_documents(self, arguments: ListIngestedDocuments) -> DocumentList:
        """Return the documents of one application; an unknown application has none."""
        document_records = await self.store.list_records(arguments.application_ref)
        return DocumentList(
            application_ref=arguments.application_ref,
            document_count=len(document_records),
            documents=[make_list_entry(document_record) for document_record in document_records],
        )

    async def list_all_documents(self) -> list[DocumentRecord]:
        """Return the documents of every application."""
        return await self.store.list_records()

    async def find_application(self, application_ref: str) -> Application | None:
        """Return an application's own record, or None if it has none."""
        return await anyio.to_thread.run_sync(self.applications.find_application, application_ref)

    async def get_overview(self, arguments: ApplicationOverview) -> Overview:
        """Return an application's record, its documents by type, and what could not be read.

        Raises:
            ApplicationNotFound: it has neither a record nor a file.
        """
        reference = arguments.application_ref
        known_application = await self.find_application(reference)
        unread_entries = await anyio.to_thread.run_sync(self.applications.list_unread, reference)
        document_records = await self.store.list_records(reference)
        if known_application is None and not unread_entries and not document_records:
            raise ApplicationNotFound(
                f"Nothing is known of the application {reference}", use_tool="ingest_document"
            )
        type_summaries = [
            make_type_overview(document_type, document_records) for document_type in EXPECTED_TYPES
        ]
        # A drawing that was skipped was submitted all the same, so its type is not missing.
        submitted_types = {document_record.document_type for document_record in document_records}
        submitted_types |= {
            unread_entry.document_type
            for unread_entry in unread_entries
            if unread_entry.outcome == "skipped"
        }
        return Overview(
            application_ref=reference,
            application=make_application_record(known_application) if known_application else None,
            document_count=len(document_records),
            page_count=sum(document_record.page_count for document_record in document_records),
            pages_without_text_count=sum(
                len(document_record.blank_pages) for document_record in document_records
            ),
            word_count=sum(document_record.total_words for document_record in document_records),
            types=[type_summary for type_summary in type_summaries if type_summary.documents],
            not_ingested=[
                UnreadFile.model_validate(unread_entry, from_attributes=True)
                for unread_entry in unread_entries
            ],
            missing_types=[
                document_type
                for document_type in EXPECTED_TYPES
                if document_type not in submitted_types and document_type != "other"
            ],
        )

    async def list_applications(self) -> ApplicationList:
        """Return every application that has a record or a document."""
        applications_by_ref = {
            application.reference: application
            for application in await anyio.to_thread.run_sync(self.applications.list_applications)
        }
        document_counts = Counter(
            document_record.application_ref for document_record in await self.store.list_records()
        )
        listed_applications = [
            ListedApplication(
                reference=application_ref,
                document_count=document_counts[application_ref],
                validation_date=applications_by_ref[application_ref].validation_date
                if application_ref in applications_by_ref
                else None,
            )
            for application_ref in sorted({*applications_by_ref, *document_counts})
        ]
        return ApplicationList(
            application_count=len(listed_applications), applications=listed_applications
        )

    async def render_page(self, document_id: str, page_number: int, dpi: int) -> bytes:
        """Return a page as a PNG, drawn from our copy of the file in a process of its own.

        Raises:
            DocumentNotFound, PageNotFound: there is no such page.
            FileNotFound: our copy of the file is gone.
            UnsupportedFileType: the file has no fixed pages, as an e-mail has none.
        """
        document_record = await self._get_record_of_page(document_id, page_number)
        async with self._open_copy(document_record) as stored_file:
            return await self._context.pipeline.render_page(
                stored_file.file, stored_file.file_name, page_number, dpi
            )

    async def draw_page(self, document_id: str, page_number: int, dpi: int) -> bytes:
        """Return a page as a lossless WebP, drawn once and then kept; raise as `render_page`."""
        document_record = await self._get_record_of_page(document_id, page_number)
        async with self._open_copy(document_record) as stored_file:
            return await self.pictures.draw_page(stored_file, page_number, dpi)

    async def mark_passage(self, document_id: str, page_number: int, passage: str) -> PageMarks:
        """Return where a passage stands on a page; raise as `render_page`."""
        document_record = await self._get_record_of_page(document_id, page_number)
        async with self._open_copy(document_record) as stored_file:
            marks = await self.pictures.mark_passage(stored_file, page_number, passage)
        return PageMarks(
            document_id=document_record.document_id,
            page=page_number,
            marks=[PageMark.model_validate(mark, from_attributes=True) for mark in marks],
        )

    async def _get_record_of_page(self, document_id: str, page_number: int) -> DocumentRecord:
        document_record = await self.get_record(document_id)
        # Checked here, because starting a process to draw a page is expensive.
        parse_page_selection(str(page_number), document_record)
        return document_record

    @asynccontextmanager
    async def _open_copy(self, document_record: DocumentRecord) -> AsyncIterator[StoredFile]:
        copy_path = await anyio.to_thread.run_sync(self.ingestion.locate_copy, document_record)
        try:
            with copy_path.open("rb", buffering=0) as open_file:
                yield StoredFile(open_file, document_record.source_file, document_record.file_hash)
        except FileNotFoundError as error:
            raise FileNotFound(
                f"Our copy of {document_record.document_id} is gone; remove it and ingest it again"
            ) from error

    async def get_record(self, document_id: str) -> DocumentRecord:
        """Return a document's entry; raise `DocumentNotFound`, which says how to find its id."""
        document_record = await self.store.find_record(fold_dashes(document_id))
        if document_record is None:
            raise ingestion.make_document_not_found_error(document_id)
        return document_record

    # --- writing ---

    async def ingest_document(
        self, arguments: IngestDocument, report_progress: ReportProgress
    ) -> ingestion.FileIngestOutcome:
        """Ingest a file of an allowed folder into an application."""
        async with self._context.roots.open_copy_in_thread(arguments.file_path) as private_copy:
            return await self.ingestion.ingest_document(
                private_copy,
                arguments.application_ref,
                arguments.file_path,
                arguments.document_type,
                report_progress,
            )

    async def ingest_folder(
        self, arguments: IngestFolder, report_progress: ReportProgress
    ) -> FolderIngested:
        """Ingest all files below an allowed folder into an application."""
        file_paths_by_name = await anyio.to_thread.run_sync(
            self._context.roots.list_paths_by_relative_name, arguments.path
        )
        batch_files = [
            batch.BatchFile(file_name, partial(self._context.roots.open_copy, file_path), file_path)
            for file_name, file_path in file_paths_by_name.items()
        ]
        return await self.ingest_files(
            batch_files, arguments.application_ref, None, report_progress
        )

    async def ingest_files(
        self,
        batch_files: Sequence[batch.BatchFile],
        application_ref: str,
        document_type: str | None,
        report_progress: ReportProgress,
    ) -> FolderIngested:
        """Ingest several files into an application, some of them at the same time."""
        return await batch.IngestBatch(
            self.ingestion, application_ref, document_type, report_progress
        ).ingest_files(batch_files)

    async def ingest_upload(
        self,
        upload_path: Path,
        file_name: str,
        application_ref: str,
        document_type: str | None,
        report_progress: ReportProgress,
    ) -> ingestion.FileIngestOutcome:
        """Ingest an uploaded file into an application, under the name its sender gave it."""
        async with enter_copy_in_thread(self.open_upload(upload_path, file_name)) as private_copy:
            return await self.ingestion.ingest_document(
                private_copy, application_ref, None, document_type, report_progress
            )

    def open_upload(self, upload_path: Path, file_name: str) -> AbstractContextManager[PrivateCopy]:
        """Return a context that opens an uploaded file under the name its sender gave it."""
        return open_stored_file(upload_path, file_name, self._context.roots.max_file_bytes)

    async def reingest_document(self, document_record: DocumentRecord) -> None:
        """Ingest a document again from our copy of its file, to replace missing chunks."""
        copy_path = await anyio.to_thread.run_sync(self.ingestion.locate_copy, document_record)
        async with enter_copy_in_thread(
            self.open_upload(copy_path, document_record.source_file)
        ) as private_copy:
            await self.ingestion.ingest_document(
                private_copy,
                document_record.application_ref,
                document_record.file_path,
                document_record.document_type,
                no_progress,
            )

    @property
    def max_file_bytes(self) -> int:
        """The size of the largest file that is accepted."""
        return self._context.roots.max_file_bytes

    async def set_application(self, arguments: SetApplication) -> ApplicationSet:
        """Update an application's record: null keeps a field, an empty string clears it.

        Null cannot clear: a command travels as JSON, with a null for every option that is not used.
        """
        given_fields = arguments.model_dump(exclude_none=True, exclude={"reference"})
        changed_values = {
            field_name: field_value or None for field_name, field_value in given_fields.items()
        }
        if validation_day_text := changed_values.get("validation_date"):
            changed_values["validation_date"] = parse_day(validation_day_text)
        updated_at = self._context.get_now()
        updated_application = await anyio.to_thread.run_sync(
            self.applications.update_application, arguments.reference, changed_values, updated_at
        )
        return ApplicationSet(application=make_application_record(updated_application))

    async def remove_document(self, arguments: RemoveDocument) -> RemovedDocument:
        """Delete a document's entry, its chunks, and our copy of its file.

        Raise `DocumentNotFound` when no document has this id.
        """
        # Ids come back from prose and PDFs, where a hyphen has often become a dash.
        document_id = fold_dashes(arguments.document_id)
        chunk_count = await self.ingestion.remove_document(document_id)
        return RemovedDocument(document_id=document_id, chunks_removed=chunk_count)

    # --- parts ---

    def make_upload_path(self) -> Path:
        """Return a path for a file that is being received.

        Its name is hidden, so that nobody who ingests this folder ingests half a file.
        """
        return self.folder / "uploads" / f".{uuid.uuid4().hex}"

    def _delete_old_uploads(self) -> None:
        """Delete what interrupted uploads left."""
        if self.database is not None:
            # Another process that lives may be receiving a file.
            delete_old_files(self.folder / "uploads", self._context.get_now())
            return
        for upload_path in (self.folder / "uploads").glob(".*"):
            upload_path.unlink(missing_ok=True)

    async def _get_empty_reason(self, arguments: SearchApplicationDocs) -> EmptyReason:
        document_records = await self.store.list_records(arguments.application_ref)
        return get_empty_reason(document_records, arguments.document_types)

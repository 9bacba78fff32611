"""Adds and removes documents so that registry, chunks and files always agree.

A document exists when its registry entry does: the entry is written last and deleted first. Every
change is recorded as an intent before it begins; at the next start an interrupted ingestion
without an entry is undone, and an interrupted removal is completed.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath
from typing import Literal

import anyio
import anyio.to_thread

from readingroom.bases.documents.errors import DocumentNotFound
from readingroom.bases.documents.ingest.submission import Submission
from readingroom.bases.documents.models import (
    AlreadyIngested,
    FileOutcome,
    IngestedDocument,
    SkippedDocument,
)
from readingroom.bases.documents.registry.applications import ApplicationStore
from readingroom.bases.documents.registry.records import DocumentRecord, UnreadEntry
from readingroom.bases.documents.store import DocumentStore, build_chunks, make_title_from_file_name
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress, no_progress, scale_progress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Document, SkippedFile
from readingroom.ingest.embed import EmbeddedChunks, embed_document
from readingroom.ingest.kinds.classify import classify_document
from readingroom.ingest.page_pictures import PagePictures
from readingroom.ingest.pipeline import UnpackedFile
from readingroom.ingest.private_copy import PrivateCopy, enter_copy_in_thread
from readingroom.storage.files import resolve_inside
from readingroom.storage.intents import Intent
from readingroom.storage.postgres.changes import make_change_coordinator
from readingroom.storage.postgres.files import open_files

FileIngestOutcome = IngestedDocument | AlreadyIngested | SkippedDocument

_UNSAFE_NAME_CHARACTERS_PATTERN = re.compile(r"[^A-Za-z0-9-]", re.ASCII)
# File systems allow 255 bytes for a name, and the suffix needs some of them.
_MAX_FILE_STEM_CHARS = 100
_FILES_FOLDER_NAME = "files"
# One lock for the whole base: an id is chosen by what is registered.
_CHANGE_LOCK_NAME = "documents"


class Ingestion:
    """Adds and removes documents."""

    def __init__(
        self,
        base_folder: Path,
        document_store: DocumentStore,
        application_store: ApplicationStore,
        page_pictures: PagePictures,
        ingest_context: IngestContext,
    ) -> None:
        self._base_folder = base_folder
        self._file_store = open_files("documents", base_folder, ingest_context.database)
        self._pictures = page_pictures
        self._store = document_store
        self._applications = application_store
        self._context = ingest_context
        self._change_coordinator = make_change_coordinator(
            "documents", base_folder, ingest_context.database, ingest_context.on_step
        )

    async def ingest_document(
        self,
        private_copy: PrivateCopy,
        application_ref: str,
        file_path: str | None,
        document_type: str | None,
        report_progress: ReportProgress,
    ) -> FileIngestOutcome:
        """Read, embed and store a file with those inside it, and return what became of it.

        `file_path` is what the registry says of where the file came from; for an upload it is None,
        and the registry names our own copy. Raises a `KnowledgeError` for a file that cannot be
        read, after recording it among the application's unread files.
        """
        submission = Submission(application_ref, file_path, document_type)
        return await self._ingest_file_and_contents(private_copy, submission, report_progress)

    async def _ingest_file_and_contents(
        self, private_copy: PrivateCopy, submission: Submission, report_progress: ReportProgress
    ) -> FileIngestOutcome:
        try:
            # By name and first bytes, so that a hopeless file never reaches the reading process.
            await self._context.pipeline.check_file_type(private_copy)
            submission.check_nesting_and_count(private_copy.file_name)
            max_file_bytes = self._context.roots.max_file_bytes
            # Unpacked before anything is stored: an archive that cannot be unpacked is refused.
            async with self._context.pipeline.unpack_files(
                private_copy, max_file_bytes
            ) as unpacked_files:
                outcome_of_container = await self._ingest_single_file(
                    private_copy, submission, report_progress
                )
                if not unpacked_files or isinstance(outcome_of_container, SkippedDocument):
                    return outcome_of_container
                inner_submission = submission.make_inner_submission(
                    private_copy.file_name, outcome_of_container.document_id
                )
                contained_outcomes: list[FileOutcome] = []
                for unpacked_file in unpacked_files:
                    contained_outcomes += await self._ingest_contained_file(
                        unpacked_file, inner_submission
                    )
                return outcome_of_container.model_copy(
                    update={"contained_files": contained_outcomes}
                )
        except KnowledgeError as error:
            await self._add_failed_file_entry(private_copy, submission.application_ref, error)
            raise

    async def _ingest_contained_file(
        self, unpacked_file: UnpackedFile, submission: Submission
    ) -> list[FileOutcome]:
        """Ingest a file that was inside another; a bad one does not stop the others."""
        try:
            async with enter_copy_in_thread(unpacked_file.open_private_copy()) as private_copy:
                contained_outcome = await self._ingest_file_and_contents(
                    private_copy, submission, no_progress
                )
        except KnowledgeError as error:
            return [FileOutcome.from_error(unpacked_file.file_name, error)]
        return list_file_outcomes(unpacked_file.file_name, contained_outcome)

    async def _ingest_single_file(
        self, private_copy: PrivateCopy, submission: Submission, report_progress: ReportProgress
    ) -> FileIngestOutcome:
        application_ref = submission.application_ref
        ingested_record = await self._find_complete_record(application_ref, private_copy)
        if ingested_record:
            return _make_already_ingested_answer(ingested_record)
        parsed_document = await self._context.pipeline.read_document(
            private_copy, scale_progress(report_progress, 0, 50)
        )
        if isinstance(parsed_document, SkippedFile):
            return await self._add_skipped_file_entry(
                private_copy, application_ref, parsed_document
            )
        # Outside of the lock, which would otherwise be held for minutes.
        embedded_chunks = await embed_document(
            parsed_document,
            make_title_from_file_name(private_copy.file_name),
            self._context.embedder,
            scale_progress(report_progress, 50, 95),
        )
        async with self._change_coordinator.begin_change(_CHANGE_LOCK_NAME):
            # Another call may have stored the same bytes while this one was reading them.
            ingested_record = await self._find_complete_record(application_ref, private_copy)
            if ingested_record:
                return _make_already_ingested_answer(ingested_record)
            document_record = await self._make_document_record(
                private_copy, submission, parsed_document
            )
            return await self._store_document(
                document_record, parsed_document, embedded_chunks, private_copy
            )

    async def remove_document(self, document_id: str) -> int:
        """Delete a document with its chunks and its file; returns how many chunks there were.

        Raises:
            DocumentNotFound: no document has this id.
        """
        async with self._change_coordinator.begin_change(_CHANGE_LOCK_NAME):
            document_record = await self._store.find_record(document_id)
            if document_record is None:
                raise make_document_not_found_error(document_id)
            async with self._change_coordinator.record_intent(
                "remove", document_id=document_id, file_hash=document_record.file_hash
            ):
                chunk_count = await self._delete_document(document_id)
                await self._pictures.delete_pictures(document_record.file_hash)
                return chunk_count

    def locate_copy(self, document_record: DocumentRecord) -> Path:
        """Return where our copy of a document's file can be read, from which pages are drawn.

        Blocks where the shared database has it.
        """
        return self._file_store.locate_file(
            _build_copy_path_segments(document_record.document_id, document_record.source_file)
        )

    def move_copy_in(self, document_id: str, file_path: Path) -> None:
        """Make a file our copy of a document; it is gone afterwards from where it was. Blocks."""
        self._file_store.move_in((_FILES_FOLDER_NAME, document_id, file_path.name), file_path)

    def pause_changes(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which no change runs, for a backup or a check of all stores."""
        return self._change_coordinator.pause_changes()

    # --- recovery ---

    async def finish_interrupted_changes(self) -> int:
        """Complete or undo every interrupted change; returns how many there were."""
        return await self._change_coordinator.recover_changes(self._finish_change)

    async def list_unfinished(self) -> list[Intent]:
        """Return the changes that were begun and have not ended."""
        return await self._change_coordinator.list_unfinished()

    async def _finish_change(self, change_intent: Intent) -> None:
        document_id = change_intent.body["document_id"]
        # An ingestion that wrote its registry entry is complete; one that did not is undone.
        if change_intent.kind == "remove" or await self._store.find_record(document_id) is None:
            await self._delete_document(document_id)
            if file_hash := change_intent.body.get("file_hash"):
                await self._pictures.delete_pictures(file_hash)

    # --- for the doctor ---

    async def list_document_ids_with_files(self) -> set[str]:
        """Return the ids of the documents whose files we have."""
        return await anyio.to_thread.run_sync(self._list_document_ids_with_files)

    async def delete_orphan_document(self, document_id: str) -> None:
        """Delete the chunks and the file of a document that is not registered."""
        async with self._change_coordinator.begin_change(_CHANGE_LOCK_NAME):
            if await self._store.find_record(document_id) is None:
                await self._delete_document(document_id)

    # --- steps of a change ---

    async def _find_complete_record(
        self, application_ref: str, private_copy: PrivateCopy
    ) -> DocumentRecord | None:
        """Return the document with these bytes if none of its chunks is missing.

        One that lacks chunks is not returned, so that ingesting it again repairs it.
        """
        document_record = await self._store.find_record_by_hash(
            application_ref, private_copy.sha256
        )
        if (
            document_record
            and len(await self._store.get_chunks(document_record.document_id))
            == document_record.chunk_count
        ):
            return document_record
        return None

    async def _make_document_record(
        self, private_copy: PrivateCopy, submission: Submission, parsed_document: Document
    ) -> DocumentRecord:
        document_id = await self._choose_document_id(
            submission.application_ref, private_copy.sha256
        )
        copy_path = str(
            resolve_inside(
                self._base_folder, *_build_copy_path_segments(document_id, private_copy.file_name)
            )
        )
        # Its text is a list of names: what they promise may not have been readable.
        is_zip_archive = PurePath(private_copy.file_name).suffix.lower() == ".zip"
        return DocumentRecord(
            document_id=document_id,
            file_path=submission.file_path or copy_path,
            file_hash=private_copy.sha256,
            application_ref=submission.application_ref,
            document_type=submission.document_type
            or ("other" if is_zip_archive else parsed_document.classification.document_type),
            chunk_count=len(parsed_document.chunks),
            ingested_at=self._context.get_now().isoformat(timespec="seconds"),
            extraction_method=parsed_document.method,
            contains_drawings=parsed_document.contains_drawings,
            source_file=private_copy.file_name,
            total_chars=parsed_document.total_chars,
            total_words=parsed_document.total_words,
            page_starts=tuple(
                document_page.start_offset for document_page in parsed_document.pages
            ),
            blank_pages=tuple(
                document_page.number
                for document_page in parsed_document.pages
                if document_page.start_offset == document_page.end_offset
            ),
            container_id=submission.container_id,
            # A type that somebody chose says more than a kind that was guessed.
            kind=""
            if submission.document_type or is_zip_archive
            else parsed_document.classification.document_kind,
        )

    async def _choose_document_id(self, application_ref: str, sha256: str) -> str:
        """Return the first candidate id that no other document has."""
        for candidate_id in iterate_candidate_document_ids(application_ref, sha256):
            record_with_candidate_id = await self._store.find_record(candidate_id)
            if record_with_candidate_id is None:
                return candidate_id
            if (record_with_candidate_id.application_ref, record_with_candidate_id.file_hash) == (
                application_ref,
                sha256,
            ):
                return candidate_id  # the same document, incomplete: it is written again
        raise AssertionError("every id that this hash allows belongs to another document")

    async def _store_document(
        self,
        document_record: DocumentRecord,
        parsed_document: Document,
        embedded_chunks: EmbeddedChunks,
        private_copy: PrivateCopy,
    ) -> IngestedDocument:
        on_step = self._change_coordinator.on_step
        new_chunks = build_chunks(document_record, parsed_document, embedded_chunks)
        async with self._change_coordinator.record_intent(
            "ingest", document_id=document_record.document_id
        ):
            # The copy before the entry: a registered document always has pages to draw.
            await anyio.to_thread.run_sync(self._write_copy, private_copy, document_record)
            on_step("ingest:file")
            await self._store.put_chunks(new_chunks)
            on_step("ingest:chunks")
            # An earlier ingestion that was cut short may have stored other chunks.
            stored_chunks = await self._store.get_chunks(document_record.document_id)
            new_chunk_ids = set(new_chunks.ids)
            await self._store.delete_chunks(
                [
                    stored_chunk.chunk_id
                    for stored_chunk in stored_chunks
                    if stored_chunk.chunk_id not in new_chunk_ids
                ]
            )
            on_step("ingest:surplus")
            await self._store.register_document(document_record)
            on_step("ingest:registry")
        await self._pictures.store_page_words(document_record.file_hash, parsed_document)
        await anyio.to_thread.run_sync(
            self._applications.delete_unread_entries,
            document_record.application_ref,
            document_record.file_hash,
        )
        return IngestedDocument(
            document_id=document_record.document_id,
            chunks_created=len(new_chunks),
            extraction_method=document_record.extraction_method,
            contains_drawings=document_record.contains_drawings,
            total_chars=document_record.total_chars,
            total_words=document_record.total_words,
            document_kind=document_record.document_kind,
            page_count=document_record.page_count,
            pages_without_text=document_record.pages_without_text,
            pages_without_text_reason=_find_textless_reason(parsed_document),
        )

    async def _delete_document(self, document_id: str) -> int:
        on_step = self._change_coordinator.on_step
        # The entry first: from then on nobody is shown the document, whatever is left of it.
        await self._store.unregister_document(document_id)
        on_step("remove:registry")
        stored_chunks = await self._store.get_chunks(document_id)
        await self._store.delete_chunks([stored_chunk.chunk_id for stored_chunk in stored_chunks])
        on_step("remove:chunks")
        await anyio.to_thread.run_sync(self._delete_copy, document_id)
        on_step("remove:file")
        return len(stored_chunks)

    # --- files that were not ingested ---

    async def _add_skipped_file_entry(
        self, private_copy: PrivateCopy, application_ref: str, skipped_file: SkippedFile
    ) -> SkippedDocument:
        skip_message = (
            "its only page is a picture"
            if skipped_file.total_pages == 1
            else f"{skipped_file.image_ratio:.0%} of its {skipped_file.total_pages} pages are "
            "pictures"
        )
        await self._add_unread_entry(
            private_copy, application_ref, "skipped", skipped_file.reason, skip_message
        )
        return SkippedDocument(
            reason=skipped_file.reason,
            image_ratio=skipped_file.image_ratio,
            total_pages=skipped_file.total_pages,
        )

    async def _add_failed_file_entry(
        self, private_copy: PrivateCopy, application_ref: str, error: KnowledgeError
    ) -> None:
        if error.http_status < 500:  # only what is wrong with the file itself
            await self._add_unread_entry(
                private_copy, application_ref, "error", error.code, error.message[:500]
            )

    async def _add_unread_entry(
        self,
        private_copy: PrivateCopy,
        application_ref: str,
        unread_outcome: Literal["skipped", "error"],
        unread_reason: str,
        unread_message: str,
    ) -> None:
        unread_entry = UnreadEntry(
            application_ref=application_ref,
            file_hash=private_copy.sha256,
            source_file=private_copy.file_name,
            # Its text could not be read, so the name has to do.
            document_type=classify_document(private_copy.file_name).document_type,
            outcome=unread_outcome,
            reason=unread_reason,
            message=unread_message,
            at=self._context.get_now().isoformat(timespec="seconds"),
        )
        await anyio.to_thread.run_sync(self._applications.add_unread_entry, unread_entry)

    # --- our copies of the files ---

    def _write_copy(self, private_copy: PrivateCopy, document_record: DocumentRecord) -> None:
        path_segments = _build_copy_path_segments(
            document_record.document_id, document_record.source_file
        )
        self._file_store.write_file(path_segments, private_copy.file)

    def _list_document_ids_with_files(self) -> set[str]:
        return {
            path_segments[1]
            for path_segments in self._file_store.list_paths(_FILES_FOLDER_NAME)
            if len(path_segments) == 3
        }

    def _delete_copy(self, document_id: str) -> None:
        # Missing is fine: a recovery may delete what a first attempt has deleted.
        self._file_store.delete_folder((_FILES_FOLDER_NAME, document_id))


def _build_copy_path_segments(document_id: str, source_file_name: str) -> tuple[str, str, str]:
    """Return a path with a name that people recognise and every file system accepts."""
    file_safe_stem = (
        _UNSAFE_NAME_CHARACTERS_PATTERN.sub("_", PurePath(source_file_name).stem)[
            :_MAX_FILE_STEM_CHARS
        ].lstrip("-")
        or "document"
    )
    return (
        _FILES_FOLDER_NAME,
        document_id,
        f"{file_safe_stem}{PurePath(source_file_name).suffix.lower()}",
    )


def iterate_candidate_document_ids(application_ref: str, sha256: str) -> Iterator[str]:
    """Yield the ids a document may have, the contract's first.

    Two files of one application may share the first six digits of their hashes; each further
    candidate has one digit more.
    """
    file_safe_reference = _UNSAFE_NAME_CHARACTERS_PATTERN.sub("_", application_ref)
    # Six digits are the contract's; they collide by chance at some thousands of files.
    for hash_digit_count in range(6, len(sha256) + 1):
        yield f"{file_safe_reference}_{sha256[:hash_digit_count]}"


def list_file_outcomes(file_name: str, ingest_outcome: FileIngestOutcome) -> list[FileOutcome]:
    """Return the outcome for a file, then those for the files inside it, with their paths."""
    contained_outcomes = (
        [] if isinstance(ingest_outcome, SkippedDocument) else ingest_outcome.contained_files
    )
    return [
        FileOutcome.from_outcome(file_name, ingest_outcome),
        *(
            contained_outcome.model_copy(update={"file": f"{file_name}/{contained_outcome.file}"})
            for contained_outcome in contained_outcomes
        ),
    ]


def _make_already_ingested_answer(document_record: DocumentRecord) -> AlreadyIngested:
    return AlreadyIngested(
        document_id=document_record.document_id, same_as=document_record.source_file
    )


def _find_textless_reason(parsed_document: Document) -> str | None:
    """Return why pages gave no text, by the first page that says so."""
    return next(
        (
            document_page.reading_note
            for document_page in parsed_document.pages
            if document_page.reading_note
        ),
        None,
    )


def make_document_not_found_error(document_id: str) -> DocumentNotFound:
    """Return the error for an id that no document has."""
    return DocumentNotFound(
        f"Document not found: {document_id}", use_tool="list_ingested_documents"
    )

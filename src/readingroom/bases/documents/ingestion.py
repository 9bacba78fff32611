"""Documents brought in and taken out, so that registry, chunks and files always agree.

A document is there when its registry entry is: the entry is written last and deleted first. What
was begun stands in the intents; at the start an ingest without an entry is taken back, and a
removal is brought to its end.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath

import anyio
import anyio.to_thread

from readingroom.bases.documents.applications import ApplicationBook
from readingroom.bases.documents.errors import DocumentNotFound
from readingroom.bases.documents.models import AlreadyIngested, IngestedDocument, SkippedDocument
from readingroom.bases.documents.records import DocumentRecord, Unread
from readingroom.bases.documents.store import DocumentStore, chunks_from
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress, scale_progress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Document, SkippedFile
from readingroom.ingest.embed import Vectors, embed_document
from readingroom.ingest.intake import Intake
from readingroom.ingest.structure.classify import classify
from readingroom.storage.changes import Changes
from readingroom.storage.intents import Intent

Outcome = IngestedDocument | AlreadyIngested | SkippedDocument

_UNSAFE = re.compile(r"[^A-Za-z0-9-]", re.ASCII)
_LONGEST_NAME = 100
_WRITING = "documents"  # one change at a time: an id is chosen by what is registered


class Ingestion:
    """Brings documents in and out."""

    def __init__(
        self,
        folder: Path,
        store: DocumentStore,
        book: ApplicationBook,
        bench: IngestContext,
    ) -> None:
        self._folder = folder
        self._store = store
        self._book = book
        self._bench = bench
        self._changes = Changes(folder / "intents.db", bench.on_step)

    async def ingest(
        self,
        intake: Intake,
        application_ref: str,
        file_path: str | None,
        document_type: str | None,
        report: ReportProgress,
    ) -> Outcome:
        """Read, embed and store a file; without a path of its own it is known by our copy."""
        try:
            await self._bench.pipeline.check(intake)
            known = await self._whole(application_ref, intake)
            if known:
                return AlreadyIngested(document_id=known.document_id)
            found = await self._bench.pipeline.read(intake, scale_progress(report, 0, 50))
            if isinstance(found, SkippedFile):
                return await self._skipped(intake, application_ref, found)
            vectors = await embed_document(
                found, self._bench.embedder, scale_progress(report, 50, 95)
            )
            async with self._changes.one_at_a_time(_WRITING):
                known = await self._whole(application_ref, intake)  # another call was faster
                if known:
                    return AlreadyIngested(document_id=known.document_id)
                record = await self._record(
                    intake, application_ref, file_path, document_type, found
                )
                return await self._committed(record, found, vectors, intake)
        except KnowledgeError as error:
            await self._failed(intake, application_ref, error)
            raise

    async def remove(self, document_id: str) -> int:
        """Forget a document, then its chunks, then its file; returns how many chunks there were."""
        async with self._changes.one_at_a_time(_WRITING):
            if await self._store.record(document_id) is None:
                raise not_found(document_id)
            async with self._changes.intent("remove", document_id=document_id):
                return await self._removed(document_id)

    def file_of(self, record: DocumentRecord) -> Path:
        """Our copy of a document's file: what was read is what can be shown."""
        return self._kept(record.document_id, record.source_file)

    def paused(self) -> AbstractAsyncContextManager[None]:
        """No change is half done in here, and none begins: for whoever copies all the stores."""
        return self._changes.paused()

    # --- what is done at the start ---

    async def recover(self) -> int:
        """Bring every unfinished change to an end; returns how many there were."""
        return await self._changes.recover(self._finish)

    async def unfinished(self) -> list[Intent]:
        return await self._changes.unfinished()

    # --- for a check ---

    async def kept(self) -> set[str]:
        """The documents whose files we have."""
        return await anyio.to_thread.run_sync(self._with_files)

    async def sweep(self, document_id: str) -> None:
        """Delete what belongs to no registered document."""
        async with self._changes.one_at_a_time(_WRITING):
            if await self._store.record(document_id) is None:
                await self._removed(document_id)

    async def _finish(self, intent: Intent) -> None:
        document_id = intent.body["document_id"]
        # An ingest that came as far as its entry is whole; one that did not is taken back.
        if intent.kind == "remove" or await self._store.record(document_id) is None:
            await self._removed(document_id)

    # --- the steps ---

    async def _whole(self, application_ref: str, intake: Intake) -> DocumentRecord | None:
        """The document with these bytes, if all of it is there; else ingesting again mends it."""
        known = await self._store.find(application_ref, intake.sha256)
        if known and len(await self._store.chunks_of(known.document_id)) == known.chunk_count:
            return known
        return None

    async def _record(
        self,
        intake: Intake,
        application_ref: str,
        file_path: str | None,
        document_type: str | None,
        document: Document,
    ) -> DocumentRecord:
        document_id = await self._free_id(application_ref, intake.sha256)
        return DocumentRecord(
            document_id=document_id,
            file_path=file_path or str(self._kept(document_id, intake.name)),
            file_hash=intake.sha256,
            application_ref=application_ref,
            document_type=document_type or document.classification.document_type,
            chunk_count=len(document.chunks),
            ingested_at=self._bench.now().isoformat(timespec="seconds"),
            extraction_method=document.method,
            contains_drawings=document.contains_drawings,
            source_file=intake.name,
            total_chars=document.total_chars,
            total_words=document.total_words,
            page_starts=tuple(page.start for page in document.pages),
            blank_pages=tuple(page.number for page in document.pages if page.start == page.end),
        )

    async def _free_id(self, application_ref: str, sha256: str) -> str:
        """The contract's id, with a longer hash where another document has it."""
        for document_id in document_ids(application_ref, sha256):
            other = await self._store.record(document_id)
            if other is None:
                return document_id
            if (other.application_ref, other.file_hash) == (application_ref, sha256):
                return document_id  # not whole, so it is written again
        raise AssertionError("59 ids of one hash are taken")

    async def _committed(
        self, record: DocumentRecord, document: Document, vectors: Vectors, intake: Intake
    ) -> IngestedDocument:
        on_step = self._changes.on_step
        chunks = chunks_from(record, document, vectors)
        async with self._changes.intent("ingest", document_id=record.document_id):
            await anyio.to_thread.run_sync(self._keep_file, intake, record)
            on_step("ingest:file")
            await self._store.put(chunks)
            on_step("ingest:chunks")
            held = await self._store.chunks_of(record.document_id)
            kept = set(chunks.ids)
            await self._store.delete([one.chunk_id for one in held if one.chunk_id not in kept])
            on_step("ingest:surplus")
            await self._store.register(record)
            on_step("ingest:registry")
        await anyio.to_thread.run_sync(self._book.settle, record.application_ref, record.file_hash)
        return IngestedDocument(
            document_id=record.document_id,
            chunks_created=len(chunks),
            extraction_method=record.extraction_method,
            contains_drawings=record.contains_drawings,
            total_chars=record.total_chars,
            total_words=record.total_words,
        )

    async def _removed(self, document_id: str) -> int:
        on_step = self._changes.on_step
        await self._store.forget(document_id)
        on_step("remove:registry")
        chunks = await self._store.chunks_of(document_id)
        await self._store.delete([chunk.chunk_id for chunk in chunks])
        on_step("remove:chunks")
        await anyio.to_thread.run_sync(self._drop_file, document_id)
        on_step("remove:file")
        return len(chunks)

    # --- what was not ingested ---

    async def _skipped(
        self, intake: Intake, application_ref: str, found: SkippedFile
    ) -> SkippedDocument:
        told = f"{found.image_ratio:.0%} of its {found.total_pages} pages are pictures"
        await self._note(intake, application_ref, "skipped", found.reason, told)
        return SkippedDocument(
            reason=found.reason, image_ratio=found.image_ratio, total_pages=found.total_pages
        )

    async def _failed(self, intake: Intake, application_ref: str, error: KnowledgeError) -> None:
        if error.http_status < 500:  # the file's fault, and not ours
            await self._note(intake, application_ref, "error", error.code, error.message[:500])

    async def _note(
        self, intake: Intake, application_ref: str, outcome: str, reason: str, message: str
    ) -> None:
        unread = Unread(
            application_ref=application_ref,
            file_hash=intake.sha256,
            source_file=intake.name,
            document_type=classify(intake.name, "").document_type,
            outcome=outcome,  # type: ignore[arg-type]
            reason=reason,
            message=message,
            at=self._bench.now().isoformat(timespec="seconds"),
        )
        await anyio.to_thread.run_sync(self._book.note, unread)

    # --- files ---

    def _keep_file(self, intake: Intake, record: DocumentRecord) -> None:
        path = self.file_of(record)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name("partial")
        intake.file.seek(0)
        with partial.open("wb") as copy:
            shutil.copyfileobj(intake.file, copy)
        partial.replace(path)

    def _kept(self, document_id: str, name: str) -> Path:
        """Under a name that people know it by and every file system takes."""
        plain = _UNSAFE.sub("_", PurePath(name).stem)[:_LONGEST_NAME].lstrip("-") or "document"
        return self._folder / "files" / document_id / f"{plain}{PurePath(name).suffix.lower()}"

    def _with_files(self) -> set[str]:
        return {path.parent.name for path in (self._folder / "files").glob("*/*.*")}

    def _drop_file(self, document_id: str) -> None:
        shutil.rmtree(self._folder / "files" / document_id, ignore_errors=True)


def document_ids(application_ref: str, sha256: str) -> Iterator[str]:
    """The ids a document may have, the contract's first: where another document has that one, the
    next is one hash digit longer.
    """
    sanitised = _UNSAFE.sub("_", application_ref)
    for digits in range(6, len(sha256) + 1):
        yield f"{sanitised}_{sha256[:digits]}"


def not_found(document_id: str) -> DocumentNotFound:
    return DocumentNotFound(
        f"Document not found: {document_id}", use_tool="list_ingested_documents"
    )

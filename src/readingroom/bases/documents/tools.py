"""The documents base's tools, and the base itself as the server sees it."""

from collections.abc import Iterable
from pathlib import Path

from readingroom.bases.documents.models import (
    AlreadyIngested,
    ApplicationOverview,
    ApplicationSet,
    DocumentHits,
    DocumentList,
    DocumentText,
    FolderIngested,
    GetDocumentText,
    IngestDocument,
    IngestedDocument,
    IngestFolder,
    ListIngestedDocuments,
    Overview,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    SetApplication,
    SkippedDocument,
)
from readingroom.bases.documents.routes import documents_router
from readingroom.bases.documents.service import DocumentsService
from readingroom.ingest.workbench import Workbench
from readingroom.protocol.dialects import StatusDialect
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.protocol.tool import Call, Hints, Tool, tool


def open_documents(
    folder: Path,
    chroma: Path | None,
    bench: Workbench,
    read_only: bool = False,
) -> KnowledgeBase:
    """Open the documents base on a folder; its stores are opened when it is served."""
    service = DocumentsService(folder, chroma, bench)
    return KnowledgeBase(
        name="documents",
        server_name="document-store-mcp",
        title="Documents of planning applications",
        instructions=(
            "The documents of planning applications: reports, statements, plans, scans. Give "
            "application_ref to stay within one application. Cite with the `citation` of a result; "
            "read around a passage with get_document_text and its pages."
        ),
        dialect=StatusDialect(),
        tools=(*_searching(service), *_reading(service), *_writing(service)),
        service=service,
        stateful=True,
        sse=True,
        routers=(documents_router(service, read_only),),
        running=service.running,
    )


def _searching(service: DocumentsService) -> Iterable[Tool]:
    async def search_application_docs(question: SearchApplicationDocs, call: Call) -> DocumentHits:
        """Find what the documents of a planning application (`19/00017/FUL`, `19/00019/REM`) say on
        a question: what the applicant says or proposes in the submitted papers (dwellings,
        materials, mitigation, traffic), what a statement, survey, assessment or report mentions,
        how many, how tall, how far; passages, within one application when application_ref is given.
        Returns passages, not whole documents: use get_document_text for those.
        """
        return await service.search(question)

    yield tool(search_application_docs, title="Search documents")


def _reading(service: DocumentsService) -> Iterable[Tool]:
    async def get_document_text(question: GetDocumentText, call: Call) -> DocumentText:
        """Read the full text of a document of a planning application by its document id
        (`19_00017_FUL_3c9a01`): open, show or print it whole, or some of its pages, or as much as
        max_chars allows and then continue from next_offset. It does not search.
        """
        return await service.text(question)

    async def list_ingested_documents(question: ListIngestedDocuments, call: Call) -> DocumentList:
        """List which documents of one planning application (`19/00017/FUL`, `19/00018/OUT`,
        `19/00019/REM`) are here so far: what is on file, the files, reports, attachments and
        paperwork submitted or uploaded, with their ids and types. It returns no text; what is
        missing is in application_overview.
        """
        return await service.documents(question)

    async def application_overview(question: ApplicationOverview, call: Call) -> Overview:
        """Tell how complete a planning application (`19/00017/FUL`, `19/00019/REM`) is: an overview
        or summary of the state of its record (status, when it was validated), its documents by
        type, what was skipped or could not be read and why, and what is missing because they forgot
        to submit it. It returns no text.
        """
        return await service.overview(question)

    yield tool(application_overview, title="See an application")
    yield tool(get_document_text, title="Read a document")
    yield tool(list_ingested_documents, title="List documents")


def _writing(service: DocumentsService) -> Iterable[Tool]:
    async def ingest_document(
        question: IngestDocument, call: Call
    ) -> IngestedDocument | AlreadyIngested | SkippedDocument:
        """Add one file to a planning application (`19/00018/OUT`, `19/00019/REM`): upload, import,
        read in or process another PDF or scan of a report, survey, statement, letter or plan
        (`/inbox/noise.pdf`) from the server's disk, so that it can be searched. It does not take
        files from anywhere but DOCUMENT_ROOTS; pictures without words are skipped.
        """
        return await service.ingest(question, call.report)

    async def ingest_folder(question: IngestFolder, call: Call) -> FolderIngested:
        """Load a whole folder or directory of files into a planning application (`19/00018/OUT`,
        `19/00019/REM`) at once: process all, import every PDF below a path of the server's disk
        (`/inbox/19_00017`), in bulk or as a batch. It does not stop at a file that cannot be read:
        each has an outcome of its own. For one file use ingest_document.
        """
        return await service.ingest_folder(question, call.report)

    async def set_application(question: SetApplication, call: Call) -> ApplicationSet:
        """Record, store, save, note, correct, update or change what is known of a planning
        application itself (`19/00017/FUL`, `19/00019/REM`): its site address, description,
        validation date (validated on a day), status (mark it approved, refused, withdrawn). What is
        left out or null stays as it is, an empty string clears it; documents are not touched.
        """
        return await service.set_application(question)

    async def remove_document(question: RemoveDocument, call: Call) -> RemovedDocument:
        """Delete a document of a planning application from the store, by its document id
        (`19_00017_FUL_3c9a01`), with all its chunks: remove, erase, drop, throw out or get rid of a
        duplicate, a drawing, a letter, a superseded report or the wrong one added by mistake. The
        file it was ingested from is left alone.
        """
        return await service.remove(question)

    deletes = Hints(read_only=False, destructive=True)
    yield tool(ingest_document, title="Ingest a document", hints=Hints(read_only=False))
    yield tool(ingest_folder, title="Ingest a folder", hints=Hints(read_only=False))
    yield tool(set_application, title="Describe an application", hints=Hints(read_only=False))
    yield tool(remove_document, title="Remove a document", hints=deletes)

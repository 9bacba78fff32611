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
from readingroom.engine.embedding import Embedder
from readingroom.ingest.intake import Roots
from readingroom.ingest.pipeline import Pipeline
from readingroom.protocol.dialects import StatusDialect
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.protocol.tool import Call, Hints, Tool, tool


def open_documents(
    folder: Path,
    chroma: Path | None,
    embedder: Embedder,
    pipeline: Pipeline,
    roots: Roots,
    read_only: bool = False,
) -> KnowledgeBase:
    """Open the documents base on a folder; its stores are opened when it is served."""
    service = DocumentsService(folder, chroma, embedder, pipeline, roots)
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
        """Find what the documents of a planning application (`19/00017/FUL`) say on a question,
        the statements, assessments and reports that the applicant submitted: passages, within one
        application when application_ref is given. Returns passages, not whole documents: use
        get_document_text for those.
        """
        return await service.search(question)

    yield tool(search_application_docs, title="Search documents")


def _reading(service: DocumentsService) -> Iterable[Tool]:
    async def get_document_text(question: GetDocumentText, call: Call) -> DocumentText:
        """Read a document of a planning application by its document id (`19_00017_FUL_3c9a01`):
        whole, or some of its pages, or as much as max_chars allows and then on from next_offset.
        It does not search.
        """
        return await service.text(question)

    async def list_ingested_documents(question: ListIngestedDocuments, call: Call) -> DocumentList:
        """List which documents, the files submitted, of one planning application (`19/00017/FUL`,
        `19/00018/OUT`, `19/00019/REM`) are here so far, with their ids and types. It returns no
        text.
        """
        return await service.documents(question)

    async def application_overview(question: ApplicationOverview, call: Call) -> Overview:
        """See at once what is there of a planning application: its record with the validation date,
        its documents by type, what could not be read and why, and which types are missing. It
        returns no text.
        """
        return await service.overview(question)

    yield tool(application_overview, title="See an application")
    yield tool(get_document_text, title="Read a document")
    yield tool(list_ingested_documents, title="List documents")


def _writing(service: DocumentsService) -> Iterable[Tool]:
    async def ingest_document(
        question: IngestDocument, call: Call
    ) -> IngestedDocument | AlreadyIngested | SkippedDocument:
        """Add one file to a planning application (`19/00018/OUT`, `19/00019/REM`): a PDF or a scan
        of a report, statement or plan is read from the server's disk, so that it can be searched.
        It does not take files from anywhere but DOCUMENT_ROOTS; pictures without words are
        skipped.
        """
        return await service.ingest(question, call.report)

    async def ingest_folder(question: IngestFolder, call: Call) -> FolderIngested:
        """Read all files below a folder of the server's disk into an application, as
        ingest_document does for one. A file that cannot be read does not stop the others: each has
        an outcome of its own.
        """
        return await service.ingest_folder(question, call.report)

    async def set_application(question: SetApplication, call: Call) -> ApplicationSet:
        """Write down what is known of a planning application itself: address, description,
        validation date, status. What is left out or null stays as it is, an empty string clears it;
        documents are not touched.
        """
        return await service.set_application(question)

    async def remove_document(question: RemoveDocument, call: Call) -> RemovedDocument:
        """Remove a document of a planning application from the store, by its document id
        (`19_00017_FUL_3c9a01`), with all its chunks: a duplicate, say. The file it was ingested
        from is left alone.
        """
        return await service.remove(question)

    deletes = Hints(read_only=False, destructive=True)
    yield tool(ingest_document, title="Ingest a document", hints=Hints(read_only=False))
    yield tool(ingest_folder, title="Ingest a folder", hints=Hints(read_only=False))
    yield tool(set_application, title="Describe an application", hints=Hints(read_only=False))
    yield tool(remove_document, title="Remove a document", hints=deletes)

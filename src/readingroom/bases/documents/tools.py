"""The documents base's tools, and the base itself as the server sees it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

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
from readingroom.bases.documents.service import DocumentsService
from readingroom.bases.documents.settings import DocumentsSettings
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.ingest.context import IngestContext
from readingroom.ingest.setup import make_ingest_context
from readingroom.protocol.errors import StatusDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import (
    MAX_RESOURCE_LINKS,
    ResourceLink,
    Tool,
    ToolContext,
    ToolHints,
    make_tool,
)


def open_base(settings: DocumentsSettings) -> KnowledgeBase:
    """Open the documents base as the settings say."""
    base_folder = settings.data / "documents"
    chroma_directory_text = settings.chroma_persist_dir
    chroma_directory = (
        None
        if chroma_directory_text == ""
        else Path(chroma_directory_text)
        if chroma_directory_text
        else base_folder / "chroma"
    )
    ingest_context = make_ingest_context(
        settings, "documents", "DOCUMENT_ROOTS", settings.document_roots
    )
    knowledge_base = open_documents(base_folder, chroma_directory, ingest_context)
    return replace(knowledge_base, leasable_passages=get_shared_embedder(settings).waiting_texts)


def open_documents(
    base_folder: Path,
    chroma_directory: Path | None,
    ingest_context: IngestContext,
) -> KnowledgeBase:
    """Open the documents base on a folder; its stores are opened when it is served."""
    documents_service = DocumentsService(base_folder, chroma_directory, ingest_context)
    return KnowledgeBase(
        name="documents",
        server_name="document-store-mcp",
        title="Documents of planning applications",
        instructions=(
            "The documents of planning applications: reports, statements, plans, scans. Give "
            "application_ref to stay within one application. Cite with the `citation` of a result; "
            "read around a passage with get_document_text and its pages."
        ),
        error_dialect=StatusDialect(),
        tools=(
            *_make_search_tools(documents_service),
            *_make_reading_tools(documents_service),
            *_make_writing_tools(documents_service),
        ),
        service=documents_service,
        keeps_sessions=True,
        serves_sse=True,
        lifespan=documents_service.run_service,
        check_ready=documents_service.check_ready,
        warm_up=documents_service.warm_up,
    )


def _make_search_tools(documents_service: DocumentsService) -> Iterable[Tool]:
    async def search_application_docs(
        arguments: SearchApplicationDocs, tool_context: ToolContext
    ) -> DocumentHits:
        """Find what the documents of a planning application (`19/00017/FUL`, `19/00019/REM`) say.
        What does the applicant say, claim or propose about this, how many, how much, how tall? What
        does a statement, survey, assessment or report mention or conclude? What do consultees,
        neighbours or objectors write in their letters? Where in the papers is it? Gives passages,
        within one application when application_ref is given, else from all application files. For a
        whole document use `get_document_text`. For what policy says use `search_policy`.
        """
        return await documents_service.search_documents(arguments)

    yield make_tool(search_application_docs, title="Search documents")


def _make_reading_tools(documents_service: DocumentsService) -> Iterable[Tool]:
    async def get_document_text(
        arguments: GetDocumentText, tool_context: ToolContext
    ) -> DocumentText:
        """Read the text of one document of a planning application by its document id
        (`19_00017_FUL_3c9a01`), such as a design and access statement or a travel plan: all of it,
        the complete wording from the top, or some of its pages (pages 4 to 9), or as much as
        max_chars allows and then on from next_offset. To find the place where something is said use
        `search_application_docs`.
        """
        return await documents_service.get_text(arguments)

    async def list_ingested_documents(
        arguments: ListIngestedDocuments, tool_context: ToolContext
    ) -> DocumentList:
        """List the documents of one planning application (`19/00017/FUL`, `19/00018/OUT`,
        `19/00019/REM`). Which files, reports and attachments have been submitted, what paperwork is
        on file so far? Gives their names, ids and types, and no text. For what they say use
        `search_application_docs`. For the state of the case and what is missing use
        `application_overview`.
        """
        return await documents_service.list_documents(arguments)

    async def application_overview(
        arguments: ApplicationOverview, tool_context: ToolContext
    ) -> Overview:
        """Get up to speed on a planning application (`19/00017/FUL`, `19/00019/REM`): a summary of
        the case and the state of play. What is it about, the site and the proposal, what is its
        status, where has it got to, was it granted? How complete is it, which reports did they
        forget to submit and are missing? Gives the record, the documents it came with by type, what
        was skipped or failed to load and why; no text. For the files alone use
        `list_ingested_documents`.
        """
        return await documents_service.get_overview(arguments)

    yield make_tool(
        application_overview,
        title="See an application",
        view="overview",
        list_links=_link_documents,
    )
    yield make_tool(get_document_text, title="Read a document")
    yield make_tool(list_ingested_documents, title="List documents")


def _make_writing_tools(documents_service: DocumentsService) -> Iterable[Tool]:
    async def ingest_document(
        arguments: IngestDocument, tool_context: ToolContext
    ) -> IngestedDocument | AlreadyIngested | SkippedDocument:
        """Add one file (`/inbox/noise.pdf`) to a planning application (`19/00018/OUT`,
        `19/00019/REM`): upload or load a PDF or scan of a report, survey, statement, letter or plan
        from the server's disk, so that it can be searched. It does not take files from anywhere but
        DOCUMENT_ROOTS; pictures without words are skipped. For a directory of files use
        `ingest_folder`.
        """
        return await documents_service.ingest_document(arguments, tool_context.report_progress)

    async def ingest_folder(arguments: IngestFolder, tool_context: ToolContext) -> FolderIngested:
        """Load a whole folder or directory of files (`/inbox/19_00017`) into a planning application
        (`19/00018/OUT`, `19/00019/REM`) at once: every PDF and all that is in a path of the
        server's disk. It does not stop at a file that cannot be read: each has an outcome of its
        own. For one file use `ingest_document`.
        """
        return await documents_service.ingest_folder(arguments, tool_context.report_progress)

    async def set_application(
        arguments: SetApplication, tool_context: ToolContext
    ) -> ApplicationSet:
        """Record what is known of a planning application itself (`19/00017/FUL`, `19/00019/REM`),
        or correct and update it: save its site address, what the proposal is for, the date it was
        validated, its status (mark it pending, approved, refused, withdrawn). What is left out or
        null stays as it is, an empty string clears it; documents are not touched. To see what is
        recorded use `application_overview`.
        """
        return await documents_service.set_application(arguments)

    async def remove_document(
        arguments: RemoveDocument, tool_context: ToolContext
    ) -> RemovedDocument:
        """Delete one document of a planning application from the store, by its document id
        (`19_00017_FUL_3c9a01`), with all its chunks: get rid of a duplicate, a superseded report, a
        drawing or a file that was uploaded by mistake. The file it was ingested from is left alone.
        For a policy use `remove_policy_revision`.
        """
        # One that is not known is no question: this raises for it.
        document_record = await documents_service.get_record(arguments.document_id)
        chunks = await documents_service.store.get_chunks(document_record.document_id)
        await tool_context.require_consent(
            f"Remove the document {document_record.document_id} from its application: "
            f"{len(chunks)} passages? The file it was ingested from is left alone."
        )
        return await documents_service.remove_document(arguments)

    deletion_hints = ToolHints(read_only=False, destructive=True)
    yield make_tool(ingest_document, title="Ingest a document", hints=ToolHints(read_only=False))
    yield make_tool(ingest_folder, title="Ingest a folder", hints=ToolHints(read_only=False))
    yield make_tool(
        set_application, title="Describe an application", hints=ToolHints(read_only=False)
    )
    yield make_tool(remove_document, title="Remove a document", hints=deletion_hints)


def _link_documents(application_overview: Overview) -> list[ResourceLink]:
    document_entries = [
        document_entry
        for listed_type in application_overview.types
        for document_entry in listed_type.documents
    ]
    return [
        ResourceLink(
            f"document/{quote(document_entry.document_id, safe='')}",
            f"{application_overview.application_ref}: {document_entry.source_file}",
        )
        for document_entry in document_entries[:MAX_RESOURCE_LINKS]
    ]

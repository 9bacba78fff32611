"""The documents base over REST: what the tools do, uploads, and pages as pictures.

A reference contains slashes, so it is a query parameter and never a part of a path.
"""

from functools import partial
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Path, Query, Request, Response

from readingroom.bases.documents.answers import make_list_entry
from readingroom.bases.documents.ids import ApplicationRef
from readingroom.bases.documents.models import (
    AlreadyIngested,
    ApplicationList,
    ApplicationOverview,
    ApplicationPatch,
    ApplicationSet,
    ChosenDocumentType,
    DocumentHits,
    DocumentId,
    DocumentList,
    DocumentText,
    DocumentTypes,
    FolderIngested,
    GetDocumentText,
    IngestDocument,
    IngestedDocument,
    IngestFolder,
    ListedDocument,
    ListIngestedDocuments,
    MaxChars,
    MaxResults,
    Offset,
    Overview,
    PageMarks,
    PageSelection,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    SearchMode,
    SetApplication,
    SkippedDocument,
)
from readingroom.bases.documents.models import Query as QueryText
from readingroom.bases.documents.service import DocumentsService
from readingroom.core.progress import no_progress
from readingroom.protocol.resources import Passage
from readingroom.protocol.rest import API_PATH_PREFIX, ERROR_RESPONSES_BY_STATUS
from readingroom.web.disconnect import run_while_connected
from readingroom.web.parameters import StrictQueryRoute
from readingroom.web.uploads import make_upload_form_openapi, receive_upload

_UPLOAD_FORM = make_upload_form_openapi(
    "A PDF or an image, an office file, a text, an e-mail or a zip archive; see docs/ingest.md."
)
_PNG_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}}, "description": "The page."}
}
_WEBP_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/webp": {}}, "description": "The page."}
}
# A document never changes, so browsers may cache its pages; shared caches must not.
_PICTURE_HEADERS = {"Cache-Control": "private, max-age=86400"}

IngestOutcome = IngestedDocument | AlreadyIngested | SkippedDocument
DocumentIdInPath = Annotated[DocumentId, Path()]
PageNumberInPath = Annotated[int, Path(ge=1, le=99_999)]
Dpi = Annotated[int, Query(ge=36, le=300, description="Dots per inch.")]


def make_routers(documents_service: DocumentsService, read_only: bool) -> tuple[APIRouter, ...]:
    """Return the REST surface of the base."""
    return (make_documents_router(documents_service, read_only),)


def make_documents_router(documents_service: DocumentsService, read_only: bool) -> APIRouter:
    """Return the routes under /api/v1; a read-only server has none that write."""
    router = APIRouter(
        prefix=API_PATH_PREFIX,
        tags=["documents"],
        responses=ERROR_RESPONSES_BY_STATUS,
        route_class=StrictQueryRoute,
    )
    # Routes that do not exist cannot be called by mistake, and OpenAPI does not show them.
    if not read_only:
        _add_ingest_routes(router, documents_service)
        _add_change_routes(router, documents_service)
    _add_search_routes(router, documents_service)
    _add_reading_routes(router, documents_service)
    _add_application_routes(router, documents_service)
    return router


def _add_search_routes(router: APIRouter, documents_service: DocumentsService) -> None:
    @router.get("/documents")
    async def list_documents(
        application_ref: Annotated[ApplicationRef, Query()],
    ) -> DocumentList:
        """The documents of one application."""
        return await documents_service.list_documents(
            ListIngestedDocuments(application_ref=application_ref)
        )

    @router.get("/documents/search")
    async def search_documents(
        query: Annotated[QueryText, Query()],
        application_ref: Annotated[ApplicationRef | None, Query()] = None,
        document_types: Annotated[DocumentTypes, Query()] = None,
        max_results: Annotated[MaxResults, Query()] = 10,
        mode: Annotated[SearchMode, Query()] = "semantic",
    ) -> DocumentHits:
        """Passages that answer a question."""
        return await documents_service.search_documents(
            SearchApplicationDocs(
                query=query,
                application_ref=application_ref,
                document_types=document_types,
                max_results=max_results,
                mode=mode,
            )
        )


def _add_reading_routes(router: APIRouter, documents_service: DocumentsService) -> None:
    @router.get("/documents/{document_id}")
    async def get_document(document_id: DocumentIdInPath) -> ListedDocument:
        """One document as lists show it."""
        return make_list_entry(await documents_service.get_record(document_id))

    @router.get("/documents/{document_id}/text")
    async def get_text(
        document_id: DocumentIdInPath,
        pages: Annotated[PageSelection, Query()] = None,
        max_chars: Annotated[MaxChars, Query()] = None,
        offset: Annotated[Offset, Query()] = 0,
    ) -> DocumentText:
        """A document's text, whole or in part."""
        return await documents_service.get_text(
            GetDocumentText(
                document_id=document_id, pages=pages, max_chars=max_chars, offset=offset
            )
        )

    @router.get(
        "/documents/{document_id}/pages/{page}.png",
        response_class=Response,
        responses=_PNG_RESPONSE,
    )
    async def get_page_image(
        document_id: DocumentIdInPath,
        page: PageNumberInPath,
        dpi: Dpi = 110,
    ) -> Response:
        """A page as a picture."""
        png_bytes = await documents_service.render_page(document_id, page, dpi)
        return Response(png_bytes, media_type="image/png", headers=_PICTURE_HEADERS)

    @router.get(
        "/documents/{document_id}/pages/{page}.webp",
        response_class=Response,
        responses=_WEBP_RESPONSE,
    )
    async def get_page_picture(
        document_id: DocumentIdInPath, page: PageNumberInPath, dpi: Dpi = 110
    ) -> Response:
        """A page as a picture without loss, kept for the next time."""
        webp_bytes = await documents_service.draw_page(document_id, page, dpi)
        return Response(webp_bytes, media_type="image/webp", headers=_PICTURE_HEADERS)

    @router.get("/documents/{document_id}/pages/{page}/marks")
    async def get_marks(
        document_id: DocumentIdInPath, page: PageNumberInPath, passage: Annotated[Passage, Query()]
    ) -> PageMarks:
        """Where a passage stands on a page, as rectangles to draw over its picture."""
        return await documents_service.mark_passage(document_id, page, passage)


def _add_application_routes(router: APIRouter, documents_service: DocumentsService) -> None:
    @router.get("/applications")
    async def get_applications(
        reference: Annotated[ApplicationRef | None, Query()] = None,
    ) -> Overview | ApplicationList:
        """One application with its documents by type; without a reference, all of them by name."""
        if reference is None:
            return await documents_service.list_applications()
        return await documents_service.get_overview(ApplicationOverview(application_ref=reference))


def _add_ingest_routes(router: APIRouter, documents_service: DocumentsService) -> None:
    @router.post("/documents", openapi_extra=_UPLOAD_FORM)
    async def upload_document(
        request: Request,
        application_ref: Annotated[ApplicationRef, Query()],
        document_type: Annotated[ChosenDocumentType, Query()] = None,
    ) -> IngestOutcome:
        """Ingest a file that comes with the request; the answer waits until it can be searched."""
        upload_path = documents_service.make_upload_path()
        try:
            received_upload = await receive_upload(
                request, upload_path, documents_service.max_file_bytes
            )
            ingest_file = partial(
                documents_service.ingest_upload,
                *(
                    upload_path,
                    received_upload.file_name,
                    application_ref,
                    document_type,
                    no_progress,
                ),
            )
            return await run_while_connected(request, ingest_file)
        finally:
            await anyio.Path(upload_path).unlink(missing_ok=True)

    @router.post("/documents/ingest")
    async def ingest_document(arguments: IngestDocument, request: Request) -> IngestOutcome:
        """Ingest a file of the server's disk."""
        return await run_while_connected(
            request, partial(documents_service.ingest_document, arguments, no_progress)
        )

    @router.post("/documents/ingest-folder")
    async def ingest_folder(arguments: IngestFolder, request: Request) -> FolderIngested:
        """Ingest all files below a folder of the server's disk."""
        ingest_all = partial(documents_service.ingest_folder, arguments, no_progress)
        return await run_while_connected(request, ingest_all)


def _add_change_routes(router: APIRouter, documents_service: DocumentsService) -> None:
    @router.delete("/documents/{document_id}")
    async def remove_document(document_id: DocumentIdInPath) -> RemovedDocument:
        """Remove a document with all its chunks."""
        return await documents_service.remove_document(RemoveDocument(document_id=document_id))

    @router.patch("/applications")
    async def set_application(
        reference: Annotated[ApplicationRef, Query()], patch: ApplicationPatch
    ) -> ApplicationSet:
        """Change an application's record; null or nothing keeps a field, an empty string clears
        it.
        """
        changed_values = patch.model_dump(exclude_none=True)
        return await documents_service.set_application(
            SetApplication(reference=reference, **changed_values)
        )

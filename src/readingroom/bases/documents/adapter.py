"""The documents base in searches, fetches and resources over all bases."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import quote, unquote

from readingroom.bases.documents.ids import format_doc_id, parse_doc_id
from readingroom.bases.documents.models import (
    DocumentHit,
    GetDocumentText,
    SearchApplicationDocs,
)
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.resources import ListedResource, ResourceTemplate
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    KnownApplication,
    PageLinks,
    SearchAdapter,
    SearchRequest,
    is_heading_only,
    make_desk_record,
)
from readingroom.protocol.tool import ToolContext

_SPARE_HIT_COUNT = 10  # hits asked for beyond the limit, to replace headings that are skipped


class DocumentsAdapter(SearchAdapter):
    """Documents of planning applications."""

    base_name: ClassVar[str] = "documents"
    question_words_package: ClassVar[str] = __package__
    role = "application"
    id_forms = ("doc: (doc:25_01178_REM_a1b2c3#page=4)",)
    templates = (
        ResourceTemplate(
            "document/{document_id}",
            "application_document",
            "A document of a planning application",
            "Its text.",
        ),
    )

    def __init__(self, documents_service: DocumentsService, page_links: PageLinks) -> None:
        self._service = documents_service
        self._page_links = page_links

    async def search(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> list[DeskHit]:
        document_hits = await self._service.search_documents(
            SearchApplicationDocs(
                query=search_request.query,
                application_ref=search_request.application_ref,
                max_results=search_request.limit + _SPARE_HIT_COUNT,
                mode="hybrid",
            )
        )
        hits_beyond_headings = [
            document_hit
            for document_hit in document_hits.results
            # A document of one chunk is all there is, even if it looks like a heading.
            if document_hit.metadata.total_chunks == 1 or not is_heading_only(document_hit.text)
        ]
        return [
            self._make_desk_hit(document_hit)
            for document_hit in hits_beyond_headings[: search_request.limit]
        ]

    async def fetch(self, id: str, offset: int, tool_context: ToolContext) -> DeskRecord:
        document_ref = parse_doc_id(id)
        page_selection = str(document_ref.page_number) if document_ref.page_number else None
        text_answer = await self._service.get_text(
            GetDocumentText(document_id=document_ref.document_id, pages=page_selection)
        )
        return make_desk_record(
            self.base_name,
            text_answer.id,
            title=text_answer.citation,
            text=text_answer.text,
            url=self._page_links.make_record_url(text_answer.id),
            citation=text_answer.citation,
            source=text_answer.document_type,
            details=text_answer.model_dump(
                mode="json", exclude={"text", "status", "id", "next_offset"}
            ),
            offset=offset,
        )

    async def find_application(self, application_ref: str) -> KnownApplication | None:
        application_record = await self._service.find_application(application_ref)
        document_records = await self._service.store.list_records(application_ref)
        if application_record is None and not document_records:
            return None
        validation_date = application_record.validation_date if application_record else None
        return KnownApplication(
            validation_date.isoformat() if validation_date else None,
            application_record.local_authority if application_record else None,
            tuple(document_record.source_file for document_record in document_records),
            application_record.address if application_record else None,
        )

    async def list_resources(self) -> list[ListedResource]:
        return [
            ListedResource(
                f"document/{quote(document_record.document_id, safe='')}",
                document_record.document_id,
                document_record.source_file,
                f"{document_record.document_type} of application "
                f"{document_record.application_ref}.",
            )
            for document_record in await self._service.list_all_documents()
        ]

    def parse_resource_path(self, resource_path: str) -> str | None:
        path_match = re.fullmatch(r"document/([^/]+)", resource_path)
        return format_doc_id(unquote(path_match[1])) if path_match else None

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> Sequence[str]:
        if argument_name == "document_id":
            return [
                document_record.document_id
                for document_record in await self._service.list_all_documents()
            ]
        if argument_name == "application_ref":
            document_records = await self._service.list_all_documents()
            return sorted({document_record.application_ref for document_record in document_records})
        return ()

    def _make_desk_hit(self, document_hit: DocumentHit) -> DeskHit:
        record_url = self._page_links.make_record_url(document_hit.id)
        chunk_metadata = document_hit.metadata
        ids_of_pages = (
            format_doc_id(chunk_metadata.document_id, int(page_number_text))
            for page_number_text in chunk_metadata.page_numbers.split(",")
        )
        citation_text = f"{chunk_metadata.application_ref}, {document_hit.citation}"
        return DeskHit(
            id=document_hit.id,
            title=f"{chunk_metadata.application_ref}: {document_hit.citation}",
            url=record_url,
            source=chunk_metadata.document_type,
            snippet=document_hit.text,
            score=document_hit.score,
            published_at=None,
            citation=Citation(citation_string=citation_text, url=record_url),
            base=self.base_name,
            parts=document_hit.parts,
            joined_ids=[id_of_page for id_of_page in ids_of_pages if id_of_page != document_hit.id],
        )

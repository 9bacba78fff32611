"""The documents base's pages: applications, their documents by kind, pages as pictures, uploads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
from markupsafe import Markup

from readingroom.bases.documents.ids import format_doc_id
from readingroom.bases.documents.models import (
    EXPECTED_TYPES,
    ApplicationOverview,
    Overview,
    PageMark,
    RemoveDocument,
    SetApplication,
)
from readingroom.bases.documents.pages.uploads import (
    UPLOAD_JOB,
    UploadJobs,
    make_application_address,
    move_files,
)
from readingroom.bases.documents.service import DocumentsService
from readingroom.core.caller import current_caller
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageLink,
    PagePicture,
    PageRequest,
    ReadingAid,
    RenderedPage,
    SeeOther,
    SentFile,
    ToolExample,
)
from readingroom.protocol.search import DeskRecord, make_read_path
from readingroom.storage.jobs.store import BackgroundJob, JobStore
from readingroom.web.charts import Chart, StackedRow, draw_stacked
from readingroom.web.marks import show_marked_page
from readingroom.web.templates import format_words, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_MAX_UPLOAD_BYTES = 2**30
"""Of all files of one form together."""
_PICTURE_DPI = 100


def make_pages(service: DocumentsService, jobs: JobStore) -> BasePages:
    """Return the pages of the documents base, and the job that reads uploaded files."""
    pages = DocumentPages(service, jobs)
    return BasePages(
        [
            BasePage(
                "/applications",
                pages.show_applications,
                menu_label="Applications",
                summary="Planning applications: which documents are there, unread or missing.",
            ),
            BasePage("/applications/view", pages.show_application),
            BasePage("/applications/change", pages.change_application, "POST", "editor"),
            BasePage(
                "/applications/add",
                pages.add_files,
                "POST",
                "editor",
                max_upload_bytes=_MAX_UPLOAD_BYTES,
            ),
            BasePage("/documents/{document_id}/remove", pages.ask_removal, "GET", "editor"),
            BasePage("/documents/{document_id}/remove", pages.remove, "POST", "editor"),
            BasePage("/documents/{document_id}/pages/{page:page_number}", pages.show_page),
            BasePage("/documents/{document_id}/pages/{page:page_number}.webp", pages.draw_page),
        ],
        job_handlers={UPLOAD_JOB: UploadJobs(service).run},
        aid_reading=pages.aid_reading,
    )


class DocumentPages:
    """The pages of the documents base, over its service."""

    def __init__(self, service: DocumentsService, jobs: JobStore) -> None:
        self._service = service
        self._jobs = jobs

    async def show_applications(self, request: PageRequest) -> RenderedPage:
        """Return every application."""
        listed = await self._service.list_applications()
        body = _render("applications.html", listed=listed, request=request)
        return RenderedPage("Applications", body, data=listed)

    async def show_application(self, request: PageRequest) -> RenderedPage:
        """Return one application: its record, its documents by kind, what was not read."""
        reference = request.get("ref")
        question = validate_model(ApplicationOverview, {"application_ref": reference})
        overview = await self._service.get_overview(question)
        jobs = await anyio.to_thread.run_sync(self._jobs.list_newest, 50, UPLOAD_JOB)
        body = _render(
            "application.html",
            overview=overview,
            kinds=_list_kinds(overview),
            chart=_draw_pages(overview),
            jobs=[job for job in jobs if job.question.get("application_ref") == reference][:5],
            request=request,
            can_edit=request.visitor.may_act_as("editor"),
            make_page_address=_make_page_address,
        )
        example = ToolExample("application_overview", {"application_ref": reference})
        return RenderedPage(overview.application_ref, body, data=overview, tool_example=example)

    async def change_application(self, request: PageRequest) -> SeeOther:
        """Change an application's record."""
        names = ("address", "description", "validation_date", "status")
        fields = {name: request.get(name) for name in names}
        change = validate_model(SetApplication, {"reference": request.get("ref"), **fields})
        await self._service.set_application(change)
        return SeeOther(make_application_address(request.get("ref")))

    async def add_files(self, request: PageRequest) -> SeeOther:
        """Queue the reading of uploaded files, and lead to the page of that job."""
        question = validate_model(ApplicationOverview, {"application_ref": request.get("ref")})
        if not request.files:
            raise InvalidArguments([{"field": "files", "message": "choose at least one file"}])
        reference = question.application_ref
        job = await anyio.to_thread.run_sync(
            self._queue_files, reference, request.files, current_caller.get()
        )
        return SeeOther(f"/jobs/{job.id}")

    def _queue_files(
        self, reference: str, sent_files: Sequence[SentFile], caller: str
    ) -> BackgroundJob:
        folder = self._jobs.make_folder(UPLOAD_JOB)
        files = move_files(sent_files, folder)
        title = f"{len(files)} file{'s' if len(files) != 1 else ''} for {reference}"
        question = {"application_ref": reference, "folder": str(folder), "files": files}
        return self._jobs.add(UPLOAD_JOB, title, question, caller, folder)

    async def ask_removal(self, request: PageRequest) -> RenderedPage:
        """Return the page that asks once more before a document is removed."""
        record = await self._service.get_record(request.get("document_id"))
        body = _render("remove_document.html", record=record, request=request)
        return RenderedPage(f"Remove {record.source_file}?", body)

    async def remove(self, request: PageRequest) -> SeeOther:
        """Remove a document."""
        record = await self._service.get_record(request.get("document_id"))
        await self._service.remove(RemoveDocument(document_id=record.document_id))
        return SeeOther(make_application_address(record.application_ref))

    async def show_page(self, request: PageRequest) -> SeeOther:
        """Lead to the record of a page."""
        record_id = format_doc_id(request.get("document_id"), int(request.parameters["page"]))
        return SeeOther(make_read_path(record_id))

    async def draw_page(self, request: PageRequest) -> PagePicture:
        """Return a page as a picture."""
        page = int(request.parameters["page"])
        picture = await self._service.draw_page(request.get("document_id"), page, _PICTURE_DPI)
        return PagePicture(picture, "image/webp")

    async def aid_reading(self, request: PageRequest, record: DeskRecord) -> ReadingAid:
        """Return a page's picture, its neighbours, and the application that it belongs to."""
        document_id = str(record.record["document_id"])
        document = await self._service.get_record(document_id)
        application = PageLink(
            f"Application {document.application_ref}",
            make_application_address(document.application_ref),
        )
        citation = f"{document.application_ref}, {record.citation.citation_string}"
        _, _, page_text = record.id.partition("#page=")
        if not page_text:
            first_page = PageLink("Page by page", _make_page_address(document_id, 1))
            return ReadingAid(related=[first_page, application], citation=citation)
        page = int(page_text)
        return ReadingAid(
            previous=_link_page(document_id, page - 1) if page > 1 else None,
            next=_link_page(document_id, page + 1) if page < document.page_count else None,
            related=[
                application,
                PageLink("The whole document", make_read_path(format_doc_id(document_id))),
            ],
            picture=await self._show_picture(request, document_id, document.source_file, page),
            citation=citation,
        )

    async def _show_picture(
        self, request: PageRequest, document_id: str, file_name: str, page: int
    ) -> Markup:
        """Return a page with the quotation marked that the address names, if it stands there."""
        marks: list[PageMark] = []
        if quotation := request.get("quote"):
            marks = (await self._service.mark_passage(document_id, page, quotation)).marks
        address = f"{_make_page_address(document_id, page)}.webp"
        return show_marked_page(address, f"Page {page} of {file_name}", marks)


# --- one application ---


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of document, and how much of it an application has."""

    name: str
    state: str
    """`there`, `unread` or `missing`."""
    detail: str


def _list_kinds(overview: Overview) -> list[_Kind]:
    """Return every kind of document that an application may have, with what is there of it."""
    present = {kind.document_type: kind for kind in overview.types}
    unread = {file.document_type: file for file in overview.not_ingested}
    kinds = []
    for document_type in EXPECTED_TYPES:
        name = format_words(document_type)
        if document_type in present:
            count = present[document_type].document_count
            pages = present[document_type].page_count
            kinds.append(_Kind(name, "there", _count_pages(count, pages)))
        elif document_type in unread:
            kinds.append(_Kind(name, "unread", unread[document_type].source_file))
        elif document_type in overview.missing_types:
            kinds.append(_Kind(name, "missing", ""))
    return kinds


def _count_pages(document_count: int, page_count: int) -> str:
    documents = f"{document_count} document{'s' if document_count != 1 else ''}"
    return f"{documents}, {page_count} page{'s' if page_count != 1 else ''}"


def _draw_pages(overview: Overview) -> Chart | None:
    """Return how the pages of each kind were read: from text, by OCR, or not at all."""
    rows = []
    for kind in overview.types:
        blank = sum(len(document.pages_without_text) for document in kind.documents)
        scanned = sum(
            document.page_count - len(document.pages_without_text)
            for document in kind.documents
            if document.extraction_method == "ocr"
        )
        counts = [kind.page_count - blank - scanned, scanned, blank]
        rows.append(StackedRow(format_words(kind.document_type), counts))
    if not rows:
        return None
    blank = sum(row.counts[2] for row in rows)
    finding = f"{overview.page_count} pages were read"
    finding += f", {blank} of them without any text." if blank else ", each of them with text."
    return draw_stacked(rows, ["text", "OCR", "no text"], finding, "Kind")


# --- addresses and questions ---


def _link_page(document_id: str, page: int) -> PageLink:
    return PageLink(f"Page {page}", make_read_path(format_doc_id(document_id, page)))


def _make_page_address(document_id: str, page: int) -> str:
    return f"/documents/{quote(document_id, safe='')}/pages/{page}"

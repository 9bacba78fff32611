"""The documents base's pages: applications, their documents by kind, pages as pictures, uploads."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
from markupsafe import Markup

from readingroom.bases.documents.ids import format_doc_id
from readingroom.bases.documents.models import (
    EXPECTED_TYPES,
    ApplicationList,
    ApplicationOverview,
    ApplicationRecord,
    ListedApplication,
    Overview,
    RemoveDocument,
    SetApplication,
)
from readingroom.bases.documents.pages.uploads import (
    UPLOAD_JOB_KIND,
    UploadJobs,
    make_application_address,
    move_sent_files,
)
from readingroom.bases.documents.registry.records import Application
from readingroom.bases.documents.service import DocumentsService
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.core.ids import current_caller_id
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageFile,
    PageLink,
    PagePicture,
    PageRequest,
    RecentEvent,
    RecordPageExtras,
    RenderedPage,
    SeeOther,
    SentFile,
    ToolExample,
)
from readingroom.protocol.resources import PageMark
from readingroom.protocol.search import DeskRecord, make_record_page_path
from readingroom.storage.jobs.store import BackgroundJob, JobStore
from readingroom.web.charts import Chart, StackedRow, draw_stacked
from readingroom.web.forms import fill_form, read_changed_values
from readingroom.web.marks import render_marked_page
from readingroom.web.templates import format_count, format_identifier, render_template

_render_template = partial(render_template, template_folder=Path(__file__).parent / "templates")

_MAX_UPLOAD_BYTES = 2**30
"""Of all files of one form together."""
_PAGE_PICTURE_DPI = 100
_FORM_FIELD_NAMES = ("address", "description", "validation_date", "status", "local_authority")
_MAX_HOME_PAGE_EVENTS = 5
_TEXT_BY_EXTRACTION_METHOD = {
    "text_layer": "the text in the file",
    "ocr": "a scan, by OCR",
    "mixed": "the text in the file, and scans by OCR",
}


@dataclass(frozen=True, slots=True)
class _ApplicationLine:
    """An application as a line of the list."""

    reference: str
    href: str
    address: str
    status: str
    validation_date: dt.date | None
    document_count: int

    @classmethod
    def make(
        cls, listed_application: ListedApplication, known_application: Application | None
    ) -> "_ApplicationLine":
        return cls(
            listed_application.reference,
            make_application_address(listed_application.reference),
            (known_application.address if known_application else None) or "",
            (known_application.status if known_application else None) or "",
            listed_application.validation_date,
            listed_application.document_count,
        )


_SORTINGS_BY_NAME: dict[str, tuple[Callable[[_ApplicationLine], Any], bool]] = {
    "reference": (lambda application_line: application_line.reference, False),
    "validated": (lambda application_line: application_line.validation_date or dt.date.min, True),
    "documents": (lambda application_line: application_line.document_count, True),
}
"""How the list may be sorted: by what, and whether the largest comes first."""


def make_pages(documents_service: DocumentsService, job_store: JobStore) -> BasePages:
    """Return the pages of the documents base, and the job that reads uploaded files."""
    document_pages = DocumentPages(documents_service, job_store)
    return BasePages(
        [
            BasePage(
                "/applications",
                document_pages.show_applications,
                menu_label="Applications",
                summary="Planning applications: which documents are there, unread or missing.",
            ),
            BasePage("/applications/view", document_pages.show_application),
            BasePage(
                "/applications/change",
                document_pages.change_application,
                "POST",
                "editor",
                render_form_page=document_pages.show_application,
            ),
            BasePage(
                "/applications/add",
                document_pages.add_files,
                "POST",
                "editor",
                render_form_page=document_pages.show_upload_form,
                max_upload_bytes=_MAX_UPLOAD_BYTES,
            ),
            BasePage(
                "/documents/{document_id}/remove", document_pages.ask_removal, "GET", "editor"
            ),
            BasePage(
                "/documents/{document_id}/remove", document_pages.remove_document, "POST", "editor"
            ),
            BasePage("/documents/{document_id}/file", document_pages.send_file),
            BasePage("/documents/{document_id}/pages/{page:page_number}", document_pages.show_page),
            BasePage(
                "/documents/{document_id}/pages/{page:page_number}.webp", document_pages.draw_page
            ),
        ],
        job_handler_by_kind={UPLOAD_JOB_KIND: UploadJobs(documents_service).run_job},
        build_record_page_extras=document_pages.build_record_page_extras,
        list_recent_events=document_pages.list_recent_events,
    )


class DocumentPages:
    """The pages of the documents base, over its service."""

    def __init__(self, documents_service: DocumentsService, job_store: JobStore) -> None:
        self._service = documents_service
        self._jobs = job_store

    async def show_applications(self, request: PageRequest) -> RenderedPage:
        """Return every application, sorted as the address says."""
        application_list = await self._service.list_applications()
        application_lines = await self._list_application_lines(application_list)
        sort_order_name = request.get_parameter("sort")
        get_sort_value, is_descending = _SORTINGS_BY_NAME.get(
            sort_order_name, _SORTINGS_BY_NAME["reference"]
        )
        body_html = _render_template(
            "applications.html",
            lines=sorted(application_lines, key=get_sort_value, reverse=is_descending),
            order=sort_order_name if sort_order_name in _SORTINGS_BY_NAME else "reference",
            request=request,
        )
        return RenderedPage("Applications", body_html, data=application_list)

    async def show_upload_form(self, request: PageRequest) -> RenderedPage:
        """Return the page from which files were sent, to show the form again."""
        if request.get_parameter("sent_from") == "application":
            return await self.show_application(request)
        return await self.show_applications(request)

    async def list_recent_events(self) -> list[RecentEvent]:
        """Return the applications that were validated last."""
        application_list = await self._service.list_applications()
        recent_events = [
            RecentEvent(
                listed_application.validation_date,
                f"Application {listed_application.reference}",
                make_application_address(listed_application.reference),
                f"validated; {format_count(listed_application.document_count, 'document')}",
            )
            for listed_application in application_list.applications
            if listed_application.validation_date
        ]
        return sorted(recent_events, key=lambda event: event.day, reverse=True)[
            :_MAX_HOME_PAGE_EVENTS
        ]

    async def _list_application_lines(
        self, application_list: ApplicationList
    ) -> list[_ApplicationLine]:
        known_applications = await anyio.to_thread.run_sync(
            self._service.applications.list_applications
        )
        applications_by_ref = {
            known_application.reference: known_application
            for known_application in known_applications
        }
        return [
            _ApplicationLine.make(
                listed_application, applications_by_ref.get(listed_application.reference)
            )
            for listed_application in application_list.applications
        ]

    async def show_application(self, request: PageRequest) -> RenderedPage:
        """Return one application: its record, its documents by kind, what was not read."""
        application_ref = request.get_parameter("ref")
        arguments = validate_model(ApplicationOverview, {"application_ref": application_ref})
        application_overview = await self._service.get_overview(arguments)
        background_jobs = await anyio.to_thread.run_sync(
            self._jobs.list_newest_jobs, 50, UPLOAD_JOB_KIND
        )
        body_html = _render_template(
            "application.html",
            overview=application_overview,
            kinds=_list_kind_summaries(application_overview),
            chart=_draw_extraction_chart(application_overview),
            jobs=[
                background_job
                for background_job in background_jobs
                if background_job.question.get("application_ref") == application_ref
            ][:5],
            request=request,
            can_edit=request.visitor.has_role("editor"),
            make_page_address=_make_page_address,
            fields=fill_form(
                request.parameters,
                _make_form_values(application_overview.application),
                is_form_refused=bool(request.refusal),
            ),
        )
        tool_example = ToolExample("application_overview", {"application_ref": application_ref})
        return RenderedPage(
            application_overview.application_ref,
            body_html,
            data=application_overview,
            tool_example=tool_example,
        )

    async def change_application(self, request: PageRequest) -> SeeOther:
        """Change the fields of an application's record that were changed in the form.

        Raise `RecordChanged` where somebody else changed one of them meanwhile.
        """
        arguments = validate_model(
            ApplicationOverview, {"application_ref": request.get_parameter("ref")}
        )
        application_ref = arguments.application_ref
        known_application = await self._service.find_application(application_ref)
        changed_values = read_changed_values(
            request.parameters, _make_form_values(known_application)
        )
        if changed_values:
            await self._service.set_application(
                validate_model(SetApplication, {"reference": application_ref, **changed_values})
            )
        return SeeOther(make_application_address(application_ref))

    async def add_files(self, request: PageRequest) -> SeeOther:
        """Queue the reading of uploaded files, and lead to the page of that job."""
        arguments = validate_model(
            ApplicationOverview, {"application_ref": request.get_parameter("ref")}
        )
        if not request.files:
            raise InvalidArguments([{"field": "files", "message": "choose at least one file"}])
        application_ref = arguments.application_ref
        background_job = await anyio.to_thread.run_sync(
            self._queue_files, application_ref, request.files, current_caller_id.get()
        )
        return SeeOther(f"/jobs/{background_job.id}")

    def _queue_files(
        self, application_ref: str, sent_files: Sequence[SentFile], caller_id: str
    ) -> BackgroundJob:
        job_folder = self._jobs.make_job_folder(UPLOAD_JOB_KIND)
        moved_file_entries = move_sent_files(sent_files, job_folder)
        job_title = f"{format_count(len(moved_file_entries), 'file')} for {application_ref}"
        job_arguments = {
            "application_ref": application_ref,
            "folder": str(job_folder),
            "files": moved_file_entries,
        }
        return self._jobs.add_job(UPLOAD_JOB_KIND, job_title, job_arguments, caller_id, job_folder)

    async def ask_removal(self, request: PageRequest) -> RenderedPage:
        """Return the page that asks once more before a document is removed."""
        document_record = await self._service.get_record(request.get_parameter("document_id"))
        body_html = _render_template(
            "remove_document.html", record=document_record, request=request
        )
        return RenderedPage(f"Remove {document_record.source_file}?", body_html)

    async def remove_document(self, request: PageRequest) -> SeeOther:
        """Remove a document."""
        document_record = await self._service.get_record(request.get_parameter("document_id"))
        await self._service.remove_document(RemoveDocument(document_id=document_record.document_id))
        return SeeOther(make_application_address(document_record.application_ref))

    async def send_file(self, request: PageRequest) -> PageFile:
        """Return a document's file as it was received. Raise DocumentNotFound, FileNotFound."""
        document_record = await self._service.get_record(request.get_parameter("document_id"))
        copy_path = await anyio.to_thread.run_sync(
            self._service.ingestion.locate_copy, document_record
        )
        if not await anyio.Path(copy_path).exists():
            raise FileNotFound(f"Our copy of {document_record.document_id} is gone; send it again")
        return PageFile(copy_path, document_record.source_file)

    async def show_page(self, request: PageRequest) -> SeeOther:
        """Lead to the record of a page."""
        record_id = format_doc_id(
            request.get_parameter("document_id"), int(request.parameters["page"])
        )
        return SeeOther(make_record_page_path(record_id))

    async def draw_page(self, request: PageRequest) -> PagePicture:
        """Return a page as a picture."""
        page_number = int(request.parameters["page"])
        picture_bytes = await self._service.draw_page(
            request.get_parameter("document_id"), page_number, _PAGE_PICTURE_DPI
        )
        return PagePicture(picture_bytes, "image/webp")

    async def build_record_page_extras(
        self, request: PageRequest, desk_record: DeskRecord
    ) -> RecordPageExtras:
        """Return a page's picture, its neighbours, and the application that it belongs to."""
        document_id = str(desk_record.record["document_id"])
        document_record = await self._service.get_record(document_id)
        application_link = PageLink(
            f"Application {document_record.application_ref}",
            make_application_address(document_record.application_ref),
        )
        breadcrumb_links = [
            PageLink("Applications", "/applications"),
            PageLink(document_record.application_ref, application_link.href),
        ]
        citation_text = f"{document_record.application_ref}, {desk_record.citation.citation_string}"
        file_link = PageLink("The file as it was received", f"/documents/{quote(document_id)}/file")
        document_facts = [
            ("Read from", _TEXT_BY_EXTRACTION_METHOD[document_record.extraction_method])
        ]
        _, _, page_number_text = desk_record.id.partition("#page=")
        if not page_number_text:
            first_page_link = PageLink("Page by page", _make_page_address(document_id, 1))
            related_links = [first_page_link, application_link, file_link]
            return RecordPageExtras(
                trail=breadcrumb_links,
                related=related_links,
                citation=citation_text,
                facts=document_facts,
            )
        page_number = int(page_number_text)
        related_links = [
            application_link,
            PageLink("The whole document", make_record_page_path(format_doc_id(document_id))),
            file_link,
        ]
        if quoted_text := request.get_parameter("quote"):
            policies_address = _make_applicable_policies_address(
                document_record.application_ref, quoted_text
            )
            related_links.insert(0, PageLink("Policy on this, of its day", policies_address))
        return RecordPageExtras(
            trail=breadcrumb_links,
            previous=_make_page_link(document_id, page_number - 1) if page_number > 1 else None,
            next=_make_page_link(document_id, page_number + 1)
            if page_number < document_record.page_count
            else None,
            related=related_links,
            facts=document_facts,
            picture=await self._render_page_picture(
                request, document_id, document_record.source_file, page_number
            ),
            citation=citation_text,
        )

    async def _render_page_picture(
        self, request: PageRequest, document_id: str, file_name: str, page_number: int
    ) -> Markup:
        """Return a page with the quotation marked that the address names, if it stands there."""
        passage_marks: list[PageMark] = []
        if quoted_text := request.get_parameter("quote"):
            passage_marks = (
                await self._service.mark_passage(document_id, page_number, quoted_text)
            ).marks
        picture_address = f"{_make_page_address(document_id, page_number)}.webp"
        return render_marked_page(
            picture_address,
            f"Page {page_number} of {file_name}",
            passage_marks,
            has_sought_passage=bool(quoted_text),
        )


# --- one application ---


@dataclass(frozen=True, slots=True)
class _KindSummary:
    """A kind of document, and how much of it an application has."""

    name: str
    state: str
    """`there`, `unread` or `missing`."""
    detail: str = ""
    href: str | None = None
    """The first page of its first document."""


def _make_form_values(known_application: Application | ApplicationRecord | None) -> dict[str, Any]:
    """Return the fields of an application's record that its form changes."""
    return {
        field_name: getattr(known_application, field_name, None) for field_name in _FORM_FIELD_NAMES
    }


def _list_kind_summaries(application_overview: Overview) -> list[_KindSummary]:
    """Return every kind of document that an application may have, with what is there of it."""
    overviews_by_type = {
        type_overview.document_type: type_overview for type_overview in application_overview.types
    }
    unread_files_by_type = {
        unread_file.document_type: unread_file for unread_file in application_overview.not_ingested
    }
    kind_summaries = []
    for document_type in EXPECTED_TYPES:
        kind_name = format_identifier(document_type)
        if type_overview := overviews_by_type.get(document_type):
            counts_text = (
                f"{format_count(type_overview.document_count, 'document')}, "
                f"{format_count(type_overview.page_count, 'page')}"
            )
            first_page_address = _make_page_address(type_overview.documents[0].document_id, 1)
            kind_summaries.append(_KindSummary(kind_name, "there", counts_text, first_page_address))
        elif unread_file := unread_files_by_type.get(document_type):
            reason_text = format_identifier(unread_file.reason).lower()
            kind_summaries.append(
                _KindSummary(kind_name, "unread", f"{unread_file.source_file}: {reason_text}")
            )
        elif document_type in application_overview.missing_types:
            kind_summaries.append(_KindSummary(kind_name, "missing"))
    return kind_summaries


def _draw_extraction_chart(application_overview: Overview) -> Chart | None:
    """Return how the pages of each kind were read: from text, by OCR, or not at all."""
    chart_rows = []
    for overview_type in application_overview.types:
        blank_page_count = sum(
            len(document_entry.pages_without_text) for document_entry in overview_type.documents
        )
        scanned_page_count = sum(
            document_entry.page_count - len(document_entry.pages_without_text)
            for document_entry in overview_type.documents
            if document_entry.extraction_method == "ocr"
        )
        page_counts = [
            overview_type.page_count - blank_page_count - scanned_page_count,
            scanned_page_count,
            blank_page_count,
        ]
        chart_rows.append(StackedRow(format_identifier(overview_type.document_type), page_counts))
    if not chart_rows:
        return None
    blank_page_count = sum(chart_row.counts[2] for chart_row in chart_rows)
    chart_summary = f"{application_overview.page_count} pages were read"
    chart_summary += (
        f", {blank_page_count} of them without any text."
        if blank_page_count
        else ", each of them with text."
    )
    return draw_stacked(chart_rows, ["text", "OCR", "no text"], chart_summary, "Kind")


# --- addresses and questions ---


def _make_page_link(document_id: str, page_number: int) -> PageLink:
    return PageLink(
        f"Page {page_number}", make_record_page_path(format_doc_id(document_id, page_number))
    )


def _make_page_address(document_id: str, page_number: int) -> str:
    return f"/documents/{quote(document_id, safe='')}/pages/{page_number}"


def _make_applicable_policies_address(application_ref: str, topic_text: str) -> str:
    # A topic is a question to a search, which a whole passage would drown.
    return "/applications/beside?" + urlencode({"ref": application_ref, "topic": topic_text[:200]})

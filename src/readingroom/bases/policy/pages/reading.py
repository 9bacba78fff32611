"""What a policy adds to a passage that is read: its page as a picture, neighbours, revisions."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

from readingroom.bases.policy.admin.pictures import PolicyPictures
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import RevisionDetail
from readingroom.bases.policy.compare import passages
from readingroom.bases.policy.pages.periods import (
    can_be_in_force,
    describe_revision,
    find_successor,
    make_change_links,
)
from readingroom.bases.policy.pages.sections import make_history_address, make_section_address
from readingroom.bases.policy.registry.records import format_revision_name
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import KnowledgeError, RecordNotFound
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.pages import (
    PageFile,
    PageLink,
    PagePicture,
    PageRequest,
    RecordPageExtras,
    RenderedPage,
    ToolExample,
)
from readingroom.protocol.search import DeskRecord, describe_unread_revisions
from readingroom.web.marks import render_marked_page
from readingroom.web.templates import format_day, render_template

logger = logging.getLogger(__name__)

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_PICTURE_DPI = 100


class PageViews:
    """The pages of revisions as pictures, their files, and what `/read` shows beside a section."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)
        self._pictures = PolicyPictures(policy_service)

    async def show_page(self, request: PageRequest) -> RenderedPage:
        """Return a page of a revision: its picture, the words of `quote` marked, its sections.

        Raise RecordNotFound for a page that the revision does not have.
        """
        revision = await self._get_revision(request)
        page_number = int(request.parameters["page"])
        if not 1 <= page_number <= (revision.page_count or 0):
            raise RecordNotFound(
                f"{revision.source} ({revision.version_label}) has no page {page_number}"
            )
        chunks = await self._service.store.get_chunks(revision.source, revision.revision_id)
        page_sections = [
            listed_section
            for listed_section in passages.list_sections(chunks)
            if listed_section.page_number == page_number
        ]
        quoted_text = request.get_parameter("quote")
        validity_text = describe_revision(revision, self._service.today)
        revision_name = format_revision_name(
            revision.source, revision.version_label, revision.stage
        )
        page_name = f"{revision_name}, p. {page_number}"
        citation = request.sample_citation_prefix + page_name
        body_html = _render(
            "page.html",
            revision=revision,
            page_number=page_number,
            quotation=quoted_text,
            page_name=page_name,
            citation=citation,
            validity=validity_text,
            picture=await self.render_passage_picture(
                revision.source, revision.revision_id, page_number, quoted_text
            ),
            sections=page_sections,
            make_section_address=partial(
                make_section_address, revision.source, revision.revision_id
            ),
            revision_address=_make_revision_address(revision.source, revision.revision_id),
        )
        return RenderedPage(
            citation,
            body_html,
            data={
                **make_revision_fields(revision),
                "page": page_number,
                "sections": page_sections,
            },
            tool_example=_make_quote_example(revision, quoted_text) if quoted_text else None,
            print_note=validity_text,
        )

    async def draw_page(self, request: PageRequest) -> PagePicture:
        """Return a page of a revision as a picture."""
        # A revision that there is: the address may name anything.
        revision = await self._get_revision(request)
        picture_bytes = await self._pictures.draw_page(
            revision.source, revision.revision_id, int(request.parameters["page"]), _PICTURE_DPI
        )
        return PagePicture(picture_bytes, "image/webp")

    async def send_file(self, request: PageRequest) -> PageFile:
        """Return the file of a revision as it was received. Raise FileNotFound."""
        revision = await self._get_revision(request)
        file_path = await self._pictures.get_file_path(revision.source, revision.revision_id)
        return PageFile(file_path, f"{revision.revision_id}{file_path.suffix}")

    async def render_passage_picture(
        self, policy_slug: str, revision_id: str, page_number: int, passage_text: str
    ) -> str:
        """Return a page's picture with a passage marked on it; nothing where there is no picture.

        Without a passage nothing is marked.
        """
        try:
            file_path = await self._pictures.get_file_path(policy_slug, revision_id)
            if file_path.suffix != ".pdf":
                return ""  # other files have no pages that could be drawn
            passage_rectangles = (
                await self._pictures.locate_passage(
                    policy_slug, revision_id, page_number, passage_text
                )
                if passage_text
                else ()
            )
        except FileNotFound:
            return ""  # the text can be read all the same
        except KnowledgeError as error:
            logger.warning("A passage could not be marked: %s", error.message)
            passage_rectangles = ()
        picture_address = f"{make_page_address(policy_slug, revision_id, page_number)}.webp"
        picture_description = f"Page {page_number} of {policy_slug}"
        return render_marked_page(
            picture_address,
            picture_description,
            passage_rectangles,
            has_sought_passage=bool(passage_text),
        )

    async def build_record_page_extras(
        self, request: PageRequest, desk_record: DeskRecord
    ) -> RecordPageExtras:
        """Return what stands before and after a section, and the other revisions that have it."""
        policy_slug, revision_id = (
            desk_record.record.get("source"),
            desk_record.record.get("revision_id"),
        )
        section_ref = desk_record.record.get("section_ref")
        if not (policy_slug and revision_id):
            return RecordPageExtras()
        section_refs = list(await self._service.find_section_first_pages(policy_slug, revision_id))
        section_index = section_refs.index(section_ref) if section_ref in section_refs else -1
        make_section_link = partial(_make_section_link, policy_slug, revision_id)
        policy = await self._admin.get_policy(policy_slug)
        related_links = [
            PageLink("The whole revision", _make_revision_address(policy_slug, revision_id))
        ]
        if section_ref:
            history_address = make_history_address(policy_slug, revision_id, section_ref)
            related_links.append(PageLink("This section in every revision", history_address))
        related_links += make_change_links(policy, revision_id)
        page_number = _find_first_page_number(desk_record)
        picture_html = ""
        if page_number:
            picture_html = await self.render_passage_picture(
                policy_slug,
                revision_id,
                page_number,
                request.get_parameter("quote") or desk_record.text,
            )
            page_address = make_page_address(policy_slug, revision_id, page_number)
            related_links.append(PageLink(f"The whole of page {page_number}", page_address))
        if picture_html:
            file_address = f"{_make_revision_address(policy_slug, revision_id)}/file"
            related_links.append(PageLink("The file as it was received", file_address))
        version_label = str(desk_record.record.get("version_label") or revision_id)
        return RecordPageExtras(
            trail=[
                PageLink("Policies", "/policies"),
                PageLink(policy_slug, f"/policies/{policy_slug}"),
                PageLink(version_label, _make_revision_address(policy_slug, revision_id)),
            ],
            picture=picture_html,
            previous=make_section_link(section_refs[section_index - 1])
            if section_index > 0
            else None,
            next=make_section_link(section_refs[section_index + 1])
            if 0 <= section_index < len(section_refs) - 1
            else None,
            related=related_links,
            replaced_by=_make_successor_link(
                find_successor(policy, revision_id), revision_id, section_ref
            ),
            caution=describe_unread_revisions(
                await self._service.list_unread_successors(policy_slug, revision_id)
            ),
        )

    async def _get_revision(self, request: PageRequest) -> RevisionDetail:
        return await self._admin.get_revision(
            request.get_parameter("source"), request.get_parameter("revision_id")
        )


def _make_quote_example(revision: RevisionDetail, quoted_text: str) -> ToolExample:
    """Return the call that finds the words in this very revision."""
    first_day_text = revision.effective_from.isoformat()
    if can_be_in_force(revision):
        return ToolExample(
            "verify_policy_quote",
            {"source": revision.source, "quote": quoted_text, "date": first_day_text},
        )
    example_arguments = {
        "query": quoted_text,
        "sources": [revision.source],
        "effective_date": first_day_text,
        "include_emerging": True,
    }
    return ToolExample("search_policy", example_arguments)


def make_revision_fields(revision: RevisionDetail) -> dict[str, Any]:
    """Return a revision's fields as a page gives them: of its file only the name.

    REST gives the whole path, which its contract has.
    """
    file_name = Path(revision.file_path).name if revision.file_path else None
    return {**revision.model_dump(mode="json"), "file_path": file_name}


def _find_first_page_number(desk_record: DeskRecord) -> int | None:
    section_fields = desk_record.record
    page_numbers = section_fields.get("page_numbers") or [section_fields.get("page_number")]
    return page_numbers[0] or None


def _make_successor_link(
    later_revision: RevisionDetail | None, revision_id: str, section_ref: str | None
) -> PageLink | None:
    """Return a link to what took a section's place, found by its words."""
    if later_revision is None:
        return None
    link_label = (
        f"{later_revision.version_label}, in force from {format_day(later_revision.effective_from)}"
    )
    if section_ref:
        return PageLink(
            link_label, make_history_address(later_revision.source, revision_id, section_ref)
        )
    return PageLink(
        link_label, _make_revision_address(later_revision.source, later_revision.revision_id)
    )


def _make_section_link(policy_slug: str, revision_id: str, section_ref: str) -> PageLink:
    return PageLink(section_ref, make_section_address(policy_slug, revision_id, section_ref))


def _make_revision_address(policy_slug: str, revision_id: str) -> str:
    return f"/policies/{policy_slug}/{revision_id}"


def make_page_address(policy_slug: str, revision_id: str, page_number: int) -> str:
    """Return the address of a page of a revision."""
    return f"{_make_revision_address(policy_slug, revision_id)}/pages/{page_number}"

"""The text of a bill: its versions beside each other, one of them read, two of them compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from readingroom.bases.federal.models import BillText
from readingroom.bases.federal.pages.lists import make_record_address, render
from readingroom.bases.federal.query.sections import list_sections
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.web.templates import join_broken_lines, quote_for_url

_MAX_TEXT_VERSIONS = 12
_REMOVED_OR_ADDED_WORDS_PATTERN = re.compile(
    r"\[-(?P<removed>.*?)-\]|\{\+(?P<added>.*?)\+\}", re.DOTALL
)
"""How a comparison writes what went and what came."""


@dataclass(frozen=True, slots=True)
class TextVersionLink:
    """A version of a bill's text, with the ways to it."""

    version_code: str
    stage: str
    dated: str
    href: str
    comparison_href: str | None
    """The page that compares it with the version before it; None for the first."""


async def list_text_versions(
    federal_service: FederalService, bill_id: str
) -> list[TextVersionLink]:
    """Return the versions whose text is here, the newest first."""
    try:
        newest_answer = await federal_service.read_bill_text(bill_id, None, 0)
    except RecordNotFound:
        return []
    version_codes = newest_answer.versions[:_MAX_TEXT_VERSIONS]
    version_texts = [newest_answer] + [
        await federal_service.read_bill_text(bill_id, version_code, 0)
        for version_code in version_codes[1:]
    ]
    earlier_version_codes = [*version_codes[1:], None]
    return [
        TextVersionLink(
            version_answer.version,
            version_answer.stage or version_answer.version.upper(),
            version_answer.dated or "",
            make_text_address(bill_id, version=version_answer.version),
            make_text_address(
                bill_id, version=version_answer.version, compare_with=earlier_version_code
            )
            if earlier_version_code
            else None,
        )
        for version_answer, earlier_version_code in zip(
            version_texts, earlier_version_codes, strict=True
        )
    ]


def make_text_address(bill_id: str, **query_params: object) -> str:
    """Return the address of a bill's text: of a version, a section, or a comparison."""
    query_string = "".join(
        f"&{param_name}={quote_for_url(param_value)}"
        for param_name, param_value in query_params.items()
        if param_value is not None
    )
    return f"/records/text?id={quote_for_url(bill_id)}{query_string}"


class BillTextPages:
    """The page of a bill's text."""

    def __init__(self, federal_service: FederalService) -> None:
        self._service = federal_service

    async def show_text(self, request: PageRequest) -> RenderedPage:
        """Return a version of a bill's text, or what differs between two."""
        bill_id = request.get_parameter("id")
        text_arguments: dict[str, Any] = {
            "version": request.get_parameter("version") or None,
            "section": request.get_parameter("section") or None,
            "compare_with": request.get_parameter("compare_with") or None,
        }
        text_answer = await self._service.read_bill_text(
            bill_id,
            text_arguments["version"],
            _read_text_offset(request),
            text_arguments["section"],
            text_arguments["compare_with"],
        )
        answer_from_start = await self._service.read_bill_text(bill_id, text_answer.version, 0)
        version_links = await list_text_versions(self._service, text_answer.bill_id)
        body_html = render(
            "bill_text.html",
            text=text_answer,
            mark=request.sample_citation_prefix,
            shown_words=_render_changes_as_html(text_answer.text)
            if text_answer.compared_with
            else join_broken_lines(text_answer.text),
            sections=_list_section_links(text_answer, answer_from_start),
            versions=version_links,
            bill_address=make_record_address(text_answer.bill_id),
            next_address=make_text_address(
                text_answer.bill_id, **text_arguments, offset=text_answer.next_offset
            )
            if text_answer.next_offset
            else None,
        )
        example_arguments = {
            "bill_id": text_answer.bill_id,
            **_drop_missing_arguments(text_arguments),
        }
        return RenderedPage(
            request.sample_citation_prefix + _format_page_title(text_answer),
            body_html,
            data=text_answer,
            tool_example=ToolExample("get_bill_text", example_arguments),
        )


def _read_text_offset(request: PageRequest) -> int:
    written_offset = request.get_parameter("offset")
    return int(written_offset) if written_offset.isdecimal() and len(written_offset) < 10 else 0


def _drop_missing_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        argument_name: argument_value
        for argument_name, argument_value in arguments.items()
        if argument_value is not None
    }


def _format_page_title(text_answer: BillText) -> str:
    stage_text = text_answer.stage or text_answer.version.upper()
    citation_and_stage = f"{text_answer.citation.citation_string}, {stage_text}"
    return (
        f"{citation_and_stage}, compared with {text_answer.compared_with.upper()}"
        if text_answer.compared_with
        else citation_and_stage
    )


def _list_section_links(
    text_answer: BillText, answer_from_start: BillText
) -> Sequence[tuple[str, str]]:
    """Return the sections that begin in the first part of the text, each with its page."""
    return [
        (
            f"{text_section.label}. {text_section.heading}".rstrip(),
            make_text_address(
                text_answer.bill_id, version=text_answer.version, section=text_section.label
            ),
        )
        for text_section in list_sections(answer_from_start.text)
    ]


def _render_changes_as_html(comparison_text: str) -> Markup:
    """Return a comparison as HTML, with what went and what came as such."""
    marked_html = Markup("")
    copied_end_offset = 0
    for change_match in _REMOVED_OR_ADDED_WORDS_PATTERN.finditer(comparison_text):
        marked_html += escape(comparison_text[copied_end_offset : change_match.start()])
        removed_words, added_words = change_match["removed"], change_match["added"]
        change_tag_template = (
            Markup("<del>{}</del>") if added_words is None else Markup("<ins>{}</ins>")
        )
        marked_html += change_tag_template.format(
            removed_words if added_words is None else added_words
        )
        copied_end_offset = change_match.end()
    return marked_html + escape(comparison_text[copied_end_offset:])

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
from readingroom.web.templates import quote_for_url, reflow

_MAX_VERSIONS = 12
_CHANGED_WORDS = re.compile(r"\[-(?P<removed>.*?)-\]|\{\+(?P<added>.*?)\+\}", re.DOTALL)
"""How a comparison writes what went and what came."""


@dataclass(frozen=True, slots=True)
class TextVersionLink:
    """A version of a bill's text, with the ways to it."""

    code: str
    stage: str
    dated: str
    href: str
    comparison: str | None
    """The page that compares it with the version before it; None for the first."""


async def list_text_versions(service: FederalService, bill_id: str) -> list[TextVersionLink]:
    """Return the versions whose text is here, the newest first."""
    try:
        newest = await service.read_bill_text(bill_id, None, 0)
    except RecordNotFound:
        return []
    codes = newest.versions[:_MAX_VERSIONS]
    texts = [newest] + [await service.read_bill_text(bill_id, code, 0) for code in codes[1:]]
    earlier_codes = [*codes[1:], None]
    return [
        TextVersionLink(
            text.version,
            text.stage or text.version.upper(),
            text.dated or "",
            make_text_address(bill_id, version=text.version),
            make_text_address(bill_id, version=text.version, compare_with=earlier)
            if earlier
            else None,
        )
        for text, earlier in zip(texts, earlier_codes, strict=True)
    ]


def make_text_address(bill_id: str, **values: object) -> str:
    """Return the address of a bill's text: of a version, a section, or a comparison."""
    query = "".join(
        f"&{field}={quote_for_url(value)}" for field, value in values.items() if value is not None
    )
    return f"/records/text?id={quote_for_url(bill_id)}{query}"


class BillTextPages:
    """The page of a bill's text."""

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def show_text(self, request: PageRequest) -> RenderedPage:
        """Return a version of a bill's text, or what differs between two."""
        bill_id = request.get("id")
        arguments: dict[str, Any] = {
            "version": request.get("version") or None,
            "section": request.get("section") or None,
            "compare_with": request.get("compare_with") or None,
        }
        text = await self._service.read_bill_text(
            bill_id, offset=_read_offset(request), **arguments
        )
        whole = await self._service.read_bill_text(bill_id, text.version, 0)
        versions = await list_text_versions(self._service, text.bill_id)
        body = render(
            "bill_text.html",
            text=text,
            shown_words=_mark_changes(text.text) if text.compared_with else reflow(text.text),
            sections=_list_section_links(text, whole),
            versions=versions,
            bill_address=make_record_address(text.bill_id),
            next_address=make_text_address(text.bill_id, **arguments, offset=text.next_offset)
            if text.next_offset
            else None,
        )
        example = {"bill_id": text.bill_id, **_drop_missing(arguments)}
        return RenderedPage(
            _name_page(text), body, data=text, tool_example=ToolExample("get_bill_text", example)
        )


def _read_offset(request: PageRequest) -> int:
    written = request.get("offset")
    return int(written) if written.isdecimal() and len(written) < 10 else 0


def _drop_missing(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in arguments.items() if value is not None}


def _name_page(text: BillText) -> str:
    cited = f"{text.citation.citation_string}, {text.stage or text.version.upper()}"
    return f"{cited}, compared with {text.compared_with.upper()}" if text.compared_with else cited


def _list_section_links(text: BillText, whole: BillText) -> Sequence[tuple[str, str]]:
    """Return the sections that begin in the first part of the text, each with its page."""
    return [
        (
            f"{section.label}. {section.heading}".rstrip(),
            make_text_address(text.bill_id, version=text.version, section=section.label),
        )
        for section in list_sections(whole.text)
    ]


def _mark_changes(compared: str) -> Markup:
    """Return a comparison as HTML, with what went and what came as such."""
    shown = Markup("")
    end = 0
    for match in _CHANGED_WORDS.finditer(compared):
        shown += escape(compared[end : match.start()])
        removed, added = match["removed"], match["added"]
        tag = Markup("<del>{}</del>") if added is None else Markup("<ins>{}</ins>")
        shown += tag.format(removed if added is None else added)
        end = match.end()
    return shown + escape(compared[end:])

"""`GET /read?id=…`: a record as a page, for the person who follows a citation."""

from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from readingroom.core.errors import InvalidArguments
from readingroom.core.progress import no_progress
from readingroom.protocol.sample import MARK
from readingroom.server.mcp.calls import call_in
from readingroom.server.pages.layout import html_page, table

# Of whatever base: the fields of a record that are told, in this order.
_NAMES = {
    "version_label": "Revision",
    "section_ref": "Section",
    "page_number": "Page",
    "document_type": "Kind of document",
    "source_org": "Published by",
    "published_at": "Published",
    "public_updated_at": "Updated",
    "retrieved_at": "Retrieved",
    "raw_sha256": "SHA-256",
    "attribution": "Attribution",
    "disclaimer": "Note",
}


async def reading_page(desk: Any, is_sample: bool, request: Request) -> Response:
    """One piece of a record's text under its citation, and the way to the next piece."""
    from readingroom.federation.models import Fetch

    asked = request.query_params
    try:
        question = Fetch(id=asked.get("id", ""), offset=int(asked.get("offset", "0") or 0))
    except ValidationError as error:
        raise InvalidArguments.of(error) from error
    except ValueError as error:
        raise InvalidArguments([{"field": "offset", "message": "must be a number"}]) from error
    found = await desk.fetch(question, call_in(request.scope, no_progress))
    mark = MARK if is_sample else ""
    return html_page(mark + found.title, _body(found, mark))


def _body(found: Any, mark: str) -> str:
    more = ""
    if found.next_offset is not None:
        address = f"/read?id={quote(found.id, safe='')}&amp;offset={found.next_offset}"
        more = f'<p><a href="{address}">Read on</a></p>'
    return f"""
{table(_facts(found, mark))}
<p style="white-space: pre-wrap">{escape(found.text)}</p>
{more}
"""


def _facts(found: Any, mark: str) -> Iterator[tuple[str, str]]:
    """What a person wants to know of it: name and markup."""
    about = found.record
    yield "Cite as", escape(mark + found.citation.citation_string)
    if found.url.startswith("https://"):
        yield "Official page", _link(found.url)
    if about.get("effective_from"):
        yield "In force", escape(_in_force(about))
    if about.get("withdrawn"):
        yield "Withdrawn", "kept for reference; it is no longer current"
    for field, name in _NAMES.items():
        if about.get(field) is not None:
            yield name, escape(str(about[field]))
    if found.links_url:
        yield "Linked to", _link(found.links_url)
    yield "Id", f"<code>{escape(found.id)}</code>"


def _link(address: str) -> str:
    return f'<a href="{escape(address)}">{escape(address)}</a>'


def _in_force(about: dict[str, Any]) -> str:
    began, ended, heir = (
        about.get(name) for name in ("effective_from", "effective_to", "superseded_by")
    )
    said = f"from {began} to {ended}" if ended else f"since {began}"
    return f"{said}; superseded by {heir}" if heir else said

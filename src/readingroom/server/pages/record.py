"""`GET /read?id=…`: a record as a page, for the person who follows a citation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from readingroom.core.errors import InvalidArguments
from readingroom.core.progress import no_progress
from readingroom.federation.models import DeskFetch
from readingroom.protocol.sample import SAMPLE_PREFIX
from readingroom.server.mcp.calls import make_call_from_scope
from readingroom.web.templates import render_page

# The fields of a record that are shown, whatever its base, in this order.
_LABELS = {
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


async def show_record(desk: Any, is_sample: bool, request: Request) -> Response:
    """Return part of a record's text under its citation, with a link to the next part.

    Raise InvalidArguments, or what the desk's `fetch` raises for an id that names nothing.
    """
    answer = await desk.fetch(
        _read_question(request), make_call_from_scope(request.scope, no_progress)
    )
    mark = SAMPLE_PREFIX if is_sample else ""
    next_page = None
    if answer.next_offset is not None:
        next_page = f"/read?id={quote(answer.id, safe='')}&offset={answer.next_offset}"
    return render_page(
        "record.html",
        mark + answer.title,
        facts=list(_list_facts(answer, mark)),
        text=answer.text,
        next_page=next_page,
    )


def _read_question(request: Request) -> DeskFetch:
    parameters = request.query_params
    try:
        return DeskFetch(
            id=parameters.get("id", ""), offset=int(parameters.get("offset", "0") or 0)
        )
    except ValidationError as error:
        raise InvalidArguments.from_validation_error(error) from error
    except ValueError as error:
        raise InvalidArguments([{"field": "offset", "message": "must be a number"}]) from error


@dataclass(frozen=True, slots=True)
class _Fact:
    """A row of the table above the text."""

    label: str
    text: str
    is_link: bool = False
    is_code: bool = False


def _list_facts(answer: Any, mark: str) -> Iterator[_Fact]:
    record = answer.record
    yield _Fact("Cite as", mark + answer.citation.citation_string)
    # Any other scheme, such as `javascript:`, must not become a link.
    if answer.url.startswith("https://"):
        yield _Fact("Official page", answer.url, is_link=True)
    if record.get("effective_from"):
        yield _Fact("In force", _describe_validity(record))
    if record.get("withdrawn"):
        yield _Fact("Withdrawn", "kept for reference; it is no longer current")
    for field, label in _LABELS.items():
        if record.get(field) is not None:
            yield _Fact(label, str(record[field]))
    if answer.links_url:
        yield _Fact("Linked to", answer.links_url, is_link=True)
    yield _Fact("Id", answer.id, is_code=True)


def _describe_validity(record: Mapping[str, Any]) -> str:
    start, end = record.get("effective_from"), record.get("effective_to")
    period = f"from {start} to {end}" if end else f"since {start}"
    successor = record.get("superseded_by")
    return f"{period}; superseded by {successor}" if successor else period

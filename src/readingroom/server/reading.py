"""`GET /read?id=…`: a record as a page, for the person who follows a citation."""

from html import escape
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from readingroom.core.errors import InvalidArguments
from readingroom.core.progress import unheard
from readingroom.protocol.sample import MARK
from readingroom.server.calls import call_in
from readingroom.server.page import html_page


async def reading_page(desk: Any, is_sample: bool, request: Request) -> Response:
    """One piece of a record's text under its citation, and the way to the next piece."""
    from readingroom.desk.models import Fetch

    asked = request.query_params
    try:
        question = Fetch(id=asked.get("id", ""), offset=int(asked.get("offset", "0") or 0))
    except ValidationError as error:
        raise InvalidArguments.of(error) from error
    except ValueError as error:
        raise InvalidArguments([{"field": "offset", "message": "must be a number"}]) from error
    found = await desk.fetch(question, call_in(request.scope, unheard))
    return html_page((MARK if is_sample else "") + found.title, _body(found))


def _body(found: Any) -> str:
    official = found.url if found.url.startswith("https://") else None
    cited = escape(found.citation.citation_string)
    if official:
        cited = f'<a href="{escape(official)}">{cited}</a>'
    more = ""
    if found.next_offset is not None:
        address = f"/read?id={quote(found.id, safe='')}&amp;offset={found.next_offset}"
        more = f'<p><a href="{address}">Read on</a></p>'
    return f"""
<p>{cited}</p>
<p style="white-space: pre-wrap">{escape(found.text)}</p>
{more}
<p><small>{escape(found.base)} · <code>{escape(found.id)}</code></small></p>
"""

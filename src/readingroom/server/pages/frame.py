"""The frame around every page: menu, visitor, headers, compression."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from readingroom.protocol.pages import RenderedPage, Role, Visitor
from readingroom.server.auth.browsers import FORM_TOKEN_FIELD_NAME, BrowserAuth
from readingroom.storage.errors import StorageFailed
from readingroom.web.templates import render_template

PAGE_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_CONTENT_SECURITY_POLICY,
    # Not `no-referrer`: a browser would then not say where a form comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Who has signed out must not read pages by going back.
    "Cache-Control": "no-store",
    # Programs get JSON at some of these addresses.
    "Vary": "Accept, Accept-Encoding, Cookie",
}
JSON_PARAMETER_NAME = "format"
"""`?format=json` gives what a page shows as JSON."""
_MIN_COMPRESSED_BYTES = 500
_FRAME_STATE_KEY = "frame_renderer"


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link that stands on every page."""

    label: str
    path: str
    role: Role = "reader"
    summary: str = ""
    """What the home page says about it."""


class PageFrame:
    """Renders pages of one server into its frame."""

    def __init__(
        self, browser_auth: BrowserAuth, menu_entries: Sequence[MenuEntry], is_sample: bool
    ) -> None:
        self.browser_auth = browser_auth
        self._menu_entries = menu_entries
        self._is_sample = is_sample

    def make_response(
        self,
        scope: Scope,
        rendered_page: RenderedPage,
        extra_headers: Mapping[str, str] = {},
        unused_parameter_names: Sequence[str] = (),
    ) -> Response:
        """Return a page with its frame, compressed where the browser takes it.

        It says which parameters of its address it does not use: a misspelt filter filters nothing.
        """
        visitor = self._find_visitor(scope)
        page_html = render_template(
            "frame.html",
            page=rendered_page,
            unused_names=unused_parameter_names,
            menu=self._list_visible_menu_entries(visitor),
            path=scope["path"],
            json_address=_make_json_address(scope) if rendered_page.data is not None else None,
            visitor=visitor,
            is_open=visitor is not None and "user" not in scope,
            is_sample=self._is_sample,
            form_token=self.browser_auth.make_form_token(scope),
            token_field=FORM_TOKEN_FIELD_NAME,
        )
        return compress_text(
            scope,
            page_html.encode(),
            "text/html; charset=utf-8",
            rendered_page.status,
            PAGE_HEADERS | dict(extra_headers),
        )

    def _find_visitor(self, scope: Scope) -> Visitor | None:
        try:
            return self.browser_auth.identify_visitor(scope)
        except StorageFailed:  # what the page of this very error tells
            return None

    def _list_visible_menu_entries(self, visitor: Visitor | None) -> list[MenuEntry]:
        if visitor is None:
            return []
        return [
            menu_entry for menu_entry in self._menu_entries if visitor.has_role(menu_entry.role)
        ]


def _make_json_address(scope: Scope) -> str:
    query_string = scope["query_string"].decode("latin-1")
    separator = "&" if query_string else ""
    return f"{quote(scope['path'])}?{query_string}{separator}{JSON_PARAMETER_NAME}=json"


def attach_frame(scope: Scope, frame_renderer: PageFrame) -> None:
    """Let whatever answers this request render pages."""
    scope["state"][_FRAME_STATE_KEY] = frame_renderer


def has_frame(scope: Scope) -> bool:
    """Whether this server has pages; one of tests may have none."""
    return _FRAME_STATE_KEY in scope["state"]


def get_frame(scope: Scope) -> PageFrame:
    """Return the frame for the pages of this server."""
    frame: PageFrame = scope["state"][_FRAME_STATE_KEY]
    return frame


def render_page(
    scope: Scope,
    template_name: str,
    page_title: str,
    *,
    http_status: int = 200,
    extra_headers: Mapping[str, str] = {},
    **template_values: Any,
) -> Response:
    """Return the page that a template of `web/templates` makes of the values, in its frame."""
    page_html = render_template(
        template_name, title=page_title, status=http_status, **template_values
    )
    return get_frame(scope).make_response(
        scope, RenderedPage(page_title, page_html, status=http_status), extra_headers
    )


def accepts_html(scope: Scope) -> bool:
    """Whether a browser is asking: programs accept JSON, or do not say what they accept."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def compress_text(
    scope: Scope,
    body_bytes: bytes,
    media_type: str,
    http_status: int,
    response_headers: Mapping[str, str],
) -> Response:
    """Return a response whose body is compressed where the client takes it and it is worth it."""
    headers_to_send = {**response_headers, "Content-Type": media_type}
    accepted_encodings_header = Headers(scope=scope).get("accept-encoding", "")
    if "gzip" in accepted_encodings_header and len(body_bytes) >= _MIN_COMPRESSED_BYTES:
        body_bytes = gzip.compress(body_bytes, 5, mtime=0)
        headers_to_send["Content-Encoding"] = "gzip"
    return Response(body_bytes, http_status, headers_to_send)

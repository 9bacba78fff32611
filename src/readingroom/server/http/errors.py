"""The HTTP edge: gives every request an id, and turns every error into a response that names it."""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.core.errors import InternalError, KnowledgeError
from readingroom.core.ids import make_request_id
from readingroom.server.pages.frame import (
    PageFrame,
    accepts_html,
    attach_frame,
    has_frame,
    render_page,
)

logger = logging.getLogger(__name__)

SIGN_IN_PATH = "/sign-in"

_RECORD_PAGE_PATH = "/read"

INTERNAL_MESSAGE = "Something went wrong on our side; the log has the reason."

_ERROR_PAGE_TITLE = "This page cannot be shown"

# The contracts of policy and documents fix these two bodies: a code and a message, no more.
STATUSES_WITH_BARE_BODY = (401, 429)


def _never_is_page(scope: Scope) -> bool:
    return False


def _never_is_josh_path(request_path: str) -> bool:
    return False


class ErrorMiddleware:
    """ASGI middleware: sets the request id, and answers for what the layers below raise.

    Where `matches_page` holds of a request, errors are rendered as pages, in `frame`, for browsers.
    Where `matches_josh_path` holds of its path, a refusal has the whole envelope.
    """

    def __init__(
        self,
        app: ASGIApp,
        frame_renderer: PageFrame | None = None,
        matches_page: Callable[[Scope], bool] = _never_is_page,
        matches_josh_path: Callable[[str], bool] = _never_is_josh_path,
    ) -> None:
        self._app = app
        self._frame = frame_renderer
        self._matches_page = matches_page
        self._is_josh_path = matches_josh_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request_headers = _read_request_headers(scope)
        request_id = make_request_id(request_headers.get(b"x-request-id"))
        request_id_headers = [(b"x-request-id", request_id.encode())]
        correlation_id = request_id
        if b"x-correlation-id" in request_headers:
            correlation_id = make_request_id(request_headers[b"x-correlation-id"])
            request_id_headers.append((b"x-correlation-id", correlation_id.encode()))
        scope.setdefault("state", {}).update(
            request_id=request_id, correlation_id=correlation_id, request_headers=request_headers
        )
        if self._frame:
            attach_frame(scope, self._frame)
        has_response_started = has_response_finished = False

        async def send_with_id(asgi_message: Message) -> None:
            nonlocal has_response_started, has_response_finished
            if asgi_message["type"] == "http.response.start":
                has_response_started = True
                request_allowance = scope["state"].get("allowance")
                rate_limit_headers = request_allowance.to_headers() if request_allowance else []
                response_headers = [
                    *asgi_message["headers"],
                    *request_id_headers,
                    *rate_limit_headers,
                ]
                asgi_message["headers"] = response_headers + _list_missing_headers(response_headers)
            elif asgi_message["type"] == "http.response.body":
                has_response_finished = not asgi_message.get("more_body", False)
            await send(asgi_message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as failure:
            error = _convert_to_knowledge_error(failure, request_id)
            # Once headers are sent there can be no other answer; the log has the error.
            if not has_response_started:
                response = self._render_error(scope, error, request_id)
                await response(scope, receive, send_with_id)
        else:
            if (
                has_response_started and not has_response_finished
            ):  # an event stream that the shutdown cut off
                await send_with_id({"type": "http.response.body", "body": b""})

    def _render_error(self, scope: Scope, error: KnowledgeError, request_id: str) -> Response:
        if not (accepts_html(scope) and self._matches_page(scope)):
            has_bare_body = error.http_status in STATUSES_WITH_BARE_BODY and not self._is_josh_path(
                scope["path"]
            )
            return render_error(error, request_id, has_bare_body=has_bare_body)
        if error.http_status == 401:
            return _redirect_to_sign_in(scope)
        return render_error_page(scope, error, request_id)


def _redirect_to_sign_in(scope: Scope) -> Response:
    """Return what leads a browser to the sign-in page, and from there to where it wanted to go."""
    query_string = scope["query_string"].decode("latin-1")
    return_address = "/"
    if scope["method"] == "GET":
        return_address = scope["path"] + (f"?{query_string}" if query_string else "")
    return RedirectResponse(f"{SIGN_IN_PATH}?next={quote(return_address, safe='')}", 303)


# For browsers: types are not guessed, nobody frames or embeds us, no page learns our addresses.
_BROWSER_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)


def _list_missing_headers(response_headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers for browsers that a response does not have of its own."""
    present_header_names = {header_name for header_name, _ in response_headers}
    return [
        browser_header
        for browser_header in _BROWSER_HEADERS
        if browser_header[0] not in present_header_names
    ]


_KEPT_REQUEST_HEADER_NAMES = {
    b"x-request-id",
    b"x-correlation-id",
    b"traceparent",
    b"content-length",
}


def _read_request_headers(scope: Scope) -> dict[bytes, str]:
    """Return what the caller says of the request itself: its ids, its trace, its size."""
    return {
        header_name: header_value.decode("latin-1")
        for header_name, header_value in scope["headers"]
        if header_name in _KEPT_REQUEST_HEADER_NAMES
    }


def render_error(
    error: KnowledgeError, request_id: str, *, has_bare_body: bool = False
) -> Response:
    """Return an error as REST sends it; a bare one has a code and a message alone."""
    error_body: dict[str, Any] = {"code": error.code, "message": error.message}
    if not has_bare_body:
        error_body = {"type": error.kind, **error_body, "request_id": request_id}
        # What a refusal hints at is in its headers.
        if error.hint and error.http_status not in STATUSES_WITH_BARE_BODY:
            error_body["hint"] = dict(error.hint)
    return JSONResponse({"error": error_body}, error.http_status, _make_response_headers(error))


def render_error_page(scope: Scope, error: KnowledgeError, request_id: str) -> Response:
    """Return an error as a person reads it: what happened, and what to do about it."""
    return render_page(
        scope,
        "error.html",
        _ERROR_PAGE_TITLE,
        http_status=error.http_status,
        extra_headers=_make_response_headers(error),
        message=error.message,
        code=error.code,
        # An address of a record comes from a citation; another one from a form on its page.
        form_address=scope["path"]
        if error.http_status == 422 and scope["path"] != _RECORD_PAGE_PATH
        else None,
        hints=[
            (
                _LABEL_BY_HINT_NAME[hint_name],
                hint_value if isinstance(hint_value, list | tuple) else [hint_value],
            )
            for hint_name, hint_value in error.hint.items()
            if hint_name in _LABEL_BY_HINT_NAME
        ],
        request_id=request_id,
    )


# Hints that help a person; the others name tools and fields, which are for programs.
_LABEL_BY_HINT_NAME = {
    "nearest": "Nearest to it:",
    "redirected_to": "It moved to",
    "successor_id": "In its place:",
    "valid_prefixes": "Ids look like",
}


def _render_router_error_page(
    request: Request,
    raised_error: HTTPException,
    error_code: str,
    error_message: str,
    form_address: str | None = None,
) -> Response:
    return render_page(
        request.scope,
        "error.html",
        _ERROR_PAGE_TITLE,
        http_status=raised_error.status_code,
        extra_headers=raised_error.headers or {},
        message=error_message,
        code=error_code,
        hints=[],
        form_address=form_address,
        request_id=request.state.request_id,
    )


async def handle_http_exception(request: Request, raised_error: Exception) -> Response:
    """Return what the router itself refuses (no such path, wrong method) in the same envelope."""
    assert isinstance(raised_error, HTTPException)
    error_kind, error_code = _KIND_AND_CODE_BY_STATUS.get(
        raised_error.status_code, ("invalid_request", "bad_request")
    )
    error_message = f"{request.method} {request.url.path[:200]}: {raised_error.detail}"
    # Somebody followed a broken link; whoever calls REST does not ask for HTML.
    if accepts_html(request.scope) and has_frame(request.scope):
        if raised_error.status_code == 404:
            message = "There is no page at this address."
            return _render_router_error_page(request, raised_error, error_code, message)
        if raised_error.status_code == 405:
            message = "This address takes what a form or a program sends; it is no page."
            return _render_router_error_page(
                request, raised_error, error_code, message, _find_parent_page_path(request)
            )
    error_body = {
        "type": error_kind,
        "code": error_code,
        "message": error_message,
        "request_id": request.state.request_id,
    }
    return JSONResponse({"error": error_body}, raised_error.status_code, raised_error.headers)


def _find_parent_page_path(request: Request) -> str | None:
    """Return the path above the one that was asked for, if it is a page that can be opened."""
    parent_path = request.url.path.rpartition("/")[0]
    parent_scope = {**request.scope, "path": parent_path, "root_path": "", "method": "GET"}
    is_page = parent_path and any(
        app_route.matches(parent_scope)[0] is Match.FULL for app_route in request.app.routes
    )
    return parent_path if is_page else None


_KIND_AND_CODE_BY_STATUS = {
    404: ("not_found", "path_not_found"),
    405: ("invalid_request", "method_not_allowed"),
}


def _convert_to_knowledge_error(raised_error: Exception, request_id: str) -> KnowledgeError:
    """Return the error to answer with, and log what is our fault."""
    log_fields = {"request_id": request_id}
    if isinstance(raised_error, KnowledgeError):
        if raised_error.http_status >= 500:
            logger.error(
                "%s",
                raised_error.message,
                extra={"fields": {**log_fields, "code": raised_error.code}},
            )
        return raised_error
    logger.error(
        "unexpected failure in a request", exc_info=raised_error, extra={"fields": log_fields}
    )
    return InternalError(INTERNAL_MESSAGE)


def _make_response_headers(error: KnowledgeError) -> dict[str, str]:
    response_headers = {}
    if error.http_status == 401:
        response_headers["WWW-Authenticate"] = str(error.hint.get("challenge", "Bearer"))
    if "retry_after" in error.hint:
        response_headers["Retry-After"] = str(error.hint["retry_after"])
    return response_headers

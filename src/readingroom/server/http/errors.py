"""The HTTP edge: every request gets an id, and whatever goes wrong is told once, with it."""

import logging
from html import escape
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.core.errors import Internal, KnowledgeError
from readingroom.core.ids import make_request_id
from readingroom.server.pages.layout import asks_for_html, html_page

logger = logging.getLogger(__name__)

INTERNAL = "Something went wrong on our side; the log has the reason."

# The contracts of policy and documents fix these two bodies: a code and a message, no more.
_BARE = (401, 429)

# Where people come with a browser: what goes wrong there is told as a page.
_PAGES = ("/", "/docs", "/read")


class Problems:
    """The outermost layer: sets the request id, catches what the layers below raise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        sent = _sent(scope)
        request_id = make_request_id(sent.get(b"x-request-id"))
        echoed = [(b"x-request-id", request_id.encode())]
        correlation_id = request_id
        if b"x-correlation-id" in sent:
            correlation_id = make_request_id(sent[b"x-correlation-id"])
            echoed.append((b"x-correlation-id", correlation_id.encode()))
        scope.setdefault("state", {}).update(
            request_id=request_id, correlation_id=correlation_id, sent=sent
        )
        started = finished = False

        async def send_with_id(message: Message) -> None:
            nonlocal started, finished
            if message["type"] == "http.response.start":
                started = True
                allowance = scope["state"].get("allowance")
                left = allowance.headers() if allowance else []
                message["headers"] = [*message["headers"], *echoed, *left]
            elif message["type"] == "http.response.body":
                finished = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as failure:
            error = _knowledge_error(failure, request_id)
            is_read = scope["path"] in _PAGES and asks_for_html(scope)
            tell = problem_page if is_read else problem_response
            if not started:
                await tell(error, request_id)(scope, receive, send_with_id)
        else:
            if started and not finished:  # an event stream that the shutdown cut off
                await send_with_id({"type": "http.response.body", "body": b""})


_HEADERS_OF_NOTE = {b"x-request-id", b"x-correlation-id", b"traceparent", b"content-length"}


def _sent(scope: Scope) -> dict[bytes, str]:
    """What the caller said of the request itself: its ids, its trace, its size."""
    return {
        name: value.decode("latin-1")
        for name, value in scope["headers"]
        if name in _HEADERS_OF_NOTE
    }


def problem_response(error: KnowledgeError, request_id: str) -> Response:
    """An error as REST tells it."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.http_status not in _BARE:
        told = {"type": error.kind, **told, "request_id": request_id}
        if error.hint:
            told["hint"] = dict(error.hint)
    return JSONResponse({"error": told}, error.http_status, _headers(error))


def problem_page(error: KnowledgeError, request_id: str) -> Response:
    """An error as a person reads it: what happened, and what to do about it."""
    hints = [_hint(name, value) for name, value in error.hint.items() if name in _TOLD]
    body = f"""
<p>{escape(error.message)}</p>
{"".join(f"<p>{hint}</p>" for hint in hints)}
<p>{_NEXT.get(error.http_status, _TRY_AGAIN)}</p>
<p><a href="/">What is served here</a></p>
<p><small>{error.http_status} · <code>{escape(error.code)}</code> · request
<code>{escape(request_id)}</code></small></p>
"""
    return html_page("This page cannot be shown", body, error.http_status, _headers(error))


_TRY_AGAIN = """Try again in a moment. If it stays so, tell whoever runs this server the request
below: the log has the reason under it."""
_ADDRESS = """An address here is <code>/read?id=</code> and an id, as a citation gives it, with
<code>%23</code> for <code>#</code>."""
_NEXT = {
    401: """This server asks for a key, which a browser does not send. Let your AI client fetch the
id: its tool is called <code>fetch</code>.""",
    404: f"""Compare the address with the citation it comes from: an id is easily cut short when it
is copied. If it is whole, what it named was removed or replaced; search for it again.
{_ADDRESS}""",
    410: "Its source has withdrawn it. What took its place, if anything did, is named above.",
    421: "Open the address by which the server knows itself, or ask its operator to add this one.",
    422: f"{_ADDRESS} Search again if you have none.",
    429: "Wait a minute, then load the page again.",
}

# Hints that help a person; the others name tools and fields, which are for programs.
_TOLD = {
    "nearest": "Nearest to it:",
    "redirected_to": "It moved to",
    "successor_id": "In its place:",
    "valid_prefixes": "Ids look like",
}


def _hint(name: str, value: Any) -> str:
    told = value if isinstance(value, list | tuple) else [value]
    return f"{_TOLD[name]} " + ", ".join(f"<code>{escape(str(one))}</code>" for one in told)


async def http_problem(request: Request, failure: Exception) -> Response:
    """What the router itself refuses (no such path, wrong method), in the same envelope."""
    assert isinstance(failure, HTTPException)
    kind, code = _ROUTER_CODES.get(failure.status_code, ("invalid_request", "bad_request"))
    told = {
        "type": kind,
        "code": code,
        "message": f"{request.method} {request.url.path[:200]}: {failure.detail}",
        "request_id": request.state.request_id,
    }
    return JSONResponse({"error": told}, failure.status_code, failure.headers)


_ROUTER_CODES = {
    404: ("not_found", "path_not_found"),
    405: ("invalid_request", "method_not_allowed"),
}


def _knowledge_error(failure: Exception, request_id: str) -> KnowledgeError:
    fields = {"request_id": request_id}
    if isinstance(failure, KnowledgeError):
        if failure.http_status >= 500:
            logger.error("%s", failure.message, extra={"fields": {**fields, "code": failure.code}})
        return failure
    logger.error("unexpected failure in a request", exc_info=failure, extra={"fields": fields})
    return Internal(INTERNAL)


def _headers(error: KnowledgeError) -> dict[str, str]:
    headers = {}
    if error.http_status == 401:
        headers["WWW-Authenticate"] = str(error.hint.get("challenge", "Bearer"))
    if "retry_after" in error.hint:
        headers["Retry-After"] = str(error.hint["retry_after"])
    return headers

"""The HTTP edge: every request gets an id, and whatever goes wrong is told once, with it."""

import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.core import ids
from readingroom.core.errors import Internal, KnowledgeError

logger = logging.getLogger(__name__)

INTERNAL = "Something went wrong on our side; the log has the reason."

# The contracts of policy and documents fix these two bodies: a code and a message, no more.
_BARE = (401, 429)


class Problems:
    """The outermost layer: sets the request id, catches what the layers below raise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        sent = _sent(scope)
        request_id = ids.request_id(sent.get(b"x-request-id"))
        echoed = [(b"x-request-id", request_id.encode())]
        correlation_id = request_id
        if b"x-correlation-id" in sent:
            correlation_id = ids.request_id(sent[b"x-correlation-id"])
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
            problem = problem_response(_knowledge_error(failure, request_id), request_id)
            if not started:
                await problem(scope, receive, send_with_id)
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

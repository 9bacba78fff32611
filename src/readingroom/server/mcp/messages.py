"""Messages that are posted to a transport: their size and their ids, checked before they are read.

An answer repeats the id of its request, so an id of megabytes would be kept twice, once in the
request and once in an answer that waits to be sent.
"""

from typing import Any

import mcp_types as wire
from mcp.server.transport_security import RequestBodyLimitMiddleware
from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MAX_ID_CHARS = 256


class MessageLimitMiddleware:
    """ASGI middleware: refuses a POST with too large a body (413) or too long an id (400)."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._limit_body = RequestBodyLimitMiddleware(self._check_id, max_body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._limit_body if scope["method"] == "POST" else self._app
        await app(scope, receive, send)

    async def _check_id(self, scope: Scope, receive: Receive, send: Send) -> None:
        body_message = await receive()  # the whole body: the limit above has collected it
        if has_long_id(body_message.get("body", b"")):
            await _refuse_id()(scope, receive, send)
            return
        messages = [body_message]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_again, send)


class _Envelope(BaseModel):
    """What is read of a message here; Pydantic passes over everything else in it."""

    id: Any = None


def has_long_id(body: bytes) -> bool:
    """Whether the body is a JSON-RPC message whose id has more than 256 characters."""
    if len(body) <= _MAX_ID_CHARS:
        return False
    try:
        request_id: Any = _Envelope.model_validate_json(body).id
    except ValidationError:  # the SDK tells what is wrong with it
        return False
    if isinstance(request_id, int):
        return not -(10**_MAX_ID_CHARS) < request_id < 10**_MAX_ID_CHARS
    return isinstance(request_id, str) and len(request_id) > _MAX_ID_CHARS


def _refuse_id() -> Response:
    message = f"Invalid Request: id: at most {_MAX_ID_CHARS} characters"
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=message)
    # Without the id: JSON-RPC has null where it cannot be repeated.
    body = wire.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    content = body.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(content, 400, media_type="application/json")

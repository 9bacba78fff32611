"""Messages that are posted to a transport: size, id and method, checked before they are read.

An answer repeats the id of its request, and the method when nobody knows it, so one of megabytes
would be kept twice, once in the request and once in an answer that waits to be sent.
"""

from typing import Any

import mcp_types as wire
from mcp.server.transport_security import RequestBodyLimitMiddleware
from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MAX_CHARS = 256


class MessageLimitMiddleware:
    """ASGI middleware: refuses a POST with too large a body (413), or a long id or method (400)."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._limit_body = RequestBodyLimitMiddleware(self._check_envelope, max_body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._limit_body if scope["method"] == "POST" else self._app
        await app(scope, receive, send)

    async def _check_envelope(self, scope: Scope, receive: Receive, send: Send) -> None:
        body_message = await receive()  # the whole body: the limit above has collected it
        if field := find_long_field(body_message.get("body", b"")):
            await _refuse(field)(scope, receive, send)
            return
        messages = [body_message]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_again, send)


class _Envelope(BaseModel):
    """What is read of a message here; Pydantic passes over everything else in it."""

    id: Any = None
    method: Any = None


def find_long_field(body: bytes) -> str | None:
    """Return which of a JSON-RPC message's `id` and `method` has more than 256 characters."""
    if len(body) <= _MAX_CHARS:
        return None
    try:
        envelope = _Envelope.model_validate_json(body)
    except ValidationError:  # the SDK tells what is wrong with it
        return None
    if _is_long(envelope.id):
        return "id"
    return "method" if _is_long(envelope.method) else None


def _is_long(value: Any) -> bool:
    if isinstance(value, int):
        return not -(10**_MAX_CHARS) < value < 10**_MAX_CHARS
    return isinstance(value, str) and len(value) > _MAX_CHARS


def _refuse(field: str) -> Response:
    message = f"Invalid Request: {field}: at most {_MAX_CHARS} characters"
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=message)
    # Without the id: JSON-RPC has null where it cannot be repeated.
    body = wire.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    content = body.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(content, 400, media_type="application/json")

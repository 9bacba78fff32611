"""Messages that are posted to a transport: what is repeated or kept of one must be short.

An answer repeats the id of its request, and the method when nobody knows it; a report of progress
repeats its token. One of megabytes would be kept twice, once in the request and once in an answer
that waits to be sent. What a client says of itself when it opens a session is kept until its end.
"""

from typing import Any

import mcp_types as wire
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.server.http.bodies import BodyLimitMiddleware
from readingroom.server.http.held_bytes import MemoryCharges

_MAX_MESSAGE_PART_CHARS = 256
_MAX_INITIALIZE_BYTES = 64 * 1024


class MessageLimitMiddleware:
    """ASGI middleware: refuses a POST with too large a body, or a part that is too long (400)."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, memory_charges: MemoryCharges) -> None:
        self._app = app
        self._limit_body = BodyLimitMiddleware(self._check_envelope, max_body_bytes, memory_charges)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._limit_body if scope["method"] == "POST" else self._app
        await app(scope, receive, send)

    async def _check_envelope(self, scope: Scope, receive: Receive, send: Send) -> None:
        body_message = await receive()  # the whole body: the limit above has collected it
        if problem_text := find_long_part_problem(body_message.get("body", b"")):
            await _make_long_part_response(problem_text)(scope, receive, send)
            return
        asgi_messages = [body_message]

        async def receive_again() -> Message:
            return asgi_messages.pop() if asgi_messages else await receive()

        await self._app(scope, receive_again, send)


class _RequestMeta(BaseModel):
    progress_token: Any = Field(None, alias="progressToken")


class _RequestParams(BaseModel):
    meta: _RequestMeta | Any = Field(None, alias="_meta", union_mode="left_to_right")


class _MessageEnvelope(BaseModel):
    """What is read of a message here; Pydantic passes over everything else in it."""

    id: Any = None
    method: Any = None
    params: _RequestParams | Any = Field(None, union_mode="left_to_right")


def find_long_part_problem(request_body: bytes) -> str | None:
    """Return which part of a JSON-RPC message is too long, and its limit; None for a good one."""
    if len(request_body) <= _MAX_MESSAGE_PART_CHARS:
        return None
    try:
        message_envelope = _MessageEnvelope.model_validate_json(request_body)
    except ValidationError:  # the SDK tells what is wrong with it
        return None
    if message_envelope.method == "initialize" and len(request_body) > _MAX_INITIALIZE_BYTES:
        return f"initialize: at most {_MAX_INITIALIZE_BYTES} bytes"
    request_meta = (
        message_envelope.params.meta
        if isinstance(message_envelope.params, _RequestParams)
        else None
    )
    values_by_part_name = {
        "id": message_envelope.id,
        "method": message_envelope.method,
        "progressToken": request_meta.progress_token
        if isinstance(request_meta, _RequestMeta)
        else None,
    }
    for part_name, part_value in values_by_part_name.items():
        if _is_too_long(part_value):
            return f"{part_name}: at most {_MAX_MESSAGE_PART_CHARS} characters"
    return None


def _is_too_long(json_value: Any) -> bool:
    if isinstance(json_value, int):
        return not -(10**_MAX_MESSAGE_PART_CHARS) < json_value < 10**_MAX_MESSAGE_PART_CHARS
    return isinstance(json_value, str) and len(json_value) > _MAX_MESSAGE_PART_CHARS


def _make_long_part_response(problem_text: str) -> Response:
    error = wire.ErrorData(code=wire.INVALID_REQUEST, message=f"Invalid Request: {problem_text}")
    # Without the id: JSON-RPC has null where it cannot be repeated.
    response_body = wire.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    response_content = response_body.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(response_content, 400, media_type="application/json")

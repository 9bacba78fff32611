"""Marks what REST answers from the sample corpus, as tools mark their answers."""

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.protocol.sample import mark_sample_document

# These describe the API and hold no records.
_API_DESCRIPTION_PATHS = ("/openapi.json", "/docs")
_JSON_CONTENT_TYPE = b"application/json"


class SampleMiddleware:
    """ASGI middleware: puts `_meta` into every JSON body and marks its citations."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _API_DESCRIPTION_PATHS:
            send = _SampleMarkingSend(send)
        await self._app(scope, receive, send)


class _SampleMarkingSend:
    """Collects a JSON body until it is complete, then sends it marked; passes on anything else."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._response_start: Message | None = None
        self._body = b""

    async def __call__(self, asgi_message: Message) -> None:
        if asgi_message["type"] == "http.response.start" and _is_json_response(asgi_message):
            self._response_start = asgi_message
            return
        if self._response_start is None:
            await self._send(asgi_message)
            return
        self._body += asgi_message.get("body", b"")
        if not asgi_message.get("more_body"):
            await self._send_marked_response(self._response_start)

    async def _send_marked_response(self, response_start_message: Message) -> None:
        marked_body = _mark_json_body(self._body)
        # The marks make the body longer.
        headers_without_length = [
            response_header
            for response_header in response_start_message["headers"]
            if response_header[0] != b"content-length"
        ]
        new_length_header = (b"content-length", str(len(marked_body)).encode())
        await self._send(
            {**response_start_message, "headers": [*headers_without_length, new_length_header]}
        )
        await self._send({"type": "http.response.body", "body": marked_body})


def _is_json_response(response_start_message: Message) -> bool:
    response_headers: dict[bytes, bytes] = dict(response_start_message["headers"])
    return response_headers.get(b"content-type", b"").startswith(_JSON_CONTENT_TYPE)


def _mark_json_body(json_body: bytes) -> bytes:
    marked_document = mark_sample_document(json.loads(json_body or b"null"))
    return json.dumps(marked_document, ensure_ascii=False, separators=(",", ":")).encode()

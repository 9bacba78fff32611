"""Marks what REST answers from the sample corpus, as tools mark theirs."""

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.protocol.sample import marked_document

_DESCRIPTIONS = ("/openapi.json", "/docs")
_JSON = b"application/json"


class SampleBodies:
    """Every JSON body carries `_meta`, and its citations are marked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _DESCRIPTIONS:
            await self._app(scope, receive, send)
            return
        held = _Held(send)
        await self._app(scope, receive, held)


class _Held:
    """Holds a JSON body back until all of it is there; anything else passes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
            return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            await self._let_go(self._start)

    async def _let_go(self, start: Message) -> None:
        body = _marked(self._body)
        kept = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        length = (b"content-length", str(len(body)).encode())
        await self._send({**start, "headers": [*kept, length]})
        await self._send({"type": "http.response.body", "body": body})


def _is_json(start: Message) -> bool:
    headers: dict[bytes, bytes] = dict(start["headers"])
    return headers.get(b"content-type", b"").startswith(_JSON)


def _marked(body: bytes) -> bytes:
    told: Any = marked_document(json.loads(body or b"null"))
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()

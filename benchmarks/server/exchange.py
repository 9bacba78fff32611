"""One HTTP exchange with an ASGI app, in process, with no client library in the measured path."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Scope

_HOST = ("127.0.0.1", 8000)


@dataclass(frozen=True)
class Reply:
    """What the app sent, kept as it came: reading it is not part of what is measured."""

    messages: list[Message]

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> Headers:
        return Headers(raw=self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def json(self) -> Any:
        """The body, or the data of its one event."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            return json.loads(self.body)
        (data,) = (line for line in self.body.splitlines() if line.startswith(b"data: "))
        return json.loads(data.removeprefix(b"data: "))


class Exchange:
    """A request prepared once, to be sent any number of times."""

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        method: str = "POST",
    ) -> None:
        self._app = app
        self._scope = _make_scope(method, path, headers, len(body))
        self._body: Message = {"type": "http.request", "body": body, "more_body": False}

    async def send(self) -> Reply:
        """Ask once."""
        is_request_read = False
        messages: list[Message] = []

        async def receive() -> Message:
            nonlocal is_request_read
            if is_request_read:
                await anyio.sleep_forever()  # the client waits for its answer
            is_request_read = True
            return self._body

        async def send(message: Message) -> None:
            messages.append(message)

        await self._app({**self._scope, "state": {}}, receive, send)
        return Reply(messages)


def _make_scope(method: str, path: str, headers: Mapping[str, str], body_length: int) -> Scope:
    """As uvicorn makes it."""
    all_headers = {"host": "{}:{}".format(*_HOST), "content-length": str(body_length), **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": _HOST,
        "client": ("127.0.0.1", 50000),
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in all_headers.items()],
    }

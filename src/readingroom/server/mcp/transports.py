"""The two HTTP transports of a face: Streamable HTTP at `/mcp`, the older SSE pair beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from readingroom.server.errors import TooManySessions
from readingroom.server.mcp.streams import Heard

Page = Callable[[Request], Response]


@dataclass(frozen=True)
class SessionRules:
    """What bounds sessions: their Host names, their number, their idle time, their bodies."""

    security: TransportSecuritySettings
    most: int
    idle_seconds: float
    max_body_bytes: int


class StreamableHttp:
    """`/mcp`: the protocol for clients, a page for browsers."""

    def __init__(
        self, server: Server[Any], stateful: bool, rules: SessionRules, page: Page
    ) -> None:
        self._stateful = stateful
        self._page = page
        self.manager = StreamableHTTPSessionManager(
            server,
            stateless=not stateful,
            json_response=not stateful,
            security_settings=rules.security,
            session_idle_timeout=rules.idle_seconds,
            max_sessions=rules.most,
            max_request_body_size=rules.max_body_bytes,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if wants_page(scope):
            await self._page(Request(scope))(scope, receive, send)
        elif scope["method"] == "GET" and not self._stateful:
            detail = "this face keeps no sessions and sends no event stream; use POST"
            raise HTTPException(405, detail, {"Allow": "POST"})
        else:
            await self.manager.asgi_app(scope, receive, send)


class Sse:
    """`/sse` and `/messages/`: one event stream per session, messages posted beside it."""

    def __init__(self, server: Server[Any], path: str, rules: SessionRules) -> None:
        self._server = server
        self._rules = rules
        self._open = 0
        self._transport = SseServerTransport(
            f"{path}/messages/",
            security_settings=rules.security,
            max_request_body_size=rules.max_body_bytes,
        )

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":  # Starlette adds it to GET; a stream has nothing for it
            raise HTTPException(405, headers={"Allow": "GET"})
        if self._open >= self._rules.most:
            raise TooManySessions("Too many open sessions; try again later", retry_after=30)
        self._open += 1
        try:
            await self._serve(scope, receive, send)
        finally:
            self._open -= 1

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._transport.handle_post_message(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        options = self._server.create_initialization_options()
        async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
            with anyio.move_on_after(self._rules.idle_seconds) as life:

                def prolong(message: Any) -> None:
                    life.deadline = anyio.current_time() + self._rules.idle_seconds

                heard = Heard(incoming, prolong, anyio.lowlevel.checkpoint)
                await self._server.run(heard, outgoing, options)


def wants_page(scope: Scope) -> bool:
    """Whether a request for `/mcp` is a browser's, not a client's."""
    events = "text/event-stream" in Headers(scope=scope).get("accept", "")
    return scope["method"] in ("GET", "HEAD") and not events

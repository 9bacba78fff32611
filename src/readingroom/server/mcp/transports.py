"""The two HTTP transports of a face: Streamable HTTP at `/mcp`, and the older SSE pair."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from readingroom.server.errors import TooManySessions
from readingroom.server.mcp.streams import WatchedReceiveStream

RenderPage = Callable[[Request], Response]


@dataclass(frozen=True)
class SessionLimits:
    """How many sessions there may be, how long one may idle, and how large a body may be."""

    max_sessions: int
    idle_seconds: float
    max_body_bytes: int


class StreamableHttp:
    """`/mcp`: the protocol for clients, a page for browsers."""

    def __init__(
        self, server: Server[Any], stateful: bool, limits: SessionLimits, render_page: RenderPage
    ) -> None:
        self._stateful = stateful
        self._render_page = render_page
        # Host and Origin are checked by SecurityMiddleware, so the SDK gets no security settings.
        self.manager = StreamableHTTPSessionManager(
            server,
            stateless=not stateful,
            json_response=not stateful,
            session_idle_timeout=limits.idle_seconds,
            max_sessions=limits.max_sessions,
            max_request_body_size=limits.max_body_bytes,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_page_request(scope):
            await self._render_page(Request(scope))(scope, receive, send)
        elif scope["method"] == "GET" and not self._stateful:
            detail = "this face keeps no sessions and sends no event stream; use POST"
            raise HTTPException(405, detail, {"Allow": "POST"})
        else:
            await self.manager.asgi_app(scope, receive, send)


class Sse:
    """`/sse` and `/messages/`: an event stream per session, and where its messages are posted."""

    def __init__(self, server: Server[Any], path: str, limits: SessionLimits) -> None:
        self._server = server
        self._limits = limits
        self._open_sessions = 0
        self._transport = SseServerTransport(
            f"{path}/messages/", max_request_body_size=limits.max_body_bytes
        )

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session. Raise TooManySessions."""
        if scope["method"] == "HEAD":  # Starlette adds it to GET, but a stream has no headers alone
            raise HTTPException(405, headers={"Allow": "GET"})
        if self._open_sessions >= self._limits.max_sessions:
            raise TooManySessions("Too many open sessions; try again later", retry_after=30)
        self._open_sessions += 1
        try:
            await self._serve(scope, receive, send)
        finally:
            self._open_sessions -= 1

    async def receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._transport.handle_post_message(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        options = self._server.create_initialization_options()
        async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
            with anyio.move_on_after(self._limits.idle_seconds) as lifetime:

                def prolong(message: Any) -> None:
                    lifetime.deadline = anyio.current_time() + self._limits.idle_seconds

                watched = WatchedReceiveStream(incoming, prolong, anyio.lowlevel.checkpoint)
                await self._server.run(watched, outgoing, options)


def is_page_request(scope: Scope) -> bool:
    """Whether a request for `/mcp` comes from a browser rather than from an MCP client."""
    if scope["method"] not in ("GET", "HEAD"):
        return False
    # MCP clients have to accept event streams; a browser that opens a page never does.
    return "text/event-stream" not in Headers(scope=scope).get("accept", "")

"""The two HTTP transports of a face: Streamable HTTP at `/mcp`, and the older SSE pair."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import anyio
import anyio.lowlevel
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from readingroom.server.auth.bearer import identify_caller
from readingroom.server.errors import TooManyMessages, TooManySessions
from readingroom.server.mcp.messages import MessageLimitMiddleware
from readingroom.server.mcp.sessions import SessionLimits, SessionRegistry
from readingroom.server.mcp.streams import (
    BoundedSendStream,
    UnansweredRequests,
    WatchedReceiveStream,
    WatchedSendStream,
)

RenderPage = Callable[[Request], Response]

_MAX_UNANSWERED_MESSAGES = 32  # messages of one SSE session


class StreamableHttpTransport:
    """`/mcp`: the protocol for clients, a page for browsers."""

    def __init__(
        self,
        mcp_server: Server[Any],
        keeps_sessions: bool,
        session_limits: SessionLimits,
        render_page: RenderPage,
    ) -> None:
        self._stateful = keeps_sessions
        self._render_page = render_page
        self._owners = SessionRegistry(session_limits.max_sessions_per_caller)
        # Host and Origin are checked by SecurityMiddleware, so the SDK gets no security settings.
        self.manager = StreamableHTTPSessionManager(
            mcp_server,
            stateless=not keeps_sessions,
            json_response=not keeps_sessions,
            session_idle_timeout=session_limits.idle_seconds,
            max_sessions=session_limits.max_sessions,
            max_request_body_size=session_limits.max_body_bytes,
        )
        self._app = MessageLimitMiddleware(
            self.manager.asgi_app, session_limits.max_body_bytes, session_limits.memory_charges
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_page_request(scope):
            await self._render_page(Request(scope))(scope, receive, send)
        elif scope["method"] == "GET" and not self._stateful:
            refusal_detail = "this face keeps no sessions and sends no event stream; use POST"
            raise HTTPException(405, refusal_detail, {"Allow": "POST"})
        elif self._stateful and _may_open_session(scope):
            await self._open_counted_session(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _open_counted_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK open a session and note whose it is. Raise TooManySessions."""
        caller_id = identify_caller(scope)

        async def send_noting_session(asgi_message: Message) -> None:
            if asgi_message["type"] == "http.response.start" and asgi_message["status"] < 400:
                session_id = Headers(raw=asgi_message["headers"]).get("mcp-session-id")
                if session_id:
                    self._owners.add_session(session_id, caller_id)
            await send(asgi_message)

        # The SDK does not say when a session has ended.
        self._owners.keep_only_sessions(self.manager._server_instances)
        with self._owners.reserve_session_place(caller_id):
            await self._app(scope, receive, send_noting_session)


class SseTransport:
    """`/sse` and `/messages/`: an event stream per session, and where its messages are posted."""

    def __init__(
        self, mcp_server: Server[Any], face_path: str, session_limits: SessionLimits
    ) -> None:
        self._server = mcp_server
        self._limits = session_limits
        self._owners = SessionRegistry(session_limits.max_sessions_per_caller)
        self._unanswered_by_session: dict[str, UnansweredRequests] = {}
        """By session, the requests that were taken from it."""
        self._posting_count_by_session: Counter[str] = Counter()
        """By session, the messages that are being posted."""
        self._transport = SseServerTransport(
            f"{face_path}/messages/", max_request_body_size=session_limits.max_body_bytes
        )
        self._post_app = MessageLimitMiddleware(
            self._transport.handle_post_message,
            session_limits.max_body_bytes,
            session_limits.memory_charges,
        )

    async def serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session and serve it to its end. Raise TooManySessions."""
        if scope["method"] == "HEAD":  # Starlette adds it to GET, but a stream has no headers alone
            raise HTTPException(405, headers={"Allow": "GET"})
        if self._owners.count_reserved_places() >= self._limits.max_sessions:
            raise TooManySessions("Too many open sessions; try again later", retry_after=30)
        with self._owners.reserve_session_place(identify_caller(scope)):
            await self._serve_stream(scope, receive, send)

    async def receive_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a message to the session that its address names. Raise TooManyMessages."""
        session_id = _read_session_id(scope)
        unanswered_requests = self._unanswered_by_session.get(session_id)
        unanswered_count = self._posting_count_by_session[session_id] + (
            unanswered_requests.request_count if unanswered_requests else 0
        )
        if unanswered_count >= _MAX_UNANSWERED_MESSAGES:
            raise TooManyMessages(
                f"{_MAX_UNANSWERED_MESSAGES} messages of this session have no answer yet; "
                "read its event stream before you send more",
                retry_after=1,
            )
        scope["state"]["session_id"] = session_id
        self._posting_count_by_session[session_id] += 1
        try:
            await self._post_app(scope, receive, send)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session ended after its message was accepted
        finally:
            self._posting_count_by_session[session_id] -= 1
            if not self._posting_count_by_session[session_id]:
                del self._posting_count_by_session[session_id]

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        initialization_options = self._server.create_initialization_options()
        memory_charges, caller_id = self._limits.memory_charges, identify_caller(scope)
        unanswered_requests = UnansweredRequests(partial(memory_charges.remove_bytes, caller_id))
        session_id = ""

        async def send_counting_bytes(asgi_message: Message) -> None:
            # It waits here until the client has read what was sent before.
            message_byte_count = len(asgi_message.get("body", b""))
            memory_charges.add_bytes(caller_id, message_byte_count)
            try:
                await send(asgi_message)
            finally:
                memory_charges.remove_bytes(caller_id, message_byte_count)

        async with self._transport.connect_sse(scope, receive, send_counting_bytes) as stream_pair:
            incoming_stream, outgoing_stream = stream_pair
            with anyio.move_on_after(self._limits.idle_seconds) as session_timeout_scope:

                def record_message(mcp_message: Any) -> None:
                    nonlocal session_id
                    session_timeout_scope.deadline = (
                        anyio.current_time() + self._limits.idle_seconds
                    )
                    if isinstance(mcp_message, Exception):  # what was posted is no message
                        return
                    # The SDK does not tell a stream its id; the messages posted to it know it.
                    session_id = mcp_message.metadata.request_context.state.session_id
                    self._unanswered_by_session[session_id] = unanswered_requests
                    body_byte_count = mcp_message.metadata.request_context.state.body_bytes
                    memory_charges.add_bytes(caller_id, body_byte_count)
                    unanswered_requests.record_incoming_message(mcp_message, body_byte_count)

                watched_incoming_stream = WatchedReceiveStream(
                    incoming_stream, record_message, anyio.lowlevel.checkpoint
                )
                watched_outgoing_stream = WatchedSendStream(
                    outgoing_stream, unanswered_requests.record_outgoing_message
                )
                try:
                    async with anyio.create_task_group() as refusal_task_group:
                        bounded_outgoing_stream = BoundedSendStream(
                            watched_outgoing_stream, memory_charges, caller_id, refusal_task_group
                        )
                        await self._server.run(
                            watched_incoming_stream, bounded_outgoing_stream, initialization_options
                        )
                        # The session has ended: an error that still waits to be sent must not keep
                        # it open.
                        refusal_task_group.cancel_scope.cancel()
                finally:
                    self._unanswered_by_session.pop(session_id, None)
                    unanswered_requests.forget_all_requests()


def is_page_request(scope: Scope) -> bool:
    """Whether a request for `/mcp` comes from a browser rather than from an MCP client."""
    if scope["method"] not in ("GET", "HEAD"):
        return False
    # MCP clients have to accept event streams; a browser that opens a page never does.
    return "text/event-stream" not in Headers(scope=scope).get("accept", "")


def _may_open_session(scope: Scope) -> bool:
    """Whether the SDK may open a session for a request: it has none, and is of a wire with them."""
    request_headers = Headers(scope=scope)
    protocol_version = request_headers.get("mcp-protocol-version")
    is_handshake_version = (
        protocol_version is None or protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    )
    return (
        scope["method"] == "POST"
        and is_handshake_version
        and "mcp-session-id" not in request_headers
    )


def _read_session_id(scope: Scope) -> str:
    """Return the session that the address names, always in one spelling; empty for none."""
    # The SDK takes any spelling of a UUID, and each would else count as a session of its own.
    try:
        return UUID(hex=QueryParams(scope["query_string"]).get("session_id", "")).hex
    except ValueError:
        return ""

"""Serves one base over standard input and output, where stdout belongs to the protocol."""

from typing import Any

import anyio
import mcp_types as wire
from mcp.server.stdio import stdio_server

from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.faces import face_of
from readingroom.server.mcp.handlers import build_mcp_server
from readingroom.server.mcp.streams import WatchedReceiveStream, WatchedSendStream
from readingroom.server.observe.logging import log_call

_GRACE_SECONDS = 5  # for calls still running when the client closes our input


async def serve_stdio(base: KnowledgeBase, is_sample: bool = False) -> None:
    """Serve until the client closes our standard input and its open requests are answered."""
    server = build_mcp_server(face_of(base), [log_call], is_sample)
    open_calls = _OpenCalls()
    async with base.running(), stdio_server() as (incoming, outgoing):
        requests = WatchedReceiveStream(incoming, open_calls.add_request, open_calls.wait)
        responses = WatchedSendStream(outgoing, open_calls.remove_answered)
        await server.run(requests, responses, server.create_initialization_options())


class _OpenCalls:
    """The requests without an answer yet, which the SDK would drop when the input ends."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._all_answered = anyio.Event()

    def add_request(self, message: Any) -> None:
        request = getattr(message, "message", None)
        if isinstance(request, wire.JSONRPCRequest):
            self._ids.add(request.id)

    def remove_answered(self, message: Any) -> None:
        if isinstance(message.message, wire.JSONRPCResponse | wire.JSONRPCError):
            self._ids.discard(message.message.id)
            if not self._ids:
                self._all_answered.set()

    async def wait(self) -> None:
        """Return when every request is answered, or after a grace period."""
        self._all_answered = anyio.Event()
        if self._ids:
            with anyio.move_on_after(_GRACE_SECONDS):
                await self._all_answered.wait()

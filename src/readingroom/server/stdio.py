"""Serves one base over standard input and output: stdout belongs to the protocol."""

from typing import Any

import anyio
import mcp_types as wire
from mcp.server.stdio import stdio_server

from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.faces import face_of
from readingroom.server.mcp.handlers import mcp_server
from readingroom.server.mcp.streams import Heard, Said
from readingroom.server.observe.logging import log_call

_PATIENCE_SECONDS = 5  # for calls still running when the client closes our input


async def serve_stdio(base: KnowledgeBase, is_sample: bool = False) -> None:
    """Answer until the client closes our standard input, and what it asked before that."""
    server = mcp_server(face_of(base), [log_call], is_sample)
    open_calls = _OpenCalls()
    async with base.running(), stdio_server() as (incoming, outgoing):
        heard = Heard(incoming, open_calls.asked, open_calls.settled)
        said = Said(outgoing, open_calls.answered)
        await server.run(heard, said, server.create_initialization_options())


class _OpenCalls:
    """The requests that have no answer yet: the SDK drops them when the input ends."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._none_left = anyio.Event()

    def asked(self, message: Any) -> None:
        request = getattr(message, "message", None)
        if isinstance(request, wire.JSONRPCRequest):
            self._ids.add(request.id)

    def answered(self, message: Any) -> None:
        if isinstance(message.message, wire.JSONRPCResponse | wire.JSONRPCError):
            self._ids.discard(message.message.id)
            if not self._ids:
                self._none_left.set()

    async def settled(self) -> None:
        """Return when every request is answered, or when patience ends."""
        self._none_left = anyio.Event()
        if self._ids:
            with anyio.move_on_after(_PATIENCE_SECONDS):
                await self._none_left.wait()

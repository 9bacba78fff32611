"""Serves one base over standard input and output: stdout belongs to the protocol."""

from mcp.server.stdio import stdio_server

from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.server.catalogue import face_of
from readingroom.server.logging import log_call
from readingroom.server.mcp import mcp_server


async def serve_stdio(base: KnowledgeBase) -> None:
    """Answer until the client closes our standard input."""
    server = mcp_server(face_of(base), [log_call])
    async with base.running(), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

"""Serves one base over standard input and output, where stdout belongs to the protocol."""

import logging
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server
from readingroom.server.mcp.streams import (
    UnansweredRequests,
    WatchedReceiveStream,
    WatchedSendStream,
)
from readingroom.server.observe.logging import log_call

logger = logging.getLogger(__name__)

_ANSWER_GRACE_SECONDS = 5  # for calls still running when the client closes our input


async def serve_stdio(knowledge_base: KnowledgeBase, is_sample: bool = False) -> None:
    """Serve until the client closes our standard input and its open requests are answered."""
    mcp_server = build_mcp_server(make_face(knowledge_base), [log_call], is_sample)
    # Without them the SDK would drop what is still running when the input ends.
    unanswered_requests = UnansweredRequests()

    async def wait_for_answers() -> None:
        with anyio.move_on_after(_ANSWER_GRACE_SECONDS):
            await unanswered_requests.wait_until_answered()

    def record_incoming_message(mcp_message: Any) -> None:
        if isinstance(mcp_message, Exception):
            # The SDK passes over it in silence, and a client's author would wonder.
            logger.debug("a line on standard input is no JSON-RPC message and was passed over")
        else:
            unanswered_requests.record_incoming_message(mcp_message)

    async with knowledge_base.lifespan(), stdio_server() as (incoming_stream, outgoing_stream):
        request_stream = WatchedReceiveStream(
            incoming_stream, record_incoming_message, wait_for_answers
        )
        response_stream = WatchedSendStream(
            outgoing_stream, unanswered_requests.record_outgoing_message
        )
        await mcp_server.run(
            request_stream, response_stream, mcp_server.create_initialization_options()
        )

"""Streams of protocol messages that report each message to a callback as it passes."""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import anyio
import mcp_types as wire
from mcp.shared.message import ServerMessageMetadata


class _StreamProxy:
    """Passes everything on to another stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        closed: bool | None = await self._stream.__aexit__(*raised)
        return closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # the SDK looks for `last_context` here


class WatchedReceiveStream(_StreamProxy):
    """Incoming messages: calls `on_message` with each, and awaits `on_end` before it ends."""

    def __init__(
        self,
        stream: Any,
        on_message: Callable[[Any], None],
        on_end: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(stream)
        self._on_message = on_message
        self._on_end = on_end

    async def receive(self) -> Any:
        try:
            message = await self._stream.receive()
        except anyio.EndOfStream:
            await self._on_end()
            raise
        self._on_message(message)
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WatchedSendStream(_StreamProxy):
    """Outgoing messages: calls `on_sent` with each after it was sent."""

    def __init__(self, stream: Any, on_sent: Callable[[Any], None]) -> None:
        super().__init__(stream)
        self._on_sent = on_sent

    async def send(self, message: Any) -> None:
        await self._stream.send(message)
        self._on_sent(message)


class UnansweredRequests:
    """Counts the requests of one session that have no answer yet."""

    def __init__(self) -> None:
        self.count = 0
        self._all_answered = anyio.Event()

    def add(self, message: Any) -> None:
        """Count an incoming message if it is a request."""
        if isinstance(getattr(message, "message", None), wire.JSONRPCRequest):
            self.count += 1
            # A request that its caller cancels gets no answer; then the SDK calls this.
            metadata = message.metadata or ServerMessageMetadata()
            metadata.on_request_unanswered = self._settle
            message.metadata = metadata

    def remove(self, message: Any) -> None:
        """Note an outgoing message if it is an answer."""
        if isinstance(message.message, wire.JSONRPCResponse | wire.JSONRPCError):
            self._forget_one()

    async def wait_until_answered(self) -> None:
        """Return when every request is answered."""
        if self.count:
            self._all_answered = anyio.Event()
            await self._all_answered.wait()

    async def _settle(self) -> None:
        self._forget_one()

    def _forget_one(self) -> None:
        self.count -= 1
        if not self.count:
            self._all_answered.set()

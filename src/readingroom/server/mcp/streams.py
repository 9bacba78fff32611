"""Streams of protocol messages that report each message to a callback as it passes."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self

import anyio
import anyio.abc
import mcp_types as wire
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import BaseModel

from readingroom.server.errors import TooManyBytes
from readingroom.server.http.held_bytes import MemoryCharges


class _StreamProxy:
    """Passes everything on to another stream."""

    def __init__(self, wrapped_stream: Any) -> None:
        self._stream = wrapped_stream

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception_info: Any) -> bool | None:
        is_suppressed: bool | None = await self._stream.__aexit__(*exception_info)
        return is_suppressed

    def __getattr__(self, attribute_name: str) -> Any:
        return getattr(self._stream, attribute_name)  # the SDK looks for `last_context` here


class WatchedReceiveStream(_StreamProxy):
    """Incoming messages: calls `on_message` with each, and awaits `on_end` before it ends."""

    def __init__(
        self,
        wrapped_stream: Any,
        on_message: Callable[[Any], None],
        on_end: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(wrapped_stream)
        self._on_message = on_message
        self._on_end = on_end

    async def receive(self) -> Any:
        try:
            mcp_message = await self._stream.receive()
        except anyio.EndOfStream:
            await self._on_end()
            raise
        self._on_message(mcp_message)
        return mcp_message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WatchedSendStream(_StreamProxy):
    """Outgoing messages: calls `on_sent` with each after it was sent."""

    def __init__(self, wrapped_stream: Any, on_sent: Callable[[Any], None]) -> None:
        super().__init__(wrapped_stream)
        self._on_sent = on_sent

    async def send(self, mcp_message: Any) -> None:
        await self._stream.send(mcp_message)
        self._on_sent(mcp_message)


class BoundedSendStream(_StreamProxy):
    """Outgoing messages, which count as held by their caller while they wait to be sent.

    Those of a caller that has too many are dropped; for an answer an error is sent by `tasks`.
    """

    def __init__(
        self,
        wrapped_stream: Any,
        memory_charges: MemoryCharges,
        caller_id: str,
        task_group: anyio.abc.TaskGroup,
    ) -> None:
        super().__init__(wrapped_stream)
        self._memory_charges = memory_charges
        self._caller_id = caller_id
        self._tasks = task_group

    async def send(self, mcp_message: Any) -> None:
        """Send a message. Raise BrokenResourceError when it is dropped."""
        try:
            with self._memory_charges.charge_bytes(
                self._caller_id, estimate_message_bytes(mcp_message.message)
            ):
                await self._stream.send(mcp_message)
        except TooManyBytes as error:
            if isinstance(mcp_message.message, wire.JSONRPCResponse | wire.JSONRPCError):
                dropped_answer_error = _make_dropped_answer_error(mcp_message.message.id, error)
                self._tasks.start_soon(self._send_error, dropped_answer_error)
            # Whoever waits to send a message keeps it in memory; this ends the wait.
            raise anyio.BrokenResourceError from error

    async def _send_error(self, dropped_answer_error: SessionMessage) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.send(dropped_answer_error)


def _make_dropped_answer_error(
    answered_request_id: wire.RequestId | None, error: TooManyBytes
) -> SessionMessage:
    error_data = {"code": error.code, "hint": dict(error.hint)}
    error_detail = wire.ErrorData(code=wire.INTERNAL_ERROR, message=error.message, data=error_data)
    return SessionMessage(
        wire.JSONRPCError(jsonrpc="2.0", id=answered_request_id, error=error_detail)
    )


def estimate_message_bytes(mcp_message: Any) -> int:
    """Return about how many bytes a message takes as JSON."""
    byte_count = 0
    unmeasured_values = [mcp_message]
    while unmeasured_values:
        message_value = unmeasured_values.pop()
        if isinstance(message_value, BaseModel):
            message_value = message_value.__dict__
        if isinstance(message_value, str | bytes):
            byte_count += len(message_value)
        elif isinstance(message_value, Mapping):
            unmeasured_values += message_value.keys()
            unmeasured_values += message_value.values()
        elif isinstance(message_value, list | tuple):
            unmeasured_values += message_value
        # For what has no length, and for the quotation marks and commas of what has one.
        byte_count += 8
    return byte_count


class UnansweredRequests:
    """Counts the requests of one session that have no answer yet, and the bytes of their bodies."""

    def __init__(self, on_request_ended: Callable[[int], None] = lambda byte_count: None) -> None:
        """`on_request_ended` gets the bytes of each request that is waited for no longer."""
        self._on_settled = on_request_ended
        self._sizes_by_id: dict[wire.RequestId, list[int]] = {}
        self.request_count = 0
        self._all_answered = anyio.Event()

    def record_incoming_message(self, mcp_message: Any, byte_count: int = 0) -> None:
        """Count an incoming message if it is a request."""
        request = getattr(mcp_message, "message", None)
        if isinstance(request, wire.JSONRPCRequest):
            self.request_count += 1
            # A client may use an id twice.
            self._sizes_by_id.setdefault(request.id, []).append(byte_count)
            # A request that its caller cancels gets no answer; then the SDK calls this.
            message_metadata = mcp_message.metadata or ServerMessageMetadata()
            message_metadata.on_request_unanswered = partial(self._mark_answered, request.id)
            mcp_message.metadata = message_metadata
        else:
            self._on_settled(byte_count)

    def record_outgoing_message(self, mcp_message: Any) -> None:
        """Note an outgoing message if it is an answer."""
        if isinstance(mcp_message.message, wire.JSONRPCResponse | wire.JSONRPCError):
            self._forget_request(mcp_message.message.id)

    def forget_all_requests(self) -> None:
        """Forget all of them, as their session ends."""
        for request_id in [
            unanswered_request_id
            for unanswered_request_id, request_byte_counts in self._sizes_by_id.items()
            for _ in request_byte_counts
        ]:
            self._forget_request(request_id)

    async def wait_until_answered(self) -> None:
        """Return when every request is answered."""
        if self.request_count:
            # An event stays set, so a wait after an earlier one needs a new one.
            self._all_answered = anyio.Event()
            await self._all_answered.wait()

    async def _mark_answered(self, request_id: wire.RequestId) -> None:
        self._forget_request(request_id)

    def _forget_request(self, request_id: wire.RequestId | None) -> None:
        # An error may answer no request, or one that was cancelled before.
        if request_id is None or request_id not in self._sizes_by_id:
            return
        request_byte_counts = self._sizes_by_id[request_id]
        self._on_settled(request_byte_counts.pop())
        if not request_byte_counts:
            del self._sizes_by_id[request_id]
        self.request_count -= 1
        if not self.request_count:
            self._all_answered.set()

"""Streams of protocol messages, with somebody listening in: what came, what was answered."""

from collections.abc import Awaitable, Callable
from typing import Any, Self

import anyio


class _Stream:
    """Another stream, passed through."""

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


class Heard(_Stream):
    """Incoming messages; `heard` is told each, and `ended` awaited before the end is passed on."""

    def __init__(
        self, stream: Any, heard: Callable[[Any], None], ended: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(stream)
        self._heard = heard
        self._ended = ended

    async def receive(self) -> Any:
        try:
            message = await self._stream.receive()
        except anyio.EndOfStream:
            await self._ended()
            raise
        self._heard(message)
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Said(_Stream):
    """Outgoing messages; `said` is told each once it is on its way."""

    def __init__(self, stream: Any, said: Callable[[Any], None]) -> None:
        super().__init__(stream)
        self._said = said

    async def send(self, message: Any) -> None:
        await self._stream.send(message)
        self._said(message)

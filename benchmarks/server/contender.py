"""One server on one wire: its call prepared, the processor time it takes, its answers checked."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyio.lowlevel import checkpoint
from starlette.applications import Starlette

from benchmarks.server.exchange import Exchange, Reply
from benchmarks.server.peer import TOOL_NAME
from benchmarks.server.wires import INITIALIZE, INITIALIZED, LEGACY, MODERN, Message, call_tool

TEXT = "The reading room opens at nine; bring the number of the volume."
ECHO_CALL = call_tool(TOOL_NAME, {"text": TEXT})


@dataclass(frozen=True)
class Wire:
    """A revision of the protocol, asked of a face that keeps sessions or of one that does not."""

    name: str
    revision: str
    stateful: bool

    @property
    def has_sessions(self) -> bool:
        return self.stateful and self.revision == LEGACY

    def prepare(self, app: Starlette, message: Message, headers: Mapping[str, str]) -> Exchange:
        """A message with the headers that clients of this wire send."""
        all_headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "user-agent": "benchmarks",
            **message.headers(self.revision),
            **headers,
        }
        return Exchange(app, "/mcp", all_headers, message.encode(self.revision))


WIRES = (
    Wire("2025-11-25, stateless, JSON reply", LEGACY, stateful=False),
    Wire("2025-11-25, session, SSE reply", LEGACY, stateful=True),
    Wire("2026-07-28, face without sessions", MODERN, stateful=False),
    Wire("2026-07-28, face with sessions", MODERN, stateful=True),
)


async def open_call(wire: Wire, app: Starlette, headers: Mapping[str, str]) -> Exchange:
    """The call, in a session of its own where the wire has sessions."""
    if wire.has_sessions:
        welcome = await wire.prepare(app, INITIALIZE, headers).send()
        assert welcome.json["result"]["protocolVersion"] == LEGACY, welcome.body
        headers = {**headers, "mcp-session-id": welcome.headers["mcp-session-id"]}
        accepted = await wire.prepare(app, INITIALIZED, headers).send()
        assert accepted.status == 202, accepted.body
    return wire.prepare(app, ECHO_CALL, headers)


@dataclass
class Contender:
    """Who is measured: a call to repeat, and what came of it so far."""

    name: str
    app: Starlette
    headers: Mapping[str, str]
    exchange: Exchange
    speaks_json_rpc: bool = True
    """Whether it answers in JSON-RPC; the plain route does not."""
    calls_made: int = 0
    answer: Any = None
    microseconds: list[float] = field(default_factory=list)
    """Per call, one number a round."""

    async def run_calls(self, calls: int) -> float:
        """Make the calls and say how many seconds of the processor they took."""
        began = time.process_time()
        replies = [await self.exchange.send() for _ in range(calls)]
        await _let_tasks_end()
        seconds = time.process_time() - began
        for reply in replies:
            self._check_reply(reply)
        self.calls_made += calls
        return seconds

    def _check_reply(self, reply: Reply) -> None:
        assert reply.status == 200, (reply.status, reply.body)
        self.answer = reply.json
        answer = _parse_answer(self.answer) if self.speaks_json_rpc else self.answer
        assert answer == {"text": TEXT}, reply.body


def _parse_answer(answer: Any) -> Any:
    """The structured content, after checking that the text item says the same."""
    result = answer["result"]
    (item,) = result["content"]
    assert json.loads(item["text"]) == result["structuredContent"], answer
    assert not result.get("isError"), answer
    return result["structuredContent"]


async def _let_tasks_end() -> None:
    """Let the tasks that a call leaves behind end on its own account, not on the next one's."""
    for _ in range(10):
        await checkpoint()

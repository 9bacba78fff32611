"""What a client says on each revision of the protocol, as the bytes it would send."""

import json
from dataclasses import dataclass
from typing import Any

LEGACY = "2025-11-25"
MODERN = "2026-07-28"

_CLIENT = {"name": "benchmarks", "version": "1"}
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Message:
    """One JSON-RPC message; without an id it is a notification."""

    method: str
    params: dict[str, Any]
    id: int | None = None

    def encode(self, revision: str) -> bytes:
        """As a body; the 2026-07-28 wire has no handshake, so each message says who sends it."""
        envelope = {"_meta": _ENVELOPE} if revision == MODERN else {}
        message = {"jsonrpc": "2.0", "method": self.method, "params": self.params | envelope}
        return json.dumps(message if self.id is None else message | {"id": self.id}).encode()

    def headers(self, revision: str) -> dict[str, str]:
        """What HTTP says of it beside the body."""
        headers = {"mcp-protocol-version": revision}
        if revision == MODERN:
            headers["mcp-method"] = self.method
            if "name" in self.params:
                headers["mcp-name"] = self.params["name"]
        return headers


INITIALIZE = Message(
    "initialize",
    {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT},
    id=1,
)
INITIALIZED = Message("notifications/initialized", {})
LIST_TOOLS = Message("tools/list", {}, id=2)


def call_tool(name: str, arguments: dict[str, Any]) -> Message:
    return Message("tools/call", {"name": name, "arguments": arguments}, id=3)


def handshake(revision: str) -> tuple[Message, ...]:
    """What comes before the first question."""
    return (INITIALIZE, INITIALIZED) if revision == LEGACY else ()

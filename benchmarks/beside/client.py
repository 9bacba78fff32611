"""A plain client of a running server: prepared requests over one kept connection, or over pipes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from subprocess import Popen
from typing import Any
from urllib.parse import urlencode, urlsplit

from benchmarks.server.wires import INITIALIZE, INITIALIZED, LEGACY, MODERN, Message, handshake

_SECONDS = 300
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "user-agent": "benchmarks",
}


class HttpClient:
    """Sends MCP messages and REST requests to a server, one after another."""

    def __init__(self, address: str) -> None:
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=_SECONDS)

    def send_message(
        self, path: str, message: Message, revision: str = MODERN, session: str | None = None
    ) -> Any:
        """Return the result of an MCP message; raise AssertionError where it is an error."""
        headers = _HEADERS | message.headers(revision)
        if session:
            headers["mcp-session-id"] = session
        _, body = self._send("POST", path, message.encode(revision), headers)
        return read_result(body)

    def open_session(self, path: str) -> str:
        """Greet as clients of 2025-11-25 do; return the id of the session."""
        headers = _HEADERS | INITIALIZE.headers(LEGACY)
        greeting, _ = self._send("POST", path, INITIALIZE.encode(LEGACY), headers)
        session = greeting["mcp-session-id"]
        headers = _HEADERS | INITIALIZED.headers(LEGACY) | {"mcp-session-id": session}
        self._send("POST", path, INITIALIZED.encode(LEGACY), headers)
        return session

    def get(self, path: str, parameters: Mapping[str, Any] = {}) -> Any:
        """Return the JSON that a REST address answers with."""
        address = f"{path}?{urlencode(parameters)}" if parameters else path
        _, body = self._send("GET", address, None, {"accept": "application/json"})
        return json.loads(body)

    def post(self, path: str, body: bytes, content_type: str) -> Any:
        _, answer = self._send("POST", path, body, {"content-type": content_type})
        return json.loads(answer)

    def close(self) -> None:
        self._connection.close()

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[Any, bytes]:
        self._connection.request(method, path, body, dict(headers))
        response = self._connection.getresponse()
        content = response.read()
        assert response.status < 300, (path, response.status, content[:500])
        return response.headers, content


@dataclass
class StdioClient:
    """Sends MCP messages to a server over its standard input and output."""

    process: Popen[bytes]
    revision: str
    _is_open: bool = field(default=False, init=False)

    def send_message(self, message: Message) -> Any:
        """Return the result of a message, after the greeting that this revision wants."""
        greetings = () if self._is_open else handshake(self.revision)
        self._is_open = True
        assert self.process.stdin and self.process.stdout
        for sent in (*greetings, message):
            self.process.stdin.write(sent.encode(self.revision) + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if json.loads(line).get("id") == message.id:
                return read_result(line)
        raise AssertionError(f"the server ended before it answered {message.method}")


def read_result(body: bytes) -> Any:
    """Return the result in a JSON-RPC answer, be it JSON or a stream of one event."""
    if body.startswith((b"event:", b"data:", b"id:", b":")):
        (body,) = (line[6:] for line in body.splitlines() if line.startswith(b"data: {"))
    answer = json.loads(body)
    assert "result" in answer, answer
    assert not answer["result"].get("isError"), answer
    return answer["result"]

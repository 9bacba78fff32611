"""The official hosts on loopback: files with ranges and validators, faults on demand."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

NO_HEADERS: Mapping[str, str] = {}


@dataclass
class Host:
    """What is served by path, what was asked, and what goes wrong next."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Each request: its path and the range it wanted."""
    break_off: dict[str, int] = field(default_factory=dict)
    """After how many bytes the connection is cut, once."""
    refuse: dict[str, int] = field(default_factory=dict)
    """The status a path is answered with, once."""
    heedless: set[str] = field(default_factory=set)
    """Paths of which a part is sent whatever `If-Range` says."""
    digests: dict[str, str] = field(default_factory=dict)
    """What the host says the hash of a path is."""

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextlib.contextmanager
def run_bulk_host() -> Iterator[Host]:
    host = Host()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            host.asked.append((path, self.headers.get("Range")))
            if status := host.refuse.pop(path, 0):
                self._head(status, b"", {"Retry-After": "0"})
            elif path not in host.files:
                self._head(404, b"")
            else:
                self._give(path, host.files[path])

        def _give(self, path: str, body: bytes) -> None:
            etag = f'"{hashlib.md5(body).hexdigest()}"'
            if self.headers.get("If-None-Match") == etag:
                self._head(304, b"", {"ETag": etag})
                return
            wanted = self.headers.get("Range")
            first = 0
            if wanted and (self.headers.get("If-Range") == etag or path in host.heedless):
                first = int(wanted.removeprefix("bytes=").rstrip("-"))
            told = {"ETag": etag}
            if path in host.digests:
                told["Repr-Digest"] = host.digests[path]
            if first:
                told["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
            self._head(206 if first else 200, body[first:], told, host.break_off.pop(path, None))

        def _head(
            self,
            status: int,
            body: bytes,
            told: Mapping[str, str] = NO_HEADERS,
            cut: int | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:cut])
            if cut is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Tests look at `asked` instead."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Runs the app on a socket until Ctrl-C, and leaves within two seconds."""

import gc
import signal
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from readingroom.core.errors import InvalidSetting
from readingroom.server.errors import PortInUse

_GRACE_SECONDS = 1  # for calls in progress; event streams are closed at once
# Idle connections are for clients to close: where we do it first, a call sent meanwhile is lost.
_IDLE_SECONDS = 75


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server of HTTPS shows, and the key to it: PEM files."""

    chain: Path
    key: Path

    def check(self) -> None:
        """Refuse files that are no such pair, before anything is started."""
        try:
            # A key with a password would make OpenSSL ask for it on the terminal.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.chain, self.key, password=lambda: "")
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise InvalidSetting(
                f"{self.chain} and {self.key} are no certificate with its key: {error}. Both are "
                "PEM files; the key has no password."
            ) from error


def bind(host: str, port: int) -> socket.socket:
    """Take the address before anything is started, so that a busy port costs nothing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise PortInUse(
            f"Cannot listen on {host}:{port}: {error}. Choose another address with --host, or "
            "another port with --port."
        ) from error
    # Accepted connections inherit it. Without it each answer on a kept connection waits some 40 ms
    # for the client's acknowledgement, and asyncio sets it only on sockets it made itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def local_address(listener: socket.socket, scheme: str) -> str:
    """Where a client on this machine finds the listener."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    name = f"[{reachable}]" if ":" in reachable else reachable
    return f"{scheme}://{name}:{port}"


def run(
    app: ASGIApp,
    listener: socket.socket,
    certificate: Certificate | None,
    trusted: tuple[str, ...],
    ready: Callable[[], None],
) -> None:
    """Serve until a signal; `ready` is called once requests are answered."""
    config = uvicorn.Config(
        app,
        http="h11",  # refuses the malformed headers that the 2026-07-28 wire forbids
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted),
        forwarded_allow_ips=list(trusted),
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, ready).run(sockets=[listener])
    # The process ends now: looking for garbage in all that was imported would be its longest part.
    gc.freeze()


class _Server(uvicorn.Server):
    """Uvicorn, but a signal is a wish to end, not a failure: the process exits with 0."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

"""Runs the app on a socket until Ctrl-C, and stops within two seconds."""

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
# Clients close idle connections: if we did it first, a call sent at that moment would be lost.
_IDLE_SECONDS = 75


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate chain of an HTTPS server and its private key, as PEM files."""

    chain: Path
    key: Path

    def check(self) -> None:
        """Raise InvalidSetting unless the files are a matching pair, before anything is started."""
        try:
            # A key with a password would make OpenSSL ask for it on the terminal.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.chain, self.key, password=lambda: "")
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise InvalidSetting(
                f"{self.chain} and {self.key} are not a matching certificate and key: {error}. "
                "Both must be PEM files, and the key must have no password."
            ) from error


def bind(host: str, port: int) -> socket.socket:
    """Bind the address before anything is started, so that a busy port costs nothing.

    Raise PortInUse.
    """
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


def format_local_address(listener: socket.socket, scheme: str) -> str:
    """Return the address by which a client on this machine reaches the listener."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    name = f"[{reachable}]" if ":" in reachable else reachable
    return f"{scheme}://{name}:{port}"


def run(
    app: ASGIApp,
    listener: socket.socket,
    certificate: Certificate | None,
    trusted_proxies: tuple[str, ...],
    on_ready: Callable[[], None],
) -> None:
    """Serve until a signal; call `on_ready` as soon as requests are answered."""
    config = uvicorn.Config(
        app,
        http="h11",  # refuses the malformed headers that the 2026-07-28 wire forbids
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Strangers need not know which software answers.
        server_header=False,
        # Believed of anybody else, X-Forwarded-For would be a way around the rate limit.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, on_ready).run(sockets=[listener])
    # The process ends now: a last garbage collection of all modules would take longest of all.
    gc.freeze()


class _Server(uvicorn.Server):
    """Uvicorn, but a signal is not a failure: the process exits with 0."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

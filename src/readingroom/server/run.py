"""Runs the app on a socket until Ctrl-C, and stops within two seconds."""

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn

from readingroom.core.errors import InvalidSetting
from readingroom.server.connections import (
    ConnectionGuard,
    GuardedProtocol,
    TlsProtocol,
    choose_connection_limits,
    count_reserved_descriptors,
    raise_descriptor_limit,
)
from readingroom.server.errors import PortInUse
from readingroom.server.startup import OpenApp, StartingApp

logger = logging.getLogger(__name__)

_SHUTDOWN_GRACE_SECONDS = 1  # for calls in progress; event streams are closed at once
_FORCED_END_SECONDS = 2.0  # from the second signal on
_LISTEN_BACKLOG = 1024  # connections that the kernel keeps until we accept them
# Clients close idle connections: if we did it first, a call sent at that moment would be lost.
_KEEP_ALIVE_SECONDS = 75


@dataclass(frozen=True, slots=True)
class TlsCertificate:
    """The certificate chain of an HTTPS server and its private key, as PEM files."""

    chain_path: Path
    key_path: Path

    def check_pair(self) -> None:
        """Raise InvalidSetting unless the files are a matching pair, before anything is started."""
        try:
            self.make_tls_context()
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise InvalidSetting(
                f"{self.chain_path} and {self.key_path} are not a matching certificate and key: "
                f"{error}. Both must be PEM files, and the key must have no password."
            ) from error

    def make_tls_context(self) -> ssl.SSLContext:
        """Return the TLS context of a server with this certificate."""
        tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A key with a password would make OpenSSL ask for it on the terminal.
        tls_context.load_cert_chain(self.chain_path, self.key_path, password=lambda: "")
        return tls_context


def bind_listener(host_address: str, port_number: int) -> socket.socket:
    """Bind the address before anything is started, so that a busy port costs nothing.

    Raise PortInUse.
    """
    address_family = socket.AF_INET6 if ":" in host_address else socket.AF_INET
    try:
        listener = socket.create_server(
            (host_address, port_number), family=address_family, backlog=_LISTEN_BACKLOG
        )
    except (OSError, OverflowError) as error:
        raise PortInUse(
            f"Cannot listen on {host_address}:{port_number}: {error}. Choose another address with "
            "--host, or "
            "another port with --port."
        ) from error
    # Accepted connections inherit it. Without it each answer on a kept connection waits some 40 ms
    # for the client's acknowledgement, and asyncio sets it only on sockets it made itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def format_local_address(listener: socket.socket, url_scheme: str) -> str:
    """Return the address by which a client on this machine reaches the listener."""
    host_address, port_number = listener.getsockname()[:2]
    reachable_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host_address, host_address)
    url_host = f"[{reachable_host}]" if ":" in reachable_host else reachable_host
    return f"{url_scheme}://{url_host}:{port_number}"


def run_server(
    open_app: OpenApp,
    listener: socket.socket,
    tls_certificate: TlsCertificate | None,
    trusted_proxies: tuple[str, ...],
) -> None:
    """Serve until a signal.

    Raise what `open_app` raises, or what the start of the bases in its app raises.
    """
    descriptor_limit = raise_descriptor_limit()
    connection_guard = ConnectionGuard(choose_connection_limits(descriptor_limit))
    make_protocol: Callable[..., asyncio.Protocol] = partial(GuardedProtocol, connection_guard)
    if tls_certificate:
        make_protocol = partial(TlsProtocol, connection_guard, tls_certificate.make_tls_context())
    starting_app = StartingApp(open_app)
    uvicorn_config = uvicorn.Config(
        starting_app,
        # h11 refuses the malformed headers that the 2026-07-28 wire forbids.
        http=cast(type[asyncio.Protocol], make_protocol),
        # On uvloop the first bytes of a handshake are lost when it is begun after the accept.
        loop="asyncio" if tls_certificate else "auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Strangers need not know which software answers.
        server_header=False,
        # Believed of anybody else, X-Forwarded-For would be a way around the rate limit.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        # asyncio accepts so many in one turn, and a connection takes some five turns from there
        # until the guard has closed another one for it.
        backlog=count_reserved_descriptors(descriptor_limit) // 16,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_GRACE_SECONDS,
    )
    uvicorn_server = _Server(uvicorn_config, connection_guard)
    starting_app.stop_server = uvicorn_server.stop_serving
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        # Uvicorn takes them while it serves; what it leaves to be ended afterwards can wait too.
        signal.signal(signal_number, uvicorn_server.handle_exit)
    uvicorn_server.run(sockets=[listener])
    if starting_app.failure:
        raise starting_app.failure
    # The process ends now: a last garbage collection of all modules would take longest of all.
    gc.freeze()


class _Server(uvicorn.Server):
    """Uvicorn, but a signal is not a failure: the process exits with 0."""

    def __init__(self, uvicorn_config: uvicorn.Config, connection_guard: ConnectionGuard) -> None:
        super().__init__(uvicorn_config)
        self._guard = connection_guard

    def stop_serving(self) -> None:
        """Stop as after a signal."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            # asyncio makes the queue of the kernel as short as what it accepts in one turn.
            listener.listen(_LISTEN_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Uvicorn does not know those whose TLS handshake has not ended, and would wait for them.
        self._guard.abort_half_open_connections()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order at the first signal; at a second one, of either kind, end in two seconds.

        What was acknowledged is stored by then: such an end is no worse than a `kill -9`.
        """
        if self.should_exit and not self.force_exit:
            self.force_exit = True
            # On a thread: what is waited for may be a database that hangs, and a thread at that.
            threading.Thread(target=_end_by_force, args=(sig,), daemon=True).start()
        self.should_exit = True


def _end_by_force(signal_number: int) -> None:
    time.sleep(_FORCED_END_SECONDS)  # the process is gone by then, unless something holds it
    logger.warning("Ended by a second signal: something did not stop in time")
    os._exit(128 + signal_number)

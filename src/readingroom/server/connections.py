"""Open connections: how many there may be, how long one may send headers or leave answers unread.

A connection is half-open until the headers of a request are complete. Half-open ones cost an
attacker nothing, so they are closed after a deadline, and when one address has too many of them:
the oldest first, because accepting must go on for everybody else at that address. The body of a
request must come at a lowest rate, and all answers that nobody reads together are bounded.
"""

import asyncio
import logging
import resource
import ssl
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from readingroom.server.http.addresses import get_address_group

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
# A connection whose request is already in the socket must be read before it may be judged, and
# between two ticks the event loop reads every socket.
_NEW_CONNECTION_GRACE_TICKS = 2
_SECONDS_BETWEEN_WARNINGS = 60
_MAX_DESCRIPTORS = 65_536  # more serves nobody, and some programs loop over all of them
_MAX_CONNECTIONS = 8_192  # some 25 KB each
_CLOSE_LINGER_SECONDS = 2.0
_MAX_HEAD_BYTES = 16 * 1024  # h11's own limit for a request line with its headers


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long one may keep us waiting."""

    max_connections: int = 1024
    max_half_open_per_address: int = 50
    """Half-open connections of one address; whole requests are not counted, because the callers of
    a proxy or a household share an address."""
    header_seconds: float = 15.0
    body_window_seconds: float = 30.0
    """How often it is looked whether a body came at the lowest rate since the last time."""
    min_body_bytes_per_second: int = 8 * 1024
    unread_seconds: float = 30.0
    """How long a client may take nothing of an answer that waits for it."""
    max_unread_bytes: int = 128 * 2**20
    """Of all answers that wait for their clients, in all connections together."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return the limit that now holds."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted_soft_limit = (
        _MAX_DESCRIPTORS
        if hard_limit == resource.RLIM_INFINITY
        else min(hard_limit, _MAX_DESCRIPTORS)
    )
    if soft_limit == resource.RLIM_INFINITY or soft_limit >= wanted_soft_limit:
        return _MAX_DESCRIPTORS if soft_limit == resource.RLIM_INFINITY else soft_limit
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted_soft_limit, hard_limit))
    except (OSError, ValueError):  # macOS has a lower limit than it says
        return soft_limit
    return wanted_soft_limit


def count_reserved_descriptors(descriptor_limit: int) -> int:
    """Return how many descriptors connections must leave to files and to those being accepted."""
    return min(descriptor_limit // 2, 2048)


def choose_connection_limits(descriptor_limit: int) -> ConnectionLimits:
    """Return the limits that fit into so many open files."""
    available_connection_count = descriptor_limit - count_reserved_descriptors(descriptor_limit)
    return ConnectionLimits(max_connections=min(available_connection_count, _MAX_CONNECTIONS))


def choose_max_requests_per_caller() -> int:
    """Return how many connections one caller may have with requests that wait for an answer."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptor_limit = _MAX_DESCRIPTORS if soft_limit == resource.RLIM_INFINITY else soft_limit
    return max(16, choose_connection_limits(descriptor_limit).max_connections // 4)


class ConnectionGuard:
    """Knows the open connections of a process and closes those that keep us waiting."""

    def __init__(self, connection_limits: ConnectionLimits) -> None:
        self.limits = connection_limits
        self._current_tick = 0
        self._timer: asyncio.TimerHandle | None = None
        self._open_connections: set[GuardedProtocol] = set()
        # Dictionaries keep their order: the oldest connection comes first.
        self._half_open_ticks: dict[GuardedProtocol, int] = {}
        """By connection, the tick at which it began to wait for headers."""
        self._idle_connections: dict[GuardedProtocol, None] = {}
        self._body_windows: dict[GuardedProtocol, tuple[int, int]] = {}
        """By connection that a body is expected of, the tick and the byte at which its rate was
        last looked at."""
        self._unread_answers: dict[GuardedProtocol, tuple[int, int]] = {}
        """By connection, the tick at which its buffer last shrank, and to how many bytes."""
        self._warned_at = -float("inf")

    def add_connection(self, connection: "GuardedProtocol") -> None:
        """Count a new connection, and close another one if there are too many."""
        self._open_connections.add(connection)
        self.start_header_deadline(connection)
        if len(self._open_connections) > self.limits.max_connections:
            # The newest is the last to go: it may be a request that is already in the socket.
            half_open_connections = self._half_open_ticks if len(self._half_open_ticks) > 1 else {}
            connection_to_close = next(chain(half_open_connections, self._idle_connections), None)
            connection_to_close = (
                connection_to_close or self._find_slowest_body_connection() or connection
            )
            self._warn_once_a_minute("Too many open connections", connection_to_close, 1)
            connection_to_close.abort_connection()

    def remove_connection(self, connection: "GuardedProtocol") -> None:
        """Forget a connection that is closed."""
        self._open_connections.discard(connection)
        self._half_open_ticks.pop(connection, None)
        self._idle_connections.pop(connection, None)
        self._body_windows.pop(connection, None)
        self._unread_answers.pop(connection, None)

    def start_header_deadline(self, connection: "GuardedProtocol") -> None:
        """Start the deadline for a request's headers, unless it runs already."""
        self._idle_connections.pop(connection, None)
        self._half_open_ticks.setdefault(connection, self._current_tick)
        self._schedule_next_check()

    def end_header_deadline(self, connection: "GuardedProtocol") -> None:
        """Note that the headers of a request are complete."""
        self._half_open_ticks.pop(connection, None)
        self._idle_connections.pop(connection, None)

    def start_body_watch(self, connection: "GuardedProtocol") -> None:
        """Begin to look at the rate of a request's body, unless that is done already."""
        self._body_windows.setdefault(connection, (self._current_tick, connection.body_bytes))
        self._schedule_next_check()

    def end_body_watch(self, connection: "GuardedProtocol") -> None:
        """Note that the body of a request is complete."""
        self._body_windows.pop(connection, None)

    def mark_idle(self, connection: "GuardedProtocol") -> None:
        """Note that a request was answered: until the next one the connection can be spared."""
        self._half_open_ticks.pop(connection, None)
        self._body_windows.pop(connection, None)
        self._idle_connections[connection] = None

    def mark_unread(self, connection: "GuardedProtocol") -> None:
        """Note that the client does not read as fast as we write."""
        self._unread_answers[connection] = (self._current_tick, connection.count_unread_bytes())
        self._schedule_next_check()
        # Not at once: the transport is still writing.
        asyncio.get_running_loop().call_soon(self._close_over_unread_limit)

    def mark_read(self, connection: "GuardedProtocol") -> None:
        """Note that the client has read nearly all that was written."""
        self._unread_answers.pop(connection, None)

    def abort_half_open_connections(self) -> None:
        """Close every connection without a request, as the server shuts down."""
        for connection in list(self._half_open_ticks):
            connection.abort_connection()

    def _schedule_next_check(self) -> None:
        if self._timer is None:
            event_loop = asyncio.get_running_loop()
            self._timer = event_loop.call_later(_TICK_SECONDS, self._close_offending_connections)

    def _close_offending_connections(self) -> None:
        self._timer = None
        self._current_tick += 1
        self._close_without_headers()
        self._close_half_open_crowds()
        self._close_slow_bodies()
        self._close_stalled_readers()
        self._close_over_unread_limit()
        if self._half_open_ticks or self._body_windows or self._unread_answers:
            self._schedule_next_check()

    def _close_without_headers(self) -> None:
        expiry_tick = self._current_tick - self.limits.header_seconds / _TICK_SECONDS
        for connection, wait_start_tick in list(self._half_open_ticks.items()):
            if wait_start_tick <= expiry_tick:
                connection.refuse_request(408, "The headers of the request did not come in time")

    def _close_half_open_crowds(self) -> None:
        """Close the oldest half-open connections of every address that has too many."""
        surplus_count_by_address = Counter(
            connection.client_address for connection in self._half_open_ticks
        )
        for client_address in surplus_count_by_address:
            surplus_count_by_address[client_address] -= self.limits.max_half_open_per_address
        surplus_connections = []
        for connection, wait_start_tick in self._half_open_ticks.items():
            if (
                surplus_count_by_address[connection.client_address] > 0
                and wait_start_tick <= self._current_tick - _NEW_CONNECTION_GRACE_TICKS
            ):
                surplus_count_by_address[connection.client_address] -= 1
                surplus_connections.append(connection)
        if surplus_connections:
            self._warn_once_a_minute(
                "Too many half-open connections of one address",
                surplus_connections[0],
                len(surplus_connections),
            )
        _abort_connections(surplus_connections)

    def _close_slow_bodies(self) -> None:
        window_ticks = self.limits.body_window_seconds / _TICK_SECONDS
        min_byte_count = self.limits.body_window_seconds * self.limits.min_body_bytes_per_second
        slow_connections = []
        for connection, (window_start_tick, window_start_byte_count) in self._body_windows.items():
            if (
                connection.is_reading_paused
            ):  # it is we who do not read: the time is not the client's
                self._body_windows[connection] = (window_start_tick + 1, window_start_byte_count)
            elif self._current_tick - window_start_tick >= window_ticks:
                if connection.body_bytes - window_start_byte_count < min_byte_count:
                    slow_connections.append(connection)
                else:
                    self._body_windows[connection] = (self._current_tick, connection.body_bytes)
        if slow_connections:
            self._warn_once_a_minute(
                "Bodies of requests came too slowly", slow_connections[0], len(slow_connections)
            )
        for connection in slow_connections:
            connection.refuse_body("The body of the request came too slowly; send it again")

    def _find_slowest_body_connection(self) -> "GuardedProtocol | None":
        """Return the connection whose body comes slowest; None where none is expected."""
        bytes_per_tick_by_connection = {
            connection: (connection.body_bytes - window_start_byte_count)
            / (self._current_tick - window_start_tick)
            for connection, (
                window_start_tick,
                window_start_byte_count,
            ) in self._body_windows.items()
            if self._current_tick - window_start_tick >= _NEW_CONNECTION_GRACE_TICKS
        }
        return min(
            bytes_per_tick_by_connection, key=bytes_per_tick_by_connection.__getitem__, default=None
        )

    def _close_stalled_readers(self) -> None:
        expiry_tick = self._current_tick - self.limits.unread_seconds / _TICK_SECONDS
        stalled_connections = []
        for connection, (
            last_shrunk_tick,
            earlier_unread_byte_count,
        ) in self._unread_answers.items():
            unread_byte_count = connection.count_unread_bytes()
            if unread_byte_count < earlier_unread_byte_count:
                self._unread_answers[connection] = (self._current_tick, unread_byte_count)
            elif last_shrunk_tick <= expiry_tick:
                stalled_connections.append(connection)
        for connection in stalled_connections:
            logger.warning(
                "An answer that nobody reads was dropped",
                extra={"fields": {"client_ip": connection.client_address}},
            )
        _abort_connections(stalled_connections)

    def _close_over_unread_limit(self) -> None:
        """Close the fullest connections of the address that leaves most unread, as need be."""
        unread_bytes_by_connection = {
            connection: connection.count_unread_bytes() for connection in self._unread_answers
        }
        surplus_byte_count = sum(unread_bytes_by_connection.values()) - self.limits.max_unread_bytes
        closed_connections = []
        while surplus_byte_count > 0:
            unread_bytes_by_address: Counter[str] = Counter()
            for connection, unread_byte_count in unread_bytes_by_connection.items():
                unread_bytes_by_address[connection.client_address] += unread_byte_count
            ((worst_address, _),) = unread_bytes_by_address.most_common(1)
            fullest_connection = max(
                (
                    unread_connection
                    for unread_connection in unread_bytes_by_connection
                    if unread_connection.client_address == worst_address
                ),
                key=unread_bytes_by_connection.__getitem__,
            )
            surplus_byte_count -= unread_bytes_by_connection.pop(fullest_connection)
            closed_connections.append(fullest_connection)
        if closed_connections:
            self._warn_once_a_minute(
                "Too many answers that nobody reads", closed_connections[0], len(closed_connections)
            )
        _abort_connections(closed_connections)

    def _warn_once_a_minute(
        self, warning_message: str, connection: "GuardedProtocol", closed_count: int
    ) -> None:
        """Log one line a minute: a flood must not fill the log as well."""
        now_seconds = asyncio.get_running_loop().time()
        if now_seconds - self._warned_at >= _SECONDS_BETWEEN_WARNINGS:
            self._warned_at = now_seconds
            log_fields = {
                "client_ip": connection.client_address,
                "closed": closed_count,
                "half_open": len(self._half_open_ticks),
                "open": len(self._open_connections),
            }
            logger.warning("%s; some are closed", warning_message, extra={"fields": log_fields})


def _abort_connections(open_connections: Iterable["GuardedProtocol"]) -> None:
    for connection in open_connections:
        connection.abort_connection()


class GuardedProtocol(H11Protocol):
    """Uvicorn's HTTP protocol on a connection that a guard knows."""

    def __init__(self, connection_guard: ConnectionGuard, **uvicorn_options: Any) -> None:
        super().__init__(**uvicorn_options)
        self.client_address = "unknown"
        self.body_bytes = 0
        """Bytes that came since the headers of the request were complete."""
        self._guard = connection_guard
        self._is_lingering = False

    @property
    def is_reading_paused(self) -> bool:
        """Whether we do not read from the client for the time being."""
        return bool(self.flow.read_paused)

    def register_connection(self, transport: asyncio.Transport) -> None:
        """Let the guard know of the connection, which may still have its TLS handshake to do."""
        peer_host_and_port = transport.get_extra_info("peername")
        self.client_address = (
            get_address_group(peer_host_and_port[0]) if peer_host_and_port else "unknown"
        )
        self.transport = transport
        self._guard.add_connection(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.transport is None:
            self.register_connection(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.remove_connection(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            return
        is_request_body = self.conn.their_state is h11.SEND_BODY
        self.body_bytes = self.body_bytes + len(data) if is_request_body else 0
        super().data_received(data)
        self._report_state_to_guard()

    def on_response_complete(self) -> None:
        self._guard.mark_idle(self)
        super().on_response_complete()
        self._report_state_to_guard()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._guard.mark_unread(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._guard.mark_read(self)

    def count_unread_bytes(self) -> int:
        """Return how much of our answers the client's machine has not taken yet."""
        return self.transport.get_write_buffer_size()

    def abort_connection(self) -> None:
        """Close the connection at once, and drop what was not sent."""
        self._guard.remove_connection(self)
        self.transport.abort()

    def refuse_request(self, http_status: int, refusal_message: str) -> None:
        """Answer an incomplete request and close; without an answer where nothing was asked."""
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self.abort_connection()
            return
        self._answer_and_close(http_status, refusal_message)

    def refuse_body(self, refusal_message: str) -> None:
        """Answer a request whose body is not complete with 408, if it has no answer yet; close."""
        if self.cycle is None or self.cycle.response_started:
            self.abort_connection()
            return
        # The app learns what it would if the client had left, and can send nothing any more.
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        self._answer_and_close(408, refusal_message)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no valid request; one that is too long has statuses of its own."""
        unparsed_bytes, _ = self.conn.trailing_data
        if self.conn.their_state is h11.ERROR and len(unparsed_bytes) > _MAX_HEAD_BYTES:
            is_long_url = b"\n" not in unparsed_bytes
            http_status = 414 if is_long_url else 431
            too_long_part_name = "The address" if is_long_url else "The headers"
            self._answer_and_close(http_status, f"{too_long_part_name} of the request are too long")
        else:
            super().send_400_response(msg)

    def _report_state_to_guard(self) -> None:
        if self.transport.is_closing() or self._is_lingering:
            return
        if self.conn.their_state is not h11.IDLE:
            if self.cycle is not None and not self.cycle.response_complete:
                self._guard.end_header_deadline(self)
            if self.conn.their_state is h11.SEND_BODY:
                self._guard.start_body_watch(self)
            else:
                self._guard.end_body_watch(self)
        elif self.conn.trailing_data[0]:
            self._guard.start_header_deadline(self)

    def _answer_and_close(self, http_status: int, refusal_message: str) -> None:
        answer_body = refusal_message.encode()
        response_headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(answer_body)),
            (b"connection", b"close"),
        ]
        response = h11.Response(
            status_code=http_status, headers=response_headers, reason=STATUS_PHRASES[http_status]
        )
        for h11_event in (response, h11.Data(data=answer_body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(h11_event) or b"")
        self._is_lingering = True
        self._guard.mark_idle(self)
        if self.transport.can_write_eof():
            # Closing while the client still sends would reset the connection: no answer arrives.
            self.transport.write_eof()
            self.loop.call_later(_CLOSE_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()


class TlsProtocol(asyncio.Protocol):
    """Does the TLS handshake of a connection that the guard already knows, then speaks HTTP.

    Where asyncio itself does it, nobody counts the connections whose handshake never ends.
    """

    def __init__(
        self, connection_guard: ConnectionGuard, tls_context: ssl.SSLContext, **uvicorn_options: Any
    ) -> None:
        self._http_protocol = GuardedProtocol(connection_guard, **uvicorn_options)
        self._guard = connection_guard
        self._context = tls_context
        self._early_data = b""
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._http_protocol.register_connection(transport)
        self._handshake = asyncio.get_running_loop().create_task(self._do_tls_handshake(transport))

    def data_received(self, data: bytes) -> None:
        # A client may send its request with the last message of the handshake.
        self._early_data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.remove_connection(self._http_protocol)

    async def _do_tls_handshake(self, transport: asyncio.Transport) -> None:
        try:
            tls_transport = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._guard.limits.header_seconds,
            )
        except (OSError, TimeoutError):  # an SSLError is an OSError
            tls_transport = None
        if tls_transport is None or tls_transport.is_closing():
            self._guard.remove_connection(self._http_protocol)
            transport.abort()
            return
        tls_transport.set_protocol(self._http_protocol)
        self._http_protocol.connection_made(tls_transport)
        if self._early_data:
            self._http_protocol.data_received(self._early_data)

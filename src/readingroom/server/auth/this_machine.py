"""Tells whether a request comes straight from a program of this account, and through no proxy."""

import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path

from starlette.requests import Request
from starlette.types import Scope

from readingroom.server.http.addresses import is_loopback
from readingroom.server.settings import ServerSettings

_PROXY_HEADERS = (b"forwarded", b"via", b"true-client-ip", b"client-ip", b"cdn-loop")
_PROXY_HEADER_PREFIXES = (b"x-", b"cf-", b"fly-", b"fastly-")
"""What proxies write into a request; no browser sends any of these, and neither do our pages."""
_CONNECTION_TABLE_PATHS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SOCK_DIAG_PROTOCOL = 4  # NETLINK_SOCK_DIAG, which the socket module does not name
_DIAG_BY_FAMILY_MESSAGE_TYPE = 20  # SOCK_DIAG_BY_FAMILY
# nlmsghdr: length, type, flags, sequence, port
_DIAG_HEADER_STRUCT = struct.Struct("=IHHII")
# inet_diag_req_v2: family, protocol, extensions and padding, states; the socket's id follows
_DIAG_REQUEST_STRUCT = struct.Struct("=BBxxI")
# Ports and addresses are in the order of the network, everything else in that of the machine.
_PORTS_STRUCT = struct.Struct("!HH")
_ANY_INTERFACE_AND_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
# inet_diag_msg: family, state, timer and retransmissions stand before the id of the socket.
_ANSWER_PORTS_OFFSET = _DIAG_HEADER_STRUCT.size + 4
# After the id come three numbers: when the timer ends, and the lengths of both queues.
_ANSWER_USER_ID_OFFSET = _ANSWER_PORTS_OFFSET + 48 + 12


def is_direct_and_local(scope: Scope, settings: ServerSettings) -> bool:
    """Whether only somebody with this account, sitting at this machine, can have sent a request.

    A proxy betrays itself by a header, by HTTP/1.0, by a name that is not loopback's, by a setting
    that announces it, or by an account of its own.
    """
    return (
        is_loopback(settings.host)
        and not settings.public_url
        and not settings.trusted_proxies
        and scope["http_version"] != "1.0"
        and is_loopback(Request(scope).url.hostname or "")
        and not any(_is_proxy_header(header_name) for header_name, _ in scope["headers"])
        and find_sender_user_id(scope) in (None, 0, os.getuid())
    )


def find_sender_user_id(scope: Scope) -> int | None:
    """Return the user id of the program that opened a connection on this machine.

    None where the kernel does not tell: on macOS, or when the connection is closed already.
    """
    try:
        return _ask_kernel_for_user_id(scope["client"], scope["server"])
    except OSError:  # no Linux, or a sandbox that forbids the question
        pass
    except (TypeError, ValueError, struct.error):  # no addresses, or those of a test
        return None
    return _find_user_id_in_tables(scope["client"], scope["server"])


def _ask_kernel_for_user_id(
    client_host_and_port: tuple[str, int], server_host_and_port: tuple[str, int]
) -> int | None:
    """Return the account of a connection, which the kernel looks up in microseconds.

    Its tables take milliseconds to read, and all other callers would wait for them. Raise OSError
    where it cannot be asked.
    """
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError("only Linux can be asked")
    client_ip_address, server_ip_address = (
        ipaddress.ip_address(host_and_port[0])
        for host_and_port in (client_host_and_port, server_host_and_port)
    )
    address_family = socket.AF_INET if client_ip_address.version == 4 else socket.AF_INET6
    port_bytes = _PORTS_STRUCT.pack(client_host_and_port[1], server_host_and_port[1])
    kernel_question = (
        _DIAG_REQUEST_STRUCT.pack(address_family, socket.IPPROTO_TCP, 0xFFFFFFFF)
        + port_bytes
        + client_ip_address.packed.ljust(16, b"\0")
        + server_ip_address.packed.ljust(16, b"\0")
        + _ANY_INTERFACE_AND_COOKIE
    )
    diag_header = _DIAG_HEADER_STRUCT.pack(
        _DIAG_HEADER_STRUCT.size + len(kernel_question), _DIAG_BY_FAMILY_MESSAGE_TYPE, 1, 0, 0
    )
    # The kernel answers while we send, so that there is nothing to wait for.
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG_PROTOCOL) as kernel_socket:
        kernel_socket.sendto(diag_header + kernel_question, (0, 0))
        kernel_answer = kernel_socket.recv(4096, socket.MSG_DONTWAIT)
    # Anything else is an error, or somebody who listens where a connection has ended.
    if (
        _DIAG_HEADER_STRUCT.unpack_from(kernel_answer)[1] != _DIAG_BY_FAMILY_MESSAGE_TYPE
        or port_bytes
        != kernel_answer[_ANSWER_PORTS_OFFSET : _ANSWER_PORTS_OFFSET + _PORTS_STRUCT.size]
    ):
        return None
    return int.from_bytes(
        kernel_answer[_ANSWER_USER_ID_OFFSET : _ANSWER_USER_ID_OFFSET + 4], sys.byteorder
    )


def _find_user_id_in_tables(
    client_host_and_port: tuple[str, int], server_host_and_port: tuple[str, int]
) -> int | None:
    """Return the account of a connection as the tables of the kernel have it."""
    client_address_spellings, server_address_spellings = (
        _list_kernel_address_spellings(client_host_and_port),
        _list_kernel_address_spellings(server_host_and_port),
    )
    for table_path in _CONNECTION_TABLE_PATHS:
        try:
            table_lines = table_path.read_text("ascii").splitlines()
        except OSError:
            continue
        for table_line in table_lines:
            # Its number, both addresses, the state, three columns of queues and timers, the account
            table_columns = table_line.split(maxsplit=8)
            if (
                table_columns[1] in client_address_spellings
                and table_columns[2] in server_address_spellings
            ):
                return int(table_columns[7])
    return None


def _is_proxy_header(header_name: bytes) -> bool:
    return header_name in _PROXY_HEADERS or header_name.startswith(_PROXY_HEADER_PREFIXES)


def _list_kernel_address_spellings(host_and_port: tuple[str, int]) -> tuple[str, ...]:
    """Return one end of a connection as the kernel's tables write it, for IPv4 and for IPv6."""
    host_address, port_number = host_and_port
    ip_address = ipaddress.ip_address(host_address)
    packed_addresses = [ip_address.packed]
    if ip_address.version == 4:
        packed_addresses.append(ipaddress.ip_address(f"::ffff:{host_address}").packed)
    return tuple(
        f"{_format_kernel_address(packed_address)}:{port_number:04X}"
        for packed_address in packed_addresses
    )


def _format_kernel_address(packed_address: bytes) -> str:
    """Return an address in hexadecimal, each word of 32 bits in the order of this machine."""
    address_words = (
        packed_address[byte_offset : byte_offset + 4]
        for byte_offset in range(0, len(packed_address), 4)
    )
    return "".join(
        f"{int.from_bytes(address_word, sys.byteorder):08X}" for address_word in address_words
    )

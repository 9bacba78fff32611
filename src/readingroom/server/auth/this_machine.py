"""Tells whether a request comes straight from a program of this account, and through no proxy."""

import ipaddress
import os
import sys
from pathlib import Path

from starlette.requests import Request
from starlette.types import Scope

from readingroom.server.http.addresses import is_loopback
from readingroom.server.settings import ServerSettings

_PROXY_HEADERS = (b"forwarded", b"via", b"true-client-ip", b"client-ip", b"cdn-loop")
_PROXY_PREFIXES = (b"x-", b"cf-", b"fly-", b"fastly-")
"""What proxies write into a request; no browser sends any of these, and neither do our pages."""
_CONNECTION_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


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
        and not any(_is_of_proxy(header_name) for header_name, _ in scope["headers"])
        and find_sender_account(scope) in (None, 0, os.getuid())
    )


def find_sender_account(scope: Scope) -> int | None:
    """Return the user id of the program that opened a connection on this machine.

    None where the kernel does not tell: on macOS, or when the connection is closed already.
    """
    try:
        own_end, other_end = _list_spellings(scope["client"]), _list_spellings(scope["server"])
    except (TypeError, ValueError):  # no addresses, or those of a test
        return None
    for table_path in _CONNECTION_TABLES:
        try:
            table_lines = table_path.read_text("ascii").splitlines()
        except OSError:
            continue
        for table_line in table_lines:
            # Its number, both addresses, the state, three columns of queues and timers, the account
            columns = table_line.split(maxsplit=8)
            if columns[1] in own_end and columns[2] in other_end:
                return int(columns[7])
    return None


def _is_of_proxy(header_name: bytes) -> bool:
    return header_name in _PROXY_HEADERS or header_name.startswith(_PROXY_PREFIXES)


def _list_spellings(connection_end: tuple[str, int]) -> tuple[str, ...]:
    """Return one end of a connection as the kernel's tables write it, for IPv4 and for IPv6."""
    host, port = connection_end
    ip_address = ipaddress.ip_address(host)
    packed_addresses = [ip_address.packed]
    if ip_address.version == 4:
        packed_addresses.append(ipaddress.ip_address(f"::ffff:{host}").packed)
    return tuple(f"{_format_words(packed)}:{port:04X}" for packed in packed_addresses)


def _format_words(packed: bytes) -> str:
    """Return an address in hexadecimal, each word of 32 bits in the order of this machine."""
    address_words = (packed[start_byte : start_byte + 4] for start_byte in range(0, len(packed), 4))
    return "".join(
        f"{int.from_bytes(address_word, sys.byteorder):08X}" for address_word in address_words
    )

"""Addresses: this server's, as a client writes it, and which ones only this machine can reach."""

import ipaddress

from starlette.requests import Request


def address_of(request: Request, public_url: str | None) -> str:
    """The public address where one is set, else the one this request came by."""
    return public_url or f"{request.url.scheme}://{request.url.netloc}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Addresses: this server's own, as a client writes it, and which ones only this machine reaches."""

import ipaddress

from starlette.requests import Request


def resolve_address(request: Request, public_url: str | None) -> str:
    """Return the public address where one is set, else the one this request came to."""
    return public_url or f"{request.url.scheme}://{request.url.netloc}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

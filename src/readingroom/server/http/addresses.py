"""Addresses: this server's own, as a client writes it, and which ones only this machine reaches."""

import ipaddress

from starlette.requests import Request


def get_server_address(request: Request, public_url: str | None) -> str:
    """Return the public address where one is set, else the one this request came to."""
    return public_url or f"{request.url.scheme}://{request.url.netloc}"


def is_loopback(host_address: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host_address).is_loopback
    except ValueError:
        return host_address == "localhost"


def get_address_group(host_address: str) -> str:
    """Return what limits count an address as: itself, or for IPv6 the /64 that one customer has."""
    try:
        ip_address = ipaddress.ip_address(host_address.partition("%")[0])
    except ValueError:  # a proxy may pass on anything
        return host_address
    if ip_address.version == 4:
        return host_address
    if ip_address.ipv4_mapped:
        return str(ip_address.ipv4_mapped)
    return str(ipaddress.ip_network((ip_address, 64), strict=False))

"""The address of this server as a client writes it."""

from starlette.requests import Request


def address_of(request: Request, public_url: str | None) -> str:
    """The public address where one is set, else the one this request came by."""
    return public_url or f"{request.url.scheme}://{request.url.netloc}"

"""What every HTTP request passes before it reaches a room: Host, Origin, key, rate limit."""

import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom.server.auth.keys import client_ip, log_refusal
from readingroom.server.auth.policies import Guards
from readingroom.server.errors import ForbiddenOrigin, IssuerUnreachable, Misdirected, Unauthorized
from readingroom.server.http.limits import RateLimiter
from readingroom.server.settings import ServerSettings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HEALTH = ("/health", b"/health")


@dataclass(frozen=True)
class Names:
    """The Host and Origin values this server answers to; `name:*` stands for any port."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]


def names_of(settings: ServerSettings) -> Names:
    """Loopback, our own address, the public one, and what the operator added."""
    own = [*_LOOPBACK, *_bracketed(settings.host), *settings.allowed_hosts]
    if settings.public_url:
        own.append(urlsplit(settings.public_url).netloc)
    hosts = tuple(dict.fromkeys(_any_port(host.lower() for host in own)))
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return Names(hosts, (*origins, *(origin.lower() for origin in settings.allowed_origins)))


class Door:
    """Refuses what may not come in; the SDK's user in the scope tells the rooms who did.

    Paths that match `own_key` ask for a key of their own: the admin route (server/http/admin.py).
    """

    def __init__(
        self,
        app: ASGIApp,
        names: Names,
        guards: Guards,
        limiter: RateLimiter,
        own_key: re.Pattern[str] | None,
    ) -> None:
        self._app = app
        self._names = names
        self._guards = guards
        self._limiter = limiter
        self._own_key = own_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_health(scope):
            self._check_names(scope)
            await self._check_caller(scope)
        await self._app(scope, receive, send)

    def _check_names(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not _matches(host, self._names.hosts):
            raise Misdirected(
                f"This server does not answer to the host {host[:100]!r}; "
                "the operator can add it with READINGROOM_ALLOWED_HOSTS"
            )
        if host.encode("latin-1") != headers[b"host"]:
            _lower(scope, b"host")
        if b"origin" not in headers:
            return
        origin = headers[b"origin"].decode("latin-1").lower()
        if not _matches(origin, self._names.origins):
            raise ForbiddenOrigin(
                f"Pages of {origin[:100]!r} may not call this server; "
                "the operator can add them with READINGROOM_ALLOWED_ORIGINS"
            )
        if origin.encode("latin-1") != headers[b"origin"]:
            _lower(scope, b"origin")

    async def _check_caller(self, scope: Scope) -> None:
        address = f"ip:{client_ip(scope)}"
        if self._own_key and self._own_key.fullmatch(scope["path"]):
            return self._spend(scope, address)
        try:
            user = await self._guards.user(scope)
        except (Unauthorized, IssuerUnreachable) as refusal:
            self._spend(scope, address)  # guessing keys is counted too
            if isinstance(refusal, Unauthorized):
                log_refusal(refusal, scope)
            raise
        self._spend(scope, f"key:{user.username}" if user else address)
        if user:
            scope["user"] = user

    def _spend(self, scope: Scope, caller: str) -> None:
        """Count a request; the edge (problems.py) tells the caller what is left."""
        try:
            self._limiter.spend(caller)
        finally:
            scope["state"]["allowance"] = self._limiter.allowance(caller)


def _is_health(scope: Scope) -> bool:
    """The one path that is always open, matched exactly, also as it stood on the wire."""
    return (scope["path"], scope.get("raw_path", _HEALTH[1])) == _HEALTH


def _matches(value: str, allowed: Collection[str]) -> bool:
    name, colon, port = value.rpartition(":")
    if port == "*":
        return False
    return value in allowed or (bool(colon) and port.isdecimal() and f"{name}:*" in allowed)


def _lower(scope: Scope, wanted: bytes) -> None:
    """Write a header as the SDK, which knows only lower case, compares it."""
    scope["headers"] = [
        (name, value.lower() if name == wanted else value) for name, value in scope["headers"]
    ]


def _any_port(hosts: Iterable[str]) -> Iterable[str]:
    """A name without a port stands for itself and for every port of it."""
    for host in hosts:
        yield host
        if not host.rpartition("]")[2].count(":"):
            yield f"{host}:*"


def _bracketed(host: str) -> list[str]:
    """The address we listen on as a Host header writes it; a wildcard address is nobody's name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [host]
    if address.is_unspecified:
        return []
    return [f"[{host}]" if address.version == 6 else host]

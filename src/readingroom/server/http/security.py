"""What every HTTP request passes before it is served: Host, Origin, credentials, rate limit."""

import ipaddress
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom.core.caller import current_caller
from readingroom.server.auth.bearer import client_ip, log_refusal
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.errors import ForbiddenOrigin, IssuerUnreachable, Misdirected, Unauthorized
from readingroom.server.http.limits import RateLimiter
from readingroom.server.settings import ServerSettings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_OPEN_PATHS = ("/health", "/ready")


@dataclass(frozen=True)
class AllowedNames:
    """The Host and Origin values this server answers to; `name:*` stands for any port."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]


def list_allowed_names(settings: ServerSettings) -> AllowedNames:
    """Return loopback, the address we listen on, the public one, and what the operator added."""
    names = [*_LOOPBACK, *_format_host(settings.host), *settings.allowed_hosts]
    if settings.public_url:
        names.append(urlsplit(settings.public_url).netloc)
    hosts = tuple(dict.fromkeys(_add_any_port(name.lower() for name in names)))
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return AllowedNames(hosts, (*origins, *(origin.lower() for origin in settings.allowed_origins)))


class SecurityMiddleware:
    """ASGI middleware: checks Host, Origin, credentials and rate limit; sets `scope["user"]`.

    Paths that match `own_key_paths` check a key of their own: the admin route (http/admin.py).
    """

    def __init__(
        self,
        app: ASGIApp,
        names: AllowedNames,
        policies: AuthPolicies,
        limiter: RateLimiter,
        own_key_paths: re.Pattern[str] | None,
    ) -> None:
        self._app = app
        self._names = names
        self._policies = policies
        self._limiter = limiter
        self._own_key_paths = own_key_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_open(scope):
            self._check_names(scope)
            await self._check_caller(scope)
        await self._app(scope, receive, send)

    def _check_names(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        # Against DNS rebinding: a page whose name resolves to our address has its own name here.
        if not _is_allowed(host, self._names.hosts):
            raise Misdirected(
                f"This server does not answer to the host {host[:100]!r}; "
                "the operator can add it with READINGROOM_ALLOWED_HOSTS"
            )
        if b"origin" not in headers:
            return
        origin = headers[b"origin"].decode("latin-1").lower()
        if not _is_allowed(origin, self._names.origins):
            raise ForbiddenOrigin(
                f"Pages of {origin[:100]!r} may not call this server; "
                "the operator can add them with READINGROOM_ALLOWED_ORIGINS"
            )

    async def _check_caller(self, scope: Scope) -> None:
        address = f"ip:{client_ip(scope)}"
        if self._own_key_paths and self._own_key_paths.fullmatch(scope["path"]):
            return self._count_request(scope, address)
        try:
            user = await self._policies.authenticate(scope)
        except (Unauthorized, IssuerUnreachable) as refusal:
            self._count_request(scope, address)  # guessing keys is limited, too
            if isinstance(refusal, Unauthorized):
                log_refusal(refusal, scope)
            raise
        self._count_request(scope, f"key:{user.username}" if user else address)
        if user:
            scope["user"] = user

    def _count_request(self, scope: Scope, caller: str) -> None:
        """Count a request; ErrorMiddleware sends the caller what remains."""
        current_caller.set(caller)
        try:
            self._limiter.spend(caller)
        finally:
            scope["state"]["allowance"] = self._limiter.allowance(caller)


def _is_open(scope: Scope) -> bool:
    """Return whether this path is always open; it is also compared as it was on the wire."""
    path = scope["path"]
    return path in _OPEN_PATHS and scope.get("raw_path", path.encode()) == path.encode()


def _is_allowed(value: str, allowed: Collection[str]) -> bool:
    name, colon, port = value.rpartition(":")
    # A caller must not be able to send the wildcard of our own list.
    if port == "*":
        return False
    return value in allowed or (bool(colon) and port.isdecimal() and f"{name}:*" in allowed)


def _add_any_port(hosts: Iterable[str]) -> Iterable[str]:
    """Yield each host; one without a port also stands for every port of it."""
    for host in hosts:
        yield host
        # After the bracket, because an IPv6 address has colons of its own.
        if not host.rpartition("]")[2].count(":"):
            yield f"{host}:*"


def _format_host(host: str) -> list[str]:
    """Return the address we listen on as a Host header has it; none for a wildcard address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [host]
    # 0.0.0.0 is where we listen, and no name that anybody calls us by.
    if address.is_unspecified:
        return []
    return [f"[{host}]" if address.version == 6 else host]

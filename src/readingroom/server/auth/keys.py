"""Who is calling: bearer keys, each its own user of the SDK, so that sessions cannot be shared."""

import hmac
import logging
from typing import Literal, Protocol

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Scope

from readingroom.server.errors import Unauthorized
from readingroom.storage.keys import Holder, KeyRing

logger = logging.getLogger(__name__)

MISSING = "Missing Authorization header"
MALFORMED = "Invalid Authorization header format. Expected: Bearer <token>"
INVALID = "Invalid bearer token"

WRITE = "write"
"""What a user may do whose key is not for reading alone."""

_ENVIRONMENT = Holder("env", "")

Posture = Literal["open", "key", "oauth"]


class Guard(Protocol):
    """Decides who may come in."""

    strictness: int
    """Of two guards before one path, the stricter one stands there."""
    issuers: tuple[str, ...]
    """The authorization servers whose tokens it takes."""

    @property
    def posture(self) -> Posture: ...

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The caller; None for anybody. Raises Unauthorized."""


class Users(dict[Holder, AuthenticatedUser]):
    """Each holder of a key as a user of the SDK, always the same one."""

    def __missing__(self, holder: Holder) -> AuthenticatedUser:
        # The SDK wants a token; it is never read, so the secret does not have to live in it.
        scopes = [] if holder.read_only else [WRITE]
        who = AccessToken(token="", client_id=holder.name, subject=holder.digest, scopes=scopes)
        self[holder] = AuthenticatedUser(who)
        return self[holder]


class Open:
    """Lets everybody in, whatever they send."""

    posture: Posture = "open"
    strictness = 0
    issuers: tuple[str, ...] = ()

    async def user(self, scope: Scope) -> None:
        return None


class Gate:
    """Lets a request in by `MCP_API_KEY` or by a named key; open while there is neither."""

    strictness = 1
    issuers: tuple[str, ...] = ()

    def __init__(self, api_key: str | None, ring: KeyRing) -> None:
        self.ring = ring
        self._api_key = api_key.encode() if api_key else None
        self._closed = self._api_key is not None or ring.any()
        self._users = Users()

    @property
    def closed(self) -> bool:
        """Whether a key is asked for. The first key added closes the gate for good: revoking the
        last one must not open it.
        """
        self._closed = self._closed or self.ring.any()
        return self._closed

    @property
    def posture(self) -> Posture:
        return "key" if self.closed else "open"

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The caller; None when the gate is open. Raises Unauthorized."""
        if not self.closed:
            return None
        token = bearer(scope)
        if self._api_key and hmac.compare_digest(token, self._api_key):
            return self._users[_ENVIRONMENT]
        holder = self.ring.holder(token)
        if holder is None:
            raise Unauthorized(INVALID)
        return self._users[holder]


def bearer(scope: Scope) -> bytes:
    """The token a request carries. Raises Unauthorized."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        raise Unauthorized(MISSING)
    header: bytes = given[0]
    scheme, _, token = header.partition(b" ")
    if len(given) > 1 or scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized(MALFORMED)
    return token.strip()


def may_write(scope: Scope) -> bool:
    """Whether the caller may call what writes: everybody may whose key does not say otherwise."""
    user = scope.get("user")
    return user is None or WRITE in user.scopes


def client_ip(scope: Scope) -> str:
    """The address of the caller (of the proxy's caller, when the proxy is a trusted one)."""
    client = scope.get("client")
    return client[0][:64] if client else "unknown"  # a proxy may pass on anything


def log_refusal(refusal: Unauthorized, scope: Scope) -> None:
    """The warning that a refused key leaves behind."""
    fields = {
        "request_id": scope["state"]["request_id"],
        "client_ip": client_ip(scope),
        "endpoint": scope["path"][:200],
        "method": scope["method"],
    }
    if "reason" in refusal.hint:
        fields["reason"] = refusal.hint["reason"]
    logger.warning("%s", refusal.message, extra={"fields": fields})

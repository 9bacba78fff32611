"""Who is calling: bearer keys, each its own user of the SDK, so that sessions cannot be shared."""

import hmac
import logging

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Scope

from readingroom.core.errors import Unauthorized
from readingroom.storage.keys import Holder, KeyRing

logger = logging.getLogger(__name__)

MISSING = "Missing Authorization header"
MALFORMED = "Invalid Authorization header format. Expected: Bearer <token>"
INVALID = "Invalid bearer token"

_ENVIRONMENT = Holder("env", "")


class Gate:
    """Lets a request in by `MCP_API_KEY` or by a named key; open while there is neither."""

    def __init__(self, api_key: str | None, ring: KeyRing) -> None:
        self._api_key = api_key.encode() if api_key else None
        self._ring = ring
        self._closed = self._api_key is not None or ring.any()
        self._users: dict[Holder, AuthenticatedUser] = {}

    @property
    def closed(self) -> bool:
        """Whether a key is asked for. The first key added closes the gate for good: revoking the
        last one must not open it.
        """
        self._closed = self._closed or self._ring.any()
        return self._closed

    def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The caller; None when the gate is open. Raises Unauthorized."""
        if not self.closed:
            return None
        token = _bearer(scope)
        if self._api_key and hmac.compare_digest(token, self._api_key):
            return self._known(_ENVIRONMENT)
        holder = self._ring.holder(token)
        if holder is None:
            raise Unauthorized(INVALID)
        return self._known(holder)

    def _known(self, holder: Holder) -> AuthenticatedUser:
        if holder not in self._users:
            # The SDK wants a token; it is never read, so the secret does not have to live in it.
            who = AccessToken(token="", client_id=holder.name, subject=holder.digest, scopes=[])
            self._users[holder] = AuthenticatedUser(who)
        return self._users[holder]


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
    logger.warning("%s", refusal.message, extra={"fields": fields})


def _bearer(scope: Scope) -> bytes:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        raise Unauthorized(MISSING)
    header: bytes = given[0]
    scheme, _, token = header.partition(b" ")
    if len(given) > 1 or scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized(MALFORMED)
    return token.strip()

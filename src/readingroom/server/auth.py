"""Who is calling: bearer keys, each its own user of the SDK, so that sessions cannot be shared."""

import hmac
import logging

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Scope

from readingroom.core.errors import Unauthorized
from readingroom.storage.keys import KeyRing

logger = logging.getLogger(__name__)

MISSING = "Missing Authorization header"
MALFORMED = "Invalid Authorization header format. Expected: Bearer <token>"
INVALID = "Invalid bearer token"


class Gate:
    """Lets a request in by `MCP_API_KEY` or by a named key; open while there is neither."""

    def __init__(self, api_key: str | None, ring: KeyRing) -> None:
        self._api_key = api_key.encode() if api_key else None
        self._ring = ring
        self._closed = api_key is not None or ring.any()
        self._users: dict[str, AuthenticatedUser] = {}

    @property
    def closed(self) -> bool:
        """Whether a key is asked for. The first key added closes the gate for good: revoking the
        last one must not open it.
        """
        self._closed = self._closed or self._ring.any()
        return self._closed

    def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The caller; None when the gate is open. Raises Unauthorized, and logs that it did."""
        if not self.closed:
            return None
        try:
            return self._known(self._holder(_bearer(scope)))
        except Unauthorized as refusal:
            fields = {
                "request_id": scope["state"]["request_id"],
                "client_ip": client_ip(scope),
                "endpoint": scope["path"],
                "method": scope["method"],
            }
            logger.warning("%s", refusal.message, extra={"fields": fields})
            raise

    def _holder(self, token: str) -> str:
        if self._api_key and hmac.compare_digest(token.encode(), self._api_key):
            return "env"
        holder = self._ring.holder(token)
        if holder is None:
            raise Unauthorized(INVALID)
        return holder

    def _known(self, name: str) -> AuthenticatedUser:
        if name not in self._users:
            # The SDK wants a token; it is never read, so the secret does not have to live in it.
            self._users[name] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        return self._users[name]


def client_ip(scope: Scope) -> str:
    """The address of the caller (of the proxy's caller, when the proxy is a trusted one)."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _bearer(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        raise Unauthorized(MISSING)
    header: str = given[0].decode("latin-1")
    scheme, _, token = header.partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(MALFORMED)
    return token.strip()

"""Bearer keys: who is calling, each as a user of its own, so that sessions cannot be shared."""

import hmac
import logging
from typing import Literal, Protocol

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Scope

from readingroom.server.errors import Unauthorized
from readingroom.server.http.addresses import get_address_group
from readingroom.storage.grants import ACCESS_TOKEN_PREFIX, GrantStore
from readingroom.storage.keys import Holder, KeyRing, WorkerKeys, hash_secret

logger = logging.getLogger(__name__)

MISSING_HEADER_MESSAGE = "Missing Authorization header"
MALFORMED_HEADER_MESSAGE = "Invalid Authorization header format. Expected: Bearer <token>"
INVALID_TOKEN_MESSAGE = "Invalid bearer token"
NO_KEY_LEFT_MESSAGE = (
    "Every key of this room is revoked. Its operator makes one with `readingroom keys add NAME`, "
    "or opens the room with `readingroom keys reopen` and a restart"
)

WRITE_SCOPE = "write"
"""The scope of a user whose key is not read-only."""

OPERATOR_SCOPE = "operator"
"""The scope of a user who may run the server in the console."""

WORKER_SCOPE = "embedding"
"""The scope of a worker, which may embed passages and do nothing else."""

_ENVIRONMENT_KEY_HOLDER = Holder("env", "", operator=True)

MCP_ENDPOINT_PATHS = ("/mcp", "/sse", "/messages/")
"""What follows the path of a face in the addresses of its transports."""

AccessKind = Literal["open", "key", "oauth"]


class AuthPolicy(Protocol):
    """Decides who may call."""

    strictness: int
    """Where two policies apply to one path, the stricter of them is used."""
    issuer_urls: tuple[str, ...]
    """The authorization servers whose tokens are accepted."""

    @property
    def access(self) -> AccessKind: ...

    async def authenticate(self, scope: Scope) -> AuthenticatedUser | None:
        """Return the caller, or None where anybody may call. Raise Unauthorized."""


class UsersByKeyHolder(dict[Holder, AuthenticatedUser]):
    """Each holder of a key as a user of the SDK, always the same object."""

    def __missing__(self, key_holder: Holder) -> AuthenticatedUser:
        # The SDK wants a token but never reads it, so it need not hold the secret.
        oauth_scopes = [] if key_holder.read_only else [WRITE_SCOPE]
        if key_holder.operator:
            oauth_scopes.append(OPERATOR_SCOPE)
        sdk_token = AccessToken(
            token="", client_id=key_holder.name, subject=key_holder.digest, scopes=oauth_scopes
        )
        self[key_holder] = AuthenticatedUser(sdk_token)
        return self[key_holder]


class OpenAccess:
    """Lets everybody call, whatever they send."""

    access: AccessKind = "open"
    strictness = 0
    issuer_urls: tuple[str, ...] = ()

    async def authenticate(self, scope: Scope) -> None:
        return None


class KeyAuth:
    """Requires `MCP_API_KEY` or a named key; open while there is neither."""

    strictness = 1
    issuer_urls: tuple[str, ...] = ()

    def __init__(
        self, api_key: str | None, key_ring: KeyRing, grant_store: GrantStore | None = None
    ) -> None:
        self.key_ring = key_ring
        self.grants = grant_store
        """What holders of keys have allowed connected apps; None where apps cannot connect."""
        self._api_key = api_key.encode() if api_key else None
        self._is_required = self._api_key is not None or key_ring.is_key_asked_for()
        # Before there are callers: none of them may wait for another machine with its keys.
        key_ring.follow_changes()
        self._users = UsersByKeyHolder()

    @property
    def is_required(self) -> bool:
        """Whether a key is required. It stays so from the first key on, also after a restart:
        revoking the last one must not open the server.
        """
        self._is_required = self._is_required or self.key_ring.is_key_asked_for()
        return self._is_required

    @property
    def access(self) -> AccessKind:
        return "key" if self.is_required else "open"

    async def authenticate(self, scope: Scope) -> AuthenticatedUser | None:
        """Return the caller, or None when no key is required. Raise Unauthorized."""
        if not self.is_required:
            return None
        try:
            return await self._authenticate_key_or_app(scope)
        except Unauthorized:
            if self._api_key is None and not self.key_ring.has_any_key():
                raise Unauthorized(NO_KEY_LEFT_MESSAGE) from None
            raise

    async def _authenticate_key_or_app(self, scope: Scope) -> AuthenticatedUser:
        bearer_token = read_bearer_token(scope)
        if self.grants and bearer_token.startswith(ACCESS_TOKEN_PREFIX.encode()):
            app_token = bearer_token.decode("latin-1")
            return await self._get_app_user(self.grants, app_token, scope["path"])
        key_holder = self._find_key_holder(bearer_token)
        if key_holder is None:
            raise Unauthorized(INVALID_TOKEN_MESSAGE)
        return self._users[key_holder]

    async def _get_app_user(
        self, grant_store: GrantStore, app_token: str, request_path: str
    ) -> AuthenticatedUser:
        """Return the user whom a connected app calls for. Raise Unauthorized.

        The token is worth nothing outside the tools it was given for, nor without its key.
        """
        # In a thread: the grants may be in a database on another machine.
        issued_token = await anyio.to_thread.run_sync(grant_store.find_token, "access", app_token)
        if issued_token is None or not _is_mcp_path_of_face(
            request_path, issued_token.grant.face_path
        ):
            raise Unauthorized(INVALID_TOKEN_MESSAGE)
        request_user = self.find_user_by_digest(issued_token.grant.key_digest)
        if request_user is None:
            raise Unauthorized(INVALID_TOKEN_MESSAGE)
        # An app may never do more than the key that it calls with, whatever its grant says.
        may_write = issued_token.grant.may_write and WRITE_SCOPE in request_user.scopes
        return AuthenticatedUser(
            AccessToken(
                token="",
                client_id=request_user.username,
                # A session belongs to one app, and not to whoever else has the same key.
                subject=f"{issued_token.grant.key_digest}:{issued_token.grant.grant_id}",
                scopes=[WRITE_SCOPE] if may_write else [],
            )
        )

    def find_key_digest(self, api_key: bytes) -> str | None:
        """Return the digest by which a session remembers a key; None for a key that is wrong."""
        return hash_secret(api_key).hex() if self._find_key_holder(api_key) else None

    def find_user_by_digest(self, key_digest: str) -> AuthenticatedUser | None:
        """Return the user whose key has this digest; None once the key was revoked."""
        if self._api_key and hmac.compare_digest(hash_secret(self._api_key).hex(), key_digest):
            return self._users[_ENVIRONMENT_KEY_HOLDER]
        key_holder = self.key_ring.find_holder_by_digest(key_digest)
        return self._users[key_holder] if key_holder else None

    def _find_key_holder(self, api_key: bytes) -> Holder | None:
        # In constant time: how long it takes must not tell how much of a guess was right.
        if self._api_key and hmac.compare_digest(api_key, self._api_key):
            return _ENVIRONMENT_KEY_HOLDER
        return self.key_ring.find_holder(api_key)


class WorkerAuth:
    """Requires the key of a worker, always: also where everybody else may call without one."""

    access: AccessKind = "key"
    strictness = 3
    issuer_urls: tuple[str, ...] = ()

    def __init__(self, worker_keys: WorkerKeys) -> None:
        self._worker_keys = worker_keys

    async def authenticate(self, scope: Scope) -> AuthenticatedUser:
        """Return the worker. Raise Unauthorized."""
        worker_name = self._worker_keys.find_worker_name(read_bearer_token(scope))
        if worker_name is None:
            raise Unauthorized(
                "This takes the key of a worker; the operator makes one with "
                "`readingroom keys add NAME --worker`"
            )
        return AuthenticatedUser(
            AccessToken(token="", client_id=worker_name, scopes=[WORKER_SCOPE])
        )


def read_bearer_token(scope: Scope) -> bytes:
    """Return the token that a request carries. Raise Unauthorized when there is not exactly one."""
    authorization_headers: list[bytes] = [
        header_value
        for header_name, header_value in scope["headers"]
        if header_name == b"authorization"
    ]
    if not authorization_headers:
        raise Unauthorized(MISSING_HEADER_MESSAGE)
    auth_scheme, _, bearer_token = authorization_headers[0].partition(b" ")
    # With two headers, a proxy in front and we could each believe another one.
    if (
        len(authorization_headers) > 1
        or auth_scheme.lower() != b"bearer"
        or not bearer_token.strip()
    ):
        raise Unauthorized(MALFORMED_HEADER_MESSAGE)
    return bearer_token.strip()


def is_mcp_path(request_path: str) -> bool:
    """Whether a path is one of MCP's: of its transports, whatever the base."""
    return request_path.endswith(MCP_ENDPOINT_PATHS)


def _is_mcp_path_of_face(request_path: str, face_path: str | None) -> bool:
    """Whether a path is one of MCP's, of this face or, for None, of any."""
    if face_path is None:
        return is_mcp_path(request_path)
    return request_path in [face_path + endpoint_path for endpoint_path in MCP_ENDPOINT_PATHS]


def can_write(scope: Scope) -> bool:
    """Whether the caller may change something: everybody may whose key is not read-only."""
    request_user = scope.get("user")
    # A worker's key opens no route but the worker's, which all store something.
    return (
        request_user is None
        or WRITE_SCOPE in request_user.scopes
        or WORKER_SCOPE in request_user.scopes
    )


def get_client_ip(scope: Scope) -> str:
    """Return the caller's address (that of the proxy's caller, when the proxy is trusted)."""
    client_host_and_port = scope.get("client")
    return (
        client_host_and_port[0][:64] if client_host_and_port else "unknown"
    )  # a proxy may pass on anything


def identify_caller(scope: Scope) -> str:
    """Return whom limits count a request for: the holder of its key, else its address."""
    request_user = scope.get("user")
    return (
        f"key:{request_user.username}"
        if request_user
        else f"ip:{get_address_group(get_client_ip(scope))}"
    )


def log_refusal(refusal_error: Unauthorized, scope: Scope) -> None:
    """Log the warning that a refused key leaves behind."""
    log_fields = {
        "request_id": scope["state"]["request_id"],
        "client_ip": get_client_ip(scope),
        # Cut, so that callers without a key cannot fill the log.
        "endpoint": scope["path"][:200],
        "method": scope["method"],
    }
    if "reason" in refusal_error.hint:
        log_fields["reason"] = refusal_error.hint["reason"]
    logger.warning("%s", refusal_error.message, extra={"fields": log_fields})

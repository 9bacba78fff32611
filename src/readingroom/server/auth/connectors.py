"""Connected apps: OAuth 2.1 with this server as its own issuer, for clients that take no key.

A client registers, sends a person here to consent, and gets tokens that act for the key that the
person signed in with. The protocol is the SDK's; here is what stands behind its routes.
"""

import re
import unicodedata
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio.to_thread
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.server.auth.bearer import WRITE_SCOPE, KeyAuth
from readingroom.server.http.addresses import get_server_address, is_loopback
from readingroom.storage.grants import (
    ACCESS_TOKEN_SECONDS,
    Grant,
    GrantStore,
    IssuedToken,
    TokenKind,
)

ISSUER_METADATA_PATH = "/.well-known/oauth-authorization-server"
AUTHORIZE_PATH = "/authorize"
CONSENT_PATH = "/authorize/consent"
TOKEN_PATH = "/token"
REGISTER_PATH = "/register"
REVOKE_PATH = "/revoke"
PUBLIC_PATHS = (ISSUER_METADATA_PATH, AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH)
"""What a client opens before it has a token. The page of consent asks for a sign-in."""

READ_SCOPE = "read"
_OFFERED_SCOPES = [READ_SCOPE, WRITE_SCOPE]
_MAX_REDIRECT_URIS = 10
_MAX_URI_CHARS = 2000
_MAX_NAME_CHARS = 100
_MAX_METADATA_CHARS = 8 * 1024
"""Of one client, and of one request: strangers may send either, and both are kept."""
# Host names may hold `;`, `,` or `*`, which mean something in the policy of the page of consent.
_HOST_PATTERN = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
# Marks that are piled on a letter reach into the lines around it, and hide them.
_MAX_CONSECUTIVE_COMBINING_MARKS = 2
# The schemes of desktop apps, such as `cursor:`; none that a browser itself gives a meaning.
_APP_SCHEME_PATTERN = re.compile(r"[a-z][a-z0-9+.-]{2,}")
_REFUSED_APP_SCHEMES = {
    *("about", "blob", "chrome", "data", "file", "filesystem", "ftp", "javascript", "mailto"),
    *("resource", "tel", "vbscript", "view-source", "ws", "wss", "chrome-extension", "content"),
    *("devtools", "edge", "intent", "jar", "mhtml", "moz-extension", "sms"),
    # Programs of the system that open what an address names.
    *("ldap", "ldaps", "search", "search-ms", "sftp", "shell", "smb", "ssh", "telnet"),
}


def can_issue_tokens(server_url: str) -> bool:
    """Whether tokens may be sent to an address of ours: over TLS, or inside this machine."""
    url_scheme, _, url_host = server_url.partition("://")
    return url_scheme == "https" or is_loopback(_strip_port(url_host))


class KeyBackedIssuer(
    OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]
):
    """What the SDK's routes ask: clients, codes and tokens, each bound to a key."""

    def __init__(self, grant_store: GrantStore, key_auth: KeyAuth) -> None:
        self._grants = grant_store
        self._key_auth = key_auth

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client that has registered."""
        client_metadata_json = await anyio.to_thread.run_sync(
            self._grants.find_client_metadata, client_id
        )
        return (
            OAuthClientInformationFull.model_validate_json(client_metadata_json)
            if client_metadata_json
            else None
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client. Raise RegistrationError for one that nobody could be sent back to."""
        redirect_uris = client_info.redirect_uris or []
        if len(redirect_uris) > _MAX_REDIRECT_URIS or not all(
            map(_is_safe_redirect_uri, redirect_uris)
        ):
            raise RegistrationError(
                "invalid_redirect_uri",
                "a redirect URI is https, http on this machine, or of an app's own scheme, without "
                f"a fragment; at most {_MAX_REDIRECT_URIS} of them",
            )
        client_name = client_info.client_name or ""
        if not _is_showable_name(client_name):
            raise RegistrationError(
                "invalid_client_metadata",
                f"client_name has at most {_MAX_NAME_CHARS} printable characters",
            )
        assert client_info.client_id
        # What else it says of itself is neither shown nor fetched, so it is not kept.
        client_info_to_store = client_info.model_copy(
            update={"jwks": None, "jwks_uri": None, "contacts": None, "logo_uri": None}
        )
        client_metadata_json = client_info_to_store.model_dump_json(exclude_none=True)
        if len(client_metadata_json) > _MAX_METADATA_CHARS:
            raise RegistrationError(
                "invalid_client_metadata",
                f"what a client says of itself has at most {_MAX_METADATA_CHARS} characters",
            )
        await anyio.to_thread.run_sync(
            self._grants.add_client, client_info.client_id, client_metadata_json
        )

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """Return the address of the page where a person answers the client."""
        assert client.client_id
        # By POST a request may be as long as any body.
        request_parameters_json = params.model_dump_json()
        if len(request_parameters_json) > _MAX_METADATA_CHARS:
            raise AuthorizeError("invalid_request", "the state and the scopes are too long")
        request_id = await anyio.to_thread.run_sync(
            self._grants.add_request, client.client_id, request_parameters_json
        )
        return f"{CONSENT_PATH}?request={request_id}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return a code that this client was sent."""
        issued_token = await self._find_token("code", authorization_code, client)
        if issued_token is None:
            return None
        authorization_params = AuthorizationParams.model_validate_json(
            issued_token.grant.parameters_json
        )
        return AuthorizationCode(
            code=authorization_code,
            scopes=list_scopes(issued_token.grant),
            expires_at=issued_token.expires_at,
            client_id=issued_token.grant.client_id,
            code_challenge=authorization_params.code_challenge,
            redirect_uri=authorization_params.redirect_uri,
            redirect_uri_provided_explicitly=authorization_params.redirect_uri_provided_explicitly,
            resource=authorization_params.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Return the first tokens of a grant. Raise TokenError for a code that was used before."""
        return await self._exchange_token("code", authorization_code.code, client)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """Return a refresh token of this client."""
        issued_token = await self._find_token("refresh", refresh_token, client)
        if issued_token is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=issued_token.grant.client_id,
            scopes=list_scopes(issued_token.grant),
            expires_at=int(issued_token.expires_at),
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return new tokens. Raise TokenError for one that was used before, or for fewer scopes."""
        if set(scopes) != set(refresh_token.scopes):
            raise TokenError("invalid_scope", "the scopes of a grant stay as they were given")
        return await self._exchange_token("refresh", refresh_token.token, client)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an access token, for revoking it; calls are checked by `KeyAuth`."""
        issued_token = await anyio.to_thread.run_sync(self._grants.find_token, "access", token)
        if issued_token is None:
            return None
        return AccessToken(
            token=token,
            client_id=issued_token.grant.client_id,
            scopes=list_scopes(issued_token.grant),
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End the grant of a token, and so every token of it."""
        token_kind: TokenKind = "refresh" if isinstance(token, RefreshToken) else "access"
        await anyio.to_thread.run_sync(self._end_grant_of_token, token_kind, token.token)

    def _end_grant_of_token(self, token_kind: TokenKind, token_text: str) -> None:
        if issued_token := self._grants.find_token(token_kind, token_text):
            self._grants.end_grant(issued_token.grant.grant_id)

    async def _find_token(
        self, token_kind: TokenKind, token_text: str, oauth_client: OAuthClientInformationFull
    ) -> IssuedToken | None:
        issued_token = await anyio.to_thread.run_sync(
            self._grants.find_token, token_kind, token_text
        )
        return (
            issued_token
            if issued_token and issued_token.grant.client_id == oauth_client.client_id
            else None
        )

    async def _exchange_token(
        self, token_kind: TokenKind, token_text: str, oauth_client: OAuthClientInformationFull
    ) -> OAuthToken:
        issued_token = await self._find_token(token_kind, token_text, oauth_client)
        if (
            issued_token
            and self._key_auth.find_user_by_digest(issued_token.grant.key_digest) is None
        ):
            await anyio.to_thread.run_sync(self._grants.end_grant, issued_token.grant.grant_id)
            raise TokenError("invalid_grant", "the key of this grant was revoked")
        access_and_refresh_token = (
            await anyio.to_thread.run_sync(self._grants.exchange_token, token_kind, token_text)
            if issued_token
            else None
        )
        if issued_token is None or access_and_refresh_token is None:
            raise TokenError(
                "invalid_grant", f"this {token_kind} was used before; its grant has ended"
            )
        access_token, refresh_token = access_and_refresh_token
        return OAuthToken(
            access_token=access_token,
            expires_in=ACCESS_TOKEN_SECONDS,
            refresh_token=refresh_token,
            scope=" ".join(list_scopes(issued_token.grant)),
        )


def list_scopes(token_grant: Grant) -> list[str]:
    """Return what a grant allows, as OAuth names it."""
    return _OFFERED_SCOPES if token_grant.may_write else [READ_SCOPE]


def make_issuer_routes(
    token_issuer: KeyBackedIssuer, key_auth: KeyAuth, public_url: str | None
) -> list[BaseRoute]:
    """Return the routes by which clients register and get their tokens."""
    client_authenticator = ClientAuthenticator(token_issuer)
    # A client may name scopes of its own; which of ours it gets, a person decides.
    registration_options = ClientRegistrationOptions(enabled=True, default_scopes=_OFFERED_SCOPES)
    authorize_client = partial(_authorize_client, AuthorizationHandler(token_issuer), public_url)
    handlers_and_methods_by_path: dict[
        str, tuple[Callable[[Request], Awaitable[Response]], list[str]]
    ] = {
        AUTHORIZE_PATH: (authorize_client, ["GET", "POST"]),
        TOKEN_PATH: (TokenHandler(token_issuer, client_authenticator).handle, ["POST"]),
        REGISTER_PATH: (RegistrationHandler(token_issuer, registration_options).handle, ["POST"]),
        REVOKE_PATH: (_RevocationHandler(token_issuer, client_authenticator).handle, ["POST"]),
    }

    def require_token_issuing(handle_request: Callable[[Request], Awaitable[Response]]) -> Any:
        async def answer_if_issuing(request: Request) -> Response:
            if not key_auth.is_required or not can_issue_tokens(
                get_server_address(request, public_url)
            ):
                return JSONResponse(
                    {
                        "error": "invalid_request",
                        "error_description": "this address issues no tokens: a server without a "
                        "key needs none, and with one it must be reached over https",
                    },
                    404,
                )
            return await handle_request(request)

        return answer_if_issuing

    async def show_issuer_metadata(request: Request) -> Response:
        server_url = get_server_address(request, public_url)
        return JSONResponse(
            {
                "issuer": server_url,
                "authorization_endpoint": server_url + AUTHORIZE_PATH,
                "token_endpoint": server_url + TOKEN_PATH,
                "registration_endpoint": server_url + REGISTER_PATH,
                "revocation_endpoint": server_url + REVOKE_PATH,
                "scopes_supported": _OFFERED_SCOPES,
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": [
                    *("none", "client_secret_post", "client_secret_basic")
                ],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "service_documentation": server_url + "/connect",
            }
        )

    return [
        Route(ISSUER_METADATA_PATH, require_token_issuing(show_issuer_metadata), methods=["GET"]),
        *(
            Route(route_path, require_token_issuing(handle_request), methods=http_methods)
            for route_path, (handle_request, http_methods) in handlers_and_methods_by_path.items()
        ),
    ]


async def _authorize_client(
    authorization_handler: AuthorizationHandler, public_url: str | None, request: Request
) -> Response:
    """Take a request to the page of consent, or its refusal back to the client.

    A refusal names the issuer as a consent does (RFC 9207), which the SDK leaves out.
    """
    response = await authorization_handler.handle(request)
    # Ours is relative; every other leads back to the client.
    redirect_location = response.headers.get("location")
    if redirect_location and not redirect_location.startswith(CONSENT_PATH):
        issuer_url = get_server_address(request, public_url)
        response.headers["location"] = construct_redirect_uri(redirect_location, iss=issuer_url)
    return response


class _RevocationHandler:
    """RFC 7009. Not the SDK's: that one refuses clients which have no secret."""

    def __init__(
        self, token_issuer: KeyBackedIssuer, client_authenticator: ClientAuthenticator
    ) -> None:
        self._issuer = token_issuer
        self._authenticator = client_authenticator

    async def handle(self, request: Request) -> Response:
        try:
            oauth_client = await self._authenticator.authenticate_request(request)
        except AuthenticationError as error:
            return JSONResponse(
                {"error": "invalid_client", "error_description": error.message}, 401
            )
        revoked_token_text = str((await request.form()).get("token", ""))
        access_token = await self._issuer.load_access_token(revoked_token_text)
        access_or_refresh_token = access_token or await self._issuer.load_refresh_token(
            oauth_client, revoked_token_text
        )
        if access_or_refresh_token and access_or_refresh_token.client_id == oauth_client.client_id:
            await self._issuer.revoke_token(access_or_refresh_token)
        # A token that is not known is revoked already.
        return Response(headers={"Cache-Control": "no-store"})


def _is_safe_redirect_uri(redirect_uri: AnyUrl) -> bool:
    if (
        len(str(redirect_uri)) > _MAX_URI_CHARS
        or redirect_uri.fragment is not None
        or redirect_uri.username
        or redirect_uri.password
    ):
        return False
    if redirect_uri.scheme == "https":
        return bool(redirect_uri.host and _HOST_PATTERN.fullmatch(redirect_uri.host))
    if redirect_uri.scheme == "http":
        return is_loopback((redirect_uri.host or "").strip("[]"))
    # Windows has many of `ms-`, some of which run programs with arguments.
    is_reserved_scheme = (
        redirect_uri.scheme in _REFUSED_APP_SCHEMES or redirect_uri.scheme.startswith("ms-")
    )
    return bool(_APP_SCHEME_PATTERN.fullmatch(redirect_uri.scheme)) and not is_reserved_scheme


def _is_showable_name(client_name: str) -> bool:
    """Whether a name can be shown on the page of consent without hiding anything of it."""
    if len(client_name) > _MAX_NAME_CHARS or not client_name.isprintable():
        return False
    combining_mark_count = 0
    for name_character in client_name:
        combining_mark_count = (
            combining_mark_count + 1 if unicodedata.combining(name_character) else 0
        )
        if combining_mark_count > _MAX_CONSECUTIVE_COMBINING_MARKS:
            return False
    return True


def _strip_port(host_and_port_text: str) -> str:
    """Return the host of `host:port`, without the brackets of an IPv6 address."""
    if host_and_port_text.startswith("["):
        return host_and_port_text[1:].partition("]")[0]
    return host_and_port_text.partition(":")[0]

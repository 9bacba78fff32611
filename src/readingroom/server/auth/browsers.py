"""Browsers: who looks at a page, by a session that began with a key, and what a form must carry."""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from readingroom.protocol.pages import Role, Visitor
from readingroom.server.auth.bearer import OPERATOR_SCOPE, WRITE_SCOPE, KeyAuth
from readingroom.server.auth.this_machine import is_direct_and_local
from readingroom.server.errors import ForbiddenOrigin, FormExpired, Unauthorized
from readingroom.server.http.addresses import get_server_address, is_loopback
from readingroom.server.settings import ServerSettings
from readingroom.storage.browser_sessions import MAX_SESSION_AGE_SECONDS, BrowserSession
from readingroom.storage.postgres.state import open_sessions

FORM_TOKEN_FIELD_NAME = "form_token"
"""The hidden field of every form that changes something."""
_SECURE_COOKIE_NAME = "__Host-rr"
_LOOPBACK_COOKIE_NAME = "rr-{port}"
"""On loopback without TLS, where some browsers refuse a cookie that is marked as secure. All ports
of a host share their cookies, so the name says whose it is.
"""
_SESSION_STATE_KEY = "browser_session"


class BrowserAuth:
    """Lets people in: by a key on the sign-in page, or without one on a machine that needs none."""

    def __init__(self, key_auth: KeyAuth, settings: ServerSettings) -> None:
        self._key_auth = key_auth
        self._settings = settings
        self._browser_sessions = open_sessions(settings)
        # Stands for the session where nobody has to sign in.
        self._open_secret = secrets.token_hex(32)

    async def find_user(self, scope: Scope) -> AuthenticatedUser | None:
        """Return the holder of the key that this browser signed in with, if it is still valid."""
        session_id = self._read_session_cookie(scope)
        if not session_id:
            return None
        # In a thread: the sessions may be in a database on another machine.
        browser_session = await anyio.to_thread.run_sync(
            self._browser_sessions.find_session, session_id
        )
        if browser_session is None:
            return None
        scope["state"][_SESSION_STATE_KEY] = browser_session
        return self._key_auth.find_user_by_digest(browser_session.key_digest)

    def identify_visitor(self, scope: Scope) -> Visitor | None:
        """Return who looks at a page; None for somebody who has not signed in."""
        request_user: AuthenticatedUser | None = scope.get("user")
        if request_user is not None:
            return Visitor(
                request_user.username,
                self._limit_role_if_read_only(_get_user_role(request_user)),
            )
        if self._key_auth.is_required:
            return None
        if is_direct_and_local(scope, self._settings):
            return Visitor("this machine", self._limit_role_if_read_only("operator"))
        return Visitor("everybody", "reader")

    async def sign_in(self, api_key: str) -> BrowserSession:
        """Return a new session for the holder of a key. Raise Unauthorized for a wrong key."""
        key_digest = self._key_auth.find_key_digest(api_key.strip().encode())
        if key_digest is None:
            raise Unauthorized("This key is not known here; check that it was copied whole")
        return await anyio.to_thread.run_sync(self._browser_sessions.start_session, key_digest)

    async def sign_out(self, scope: Scope, response: Response) -> None:
        """End the session of this browser."""
        if session_id := self._read_session_cookie(scope):
            await anyio.to_thread.run_sync(self._browser_sessions.end_session, session_id)
        response.delete_cookie(self._choose_cookie_name(scope), path="/")

    def set_cookie(self, scope: Scope, response: Response, browser_session: BrowserSession) -> None:
        """Give the browser its session."""
        cookie_name = self._choose_cookie_name(scope)
        response.set_cookie(
            cookie_name,
            browser_session.session_id,
            max_age=MAX_SESSION_AGE_SECONDS,
            path="/",
            secure=cookie_name == _SECURE_COOKIE_NAME,
            httponly=True,
            # Not strict: a citation in a chat is a link from another site.
            samesite="lax",
        )

    def find_request_session(self, scope: Scope) -> BrowserSession | None:
        """Return the session that this request belongs to; None for a key that was sent along."""
        browser_session: BrowserSession | None = scope["state"].get(_SESSION_STATE_KEY)
        return browser_session

    def attach_session(self, scope: Scope, browser_session: BrowserSession) -> None:
        """Let the rest of this request belong to a session that has just begun."""
        scope["state"][_SESSION_STATE_KEY] = browser_session

    def make_form_token(self, scope: Scope) -> str:
        """Return what the forms of one page carry; another each time, so that compressing a page
        reveals nothing of it.
        """
        form_nonce = secrets.token_hex(16)
        return f"{form_nonce}.{self._sign_nonce(scope, form_nonce)}"

    def check_form_token(self, scope: Scope, form_fields: Mapping[str, str]) -> None:
        """Raise ForbiddenOrigin or FormExpired unless a form came from one of our own pages."""
        self.check_same_origin(scope)
        form_nonce, _, form_signature = form_fields.get(FORM_TOKEN_FIELD_NAME, "").partition(".")
        expected_signature = self._sign_nonce(scope, form_nonce)
        if not hmac.compare_digest(form_signature.encode(), expected_signature.encode()):
            raise FormExpired("This form is too old, or you have signed in anew; load it again")

    def check_same_origin(self, scope: Scope) -> None:
        """Raise ForbiddenOrigin unless the request comes from a page of this very address."""
        request_headers = dict(scope["headers"])
        fetch_site_header = request_headers.get(b"sec-fetch-site")
        if fetch_site_header == b"same-origin":
            return
        if fetch_site_header is None and self.is_own_origin(
            scope, request_headers.get(b"origin", b"").decode("latin-1")
        ):
            return
        raise ForbiddenOrigin("Only pages of this server may send its forms")

    def is_own_origin(self, scope: Scope, request_origin: str) -> bool:
        """Whether an Origin is this server's own: scheme, host and port."""
        return bool(request_origin) and request_origin.lower() in (
            get_server_address(Request(scope), None).lower(),
            (self._settings.public_url or "").lower(),
        )

    def _sign_nonce(self, scope: Scope, form_nonce: str) -> str:
        browser_session = self.find_request_session(scope)
        signing_secret = browser_session.session_id if browser_session else self._open_secret
        return hmac.new(signing_secret.encode(), form_nonce.encode(), sha256).hexdigest()

    def _read_session_cookie(self, scope: Scope) -> str | None:
        cookie_values_by_name = cookie_parser(
            dict(scope["headers"]).get(b"cookie", b"").decode("latin-1")
        )
        return cookie_values_by_name.get(self._choose_cookie_name(scope))

    def _choose_cookie_name(self, scope: Scope) -> str:
        request_url = Request(scope).url
        is_plain_loopback = scope["scheme"] == "http" and is_loopback(request_url.hostname or "")
        is_behind_tls = (self._settings.public_url or "").startswith("https")
        if is_plain_loopback and not is_behind_tls:
            return _LOOPBACK_COOKIE_NAME.format(port=request_url.port or 80)
        return _SECURE_COOKIE_NAME

    def _limit_role_if_read_only(self, unrestricted_role: Role) -> Role:
        return "reader" if self._settings.read_only else unrestricted_role


def _get_user_role(user: AuthenticatedUser) -> Role:
    if WRITE_SCOPE not in user.scopes:
        return "reader"
    return "operator" if OPERATOR_SCOPE in user.scopes else "editor"

"""`/operations/keys`: keys made and revoked in the browser; the first one signs it in."""

import datetime as dt
from dataclasses import dataclass

import anyio.to_thread
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.core.errors import KnowledgeError
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.errors import RoleRequired, Unauthorized
from readingroom.server.pages.frame import PageFrame, render_page
from readingroom.server.pages.sign_in import receive_form_fields
from readingroom.storage.keys import make_key_not_found_error

KEYS_PATH = "/operations/keys"


@dataclass(frozen=True, slots=True)
class ConnectedApp:
    """An app that somebody has allowed to call with their key."""

    grant_id: str
    name: str
    key_name: str
    may_write: bool
    connected_at: dt.datetime


class KeyPages:
    """The page of keys and of the apps that use them, and its forms."""

    def __init__(self, frame_renderer: PageFrame, key_auth: KeyAuth) -> None:
        self._browser_auth = frame_renderer.browser_auth
        self._key_auth = key_auth
        self._key_ring = key_auth.key_ring

    def make_routes(self) -> list[BaseRoute]:
        """Return their routes."""
        return [
            Route(KEYS_PATH, self.show_keys, methods=["GET"]),
            Route(f"{KEYS_PATH}/add", self.add_key, methods=["POST"]),
            Route(f"{KEYS_PATH}/revoke", self.confirm_revoking, methods=["GET"]),
            Route(f"{KEYS_PATH}/revoke", self.revoke_key, methods=["POST"]),
            Route(f"{KEYS_PATH}/disconnect", self.disconnect_app, methods=["POST"]),
        ]

    async def show_keys(self, request: Request) -> Response:
        """Show every key, and the form for a new one."""
        self._check_operator(request)
        return await self._render_keys_page(request)

    async def add_key(self, request: Request) -> Response:
        """Make a key and show its secret, this once."""
        self._check_operator(request)
        form_fields = await receive_form_fields(request)
        self._browser_auth.check_form_token(request.scope, form_fields)
        # Whoever makes the first key must not lock themselves out with it.
        is_first_key = not self._key_auth.is_required
        chosen_role = "operator" if is_first_key else form_fields.get("role", "reader")
        key_name = form_fields.get("name", "").strip()
        try:
            # On this thread, as the key ring is used at every request.
            key_secret = self._key_ring.add_key(
                key_name, chosen_role == "reader", chosen_role == "operator"
            )
        except KnowledgeError as error:
            return await self._render_keys_page(
                request, refusal_message=error.message, http_status=error.http_status
            )
        if not is_first_key:
            return await self._render_keys_page(
                request, new_key_secret=key_secret, new_key_name=key_name
            )
        browser_session = await self._browser_auth.sign_in(key_secret)
        request.scope["user"] = self._key_auth.find_user_by_digest(browser_session.key_digest)
        self._browser_auth.attach_session(request.scope, browser_session)
        response = await self._render_keys_page(
            request, new_key_secret=key_secret, new_key_name=key_name
        )
        self._browser_auth.set_cookie(request.scope, response, browser_session)
        return response

    async def confirm_revoking(self, request: Request) -> Response:
        """Ask whether to revoke a key, and say what that ends. Raise KeyNotFound."""
        self._check_operator(request)
        room_keys = self._key_ring.list_keys()
        key_name = request.query_params.get("name", "")
        room_key = next((room_key for room_key in room_keys if room_key.name == key_name), None)
        if room_key is None:
            raise make_key_not_found_error(key_name)
        visitor = self._browser_auth.identify_visitor(request.scope)
        return render_page(
            request.scope,
            "revoke_key.html",
            "Revoke a key",
            key=room_key,
            is_own=visitor is not None and visitor.name == room_key.name,
            is_last_operator=room_key.operator
            and sum(other_key.operator for other_key in room_keys) == 1,
            form_token=self._browser_auth.make_form_token(request.scope),
        )

    async def revoke_key(self, request: Request) -> Response:
        """Revoke a key: its sessions and calls end with the next request."""
        self._check_operator(request)
        form_fields = await receive_form_fields(request)
        self._browser_auth.check_form_token(request.scope, form_fields)
        self._key_ring.revoke_key(form_fields.get("name", ""))
        return RedirectResponse(KEYS_PATH, 303)

    async def disconnect_app(self, request: Request) -> Response:
        """End what a connected app was allowed: its next call is refused."""
        self._check_operator(request)
        form_fields = await receive_form_fields(request)
        self._browser_auth.check_form_token(request.scope, form_fields)
        if self._key_auth.grants:
            await anyio.to_thread.run_sync(
                self._key_auth.grants.end_grant, form_fields.get("grant", "")
            )
        return RedirectResponse(KEYS_PATH, 303)

    async def _list_connected_apps(self) -> list[ConnectedApp]:
        """Return the apps that can call, each with whose key it calls for."""
        if self._key_auth.grants is None:
            return []
        grants_and_client_metadata = await anyio.to_thread.run_sync(
            self._key_auth.grants.list_grants
        )
        return [
            ConnectedApp(
                app_grant.grant_id,
                from_json(client_metadata_json).get("client_name") or "An app without a name",
                request_user.username,
                app_grant.may_write,
                dt.datetime.fromtimestamp(app_grant.created_at, dt.UTC),
            )
            for app_grant, client_metadata_json in grants_and_client_metadata
            if (request_user := self._key_auth.find_user_by_digest(app_grant.key_digest))
        ]

    def _check_operator(self, request: Request) -> None:
        visitor = self._browser_auth.identify_visitor(request.scope)
        if visitor is None:
            raise Unauthorized("Sign in to open this page")
        if not visitor.has_role("operator"):
            raise RoleRequired("This takes a key of an operator")

    async def _render_keys_page(
        self,
        request: Request,
        refusal_message: str = "",
        http_status: int = 200,
        new_key_secret: str = "",
        new_key_name: str = "",
    ) -> Response:
        return render_page(
            request.scope,
            "keys.html",
            "Keys",
            http_status=http_status,
            keys=self._key_ring.list_keys(),
            apps=await self._list_connected_apps(),
            message=refusal_message,
            new_key=new_key_secret,
            new_name=new_key_name,
            is_first=not self._key_auth.is_required,
            form_token=self._browser_auth.make_form_token(request.scope),
        )

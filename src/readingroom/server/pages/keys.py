"""`/operations/keys`: keys made and revoked in the browser; the first one signs it in."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.core.errors import KnowledgeError
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.errors import RoleRequired, Unauthorized
from readingroom.server.pages.frame import PageFrame, render_page
from readingroom.server.pages.sign_in import receive_fields

KEYS_PATH = "/operations/keys"


class KeyPages:
    """The page of keys, and its two forms."""

    def __init__(self, frame: PageFrame, key_auth: KeyAuth) -> None:
        self._browsers = frame.browsers
        self._key_auth = key_auth
        self._key_ring = key_auth.key_ring

    def make_routes(self) -> list[BaseRoute]:
        """Return their routes."""
        return [
            Route(KEYS_PATH, self.show_keys, methods=["GET"]),
            Route(f"{KEYS_PATH}/add", self.add_key, methods=["POST"]),
            Route(f"{KEYS_PATH}/revoke", self.revoke_key, methods=["POST"]),
        ]

    async def show_keys(self, request: Request) -> Response:
        """Show every key, and the form for a new one."""
        self._check_operator(request)
        return self._render(request)

    async def add_key(self, request: Request) -> Response:
        """Make a key and show its secret, this once."""
        self._check_operator(request)
        form = await receive_fields(request)
        self._browsers.check_form(request.scope, form)
        # Whoever makes the first key must not lock themselves out with it.
        is_first = not self._key_auth.is_required
        role = "operator" if is_first else form.get("role", "reader")
        key_name = form.get("name", "").strip()
        try:
            # On this thread, as the key ring is used at every request.
            secret = self._key_ring.add(key_name, role == "reader", role == "operator")
        except KnowledgeError as error:
            return self._render(request, message=error.message, status=error.http_status)
        if not is_first:
            return self._render(request, new_key=secret, new_name=key_name)
        session = self._browsers.sign_in(secret)
        request.scope["user"] = self._key_auth.find_user_by_digest(session.key_digest)
        self._browsers.remember(request.scope, session)
        response = self._render(request, new_key=secret, new_name=key_name)
        self._browsers.set_cookie(request.scope, response, session)
        return response

    async def revoke_key(self, request: Request) -> Response:
        """Revoke a key: its sessions and calls end with the next request."""
        self._check_operator(request)
        form = await receive_fields(request)
        self._browsers.check_form(request.scope, form)
        self._key_ring.revoke(form.get("name", ""))
        return RedirectResponse(KEYS_PATH, 303)

    def _check_operator(self, request: Request) -> None:
        visitor = self._browsers.identify_visitor(request.scope)
        if visitor is None:
            raise Unauthorized("Sign in to open this page")
        if not visitor.may_act_as("operator"):
            raise RoleRequired("This takes a key of an operator")

    def _render(
        self,
        request: Request,
        message: str = "",
        status: int = 200,
        new_key: str = "",
        new_name: str = "",
    ) -> Response:
        return render_page(
            request.scope,
            "keys.html",
            "Keys",
            status=status,
            keys=self._key_ring.list_keys(),
            message=message,
            new_key=new_key,
            new_name=new_name,
            is_first=not self._key_auth.is_required,
            form_token=self._browsers.make_form_token(request.scope),
        )

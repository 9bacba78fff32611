"""`/sign-in` and `/sign-out`: a key becomes a session of this browser."""

from typing import NoReturn

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.core.errors import KnowledgeError
from readingroom.server.auth.bearer import log_refusal
from readingroom.server.errors import Unauthorized
from readingroom.server.http.addresses import is_loopback
from readingroom.server.http.errors import SIGN_IN_PATH
from readingroom.server.pages.frame import PageFrame, render_page
from readingroom.web.uploads import receive_form

_MAX_FORM_BYTES = 16 * 1024


class SignInPages:
    """The two pages by which people come in and leave."""

    def __init__(self, frame_renderer: PageFrame) -> None:
        self._browser_auth = frame_renderer.browser_auth

    def make_routes(self) -> list[BaseRoute]:
        """Return their routes."""
        return [
            Route(SIGN_IN_PATH, self.show_form, methods=["GET"]),
            Route(SIGN_IN_PATH, self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    async def show_form(self, request: Request) -> Response:
        """Show the form, or pass on who has no need of it."""
        return_address = get_local_address(request.query_params.get("next", ""))
        if self._browser_auth.identify_visitor(request.scope):
            return RedirectResponse(return_address, 303)
        return self._render_form(request, return_address, None)

    async def sign_in(self, request: Request) -> Response:
        """Take the key, and send the browser to where it wanted to go."""
        self._browser_auth.check_same_origin(request.scope)
        form_fields = await receive_form_fields(request)
        return_address = get_local_address(form_fields.get("next", ""))
        try:
            browser_session = await self._browser_auth.sign_in(form_fields.get("key", ""))
        except Unauthorized as refusal:
            log_refusal(refusal, request.scope)
            return self._render_form(request, return_address, refusal)
        response = RedirectResponse(return_address, 303)
        self._browser_auth.set_cookie(request.scope, response, browser_session)
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session of this browser."""
        self._browser_auth.check_form_token(request.scope, await receive_form_fields(request))
        response = RedirectResponse(SIGN_IN_PATH, 303)
        await self._browser_auth.sign_out(request.scope, response)
        return response

    def _render_form(
        self, request: Request, return_address: str, sign_in_error: KnowledgeError | None
    ) -> Response:
        host_name = request.url.hostname or ""
        return render_page(
            request.scope,
            "sign_in.html",
            "Sign in",
            http_status=401 if sign_in_error else 200,
            target=return_address,
            message=sign_in_error.message if sign_in_error else None,
            # A browser keeps a secure cookie of such an address for no one.
            is_unprotected=request.url.scheme == "http" and not is_loopback(host_name),
        )


def get_local_address(requested_address: str) -> str:
    """Return an address on this server, `/` for anything that could lead elsewhere."""
    is_local_path = (
        requested_address.startswith("/")
        and not requested_address.startswith("//")
        and requested_address.isprintable()
    )
    return requested_address if is_local_path and "\\" not in requested_address else "/"


async def receive_form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a small form without files."""
    received_form = await receive_form(request, _reject_file, 0, _MAX_FORM_BYTES)
    return received_form.fields


def _reject_file() -> NoReturn:
    raise AssertionError("a form without a field for files has none")

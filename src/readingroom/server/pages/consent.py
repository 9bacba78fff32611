"""`/authorize/consent`: a person lets an app use the tools with their key, or does not."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import anyio.to_thread
from mcp.server.auth.provider import AuthorizationParams, construct_redirect_uri
from mcp.shared.auth import OAuthClientInformationFull
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.protocol.pages import Visitor
from readingroom.server.auth.bearer import WRITE_SCOPE
from readingroom.server.auth.connectors import CONSENT_PATH
from readingroom.server.errors import FormExpired, Unauthorized
from readingroom.server.http.addresses import get_server_address
from readingroom.server.pages.frame import PAGE_CONTENT_SECURITY_POLICY, PageFrame, render_page
from readingroom.server.pages.sign_in import receive_form_fields
from readingroom.storage.browser_sessions import BrowserSession
from readingroom.storage.grants import ConsentRequest, GrantStore

_EXPIRED_MESSAGE = "This request was answered or is too old; begin again in the app"


class ConsentPages:
    """The page where a client is named, and the form that answers it."""

    def __init__(
        self,
        frame_renderer: PageFrame,
        grant_store: GrantStore,
        title_by_face_path: Mapping[str, str],
        public_url: str | None,
    ) -> None:
        self._browser_auth = frame_renderer.browser_auth
        self._grants = grant_store
        self._title_by_face_path = title_by_face_path
        self._public_url = public_url

    def make_routes(self) -> list[BaseRoute]:
        """Return their routes."""
        return [
            Route(CONSENT_PATH, self.show_consent_request, methods=["GET"]),
            Route(CONSENT_PATH, self.answer_consent_request, methods=["POST"]),
        ]

    async def show_consent_request(self, request: Request) -> Response:
        """Say who asks, for what, and where the answer goes."""
        visitor, _ = self._require_session(request)
        consent_request_id = request.query_params.get("request", "")
        consent_request = await self._get_consent_request(consent_request_id)
        authorization_params = _parse_authorization_params(consent_request)
        try:
            face_path = self._find_face_path(request, authorization_params.resource)
        except _UnknownResource:
            await anyio.to_thread.run_sync(self._grants.remove_request, consent_request_id)
            return self._redirect_to_client(request, authorization_params, error="invalid_target")
        redirect_uri = str(authorization_params.redirect_uri)
        return render_page(
            request.scope,
            "consent.html",
            "Connect an app",
            extra_headers={"Content-Security-Policy": _make_content_security_policy(redirect_uri)},
            request_id=consent_request_id,
            client_name=await self._find_client_name(consent_request.client_id),
            return_address=_describe_redirect_target(redirect_uri),
            faces=[
                face_title
                for offered_face_path, face_title in self._title_by_face_path.items()
                if face_path is None or offered_face_path == face_path
            ],
            key_name=visitor.name,
            may_offer_write=_can_offer_write(visitor, authorization_params),
            form_token=self._browser_auth.make_form_token(request.scope),
        )

    async def answer_consent_request(self, request: Request) -> Response:
        """Send the browser back to the client, with a code or with a refusal."""
        form_fields = await receive_form_fields(request)
        self._browser_auth.check_form_token(request.scope, form_fields)
        visitor, browser_session = self._require_session(request)
        consent_request_id = form_fields.get("request", "")
        consent_request = await self._get_consent_request(consent_request_id)
        authorization_params = _parse_authorization_params(consent_request)
        try:
            face_path = self._find_face_path(request, authorization_params.resource)
        except _UnknownResource:
            return self._redirect_to_client(request, authorization_params, error="invalid_target")
        if not await anyio.to_thread.run_sync(self._grants.remove_request, consent_request_id):
            raise FormExpired(_EXPIRED_MESSAGE)
        if form_fields.get("answer") != "allow":
            return self._redirect_to_client(request, authorization_params, error="access_denied")
        may_write = form_fields.get("changes") == "yes" and _can_offer_write(
            visitor, authorization_params
        )
        authorization_code = await anyio.to_thread.run_sync(
            self._grants.add_grant,
            consent_request,
            browser_session.key_digest,
            may_write,
            face_path,
        )
        return self._redirect_to_client(request, authorization_params, code=authorization_code)

    def _require_session(self, request: Request) -> tuple[Visitor, BrowserSession]:
        """Return who has signed in, with their session. Raise Unauthorized."""
        visitor = self._browser_auth.identify_visitor(request.scope)
        browser_session = self._browser_auth.find_request_session(request.scope)
        if visitor is None or browser_session is None:
            raise Unauthorized("Sign in with a key to answer this request")
        return visitor, browser_session

    async def _get_consent_request(self, consent_request_id: str) -> ConsentRequest:
        consent_request = await anyio.to_thread.run_sync(
            self._grants.find_request, consent_request_id
        )
        if consent_request is None:
            raise FormExpired(_EXPIRED_MESSAGE)
        return consent_request

    async def _find_client_name(self, client_id: str) -> str | None:
        client_metadata_json = await anyio.to_thread.run_sync(
            self._grants.find_client_metadata, client_id
        )
        if client_metadata_json is None:
            raise FormExpired(_EXPIRED_MESSAGE)
        return OAuthClientInformationFull.model_validate_json(client_metadata_json).client_name

    def _find_face_path(self, request: Request, resource_url: str | None) -> str | None:
        """Return the path of the face that a resource names; None when it names all of them.

        Raise _UnknownResource when it names something that is not ours.
        """
        server_address = get_server_address(request, self._public_url)
        if resource_url is None or resource_url.rstrip("/") == server_address:
            return None
        face_path = resource_url.removeprefix(server_address).rstrip("/").removesuffix("/mcp")
        if (
            resource_url.rstrip("/") == f"{server_address}{face_path}/mcp"
            and face_path in self._title_by_face_path
        ):
            return face_path
        raise _UnknownResource(f"This server has no face at {resource_url[:200]}")

    def _redirect_to_client(
        self, request: Request, authorization_params: AuthorizationParams, **answer_parameters: str
    ) -> Response:
        # The issuer is named, so that a client with several cannot mix their answers up.
        issuer_url = get_server_address(request, self._public_url)
        return_url = construct_redirect_uri(
            str(authorization_params.redirect_uri),
            **answer_parameters,
            state=authorization_params.state,
            iss=issuer_url,
        )
        return RedirectResponse(return_url, 302, {"Cache-Control": "no-store"})


class _UnknownResource(Exception):
    """A client asks for tokens of something else than this server."""


def _parse_authorization_params(consent_request: ConsentRequest) -> AuthorizationParams:
    return AuthorizationParams.model_validate_json(consent_request.parameters_json)


def _can_offer_write(visitor: Visitor, authorization_params: AuthorizationParams) -> bool:
    """Whether the client asks to change something, and the key is of somebody who may."""
    return visitor.role != "reader" and (
        authorization_params.scopes is None or WRITE_SCOPE in authorization_params.scopes
    )


def _describe_redirect_target(redirect_uri: str) -> str:
    """Return where an answer goes, so that nothing looks like a web site which is none."""
    redirect_uri_parts = urlsplit(redirect_uri)
    if redirect_uri_parts.scheme == "https":
        return redirect_uri_parts.netloc
    if redirect_uri_parts.scheme == "http":  # of this machine
        return f"{redirect_uri_parts.scheme}://{redirect_uri_parts.netloc}"
    # Not its host: `evil-app://claude.ai/` is none of claude.ai's.
    return f"a program on your computer that opens {redirect_uri_parts.scheme}: addresses"


def _make_content_security_policy(redirect_uri: str) -> str:
    """Return the policy of a page whose form leads back to a client."""
    redirect_uri_parts = urlsplit(redirect_uri)
    is_web_address = redirect_uri_parts.scheme in ("http", "https")
    allowed_origin = (
        f"{redirect_uri_parts.scheme}://{redirect_uri_parts.netloc}"
        if is_web_address
        else f"{redirect_uri_parts.scheme}:"
    )
    return PAGE_CONTENT_SECURITY_POLICY.replace(
        "form-action 'self'", f"form-action 'self' {allowed_origin}"
    )

"""What every HTTP request passes before it is served: Host, Origin, credentials, rate limit."""

import ipaddress
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.core.ids import current_caller_id
from readingroom.server.auth.bearer import identify_caller, is_mcp_path, log_refusal
from readingroom.server.auth.browsers import BrowserAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.errors import ForbiddenOrigin, IssuerUnreachable, Misdirected, Unauthorized
from readingroom.server.http.admin import AdminKey
from readingroom.server.http.errors import SIGN_IN_PATH
from readingroom.server.http.limits import OpenRequests, RateLimiter
from readingroom.server.pages.frame import accepts_html
from readingroom.server.settings import ServerSettings
from readingroom.storage.errors import StorageFailed
from readingroom.web.assets import ASSET_PREFIX

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_OPEN_PATHS = ("/health", "/ready")
SECONDS_BETWEEN_KEY_CHECKS = 30.0
"""How often the key of an open event stream is looked at again."""


@dataclass(frozen=True)
class AllowedHostsAndOrigins:
    """The Host and Origin values this server answers to; `name:*` stands for any port."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    operator_origins: tuple[str, ...]
    """Those that the operator named; the others are ours, and this machine's."""


def build_allowed_hosts_and_origins(settings: ServerSettings) -> AllowedHostsAndOrigins:
    """Return loopback, the address we listen on, the public one, and what the operator added."""
    host_names = [*_LOOPBACK_HOSTS, *_list_own_host_names(settings.host), *settings.allowed_hosts]
    if settings.public_url:
        host_names.append(urlsplit(settings.public_url).netloc)
    allowed_hosts = tuple(
        dict.fromkeys(_add_wildcard_port_names(host_name.lower() for host_name in host_names))
    )
    allowed_origins = [
        f"{url_scheme}://{allowed_host}"
        for allowed_host in allowed_hosts
        for url_scheme in ("http", "https")
    ]
    operator_origins = tuple(
        operator_origin.lower() for operator_origin in settings.allowed_origins
    )
    return AllowedHostsAndOrigins(
        allowed_hosts, (*allowed_origins, *operator_origins), operator_origins
    )


class SecurityMiddleware:
    """ASGI middleware: checks Host, Origin, credentials and rate limit; sets `scope["user"]`."""

    def __init__(
        self,
        app: ASGIApp,
        allowed_hosts_and_origins: AllowedHostsAndOrigins,
        auth_policies: AuthPolicies,
        rate_limiter: RateLimiter,
        open_requests: OpenRequests,
        admin_key: AdminKey | None,
        browser_auth: BrowserAuth,
        matches_page: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._allowed_names = allowed_hosts_and_origins
        self._policies = auth_policies
        self._limiter = rate_limiter
        self._open_requests = open_requests
        self._admin_key = admin_key
        self._browser_auth = browser_auth
        self._matches_page = matches_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open_path(scope):
            return await self._app(scope, receive, send)
        self._check_host_and_origin(scope)
        if self._is_sent_by_operator(scope):
            await self._app(scope, receive, send)
            return
        await self._check_caller(scope)
        # A GET may be an event stream, which stays open for hours; a call ends by itself.
        if scope["method"] == "GET" and "user" in scope:
            receive = self._make_rechecking_receive(scope, receive)
        with self._open_requests.count_open_request(identify_caller(scope)):
            await self._app(scope, receive, send)

    def _check_host_and_origin(self, scope: Scope) -> None:
        """Raise Misdirected or ForbiddenOrigin, before anything is counted."""
        request_headers = dict(scope["headers"])
        host_name = request_headers.get(b"host", b"").decode("latin-1").lower()
        # Against DNS rebinding: a page whose name resolves to our address has its own name here.
        if not _is_allowed_host_or_origin(host_name, self._allowed_names.hosts):
            raise Misdirected(
                f"This server does not answer to the host {host_name[:100]!r}; "
                "the operator can add it with READINGROOM_ALLOWED_HOSTS"
            )
        if b"origin" not in request_headers:
            _refuse_cross_site_loading(scope["method"], request_headers)
            return
        # Each of them: of several headers of one name, the dict above has the last alone.
        for header_name, header_value in scope["headers"]:
            request_origin = (
                header_value.decode("latin-1").lower() if header_name == b"origin" else ""
            )
            if request_origin and not self._can_origin_call(scope, request_origin, request_headers):
                raise ForbiddenOrigin(
                    f"Pages of {request_origin[:100]!r} may not call this server; "
                    "the operator can add them with READINGROOM_ALLOWED_ORIGINS"
                )

    def _can_origin_call(
        self, scope: Scope, request_origin: str, request_headers: Mapping[bytes, bytes]
    ) -> bool:
        """Whether pages of an origin may send this request.

        Where no key is asked for, a page of another port of this machine may use the tools, as
        inspectors do; but it may not change anything over REST, where nobody is asked first.
        """
        if not _is_allowed_host_or_origin(request_origin, self._allowed_names.origins):
            return False
        is_rest_write = scope["method"] not in _SAFE_METHODS and not is_mcp_path(scope["path"])
        # A browser adds no bearer key of its own accord: somebody who holds it has given it to the
        # page.
        if not is_rest_write or b"authorization" in request_headers:
            return True
        return (
            request_origin in self._allowed_names.operator_origins
            or self._browser_auth.is_own_origin(scope, request_origin)
        )

    def _is_sent_by_operator(self, scope: Scope) -> bool:
        """Whether a command of the operator is sent by who has its key.

        It is not counted: whoever shares the address could lock the shell out.
        """
        admin_key = self._admin_key
        return (
            admin_key is not None
            and admin_key.protects_path(scope["path"])
            and admin_key.authorizes_request(scope)
        )

    async def _check_caller(self, scope: Scope) -> None:
        if self._admin_key and self._admin_key.protects_path(scope["path"]):
            self._count_request(scope)  # the route itself refuses the key
            return
        try:
            request_user = await self._authenticate_caller(scope)
        except (Unauthorized, IssuerUnreachable) as refusal:
            self._count_request(scope)  # guessing keys is limited, too
            if isinstance(refusal, Unauthorized) and not self._is_signed_out(scope):
                log_refusal(refusal, scope)
            raise
        if request_user:
            scope["user"] = request_user
        # Only now: with a key a request counts for its holder, and without one for its address.
        self._count_request(scope)

    def _is_signed_out(self, scope: Scope) -> bool:
        """Whether a browser opens a page before it has signed in: it has shown no wrong key."""
        return accepts_html(scope) and not _has_key_header(scope) and self._matches_page(scope)

    async def _authenticate_caller(self, scope: Scope) -> AuthenticatedUser | None:
        """Return the caller by the key it sends, or on a page by its session.

        Raise Unauthorized.
        """
        try:
            return await self._policies.authenticate(scope)
        except Unauthorized:
            if _has_key_header(scope) or not self._matches_page(scope):
                raise
            request_user = await self._browser_auth.find_user(scope)
            if request_user is None and not _is_public_page(scope["path"]):
                raise
            return request_user

    def _count_request(self, scope: Scope) -> None:
        """Count a request; ErrorMiddleware sends the caller what remains."""
        caller_id = identify_caller(scope)
        if "user" not in scope and _is_cross_site(scope):
            # A page elsewhere may open ours as often as it likes; this machine's own callers,
            # who have the same address, must not pay for that.
            caller_id += " from other sites"
        current_caller_id.set(caller_id)
        try:
            self._limiter.count_request(caller_id)
        finally:
            scope["state"]["allowance"] = self._limiter.find_allowance(caller_id)

    def _make_rechecking_receive(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that ends an event stream when its key is revoked or expires.

        A stream waits there for its client to leave, and gets the same message when it has to.
        """
        has_lost_access = False

        async def receive_while_authorized() -> Message:
            nonlocal has_lost_access
            while not has_lost_access:
                with anyio.move_on_after(SECONDS_BETWEEN_KEY_CHECKS):
                    return await receive()
                try:
                    await self._authenticate_caller(scope)
                except Unauthorized:
                    has_lost_access = True
                except (IssuerUnreachable, StorageFailed):
                    pass  # the token or key was good, and may still be
            return {"type": "http.disconnect"}

        return receive_while_authorized


def _refuse_cross_site_loading(http_method: str, request_headers: Mapping[bytes, bytes]) -> None:
    """Raise ForbiddenOrigin for what a page of another site loads without an Origin: its images,
    scripts and frames, which would spend the allowance of this machine's own callers.
    """
    if request_headers.get(b"sec-fetch-site") != b"cross-site":
        return
    is_navigation = (
        http_method == "GET"
        and request_headers.get(b"sec-fetch-mode") == b"navigate"
        and request_headers.get(b"sec-fetch-dest") == b"document"
    )
    # A page can have others fetched beforehand, without anybody opening them.
    is_prefetch = (
        b"sec-purpose" in request_headers or request_headers.get(b"purpose") == b"prefetch"
    )
    if not is_navigation or is_prefetch:
        raise ForbiddenOrigin(
            "Pages of other sites may link to this server, and load nothing of it"
        )


def _is_cross_site(scope: Scope) -> bool:
    return dict(scope["headers"]).get(b"sec-fetch-site") == b"cross-site"


def _has_key_header(scope: Scope) -> bool:
    return any(header_name == b"authorization" for header_name, _ in scope["headers"])


def _is_public_page(request_path: str) -> bool:
    """Whether anybody may open a page: to sign in, and to see it as it is meant to be."""
    return request_path == SIGN_IN_PATH or request_path.startswith(ASSET_PREFIX)


def _is_open_path(scope: Scope) -> bool:
    """Return whether this path is always open; it is also compared as it was on the wire."""
    request_path = scope["path"]
    return (
        request_path in _OPEN_PATHS
        and scope.get("raw_path", request_path.encode()) == request_path.encode()
    )


def _is_allowed_host_or_origin(host_or_origin: str, allowed_values: Collection[str]) -> bool:
    name_without_port, port_colon, port_text = host_or_origin.rpartition(":")
    # A caller must not be able to send the wildcard of our own list.
    if port_text == "*":
        return False
    return host_or_origin in allowed_values or (
        bool(port_colon) and port_text.isdecimal() and f"{name_without_port}:*" in allowed_values
    )


def _add_wildcard_port_names(host_names: Iterable[str]) -> Iterable[str]:
    """Yield each host; one without a port also stands for every port of it."""
    for host_name in host_names:
        yield host_name
        # After the bracket, because an IPv6 address has colons of its own.
        if not host_name.rpartition("]")[2].count(":"):
            yield f"{host_name}:*"


def _list_own_host_names(host_name: str) -> list[str]:
    """Return the address we listen on as a Host header has it; none for a wildcard address."""
    try:
        ip_address = ipaddress.ip_address(host_name)
    except ValueError:
        return [host_name]
    # 0.0.0.0 is where we listen, and no name that anybody calls us by.
    if ip_address.is_unspecified:
        return []
    return [f"[{host_name}]" if ip_address.version == 6 else host_name]

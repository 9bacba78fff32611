"""The Starlette app over some faces: its routes, its middleware, its lifespan."""

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom.protocol.command import ADMIN_PATH_PREFIX, Command
from readingroom.protocol.embedding_work import LeasablePassages
from readingroom.protocol.spec import KnowledgeBase, list_leasable_passages
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.browsers import BrowserAuth
from readingroom.server.auth.connectors import KeyBackedIssuer, make_issuer_routes
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.connections import choose_max_requests_per_caller
from readingroom.server.faces import Face
from readingroom.server.http.admin import AdminEndpoint, AdminKey
from readingroom.server.http.bodies import BodyLimitMiddleware, is_not_small_form, make_upload_test
from readingroom.server.http.errors import ErrorMiddleware, handle_http_exception
from readingroom.server.http.held_bytes import MemoryCharges
from readingroom.server.http.limits import OpenRequests, RateLimiter
from readingroom.server.http.samples import SampleMiddleware
from readingroom.server.http.security import (
    AllowedHostsAndOrigins,
    SecurityMiddleware,
    build_allowed_hosts_and_origins,
)
from readingroom.server.mcp.handlers import RecordCall, build_mcp_server
from readingroom.server.mcp.sessions import SessionLimits
from readingroom.server.mcp.transports import SseTransport, StreamableHttpTransport
from readingroom.server.observe.history import CallHistory
from readingroom.server.observe.logging import log_call
from readingroom.server.observe.metrics import METRICS_CONTENT_TYPE, Metrics
from readingroom.server.observe.readiness import ReadinessChecks
from readingroom.server.observe.requests import RequestCounter
from readingroom.server.pages.consent import ConsentPages
from readingroom.server.pages.frame import PageFrame
from readingroom.server.pages.landing import LandingPages
from readingroom.server.pages.manifest import build_manifest_routes
from readingroom.server.pages.site import ConsolePages, build_console_pages, make_page_test
from readingroom.server.settings import ServerSettings
from readingroom.server.startup import HEALTH_PATH, READY_PATH, show_health, warm_up_bases
from readingroom.storage.keys import WorkerKeys
from readingroom.storage.postgres.buckets import SharedBuckets
from readingroom.storage.postgres.database import find_database


@dataclass(frozen=True)
class AdminAccess:
    """The commands this process runs for other processes, and the key they must show."""

    key: str
    command_types_by_name: Mapping[str, type[Command]]


def build_app(
    server_faces: tuple[Face, ...],
    settings: ServerSettings,
    auth_policies: AuthPolicies,
    admin_access: AdminAccess | None = None,
) -> Starlette:
    """Return the complete HTTP server. Build one per process: its session managers run once."""
    shared_parts = _SharedAppParts(server_faces, settings, auth_policies, admin_access)
    starlette_app = Starlette(
        routes=shared_parts.make_routes(),
        middleware=shared_parts.make_middleware(),
        exception_handlers={HTTPException: handle_http_exception},
        lifespan=partial(
            _lifespan,
            shared_parts.bases,
            shared_parts.endpoints,
            shared_parts.site,
            _make_rate_limit_sharer(shared_parts.rate_limiter, settings),
        ),
    )
    starlette_app.router.redirect_slashes = False  # policies are chosen by the exact path
    rest_routers = [
        rest_router
        for knowledge_base in shared_parts.bases
        for rest_router in knowledge_base.get_routers()
    ]
    passages_to_embed = _list_passages_for_workers(shared_parts.bases, settings)
    if rest_routers or passages_to_embed:
        # Not a route: one for every path would hide that another allows other methods (405).
        starlette_app.router.default = _build_rest_asgi_app(
            rest_routers, passages_to_embed, settings, shared_parts.memory_charges
        )
    return starlette_app


class _SharedAppParts:
    """What the routes and the middleware of one app share."""

    def __init__(
        self,
        server_faces: tuple[Face, ...],
        settings: ServerSettings,
        auth_policies: AuthPolicies,
        admin_access: AdminAccess | None,
    ) -> None:
        self._faces = server_faces
        self._settings = settings
        self._policies = auth_policies
        self._admin_access = admin_access
        self._admin_key = AdminKey(admin_access.key) if admin_access else None
        self.bases = tuple(
            {
                knowledge_base.name: knowledge_base
                for server_face in server_faces
                for knowledge_base in server_face.bases
            }.values()
        )
        # One for the whole app: its middleware counts, and what several processes share feeds it.
        self.rate_limiter = RateLimiter(settings.rate_limit)
        self.memory_charges = MemoryCharges(settings.max_body_bytes)
        self._metrics = Metrics(
            metric_collector
            for knowledge_base in self.bases
            for metric_collector in knowledge_base.metric_collectors
        )
        self._call_history = CallHistory()
        self._browser_auth = BrowserAuth(auth_policies.key_auth, settings)
        self.site = build_console_pages(
            self.bases, self._browser_auth, settings, auth_policies.key_auth, self._call_history
        )
        self._landing_pages = LandingPages(
            server_faces,
            settings,
            auth_policies,
            self.site.menu_entries,
            self.site.list_recent_events,
        )
        self.endpoints = self._make_endpoints()
        self._page_routes = [
            *self.site.routes,
            *_make_consent_routes(self.site.frame, auth_policies.key_auth, server_faces, settings),
            Route("/", self._landing_pages.show_index),
            Route("/connect", self._landing_pages.show_connect),
            Route("/llms.txt", self._landing_pages.show_llms_txt),
        ]

    def make_routes(self) -> list[BaseRoute]:
        """Return every route but those of REST."""
        http_routes: list[BaseRoute] = [
            *(
                http_route
                for mcp_endpoint in self.endpoints
                for http_route in mcp_endpoint.make_routes()
            ),
            *self._policies.make_routes(),
            *_make_issuer_routes(self._policies.key_auth, self._settings),
            *build_manifest_routes(self._faces, self._settings, self._policies),
            *self._page_routes,
            Route(HEALTH_PATH, show_health),
            Route(READY_PATH, ReadinessChecks(self.bases).show_readiness),
            Route("/metrics", partial(_render_metrics, self._metrics)),
        ]
        if self._admin_access and self._admin_key:
            services_by_base_name = {
                knowledge_base.name: knowledge_base.service for knowledge_base in self.bases
            }
            admin_endpoint = AdminEndpoint(
                self._admin_access.command_types_by_name, services_by_base_name, self._admin_key
            )
            http_routes.append(_make_admin_route(admin_endpoint, self._settings.max_body_bytes))
        return http_routes

    def make_middleware(self) -> list[Middleware]:
        """Return what every request passes, the outermost first."""
        allowed_hosts_and_origins = build_allowed_hosts_and_origins(self._settings)
        docs_route = Route("/docs", self._landing_pages.show_index)
        matches_page = make_page_test([*self._page_routes, docs_route])
        return [
            # Before the credentials: a browser asks for leave (OPTIONS) before it sends a key.
            Middleware(_OriginOnlyCors, **_build_cors_options(allowed_hosts_and_origins)),
            Middleware(
                RequestCounter, request_metrics=self._metrics, call_history=self._call_history
            ),
            # Around the security checks, so that a refusal has a request id and our envelope too.
            Middleware(
                ErrorMiddleware,
                frame_renderer=self.site.frame,
                matches_page=matches_page,
                matches_josh_path=self._policies.is_josh_path,
            ),
            Middleware(
                SecurityMiddleware,
                allowed_hosts_and_origins=allowed_hosts_and_origins,
                auth_policies=self._policies,
                rate_limiter=self.rate_limiter,
                open_requests=OpenRequests(choose_max_requests_per_caller()),
                admin_key=self._admin_key,
                browser_auth=self._browser_auth,
                matches_page=matches_page,
            ),
            Middleware(
                BodyLimitMiddleware,
                max_bytes=self._settings.max_body_bytes,
                memory_charges=self.memory_charges,
                exempts_request=is_not_small_form,
            ),
        ]

    def _make_endpoints(self) -> list["_McpEndpoint"]:
        session_limits = SessionLimits(
            max_sessions=self._settings.max_sessions,
            max_sessions_per_caller=self._settings.max_sessions_per_caller,
            idle_seconds=self._settings.session_idle_seconds,
            max_body_bytes=self._settings.max_body_bytes,
            memory_charges=self.memory_charges,
        )
        call_recorders = [log_call, self._metrics.record_call, self._call_history.add_tool_call]
        return [
            _McpEndpoint(
                server_face, session_limits, self._landing_pages, call_recorders, self._settings
            )
            for server_face in self._faces
        ]


def _make_issuer_routes(key_auth: KeyAuth, settings: ServerSettings) -> list[BaseRoute]:
    """Return the routes by which apps get tokens; none where they cannot connect."""
    if key_auth.grants is None:
        return []
    token_issuer = KeyBackedIssuer(key_auth.grants, key_auth)
    return make_issuer_routes(token_issuer, key_auth, settings.public_url)


def _make_consent_routes(
    frame_renderer: PageFrame,
    key_auth: KeyAuth,
    server_faces: Sequence[Face],
    settings: ServerSettings,
) -> list[BaseRoute]:
    """Return the page where people answer apps; none where they cannot connect."""
    if key_auth.grants is None:
        return []
    title_by_face_path = {server_face.path: server_face.title for server_face in server_faces}
    return ConsentPages(
        frame_renderer, key_auth.grants, title_by_face_path, settings.public_url
    ).make_routes()


class _McpEndpoint:
    """One face's protocol server behind its transports."""

    def __init__(
        self,
        server_face: Face,
        session_limits: SessionLimits,
        landing_pages: LandingPages,
        call_recorders: Sequence[RecordCall],
        settings: ServerSettings,
    ) -> None:
        mcp_server = build_mcp_server(
            server_face, call_recorders, settings.is_sample, settings.public_url
        )
        self._path = server_face.path
        self.http = StreamableHttpTransport(
            mcp_server,
            server_face.keeps_sessions,
            session_limits,
            partial(landing_pages.show_face, server_face),
        )
        self._sse = (
            SseTransport(mcp_server, server_face.path, session_limits)
            if server_face.serves_sse
            else None
        )

    def make_routes(self) -> list[BaseRoute]:
        http_routes: list[BaseRoute] = [Route(f"{self._path}/mcp", self.http)]
        if self._sse:
            sse_stream_app, sse_messages_app = (
                _AsgiMethodApp(self._sse.serve_stream),
                _AsgiMethodApp(self._sse.receive_message),
            )
            http_routes.append(Route(f"{self._path}/sse", sse_stream_app, methods=["GET"]))
            http_routes.append(Route(f"{self._path}/messages/", sse_messages_app, methods=["POST"]))
        return http_routes


class _AsgiMethodApp:
    """Wraps a method as an ASGI app: Starlette takes a bare method for a request handler."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _OriginOnlyCors(CORSMiddleware):
    """CORS for requests with an Origin; the others, nearly all of them, skip its work."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_origin = any(header_name == b"origin" for header_name, _ in scope.get("headers", ()))
        await (super().__call__ if has_origin else self.app)(scope, receive, send)


def _make_rate_limit_sharer(
    rate_limiter: RateLimiter, settings: ServerSettings
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what counts requests together with other processes; None for one that is alone."""
    postgres_database = find_database(settings)
    return (
        partial(rate_limiter.share_counts_until_cancelled, SharedBuckets(postgres_database))
        if postgres_database
        else None
    )


@contextlib.asynccontextmanager
async def _lifespan(
    knowledge_bases: Sequence[KnowledgeBase],
    mcp_endpoints: Sequence[_McpEndpoint],
    console_pages: ConsolePages,
    rate_limit_sharer: Callable[[], Coroutine[Any, Any, None]] | None,
    app: Starlette,
) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as exit_stack:
        # Endpoints after bases: at the end their sessions are closed while the bases still run.
        for knowledge_base in knowledge_bases:
            await exit_stack.enter_async_context(knowledge_base.lifespan())
        for mcp_endpoint in mcp_endpoints:
            await exit_stack.enter_async_context(mcp_endpoint.http.manager.run())
        await console_pages.upload_spools.delete_abandoned_folders()
        await console_pages.job_runner.take_over_jobs()
        background_tasks = await exit_stack.enter_async_context(anyio.create_task_group())
        background_tasks.start_soon(warm_up_bases, knowledge_bases)
        background_tasks.start_soon(console_pages.job_runner.run_jobs)
        if rate_limit_sharer:
            background_tasks.start_soon(rate_limit_sharer)
        yield
        background_tasks.cancel_scope.cancel()


def _build_cors_options(allowed_hosts_and_origins: AllowedHostsAndOrigins) -> dict[str, Any]:
    """Return the options that let pages of the allowed origins read our answers."""
    # `:*` is any port; everything else that an operator wrote is literal, never a pattern.
    origin_patterns = [
        re.escape(allowed_origin).replace(r":\*", ":[0-9]+")
        for allowed_origin in allowed_hosts_and_origins.origins
    ]
    return {
        "allow_origin_regex": "|".join(origin_patterns),
        # DELETE ends an MCP session.
        "allow_methods": ["GET", "POST", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": [
            *("Mcp-Session-Id", "X-Request-ID", "X-Correlation-ID", "Retry-After"),
            *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
            "WWW-Authenticate",  # tells a client in a browser who issues tokens
        ],
    }


def _list_passages_for_workers(
    knowledge_bases: Sequence[KnowledgeBase], settings: ServerSettings
) -> list[LeasablePassages]:
    """Return what workers may embed, first what an ingestion waits for; nothing without workers.

    Without REST, their routes are there only if a worker has a key: FastAPI is slow to import. So
    they are in a read-only room, whose description names no route that writes unless it is used.
    """
    has_rest = any(knowledge_base.get_routers() for knowledge_base in knowledge_bases)
    if (settings.read_only or not has_rest) and not WorkerKeys(settings.data).list_keys():
        return []
    return list_leasable_passages(knowledge_bases)


def _build_rest_asgi_app(
    rest_routers: Sequence[Any],
    passages_to_embed: Sequence[LeasablePassages],
    settings: ServerSettings,
    memory_charges: MemoryCharges,
) -> ASGIApp:
    """Return the app that gets what no other route takes."""
    # Imported only for bases that have REST: FastAPI is slow to import.
    from readingroom.server.http.rest import ReadOnlyMiddleware, build_rest_app

    rest_app = build_rest_app(rest_routers, passages_to_embed)
    is_upload = make_upload_test(rest_app.routes)
    # Who may not write is refused before the body is read.
    size_limited_app = BodyLimitMiddleware(
        rest_app, settings.max_body_bytes, memory_charges, is_upload
    )
    app = ReadOnlyMiddleware(size_limited_app)
    return SampleMiddleware(app) if settings.is_sample else app


def _make_admin_route(admin_endpoint: AdminEndpoint, max_body_bytes: int) -> Route:
    return Route(
        ADMIN_PATH_PREFIX + "{command}",
        admin_endpoint.run_command,
        methods=["POST"],
        max_body_size=max_body_bytes,
    )


async def _render_metrics(room_metrics: Metrics, request: Request) -> Response:
    return Response(room_metrics.render_metrics(), media_type=METRICS_CONTENT_TYPE)

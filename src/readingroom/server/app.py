"""One Starlette app from a catalogue of faces: routes, checks, one lifespan."""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom.federation import NAME as DESK
from readingroom.protocol.command import ADMIN_PREFIX, Command
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.auth.policies import Guards
from readingroom.server.faces import Face
from readingroom.server.http import admin
from readingroom.server.http.errors import Problems, http_problem
from readingroom.server.http.limits import RateLimiter
from readingroom.server.http.security import Door, Names, names_of
from readingroom.server.mcp.handlers import Recorder, mcp_server
from readingroom.server.mcp.transports import SessionRules, Sse, StreamableHttp
from readingroom.server.observe.logging import log_call
from readingroom.server.observe.metrics import CONTENT_TYPE, Metrics
from readingroom.server.pages.bases import base_page_routes
from readingroom.server.pages.landing import Pages
from readingroom.server.pages.manifest import manifest_routes
from readingroom.server.pages.record import reading_page
from readingroom.server.settings import ServerSettings


@dataclass(frozen=True)
class Ownership:
    """What commands this process runs for others, and the key that proves they may ask."""

    key: str
    commands: Mapping[str, type[Command]]


def build_app(
    faces: tuple[Face, ...],
    settings: ServerSettings,
    guards: Guards,
    ownership: Ownership | None = None,
) -> Starlette:
    """The whole HTTP server. Build one per process: its session managers run only once."""
    bases = tuple({base.name: base for face in faces for base in face.bases}.values())
    metrics = Metrics(collector for base in bases for collector in base.collectors)
    names = names_of(settings)
    rules = _rules(settings, names)
    pages = Pages(faces, settings, guards)
    recorders = [log_call, metrics.count]
    rooms = [_Room(face, rules, pages, recorders, settings.sample) for face in faces]
    routes: list[BaseRoute] = [
        *(route for room in rooms for route in room.routes()),
        *guards.routes(),
        *manifest_routes(faces, settings, guards),
        *base_page_routes(bases),
        Route("/", pages.index),
        Route("/health", _health),
        Route("/metrics", partial(_metrics, metrics)),
    ]
    if desk := next((base for base in bases if base.name == DESK), None):
        routes.append(Route("/read", partial(reading_page, desk.service, settings.sample)))
    if ownership:
        routes.append(_admin_route(bases, ownership, settings.max_body_bytes))
    app = Starlette(
        routes=routes,
        middleware=[
            # Outside the door: a browser asks leave (OPTIONS) before it may show a key.
            Middleware(_PagesOnly, **_pages_allowed(names)),
            Middleware(Problems),
            Middleware(
                Door,
                names=names,
                guards=guards,
                limiter=RateLimiter(settings.rate_limit),
                own_key=admin.PATH if ownership else None,
            ),
        ],
        exception_handlers={HTTPException: http_problem},
        lifespan=partial(_lifespan, bases, rooms),
    )
    app.router.redirect_slashes = False  # a path is what it is, also to the door
    if routers := [router for base in bases for router in base.routers()]:
        # Not a route: one for every path would hide that another allows other methods (405).
        app.router.default = _rest(routers, settings.sample)
    return app


class _Room:
    """One face's server behind its transports."""

    def __init__(
        self,
        face: Face,
        rules: SessionRules,
        pages: Pages,
        recorders: Sequence[Recorder],
        is_sample: bool,
    ) -> None:
        server = mcp_server(face, recorders, is_sample)
        self._path = face.path
        self.http = StreamableHttp(server, face.stateful, rules, partial(pages.face, face))
        self._sse = Sse(server, face.path, rules) if face.sse else None

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [Route(f"{self._path}/mcp", self.http)]
        if self._sse:
            stream, messages = _App(self._sse.stream), _App(self._sse.messages)
            routes.append(Route(f"{self._path}/sse", stream, methods=["GET"]))
            routes.append(Route(f"{self._path}/messages/", messages, methods=["POST"]))
        return routes


class _App:
    """Says that a method is an ASGI app: Starlette takes a bare one for a request handler."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _PagesOnly(CORSMiddleware):
    """CORS for requests that come from a page; the others, nearly all, pay nothing for it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from_page = any(name == b"origin" for name, _ in scope.get("headers", ()))
        await (super().__call__ if from_page else self.app)(scope, receive, send)


@contextlib.asynccontextmanager
async def _lifespan(
    bases: Sequence[KnowledgeBase], rooms: Sequence[_Room], app: Starlette
) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as running:
        for base in bases:
            await running.enter_async_context(base.running())
        for room in rooms:
            await running.enter_async_context(room.http.manager.run())
        yield


def _rules(settings: ServerSettings, names: Names) -> SessionRules:
    return SessionRules(
        security=TransportSecuritySettings(
            allowed_hosts=list(names.hosts), allowed_origins=list(names.origins)
        ),
        most=settings.max_sessions,
        idle_seconds=settings.session_idle_seconds,
        max_body_bytes=settings.max_body_bytes,
    )


def _pages_allowed(names: Names) -> dict[str, Any]:
    """The web pages that may read our answers: those whose Origin the door lets in."""
    patterns = [re.escape(origin).replace(r":\*", ":[0-9]+") for origin in names.origins]
    return {
        "allow_origin_regex": "|".join(patterns),
        "allow_methods": ["GET", "POST", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": [
            *("Mcp-Session-Id", "X-Request-ID", "X-Correlation-ID", "Retry-After"),
            *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
            "WWW-Authenticate",  # where a client in a browser learns who gives out tokens
        ],
    }


def _rest(routers: Sequence[Any], is_sample: bool) -> ASGIApp:
    """What no other route takes; FastAPI is imported only for bases that have REST."""
    from readingroom.server.http.rest import Readers, rest_app
    from readingroom.server.http.samples import SampleBodies

    app = Readers(rest_app(routers))
    return SampleBodies(app) if is_sample else app


def _admin_route(
    bases: Sequence[KnowledgeBase], ownership: Ownership, max_body_bytes: int
) -> Route:
    services = {base.name: base.service for base in bases}
    endpoint = admin.Admin(ownership.commands, services, ownership.key)
    return Route(
        ADMIN_PREFIX + "{command}", endpoint.run, methods=["POST"], max_body_size=max_body_bytes
    )


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _metrics(metrics: Metrics, request: Request) -> Response:
    return Response(metrics.page(), media_type=CONTENT_TYPE)

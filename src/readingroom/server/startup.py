"""The start of a server: `/health` is answered while the bases are opened, everything else after.

What the first requests would have to wait for is then loaded in the background.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom.core.errors import KnowledgeError
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.http.errors import ErrorMiddleware

HEALTH_PATH = "/health"
READY_PATH = "/ready"

OpenApp = Callable[[], tuple[Starlette, Callable[[], None]]]
"""Returns the app of a server, and what to call as soon as it answers."""

logger = logging.getLogger(__name__)


async def show_health(request: Request) -> Response:
    """Say that the process is alive."""
    # Open to everybody, so it says nothing about what is served here.
    return JSONResponse({"status": "ok"})


class StartingApp:
    """Answers probes at once, and every other request as soon as the app behind it runs.

    `open_app` opens the bases. It runs on a thread, because it imports their libraries. When it or
    the lifespan of its app fails, `failure` holds the error and `stop_server` is called.
    """

    def __init__(self, open_app: OpenApp) -> None:
        self.stop_server: Callable[[], None] = _announce_nothing
        self.failure: Exception | None = None
        self._open_app = open_app
        self._app: ASGIApp | None = None
        self._opened_event = anyio.Event()
        self._stopping_event = anyio.Event()
        self._probe_app = Starlette(
            routes=[Route(HEALTH_PATH, show_health), Route("/{path:path}", _show_starting)],
            middleware=[Middleware(ErrorMiddleware)],
            lifespan=self._lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._probe_app(scope, receive, send)
            return
        if scope["path"] not in (HEALTH_PATH, READY_PATH):
            await self._opened_event.wait()
        await (self._app or self._probe_app)(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, probe_app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(self._run_app)
            yield
            self._stopping_event.set()
            if self._app is None:
                task_group.cancel_scope.cancel()

    async def _run_app(self) -> None:
        try:
            opened_app, announce_ready = await anyio.to_thread.run_sync(self._open_app)
            async with opened_app.router.lifespan_context(opened_app):
                self._app = opened_app
                self._opened_event.set()
                announce_ready()
                await self._stopping_event.wait()
        except Exception as error:
            self.failure = error
            self._opened_event.set()
            self.stop_server()


async def warm_up_bases(knowledge_bases: Iterable[KnowledgeBase]) -> None:
    """Load what the first listing and the first search of each base would have to wait for."""
    for knowledge_base in knowledge_bases:
        try:
            for base_tool in knowledge_base.tools:
                await anyio.to_thread.run_sync(base_tool.prepare_schemas)
            await knowledge_base.warm_up()
        except KnowledgeError as error:
            # Nobody has asked for it yet; whoever does gets the same error.
            logger.info("The %s base was not warmed up: %s", knowledge_base.name, error.message)
        except Exception as error:
            logger.error("The %s base was not warmed up", knowledge_base.name, exc_info=error)


async def _show_starting(request: Request) -> Response:
    return JSONResponse({"status": "starting"}, status_code=503)


def _announce_nothing() -> None: ...

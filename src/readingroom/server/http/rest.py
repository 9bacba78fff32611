"""The REST surface of the bases that have one: one FastAPI app, one OpenAPI page, one envelope."""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom import __version__
from readingroom.core.errors import Internal, InvalidArguments, InvalidRequest, KnowledgeError
from readingroom.server.auth.keys import may_write
from readingroom.server.errors import ReadOnlyKey
from readingroom.server.http.errors import INTERNAL, http_problem, problem_response
from readingroom.server.pages.operations import operations_page

_SAFE = ("GET", "HEAD", "OPTIONS")


def rest_app(routers: Sequence[APIRouter]) -> FastAPI:
    """The routers of every base, documented at /docs and /openapi.json."""
    app = FastAPI(
        title="Reading Room",
        description="What agents reach over MCP, for programs. To connect an agent: [/mcp](/mcp).",
        version=__version__,
        redirect_slashes=False,
        # One list: a router that is included finds the route of each request anew, and twice.
        routes=[route for router in routers for route in router.routes],
        # The framework's own pages load their scripts from a public host.
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            KnowledgeError: _told,
            RequestValidationError: _invalid,
            HTTPException: http_problem,
            # Answered here, then raised on: the edge (problems.py) logs it under the request id.
            Exception: _unexpected,
        },
    )
    app.add_route("/docs", operations_page(app.openapi), include_in_schema=False)
    return app


class Readers:
    """Refuses what changes something to a caller whose key is for reading alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _SAFE and not may_write(scope):
            raise ReadOnlyKey("This key may only read; ask the operator for one that may write")
        await self._app(scope, receive, send)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, KnowledgeError)
    if isinstance(error, InvalidArguments):  # whoever finds it, over REST it has one code
        error = InvalidRequest(error.errors)
    return problem_response(error, request.state.request_id)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    named = [
        {"field": _field(problem["loc"]), "message": problem["msg"]} for problem in error.errors()
    ]
    return problem_response(InvalidRequest(named), request.state.request_id)


async def _unexpected(request: Request, error: Exception) -> Response:
    return problem_response(Internal(INTERNAL), request.state.request_id)


def _field(place: tuple[str | int, ...]) -> str:
    """`("query", "limit")` as the caller wrote it: the part of the request is not its name.

    `("body", 17)` is where JSON breaks off, which no field can be named for.
    """
    named = [] if isinstance(place[-1], int) and len(place) == 2 else place[1:]
    return ".".join(map(str, named)) or "body"

"""The REST surface of the bases that have one: one FastAPI app, one OpenAPI page, one envelope."""

from collections.abc import Sequence

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from readingroom import __version__
from readingroom.core.errors import Internal, InvalidRequest, KnowledgeError
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.server.problems import INTERNAL, http_problem, problem_response


def rest_app(bases: Sequence[KnowledgeBase]) -> FastAPI:
    """Every base's routers, documented at /docs and /openapi.json."""
    app = FastAPI(
        title="Reading Room",
        description="What agents reach over MCP, for programs. To connect an agent: [/mcp](/mcp).",
        version=__version__,
        redirect_slashes=False,
        exception_handlers={
            KnowledgeError: _told,
            RequestValidationError: _invalid,
            HTTPException: http_problem,
            # Answered here, then raised on: the edge (problems.py) logs it under the request id.
            Exception: _unexpected,
        },
    )
    for base in bases:
        for router in base.routers:
            app.include_router(router)
    return app


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, KnowledgeError)
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
    """`("query", "limit")` as the caller wrote it: the part of the request is not its name."""
    return ".".join(map(str, place[1:])) or "body"

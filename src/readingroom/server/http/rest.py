"""The REST surface of the bases that have one: one FastAPI app, one OpenAPI page, one envelope."""

import threading
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from readingroom import __version__
from readingroom.core.errors import InternalError, InvalidArguments, InvalidRequest, KnowledgeError
from readingroom.protocol.checked_embedding import EmbeddingBroker
from readingroom.protocol.embedding_work import LeasablePassages
from readingroom.server.auth.bearer import can_write
from readingroom.server.errors import ReadOnlyKey
from readingroom.server.http.embedding import make_embedding_router
from readingroom.server.http.errors import (
    INTERNAL_MESSAGE,
    STATUSES_WITH_BARE_BODY,
    handle_http_exception,
    render_error,
)
from readingroom.server.pages.rest_docs import make_operations_page

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class _RestApp(FastAPI):
    """FastAPI, but its description is built once, however many threads ask for it at first.

    It takes seconds, and two threads that build it disturb each other.
    """

    _openapi_lock = threading.Lock()

    def openapi(self) -> dict[str, Any]:
        with self._openapi_lock:
            return super().openapi()


def build_rest_app(
    base_routers: Sequence[APIRouter], passages_to_embed: Sequence[LeasablePassages] = ()
) -> FastAPI:
    """Return one app with the routers of every base, documented at /docs and /openapi.json.

    `passages_to_embed` are passages that workers on other machines may embed.
    """
    all_routers = [*base_routers]
    if passages_to_embed:
        all_routers.append(make_embedding_router(EmbeddingBroker(passages_to_embed)))
    rest_app = _RestApp(
        title="Reading Room",
        description="What agents reach over MCP, for programs. To connect an agent: [/mcp](/mcp).",
        version=__version__,
        redirect_slashes=False,
        # One list: an included router would look for the route of each request a second time.
        routes=[rest_route for base_router in all_routers for rest_route in base_router.routes],
        # The framework's own pages load their scripts from a public host.
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            KnowledgeError: _handle_knowledge_error,
            RequestValidationError: _handle_invalid_request,
            HTTPException: handle_http_exception,
            # Answered here, then raised on: ErrorMiddleware logs it under the request id.
            Exception: _handle_unexpected_error,
        },
    )
    rest_app.add_route("/docs", make_operations_page(rest_app.openapi), include_in_schema=False)
    return rest_app


class ReadOnlyMiddleware:
    """ASGI middleware: refuses unsafe methods to a caller whose key is read-only."""

    def __init__(self, rest_app: ASGIApp) -> None:
        self._app = rest_app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        if is_http and scope["method"] not in _SAFE_METHODS and not can_write(scope):
            raise ReadOnlyKey("This key may only read; ask the operator for one that may write")
        await self._app(scope, receive, send)


async def _handle_knowledge_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, KnowledgeError)
    if isinstance(error, InvalidArguments):  # REST has one code for it, whoever raised it
        error = InvalidRequest(error.errors)
    has_bare_body = error.http_status in STATUSES_WITH_BARE_BODY
    return render_error(error, request.state.request_id, has_bare_body=has_bare_body)


async def _handle_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    field_problems = [
        {
            "field": _format_field_location(validation_problem["loc"]),
            "message": validation_problem["msg"],
        }
        for validation_problem in error.errors()
    ]
    return render_error(InvalidRequest(field_problems), request.state.request_id)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    return render_error(InternalError(INTERNAL_MESSAGE), request.state.request_id)


def _format_field_location(field_location: tuple[str | int, ...]) -> str:
    """Return a field's name as the caller wrote it: `limit` for `("query", "limit")`.

    `("body", 17)` is the offset at which JSON breaks off, where no field can be named.
    """
    is_json_offset = isinstance(field_location[-1], int) and len(field_location) == 2
    return ".".join(map(str, () if is_json_offset else field_location[1:])) or "body"

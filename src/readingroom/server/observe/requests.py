"""Counts requests for REST and pages beside the tool calls: how many, how long, which failed."""

import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.server.observe.history import CallHistory
from readingroom.server.observe.metrics import Metrics

ROUTE_PATH_STATE_KEY = "route_path"
"""Where a page notes the path of its route, which FastAPI's routes have in the scope anyway."""


class RequestCounter:
    """ASGI middleware: counts each request by its route, not by its address, of which callers may
    make up any number. Tool calls are counted by the tools.
    """

    def __init__(
        self,
        app: ASGIApp,
        request_metrics: Metrics,
        call_history: CallHistory,
        read_timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app = app
        self._metrics = request_metrics
        self._history = call_history
        self._read_timer = read_timer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started_at = self._read_timer()

        async def send_recording_status(asgi_message: Message) -> None:
            if asgi_message["type"] == "http.response.start":
                self._record_request(scope, asgi_message["status"], self._read_timer() - started_at)
            await send(asgi_message)

        await self._app(scope, receive, send_recording_status)

    def _record_request(self, scope: Scope, http_status: int, duration_seconds: float) -> None:
        request_state = scope.get("state", {})
        route_path = request_state.get(ROUTE_PATH_STATE_KEY) or getattr(
            scope.get("route"), "path", None
        )
        if route_path is None:
            return
        route_name = f"{scope['method']} {route_path}"
        self._metrics.record_request(route_name, http_status, duration_seconds)
        error_code = str(http_status) if http_status >= 500 else None
        self._history.add_named_call(
            route_name, duration_seconds * 1000, error_code, request_state.get("request_id", "")
        )

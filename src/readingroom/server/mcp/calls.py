"""The context of a call: who is calling, under which request id, as part of which trace."""

import re
from typing import Any

from mcp.server import ServerRequestContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Scope

from readingroom.core.ids import make_request_id
from readingroom.core.progress import ReportProgress
from readingroom.protocol.tool import ToolCall
from readingroom.server.auth.bearer import identify_caller

Context = ServerRequestContext[Any, Any]

_TRACE_PROPAGATOR = (
    TraceContextTextMapPropagator()
)  # the trace alone: a caller's baggage is not for others
_TRACEPARENT_PATTERN = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def make_call_from_context(context: Context) -> ToolCall:
    """Return the call of an MCP message: one in an HTTP request, or one over stdio."""
    report_progress = context.session.report_progress
    if context.request is None:
        request_id = make_request_id()
        trace_headers = _make_trace_headers(None)
        return ToolCall(
            request_id,
            "anonymous",
            report_progress,
            correlation_id=request_id,
            trace_headers=trace_headers,
        )
    return make_call_from_scope(context.request.scope, report_progress)


def make_call_from_scope(scope: Scope, report_progress: ReportProgress) -> ToolCall:
    """Return the call of an HTTP request that has passed the security middleware."""
    user = scope.get("user")
    request_state = scope["state"]
    headers = request_state["request_headers"]
    content_length = headers.get(b"content-length", "")
    return ToolCall(
        request_id=request_state["request_id"],
        caller=f"api_key:{user.username}" if user else "anonymous",
        report_progress=report_progress,
        client=identify_caller(scope),
        correlation_id=request_state["correlation_id"],
        trace_headers=_make_trace_headers(headers.get(b"traceparent")),
        request_bytes=int(content_length) if content_length.isdecimal() else None,
    )


def _make_trace_headers(traceparent: str | None) -> dict[str, str]:
    """Return the headers for requests to other servers, given the `traceparent` that came with
    the HTTP request. It counts only where no span of this process is part of a trace.
    """
    headers: dict[str, str] = {}
    _TRACE_PROPAGATOR.inject(headers)
    if not headers and traceparent and _TRACEPARENT_PATTERN.fullmatch(traceparent):
        headers["traceparent"] = traceparent
    return headers

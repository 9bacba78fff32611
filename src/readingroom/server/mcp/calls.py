"""The context of a call: who is calling, under which request id, as part of which trace."""

import re
from typing import Any

from mcp.server import ServerRequestContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Scope

from readingroom.core.ids import make_request_id
from readingroom.core.progress import ReportProgress
from readingroom.protocol.tool import ToolContext
from readingroom.server.auth.bearer import identify_caller

RequestContext = ServerRequestContext[Any, Any]

_TRACE_PROPAGATOR = (
    TraceContextTextMapPropagator()
)  # the trace alone: a caller's baggage is not for others
_TRACEPARENT_PATTERN = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def make_tool_context(request_context: RequestContext) -> ToolContext:
    """Return the call of an MCP message: one in an HTTP request, or one over stdio."""
    report_progress = request_context.session.report_progress
    if request_context.request is None:
        request_id = make_request_id()
        trace_headers = _make_trace_headers(None)
        return ToolContext(
            request_id,
            "anonymous",
            report_progress,
            correlation_id=request_id,
            trace_headers=trace_headers,
        )
    return make_tool_context_from_scope(request_context.request.scope, report_progress)


def make_tool_context_from_scope(scope: Scope, report_progress: ReportProgress) -> ToolContext:
    """Return the call of an HTTP request that has passed the security middleware."""
    request_user = scope.get("user")
    request_state = scope["state"]
    request_headers = request_state["request_headers"]
    content_length = request_headers.get(b"content-length", "")
    return ToolContext(
        request_id=request_state["request_id"],
        caller_id=f"api_key:{request_user.username}" if request_user else "anonymous",
        report_progress=report_progress,
        client=identify_caller(scope),
        correlation_id=request_state["correlation_id"],
        trace_headers=_make_trace_headers(request_headers.get(b"traceparent")),
        request_bytes=int(content_length) if content_length.isdecimal() else None,
    )


def _make_trace_headers(trace_parent: str | None) -> dict[str, str]:
    """Return the headers for requests to other servers, given the `traceparent` that came with
    the HTTP request. It counts only where no span of this process is part of a trace.
    """
    trace_headers: dict[str, str] = {}
    _TRACE_PROPAGATOR.inject(trace_headers)
    if not trace_headers and trace_parent and _TRACEPARENT_PATTERN.fullmatch(trace_parent):
        trace_headers["traceparent"] = trace_parent
    return trace_headers

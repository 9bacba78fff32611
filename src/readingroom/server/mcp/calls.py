"""Who is calling, under which request id: what a tool or a resource may know of a request."""

from typing import Any

from mcp.server import ServerRequestContext
from starlette.types import Scope

from readingroom.core.ids import make_request_id
from readingroom.core.progress import ReportProgress
from readingroom.protocol.tool import Call
from readingroom.server.auth.keys import client_ip

Context = ServerRequestContext[Any, Any]


def call_of(context: Context) -> Call:
    """A message over MCP: in an HTTP request, or alone over stdio."""
    report = context.session.report_progress
    if context.request is None:
        request_id = make_request_id()
        return Call(request_id, "anonymous", report, correlation_id=request_id)
    return call_in(context.request.scope, report)


def call_in(scope: Scope, report: ReportProgress) -> Call:
    """An HTTP request that has passed the door."""
    user = scope.get("user")
    state = scope["state"]
    length = state["sent"].get(b"content-length", "")
    return Call(
        request_id=state["request_id"],
        caller=f"api_key:{user.username}" if user else "anonymous",
        report=report,
        client=f"key:{user.username}" if user else f"ip:{client_ip(scope)}",
        correlation_id=state["correlation_id"],
        traceparent=state["sent"].get(b"traceparent"),
        request_bytes=int(length) if length.isdecimal() else None,
    )

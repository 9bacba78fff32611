"""OpenTelemetry: sends the SDK's spans to a collector, and skips them where nobody collects."""

import logging
from collections.abc import Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from opentelemetry import trace

from readingroom import __version__

logger = logging.getLogger(__name__)


def start_tracing(otlp_endpoint: str | None) -> Callable[[], None]:
    """Export spans to `otlp_endpoint` from now on; return the function that flushes the last."""
    if otlp_endpoint is None:
        return _flush_nothing
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("No spans are sent: install readingroom[otel] to export them")
        return _flush_nothing
    otel_resource = Resource({"service.name": "readingroom", "service.version": __version__})
    tracer_provider = TracerProvider(resource=otel_resource)
    # An unreachable collector must not delay the shutdown: one second, retries included.
    span_exporter = OTLPSpanExporter(endpoint=otlp_endpoint.rstrip("/") + "/v1/traces", timeout=1)
    tracer_provider.add_span_processor(BatchSpanProcessor(span_exporter))
    trace.set_tracer_provider(tracer_provider)
    return tracer_provider.shutdown


def _flush_nothing() -> None: ...


class TracedOnlyMiddleware:
    """MCP middleware: runs the SDK's span middleware only for messages that are traced.

    A span that nothing exports still costs about a tenth of a small tool call. A message is traced
    when a tracer provider is installed (by us, or by `opentelemetry-instrument`), or when it brings
    a `traceparent` of its own, which is passed on to upstream servers.
    """

    def __init__(self, span_middleware: ServerMiddleware[Any]) -> None:
        self._span_middleware = span_middleware
        self._is_collected = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if self._is_collected or (ctx.meta and "traceparent" in ctx.meta):
            return await self._span_middleware(ctx, call_next)
        return await call_next(ctx)

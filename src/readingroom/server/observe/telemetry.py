"""Sends the SDK's spans to an OpenTelemetry collector, when one is configured."""

import logging
from collections.abc import Callable

from readingroom import __version__

logger = logging.getLogger(__name__)


def start_tracing(endpoint: str | None) -> Callable[[], None]:
    """Export spans to `endpoint` from now on; the returned function flushes what is left."""
    if endpoint is None:
        return _nothing
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("No spans are sent: install readingroom[otel] to export them")
        return _nothing
    resource = Resource({"service.name": "readingroom", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    # A collector that does not answer may not keep us from ending: one second, retries included.
    exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces", timeout=1)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _nothing() -> None: ...

"""Prometheus metrics: calls, errors and latency per tool, and per route of REST and pages."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from readingroom.server.observe.logging import CallRecord

METRICS_CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# In seconds: from a look-up in memory to a search that waits for an upstream.
_HISTOGRAM_BUCKET_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
)


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, metric_collectors: Iterable[Collector] = ()) -> None:
        self._registry = CollectorRegistry()
        for metric_collector in metric_collectors:
            self._registry.register(metric_collector)
        self._call_counter = Counter(
            "readingroom_tool_calls",
            "Tool calls by result.",
            ["tool", "status"],
            registry=self._registry,
        )
        self._error_counter = Counter(
            "readingroom_tool_errors",
            "Failed tool calls by error code.",
            ["tool", "code"],
            registry=self._registry,
        )
        self._call_seconds = Histogram(
            "readingroom_tool_seconds",
            "Time a tool call took.",
            ["tool"],
            buckets=_HISTOGRAM_BUCKET_SECONDS,
            registry=self._registry,
        )

        self._request_counter = Counter(
            "readingroom_http_requests",
            "Requests for REST and pages by status.",
            ["route", "status"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "readingroom_http_request_seconds",
            "Time until a request for REST or a page began to be answered.",
            ["route"],
            buckets=_HISTOGRAM_BUCKET_SECONDS,
            registry=self._registry,
        )

    def record_call(self, call_record: CallRecord) -> None:
        """Add one tool call."""
        self._call_counter.labels(call_record.tool_name, call_record.result_status).inc()
        self._call_seconds.labels(call_record.tool_name).observe(call_record.duration_ms / 1000)
        if call_record.error_code:
            self._error_counter.labels(call_record.tool_name, call_record.error_code).inc()

    def record_request(self, route_path: str, http_status: int, duration_seconds: float) -> None:
        """Add one request for REST or a page, by its route."""
        self._request_counter.labels(route_path, str(http_status)).inc()
        self._request_seconds.labels(route_path).observe(duration_seconds)

    def render_metrics(self) -> bytes:
        """Return every metric in the text format of Prometheus."""
        return generate_latest(self._registry)

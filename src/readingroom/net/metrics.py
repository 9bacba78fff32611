"""Prometheus metrics of upstream requests and of reads through the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from readingroom.core.imports import LazyModule

if TYPE_CHECKING:
    import prometheus_client
    from prometheus_client import Counter, Gauge, Histogram, Metric
    from prometheus_client.registry import Collector
else:
    prometheus_client = LazyModule("prometheus_client")

# 0.3 and 1 are the objectives of docs/slo.md: with buckets there, they can be checked exactly.
_HISTOGRAM_BUCKET_SECONDS = (0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 10)


class UpstreamMetrics:
    """The metrics of one upstream, which the server shows at `/metrics`.

    Each is made when it is first needed: a shell command sends and shows nothing.
    """

    def __init__(self) -> None:
        self._is_breaker_open: Callable[[], bool] = bool

    def collect(self) -> Iterable[Metric]:
        """Yield what Prometheus is told: with this method it can be registered as a collector."""
        for collector in self.collectors:
            yield from collector.collect()

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return (
            self._request_counter,
            self._request_histogram,
            self._read_histogram,
            self._breaker_gauge,
        )

    @cached_property
    def _request_counter(self) -> Counter:
        return prometheus_client.Counter(
            "readingroom_upstream_requests",
            "Requests sent upstream, by outcome.",
            ["endpoint", "outcome"],
            registry=None,
        )

    @cached_property
    def _request_histogram(self) -> Histogram:
        return prometheus_client.Histogram(
            "readingroom_upstream_seconds",
            "Time an upstream request took.",
            ["endpoint"],
            buckets=_HISTOGRAM_BUCKET_SECONDS,
            registry=None,
        )

    @cached_property
    def _read_histogram(self) -> Histogram:
        return prometheus_client.Histogram(
            "readingroom_cache_read_seconds",
            "Time a read through the cache took, by outcome: hit, miss or stale.",
            ["endpoint", "outcome"],
            buckets=_HISTOGRAM_BUCKET_SECONDS,
            registry=None,
        )

    @cached_property
    def _breaker_gauge(self) -> Gauge:
        gauge = prometheus_client.Gauge(
            "readingroom_upstream_breaker_open",
            "Whether the circuit breaker keeps requests from going upstream.",
            registry=None,
        )
        gauge.set_function(lambda: float(self._is_breaker_open()))
        return gauge

    def observe_request(
        self, endpoint_name: str, outcome_name: str, duration_seconds: float
    ) -> None:
        self._request_counter.labels(endpoint_name, outcome_name).inc()
        self._request_histogram.labels(endpoint_name).observe(duration_seconds)

    def observe_read(self, endpoint_name: str, outcome_name: str, duration_seconds: float) -> None:
        self._read_histogram.labels(endpoint_name, outcome_name).observe(duration_seconds)

    def watch_breaker(self, is_breaker_open: Callable[[], bool]) -> None:
        self._is_breaker_open = is_breaker_open

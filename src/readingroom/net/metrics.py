"""Prometheus metrics of upstream requests and of reads through the cache."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

# 0.3 and 1 are the objectives of docs/slo.md: with buckets there, they can be checked exactly.
_HISTOGRAM_SECONDS = (0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 10)


class UpstreamMetrics:
    """The metrics of one upstream; the server shows its collectors at `/metrics`."""

    def __init__(self) -> None:
        self._request_counter = Counter(
            "readingroom_upstream_requests",
            "Requests sent upstream, by outcome.",
            ["endpoint", "outcome"],
            registry=None,
        )
        self._request_histogram = Histogram(
            "readingroom_upstream_seconds",
            "Time an upstream request took.",
            ["endpoint"],
            buckets=_HISTOGRAM_SECONDS,
            registry=None,
        )
        self._read_histogram = Histogram(
            "readingroom_cache_read_seconds",
            "Time a read through the cache took, by outcome: hit, miss or stale.",
            ["endpoint", "outcome"],
            buckets=_HISTOGRAM_SECONDS,
            registry=None,
        )
        self._breaker_gauge = Gauge(
            "readingroom_upstream_breaker_open",
            "Whether the circuit breaker keeps requests from going upstream.",
            registry=None,
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return (
            self._request_counter,
            self._request_histogram,
            self._read_histogram,
            self._breaker_gauge,
        )

    def observe_request(self, endpoint: str, outcome: str, seconds: float) -> None:
        self._request_counter.labels(endpoint, outcome).inc()
        self._request_histogram.labels(endpoint).observe(seconds)

    def observe_read(self, endpoint: str, outcome: str, seconds: float) -> None:
        self._read_histogram.labels(endpoint, outcome).observe(seconds)

    def watch_breaker(self, is_open: Callable[[], bool]) -> None:
        self._breaker_gauge.set_function(lambda: float(is_open()))

"""Metrics of one component.

Each component instance owns a registry, so that several nodes in one process do not add up into one number, and
upstream's metric names stay usable as they are. `prometheus_client` takes 56 ms to import and is loaded with the first
metric.

    metrics = Metrics()
    resizes = metrics.counter("kubelet_container_requested_resizes_total", "…", ("resource", "operation"))
    resizes.labels("cpu", "increase").inc()
    metrics.exposition()                       # what /metrics answers, with `CONTENT_TYPE`
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    @cached_property
    def registry(self) -> "CollectorRegistry":
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> "Counter":
        """`name` may end in `_total`; the exposition does so either way."""
        from prometheus_client import Counter

        return Counter(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> "Gauge":
        from prometheus_client import Gauge

        return Gauge(name, text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]) -> "Histogram":
        from prometheus_client import Histogram

        return Histogram(name, text, labels, buckets=tuple(buckets), registry=self.registry)

    def exposition(self) -> bytes:
        """Every metric in Prometheus' text format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

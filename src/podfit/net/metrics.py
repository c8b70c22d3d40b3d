"""Metrics of one component.

Each component instance owns a registry, so that several nodes in one process do not add up into one number, and
upstream's metric names stay usable as they are. `prometheus_client` takes 56 ms to import and is loaded with the first
metric. Its `_created` series, which upstream has not, are left out.

    metrics = Metrics()
    resizes = metrics.counter("kubelet_container_requested_resizes_total", "…", ("resource", "operation"))
    resizes.labels("cpu", "increase").inc()
    metrics.exposition()                       # what /metrics answers, with `CONTENT_TYPE`
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Literal, TypeAlias

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Series: TypeAlias = tuple[Sequence[str], float]
"""The labels' values, and the value."""

Distribution: TypeAlias = tuple[Sequence[str], Sequence[float], Sequence[int], float]
"""The labels' values, the upper bounds of the buckets, how many fell into each and above all of them, and their sum."""


class Declared(msgspec.Struct, frozen=True):
    name: str
    type: str
    labels: tuple[str, ...]
    text: str


class Metrics:
    def __init__(self) -> None:
        self.declared: list[Declared] = []

    @cached_property
    def registry(self) -> "CollectorRegistry":
        disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client has no type for it
        return CollectorRegistry()

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> "Counter":
        """`name` may end in `_total`; the exposition does so either way."""
        self._declare(name.removesuffix("_total") + "_total", "counter", labels, text)
        return Counter(name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> "Gauge":
        self._declare(name, "gauge", labels, text)
        return Gauge(name, text, labels, registry=self.registry)

    def histogram(self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]) -> "Histogram":
        self._declare(name, "histogram", labels, text)
        return Histogram(name, text, labels, buckets=tuple(buckets), registry=self.registry)

    def collected(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        read: Callable[[], Iterable[Series]],
        *,
        type_: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        """Series that come and go, or are counted elsewhere: they are read when someone scrapes."""
        self._declare(name, type_, labels, text)
        self.registry.register(_Collected(name, text, labels, read, type_))

    def distributed(
        self, name: str, text: str, labels: Sequence[str], read: Callable[[], Iterable[Distribution]]
    ) -> None:
        """A histogram that is counted elsewhere."""
        self._declare(name, "histogram", labels, text)
        self.registry.register(_Distributed(name, text, labels, read))

    def exposition(self) -> bytes:
        """Every metric in Prometheus' text format."""
        return generate_latest(self.registry)

    def _declare(self, name: str, type_: str, labels: Sequence[str], text: str) -> None:
        self.declared.append(Declared(name, type_, tuple(labels), text))


class _Collected:
    """What `prometheus_client` calls a collector."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], read: Callable[[], Iterable[Series]], type_: str
    ) -> None:
        self._name, self._text, self._labels, self._read, self._type = name, text, labels, read, type_

    def describe(self) -> "list[GaugeMetricFamily | CounterMetricFamily]":
        return [self._family()]

    def collect(self) -> "Iterator[GaugeMetricFamily | CounterMetricFamily]":
        family = self._family()
        for labels, value in self._read():
            family.add_metric(labels, value)
        yield family

    def _family(self) -> "GaugeMetricFamily | CounterMetricFamily":
        made = CounterMetricFamily if self._type == "counter" else GaugeMetricFamily
        return made(self._name, self._text, labels=self._labels)


class _Distributed:
    def __init__(self, name: str, text: str, labels: Sequence[str], read: Callable[[], Iterable[Distribution]]) -> None:
        self._name, self._text, self._labels, self._read = name, text, labels, read

    def describe(self) -> "list[HistogramMetricFamily]":
        return [self._family()]

    def collect(self) -> "Iterator[HistogramMetricFamily]":
        family = self._family()
        for labels, buckets, counts, total in self._read():
            named = [*map(str, buckets), "+Inf"]
            family.add_metric(labels, list(zip(named, accumulate(counts), strict=True)), total)
            if buckets and buckets[0] < 0:  # prometheus_client leaves them out there, Go's does not
                own = dict(zip(self._labels, labels, strict=True))
                family.add_sample(f"{self._name}_count", own, sum(counts))
                family.add_sample(f"{self._name}_sum", own, total)
        yield family

    def _family(self) -> "HistogramMetricFamily":
        return HistogramMetricFamily(self._name, self._text, labels=self._labels)

"""What /metrics says about requests, by upstream's names: how many, how long, how many under way in each level."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from podfit.api.registry import ALL_VERBS
from podfit.apiserver.seats import Seats
from podfit.apiserver.target import Target
from podfit.net.metrics import Metrics, Series

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
           30.0, 45.0, 60.0)  # fmt: skip
FLOWCONTROL = "apiserver_flowcontrol_"
_COLUMNS = (
    ("current_executing_requests", "Requests under way in a priority level."),
    ("current_inqueue_requests", "Requests that wait in a priority level."),
    ("rejected_requests_total", "Requests that a priority level refused."),
)
STREAMS = ("watch",)


class _Key(NamedTuple):
    """What was asked, as declared: what a client makes up must not become a series of its own."""

    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


class RequestMetrics:
    """`declare` before the first request that is to be counted."""

    def __init__(self) -> None:
        self._total: Counter | None = None
        self._seconds: Histogram | None = None
        self._counters: dict[tuple[_Key, int], Counter] = {}
        self._histograms: dict[_Key, Histogram] = {}

    def declare(self, metrics: Metrics, seats: Seats) -> None:
        self._total = metrics.counter(
            "apiserver_request_total", "Requests by verb, resource, subresource and code.",
            ("verb", "group", "version", "resource", "subresource", "scope", "code"))
        self._seconds = metrics.histogram(
            "apiserver_request_duration_seconds", "How long answers took, watches left out.", _Key._fields,
            buckets=BUCKETS)
        for column, (name, text) in enumerate(_COLUMNS):
            metrics.collected(FLOWCONTROL + name, text, ("priority_level",), partial(_read, seats, column))

    def count(self, target: Target | None, code: int, seconds: float) -> None:
        if self._total is None or self._seconds is None:
            return
        key = _key(target)
        counter = self._counters.get((key, code))
        if counter is None:
            counter = self._counters[key, code] = self._total.labels(*key, str(code))
        counter.inc()
        if key.verb in STREAMS:
            return
        histogram = self._histograms.get(key)
        if histogram is None:
            histogram = self._histograms[key] = self._seconds.labels(*key)
        histogram.observe(seconds)


def _read(seats: Seats, column: int) -> list[Series]:
    return [((name,), counts[column]) for name, *counts in seats.counts()]


def _key(target: Target | None) -> _Key:
    if target is None or target.info is None or target.verb not in ALL_VERBS:
        return _Key()
    sub = target.sub
    return _Key(target.verb, target.group, target.version, target.resource, sub.name if sub else "", _scope(target))


def _scope(target: Target) -> str:
    if target.name:
        return "resource"
    return "namespace" if target.namespace else "cluster"

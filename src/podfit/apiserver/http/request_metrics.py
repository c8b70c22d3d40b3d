"""Request metrics under upstream's names: counts, durations, and requests in flight by level."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

from podfit.api.meta.resource_info import ALL_VERBS
from podfit.apiserver.http.flow_control import FlowControl
from podfit.apiserver.request.request_info import RequestInfo
from podfit.net.metrics import Distribution, Metrics, Series

BUCKETS = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
)
FLOWCONTROL = "apiserver_flowcontrol_"
_COLUMNS = (
    ("current_executing_requests", "Requests under way in a priority level."),
    ("current_inqueue_requests", "Requests that wait in a priority level."),
    ("rejected_requests_total", "Requests that a priority level refused."),
)
STREAMS = ("watch",)


LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_Key: TypeAlias = tuple[str, str, str, str, str, str]
"""What was asked, as declared: what a client makes up must not become a series of its own."""
_OTHER: _Key = ("", "", "", "", "", "")


class _Counted:
    """The requests of one key. Counted in the event loop alone, so without the locks of a metrics library, which cost
    a small request more than its authorization."""

    __slots__ = ("buckets", "codes", "seconds", "timed")

    def __init__(self, *, timed: bool) -> None:
        self.codes: dict[int, int] = {}
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self.timed = timed


class RequestMetrics:
    """`declare` before the first request that is to be counted."""

    def __init__(self) -> None:
        self._counted: dict[_Key, _Counted] | None = None

    def declare(self, metrics: Metrics, flow_control: FlowControl) -> None:
        self._counted = {}
        metrics.collected(
            "apiserver_request_total",
            "Requests by verb, resource, subresource and code.",
            (*LABELS, "code"),
            self._totals,
            type_="counter",
        )
        metrics.distributed(
            "apiserver_request_duration_seconds", "How long answers took, watches left out.", LABELS, self._durations
        )
        for column, (name, text) in enumerate(_COLUMNS):
            metrics.collected(FLOWCONTROL + name, text, ("priority_level",), partial(_read, flow_control, column))

    def count(self, request_info: RequestInfo | None, code: int, seconds: float) -> None:
        if self._counted is None:
            return
        key = _key(request_info)
        found = self._counted.get(key)
        if found is None:
            found = self._counted[key] = _Counted(timed=key[0] not in STREAMS)
        found.codes[code] = found.codes.get(code, 0) + 1
        if found.timed:
            found.buckets[bisect_left(BUCKETS, seconds)] += 1
            found.seconds += seconds

    def _totals(self) -> Iterator[Series]:
        for key, amount in (self._counted or {}).items():
            for code, count in amount.codes.items():
                yield (*key, str(code)), count

    def _durations(self) -> Iterator[Distribution]:
        for key, amount in (self._counted or {}).items():
            if amount.timed:
                yield key, BUCKETS, amount.buckets, amount.seconds


def _read(flow_control: FlowControl, column: int) -> list[Series]:
    return [((name,), counts[column]) for name, *counts in flow_control.counts()]


def _key(request_info: RequestInfo | None) -> _Key:
    if request_info is None or request_info.info is None or request_info.verb not in ALL_VERBS:
        return _OTHER
    info, sub = request_info.info, request_info.sub
    scope = "resource" if request_info.name else "namespace" if request_info.namespace else "cluster"
    return request_info.verb, info.group, info.version, info.resource, sub.name if sub else "", scope

"""`podfit.dev/scale: keep-point`: replicas are added at the same absolute usage, however a VPA moves the request.

    anchor (target, request), written once ──▶ target now = anchor target x anchor request / request now, 40 to 95 %

Beyond these bounds the request stays: `request_bounds` is what a VPA keeps to. The HPA's spec is never written.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.horizontal.average_value import mean_request
from podfit.decide.autoscaling.horizontal.model import (
    LEAST_SHARE,
    MOST_LONG,
    MOST_SHARE,
    Anchor,
    Settings,
    Tolerance,
    Unmeasured,
)
from podfit.decide.autoscaling.horizontal.vertical import shares

SCALE, KEEP_POINT = "podfit.dev/scale", "keep-point"
ANCHOR = "podfit.dev/scale-anchor"
"""Annotations of an autoscaler: what is asked for, and what its controller began with."""
_MOST_BYTES = 4096


Anchors = Mapping[str, Anchor]
"""By `resource`, or `resource/container`."""


def keeps_point(autoscaler: HorizontalPodAutoscaler) -> bool:
    return autoscaler.metadata.annotations.get(SCALE) == KEEP_POINT


def anchors(autoscaler: HorizontalPodAutoscaler) -> Anchors:
    """Nothing where nobody wrote them, or they cannot be read."""
    text = autoscaler.metadata.annotations.get(ANCHOR, "")
    if len(text) > _MOST_BYTES:
        return {}
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, Anchor])
    except (msgspec.DecodeError, UnicodeError):
        return {}
    most = MOST_LONG
    return {name: kept for name, kept in found.items() if 0 < kept.request <= most and 0 < kept.target <= most}


def anchored(
    autoscaler: HorizontalPodAutoscaler, pods: Sequence[Pod], settings: Settings
) -> tuple[tuple[Anchor | None, ...], str]:
    """What the target of each metric follows from, None where it stays as it is, and what the annotation has to say;
    empty where it says it already. A target that was changed in the spec has a new anchor."""
    before, metrics = anchors(autoscaler), autoscaler.spec.metrics
    if not keeps_point(autoscaler) or settings.upstream_compatible:
        return (None,) * len(metrics), ""
    known: dict[str, Anchor] = dict(before)
    found: list[Anchor | None] = []
    for metric in metrics:
        percent = _percent(metric)
        try:
            request = mean_request(metric, pods, settings) if percent else 0
        except Unmeasured:
            request = 0
        if not percent or not request:
            found.append(None)
            continue
        anchor = known.get(name_of(metric))
        if anchor is None or anchor.target != percent:
            anchor = known[name_of(metric)] = Anchor(percent, request)
        found.append(anchor)
    text = msgspec.json.encode(known).decode() if known != before else ""
    return tuple(found), text if len(text) <= _MOST_BYTES else ""


def name_of(metric: MetricSpec) -> str:
    of = metric.container_resource
    return f"{of.name}/{of.container}" if of is not None else shares(metric)


def _percent(metric: MetricSpec) -> int:
    source = metric.resource or metric.container_resource
    return (source.target.average_utilization or 0) if source is not None and shares(metric) else 0


def request_bounds(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[str, tuple[int, int]]:
    """What, by resource, a pod may request (thousandths) so that every one of these, which have one target, keeps its
    point. Only of resources that all of them keep that scale on it; those that upstream's controller acts on keep none.
    """
    bounds: dict[str, tuple[int, int]] = {}
    free: set[str] = set()
    for autoscaler in autoscalers:
        written = anchors(autoscaler) if is_kept(autoscaler) else {}
        for metric in autoscaler.spec.metrics:
            resource, anchor = shares(metric), written.get(name_of(metric))
            if not resource:
                continue
            if anchor is None or metric.resource is None:
                free.add(resource)
                continue
            point = anchor.target * anchor.request
            least = max(-(-point // MOST_SHARE), math.ceil(point / 100 * _rests_at(autoscaler)))
            most = point // LEAST_SHARE
            before = bounds.get(resource, (least, most))
            bounds[resource] = max(before[0], least), min(before[1], most)
    return {resource: bound for resource, bound in bounds.items() if resource not in free and bound[0] <= bound[1]}


def _rests_at(autoscaler: HorizontalPodAutoscaler) -> float:
    """How many times its target pods may use while no replica is added; they are not to request less than that."""
    rules = autoscaler.spec.behavior.scale_up if autoscaler.spec.behavior is not None else None
    own = rules.tolerance if rules is not None else None
    return 1 + (Tolerance().up if own is None else own.nano / 10**9)


def is_kept(autoscaler: HorizontalPodAutoscaler) -> bool:
    """Whether podfit's controller keeps its point: upstream's never writes the generation that it saw."""
    return keeps_point(autoscaler) and autoscaler.status.observed_generation is not None

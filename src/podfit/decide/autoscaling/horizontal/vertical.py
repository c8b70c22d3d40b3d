"""Which VerticalPodAutoscalers size what a horizontal one scales on as a share of the request."""

from collections.abc import Iterable

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.decide.autoscaling.policies import OFF, sized_resources, stored_mode
from podfit.decide.autoscaling.targets import scaled_by, target_of

SHARED = "podfit.dev/VerticalAutoscaler"
"""The condition's type."""
_MOST_NAMED = 3


def shares(metric: MetricSpec) -> str:
    """The resource whose share of the request counts; empty for any other metric."""
    source = metric.resource or metric.container_resource
    return source.name if source is not None and source.target.type == "Utilization" else ""


def sized_too(autoscaler: HorizontalPodAutoscaler, vpas: Iterable[VerticalPodAutoscaler]) -> str:
    """What a condition says of those in a mode other than Off; empty when there is none."""
    resources = tuple(dict.fromkeys(filter(None, map(shares, autoscaler.spec.metrics))))
    named = [
        f"VerticalPodAutoscaler {vpa.metadata.name} ({stored_mode(vpa)}) sizes {resource}"
        for vpa in sorted(vpas, key=lambda vpa: vpa.metadata.name)
        if target_of(vpa) == scaled_by(autoscaler) and stored_mode(vpa) != OFF
        for resource in resources
        if resource in sized_resources(vpa.spec.resource_policy)
    ]
    if not named:
        return ""
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    text = ", ".join(named[:_MOST_NAMED]) + more
    return f"{text}, whose share of the request this autoscaler scales on: each changes what the other measures"

"""Which VerticalPodAutoscalers size what a horizontal one scales on as a share of the request."""

from collections.abc import Iterable, Iterator

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.core.resources import CPU, MEMORY

OFF = "Off"
SHARED = "podfit.dev/VerticalAutoscaler"
"""The condition's type."""
_SIZED = (CPU, MEMORY)
_MOST_NAMED = 3


def shares(metric: MetricSpec) -> str:
    """The resource whose share of the request counts; empty for any other metric."""
    source = metric.resource or metric.container_resource
    return source.name if source is not None and source.target.type == "Utilization" else ""


def same_target(autoscaler: HorizontalPodAutoscaler, vpa: VerticalPodAutoscaler) -> bool:
    mine, its = autoscaler.spec.scale_target_ref, vpa.spec.target_ref
    return (
        its is not None
        and vpa.metadata.namespace == autoscaler.metadata.namespace
        and (its.kind, its.name) == (mine.kind, mine.name)
    )


def sized_too(autoscaler: HorizontalPodAutoscaler, vpas: Iterable[VerticalPodAutoscaler]) -> str:
    """What a condition says of those in a mode other than Off; empty when there is none."""
    resources = tuple(dict.fromkeys(filter(None, map(shares, autoscaler.spec.metrics))))
    named = [
        f"VerticalPodAutoscaler {vpa.metadata.name} ({_mode(vpa)}) sizes {resource}"
        for vpa in sorted(vpas, key=lambda vpa: vpa.metadata.name)
        if same_target(autoscaler, vpa) and _mode(vpa) != OFF
        for resource in resources
        if resource in _controlled(vpa)
    ]
    if not named:
        return ""
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    text = ", ".join(named[:_MOST_NAMED]) + more
    return f"{text}, whose share of the request this autoscaler scales on: each changes what the other measures"


def _mode(vpa: VerticalPodAutoscaler) -> str:
    policy = vpa.spec.update_policy
    return (policy.update_mode if policy else None) or "Recreate"


def _controlled(vpa: VerticalPodAutoscaler) -> Iterator[str]:
    """The resources that it sizes of any container."""
    policies = vpa.spec.resource_policy.container_policies if vpa.spec.resource_policy else ()
    if not any(policy.container_name == "*" for policy in policies):
        yield from _SIZED
    for policy in policies:
        if policy.mode != OFF:
            yield from _SIZED if policy.controlled_resources is None else policy.controlled_resources

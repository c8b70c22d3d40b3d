"""Sums of a plan of several targets: what all pods request and are limited to together, now and then."""

from collections.abc import Callable, Iterator, Sequence

from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.plan.plan import PodRequest
from podfit.answers.plan.resize_request import NothingRecorded, apply
from podfit.answers.plan.result import Plan, Sum
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.pod.requests import pod_limits, pod_requests

_SIDES: tuple[tuple[str, Callable[..., ResourceList]], ...] = (("requests", pod_requests), ("limits", pod_limits))


def sums(requests: Sequence[PodRequest], plan: Plan, gates: FeatureGates) -> tuple[Sum, ...]:
    """Sums of CPU and memory; a side that no pod has is left out. A pod without a limit counts for none."""
    good = {(pod.namespace, pod.pod) for pod in plan.pods if pod.good}
    turns = [(wanted.pod, _asked(wanted), _name(wanted.pod) in good) for wanted in requests]
    return tuple(_sums(turns, gates))


def _sums(turns: Sequence[tuple[Pod, Pod, bool]], gates: FeatureGates) -> Iterator[Sum]:
    for side, amounts_of in _SIDES:
        before = [amounts_of(pod, gates=gates, overhead=False) for pod, _, _ in turns]
        after = [amounts_of(new, gates=gates, overhead=False) for _, new, _ in turns]
        granted = [new if good else old for old, new, (_, _, good) in zip(before, after, turns, strict=True)]
        for resource in RESOURCES:
            if any(resource in amounts for amounts in (*before, *after)):
                texts = (str(_total(every, resource)) for every in (before, after, granted))
                yield Sum(resource=resource, side=side, **dict(zip(("before", "after", "granted"), texts, strict=True)))


def _total(every: Sequence[ResourceList], resource: str) -> Quantity:
    return sum((amounts[resource] for amounts in every if resource in amounts), ZERO)


def _asked(wanted: PodRequest) -> Pod:
    """The pod as `plan_requests` takes it: one that has nothing to go back to stays."""
    try:
        return apply(wanted.asked, wanted.pod)
    except NothingRecorded:
        return wanted.pod


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name

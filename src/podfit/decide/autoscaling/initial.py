"""Initial resources: requests for the containers of a new pod that ask for nothing, from what their like used before.

A person's word goes first: a container with a request or a limit of CPU or memory is left alone, as is every container
of a pod with resources of its own. A LimitRange's default is no such word: it is for pods of which nothing is known, so
the request is replaced, within its bounds and the limit that it put in. A VPA's word goes first as well, for the
containers that it sizes; of the others its policy bounds what is given. Limits are never set.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.recommender.v1alpha1 import ContainerRecommendation
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.capping import at_least, at_most
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.initial_usage import KnownUsage
from podfit.decide.autoscaling.limit_ranges import NOTHING, effective
from podfit.decide.autoscaling.patches import Operation, Resources, annotate, resource_patches
from podfit.decide.autoscaling.policies import is_off, policy_of
from podfit.decide.limits.limit_range import by_default
from podfit.decide.pod.spare import is_spare

LABEL, ENABLED = "podfit.dev/initial-resources", "enabled"
"""The label of a namespace, and its value, that switch it on."""
SELECTOR = f"{LABEL}={ENABLED}"
ANNOTATION = LABEL
"""Of a pod: what was given to its containers, with source and confidence, as JSON by name."""
FROM_BEFORE = "initial"
"""`source` of what the recommender tells."""


class Initial(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a container gets. `notes` say what moved it."""

    requests: ResourceList
    source: str
    confidence: float
    notes: tuple[str, ...] = ()


class _Bound(NamedTuple):
    most: bool
    amounts: ResourceList
    why: str


def told(name: str, known: KnownUsage, workload: str) -> ContainerRecommendation:
    """What the recommender's API says; `workload` as `cronjob/report`."""
    reason = f"90 % of {known.samples} samples of {known.pods} pods of {workload}"
    sure = Quantity.of_milli(round(1000 * known.confidence))
    return ContainerRecommendation(
        name=name, target=known.amounts, source=FROM_BEFORE, confidence=sure, reasons=(reason,)
    )


def wants_initial(pod: Pod) -> bool:
    """Whether any container of a new pod may be given something."""
    level = pod.spec.resources
    if is_spare(pod):
        return False
    if level is not None and ({CPU, MEMORY} & (level.requests.keys() | level.limits.keys())):
        return False
    return any(_asks_for_nothing(pod, scaled.container) for scaled in every_container(pod))


def _asks_for_nothing(pod: Pod, container: Container) -> bool:
    """But for what a LimitRange put in."""
    own, default = container.resources, by_default(pod, container.name)
    sides = (("request", own.requests), ("limit", own.limits))
    return not any(name in amounts and (side, name) not in default for side, amounts in sides for name in (CPU, MEMORY))


def initial_requests(
    pod: Pod,
    known: Iterable[ContainerRecommendation],
    limit_ranges: Iterable[LimitRange],
    vpa: VerticalPodAutoscaler | None = None,
    sized: Iterable[str] = (),
) -> dict[str, Initial]:
    """The requests by container. `vpa` controls the pod and gives sizes to the containers `sized`."""
    if not wants_initial(pod):
        return {}
    by_name, given = {container.name: container for container in known}, frozenset(sized)
    item = effective(limit_ranges, "Container")
    found = {}
    for container, _, _, _, _ in every_container(pod):
        usage, policy = by_name.get(container.name), None
        if vpa is not None:
            policy = policy_of(vpa.spec.resource_policy, container.name)
        if usage is None or container.name in given or is_off(policy) or not _asks_for_nothing(pod, container):
            continue
        bounds: list[_Bound] = []
        if policy is not None:
            bounds += (
                _Bound(most=False, amounts=policy.min_allowed, why="minAllowed"),
                _Bound(most=True, amounts=policy.max_allowed, why="maxAllowed"),
            )
        if item is not None:
            bounds += (
                _Bound(most=False, amounts=item.min, why="Min in container LimitRange"),
                _Bound(most=True, amounts=item.max, why="Max in container LimitRange"),
            )
        bounds.append(_Bound(most=True, amounts=container.resources.limits, why="the limit by default"))
        requests, notes = _bounded({name: usage.target[name] for name in (CPU, MEMORY) if name in usage.target}, bounds)
        if requests:
            sure = usage.confidence.milli() / 1000 if usage.confidence is not None else 0.0
            found[container.name] = Initial(requests, "; ".join(usage.reasons), sure, notes)
    return found


def _bounded(amounts: ResourceList, bounds: Iterable[_Bound]) -> tuple[ResourceList, tuple[str, ...]]:
    notes: list[str] = []
    for bound in bounds:
        moved = (at_most if bound.most else at_least)(amounts, bound.amounts)
        notes += [f"{name} capped to {bound.why}" for name in moved if moved[name] != amounts[name]]
        amounts = moved
    return amounts, tuple(notes)


def initial_patches(pod: Pod, initial: Mapping[str, Initial], *, annotated: bool) -> Iterator[Operation]:
    """`annotated`: annotations are there by then."""
    if not initial:
        return
    if not annotated and not pod.metadata.annotations:
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    for container, _, path, _, _ in every_container(pod):
        if container.name in initial:
            wanted = Resources(initial[container.name].requests, NOTHING)
            yield from resource_patches(path, container.resources, wanted)
    yield annotate(ANNOTATION, annotation(initial))


def annotation(initial: Mapping[str, Initial]) -> str:
    plain = {
        name: {
            "requests": {resource: str(amount) for resource, amount in given.requests.items()},
            "source": given.source,
            "confidence": given.confidence,
            **({"notes": given.notes} if given.notes else {}),
        }
        for name, given in initial.items()
    }
    return msgspec.json.encode(plain).decode()

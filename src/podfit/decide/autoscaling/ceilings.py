"""What the updater asks of the API for bursts: ceilings beforehand, the spec after the node has moved (docs/burst.md).

A VPA opts in with `podfit.dev/burst: enabled`. The ceiling of a container is its policy's `maxAllowed`, else twice the
limit that it has; whoever judges that is the API.
"""

from collections.abc import Mapping

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling import boost
from podfit.decide.autoscaling.policies import ACTIVE_MODES, controlled_resources, is_off, policy_of, update_mode
from podfit.decide.pod.burst_ceiling import BurstRange, at_floor, ranges_of, with_limits, written_ranges
from podfit.decide.pod.resize_state import BURST, ResizeStage, ResizeState
from podfit.decide.resize.restart_policy import restarting

ANNOTATION, ENABLED = "podfit.dev/burst", "enabled"
TIMES = 2
"""The ceiling above the limit, where no policy says a maximum."""


def bursts(vpa: VerticalPodAutoscaler) -> bool:
    """Whether its pods may burst: it asks for it, and its mode changes pods that run."""
    return vpa.metadata.annotations.get(ANNOTATION) == ENABLED and update_mode(vpa) in ACTIVE_MODES


class BurstWrite(msgspec.Struct, frozen=True):
    """A patch of `pods/resize`, of this version of the pod alone."""

    limits: Mapping[str, ResourceList]
    ceiling: str | None
    why: str


def burst_write(pod: Pod, vpa: VerticalPodAutoscaler | None) -> BurstWrite | None:
    """What is to be asked for now, of a pod that runs; `vpa` is the one with bursts that controls it. None: nothing."""
    text, ranges = pod.metadata.annotations.get(CEILING), ranges_of(pod)
    if vpa is None:
        return None if text is None else BurstWrite(_differing(at_floor(pod), pod), None, "no VPA asks for bursts")
    if ResizeState.of(pod).stage is not ResizeStage.NONE or any(boost.boosted_containers(pod)):
        return None
    moved = moved_limits(pod)
    if moved:
        return BurstWrite(moved, text, "the node has moved its limits")
    wanted = written_ranges(wanted_ranges(pod, vpa))
    if wanted == (text or "{}") or (ranges and wanted == written_ranges(ranges)):
        return None
    return BurstWrite({}, wanted, "it has another ceiling than its VPA wants")


def wanted_ranges(pod: Pod, vpa: VerticalPodAutoscaler) -> dict[str, BurstRange]:
    """The ranges by container. What it was sized to before it burst remains the floor; a size outside of its range is
    another."""
    before = ranges_of(pod)
    return {
        container.name: ranged
        for container in (pod.spec.containers if pod.spec.resources is None else ())
        if (ranged := _range(container, vpa, before.get(container.name))) is not None
    }


def _range(container: Container, vpa: VerticalPodAutoscaler, before: BurstRange | None) -> BurstRange | None:
    policy = policy_of(vpa.spec.resource_policy, container.name)
    if is_off(policy):
        return None
    most = policy.max_allowed if policy else {}
    floor: dict[str, Quantity] = {}
    ceiling: dict[str, Quantity] = {}
    for name in controlled_resources(policy):
        limit = container.resources.limits.get(name)
        if not limit or restarting(container, (name,)):
            continue
        least = _floor(name, limit, before)
        top = most.get(name) or Quantity(TIMES * least.nano, least.format)
        if least < top and limit <= top:
            floor[name], ceiling[name] = least, top
    return BurstRange(floor=floor, ceiling=ceiling) if ceiling else None


def _floor(name: str, limit: Quantity, before: BurstRange | None) -> Quantity:
    known = before is not None and name in before.floor and before.floor[name] <= limit <= before.ceiling[name]
    return before.floor[name] if before is not None and known else limit


def moved_limits(pod: Pod) -> dict[str, ResourceList]:
    """What the node enforces inside the ceiling and the spec does not say, by container."""
    said = next((condition for condition in pod.status.conditions if condition.type == BURST), None)
    ranges = ranges_of(pod)
    if said is None or said.status != "True" or said.observed_generation != pod.metadata.generation or not ranges:
        return {}
    held = {status.name: status.resources.limits for status in pod.status.container_statuses if status.resources}
    limits = {
        container.name: {
            name: held[container.name][name]
            for name, most in ranges[container.name].ceiling.items()
            if name in held[container.name] and held[container.name][name] <= most
        }
        for container in pod.spec.containers
        if container.name in ranges and container.name in held
    }
    return _differing(with_limits(pod, limits), pod)


def _differing(new: Pod, old: Pod) -> dict[str, ResourceList]:
    return {
        container.name: container.resources.limits
        for container, before in zip(new.spec.containers, old.spec.containers, strict=True)
        if container.resources.limits != before.resources.limits
    }


def patch_of(pod: Pod, write: BurstWrite) -> dict[str, object]:
    """A strategic merge patch."""
    sized = with_limits(pod, write.limits)
    containers = [
        {
            "name": container.name,
            "resources": {
                side: {name: str(amount) for name, amount in getattr(container.resources, side).items()}
                for side in ("limits", "requests")
                if getattr(container.resources, side)
            },
        }
        for container in sized.spec.containers
        if container.name in write.limits
    ]
    metadata = {"resourceVersion": pod.metadata.resource_version, "annotations": {CEILING: write.ceiling}}
    return {"metadata": metadata, **({"spec": {"containers": containers}} if containers else {})}

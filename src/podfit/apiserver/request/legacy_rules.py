"""Legacy mode as rules: how clients and nodes of Kubernetes 1.27 to 1.32 see and send resizes.

Until 1.32 one field, `status.resize`, said how a resize goes. Since 1.33 two conditions do. Each can be told from the
other, so neither has to be stored twice: the field is derived for clients that still look at it, the conditions for
everyone when a node that still writes the field serves the pod.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodSpec
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.pod.resize_state import CONDITIONS, DEFERRED, FIELD, INFEASIBLE, ResizeStage, ResizeState

_DRAFT_POLICIES = {"RestartNotRequired": "NotRequired", "Restart": "RestartContainer"}
_RESIZABLE = (CPU, MEMORY)
_LEAST_LIMIT = Quantity.of_milli(10)  # the kernel's least quota: limits below it look alike
_LISTS = ("containers", "init_containers")


def legacy_resize(pod: Pod) -> str:
    """`status.resize` as it would have been; empty where it would have been absent.

    What a node of that time wrote itself stays. A pending resize hides one in progress, as it did then (H-05).
    """
    if pod.status.resize:
        return pod.status.resize
    state, generation = ResizeState.of(pod), pod.metadata.generation
    if _unseen(state.pending, generation) and pod.status.observed_generation < generation and _differs(pod):
        return ResizeStage.PROPOSED.value
    if state.pending is not None:
        return INFEASIBLE if state.last_stage is ResizeStage.INFEASIBLE else DEFERRED
    return ResizeStage.IN_PROGRESS.value if state.progress is not None else ""


def _unseen(pending: PodCondition | None, generation: int) -> bool:
    return pending is None or pending.observed_generation < generation


def _differs(pod: Pod) -> bool:
    """Whether a bound pod wants something else than its node promised or, for limits, enforces."""
    if not pod.spec.node_name:
        return False
    wanted = {container.name: container.resources for container in all_containers(pod.spec)}
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        asked = wanted.get(status.name)
        if asked is None:
            continue
        if status.allocated_resources and _other(asked.requests, status.allocated_resources):
            return True
        if status.state.running and status.resources and _other_limits(asked.limits, status.resources.limits):
            return True
    level = pod.spec.resources.requests if pod.spec.resources else {}
    held = pod.status.allocated_resources
    return any(level[name] != held[name] for name in level.keys() & held.keys())


def _other(one: ResourceList, other: ResourceList) -> bool:
    return any(one.get(name, ZERO) != other.get(name, ZERO) for name in _RESIZABLE)


def _other_limits(wanted: ResourceList, actual: ResourceList) -> bool:
    if wanted.get(MEMORY, ZERO) != actual.get(MEMORY, ZERO):
        return True
    one, other = wanted.get(CPU, ZERO), actual.get(CPU, ZERO)
    return one != other and not ZERO < max(one, other) <= _LEAST_LIMIT


def legacy_conditions(pod: Pod) -> tuple[PodCondition, ...]:
    """The conditions that say what a node of that time wrote into `status.resize`; none where there are some."""
    if any(condition.type in CONDITIONS for condition in pod.status.conditions):
        return ()
    condition = ResizeState.by_field(pod).condition
    return (condition,) if condition and pod.status.resize in FIELD else ()


def is_only_a_resize(new: Pod, old: Pod) -> bool:
    """Whether an update of the pod itself changes CPU and memory and nothing else, as resizes were asked for until
    1.31."""
    if new.spec == old.spec or _shape(new.spec) != _shape(old.spec):
        return False
    same = ("labels", "annotations", "finalizers", "owner_references")
    if any(getattr(new.metadata, name) != getattr(old.metadata, name) for name in same):
        return False
    return _without_amounts(new.spec) == _without_amounts(old.spec)


def _shape(spec: PodSpec) -> list[str]:
    return [container.name for container in _containers(spec)]


def _containers(spec: PodSpec) -> Iterator[Container]:
    yield from spec.containers
    yield from spec.init_containers


def _without_amounts(spec: PodSpec) -> PodSpec:
    def rest(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name not in _RESIZABLE}

    def stripped(container: Container) -> Container:
        resources = msgspec.structs.replace(
            container.resources, requests=rest(container.resources.requests), limits=rest(container.resources.limits)
        )
        return msgspec.structs.replace(container, resources=resources)

    return msgspec.structs.replace(spec, **{name: tuple(map(stripped, getattr(spec, name))) for name in _LISTS})


def modern_policies(document: Any) -> Any:
    """A pod's document with the resize policies of the drafts of 2021 (`policy: Restart`) in today's names."""
    match document:
        case {"spec": dict(spec)}:
            lists = {
                name: [_modern(container) for container in spec[name]]
                for name in ("containers", "initContainers")
                if isinstance(spec.get(name), list)
            }
            return {**document, "spec": {**spec, **lists}}
    return document


def _modern(container: Any) -> Any:
    match container:
        case {"resizePolicy": list(policies)}:
            return {**container, "resizePolicy": [_modern_policy(policy) for policy in policies]}
    return container


def _modern_policy(item: object) -> Any:
    match item:
        case {"policy": str(policy), **rest} if policy in _DRAFT_POLICIES and "restartPolicy" not in rest:
            return {**rest, "restartPolicy": _DRAFT_POLICIES[policy]}
    return item

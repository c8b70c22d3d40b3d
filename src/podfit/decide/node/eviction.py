"""Which pod ends when the node runs short of memory or of process numbers, as upstream's kubelet ranks them.

    memory     who uses more than they requested, before who does not; then the lower priority; then by how much
    processes  the lower priority

Static, mirror and system-critical pods are not evicted. One pod ends at a time: what it gives back is seen first.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import is_critical
from podfit.decide.node.pressure import Observation, Threshold

EVICTED = "Evicted"
RESOURCES = {"memory.available": "memory", "pid.available": "pids"}
"""Signals for which pods are evicted, and the resource that they are about."""


class Load(msgspec.Struct, frozen=True):
    """A pod at its allocated size, and what its containers use, in bytes by name."""

    pod: Pod
    memory: Mapping[str, int]

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @property
    def over(self) -> int:
        """Bytes of memory beyond what the pod requested; less than none when it uses less."""
        return sum(self.memory.values()) - sum(requested(self.pod).values())


class Shortage(msgspec.Struct, frozen=True):
    """A threshold that is met, and what was seen."""

    threshold: Threshold
    seen: Observation


class Eviction(msgspec.Struct, frozen=True):
    pod: Pod
    message: str


def shortages(thresholds: Iterable[Threshold], seen: Mapping[str, Observation]) -> tuple[Shortage, ...]:
    """Those that are met and that pods are evicted for, memory first."""
    met = (
        Shortage(threshold, seen[threshold.signal])
        for threshold in thresholds
        if threshold.signal in RESOURCES and threshold.signal in seen and threshold.met(seen[threshold.signal])
    )
    return tuple(sorted(met, key=lambda shortage: shortage.threshold.signal != "memory.available"))


def ranked(loads: Iterable[Load], resource: str) -> list[Load]:
    """Who goes first comes first."""
    may_go = [load for load in loads if not is_critical(load.pod)]
    if resource == "memory":
        return sorted(may_go, key=lambda load: (load.over <= 0, load.priority, -load.over))
    return sorted(may_go, key=lambda load: load.priority)


def eviction(short: Sequence[Shortage], loads: Iterable[Load]) -> Eviction | None:
    """What is to be done about the first shortage; None when there is none, or nobody may go."""
    if not short:
        return None
    first = short[0]
    resource = RESOURCES[first.threshold.signal]
    candidates = ranked(loads, resource)
    return Eviction(candidates[0].pod, message(first, candidates[0], resource)) if candidates else None


def message(short: Shortage, load: Load, resource: str) -> str:
    """In upstream's words."""
    threshold, available = short.threshold.of(short.seen.capacity), short.seen.available
    text = f"The node was low on resource: {resource}. "
    text += f"Threshold quantity: {_said(threshold, resource)}, available: {_said(available, resource)}. "
    if resource != "memory":
        return text
    asked = requested(load.pod)
    for name, used in load.memory.items():
        if used > asked.get(name, 0):
            text += f"Container {name} was using {_said(used, resource)}, "
            text += f"request is {_said(asked.get(name, 0), resource)}, has larger consumption of memory. "
    return text


def requested(pod: Pod) -> dict[str, int]:
    """Bytes of memory that each container requests."""
    found = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        amount = container.resources.requests.get("memory")
        found[container.name] = amount.value() if amount is not None else 0
    return found


def _said(amount: int, resource: str) -> str:
    return str(Quantity.of_bytes(amount) if resource == "memory" and amount % 1024 == 0 else amount)

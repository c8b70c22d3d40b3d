"""Eviction ranking: which pod ends when a node is short of memory, disk or process numbers, as upstream's kubelet.

    memory     who uses more than they requested, before who does not; then the lower priority; then by how much
    disk       the same, by what is on the disk that is short; nobody can request inodes
    processes  the lower priority

Before all of them go pods on spare capacity, which were lent memory and processes; a disk is not lent.

Static, mirror and system-critical pods are not evicted. One pod ends at a time: what it gives back is seen first.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity
from podfit.decide.node.pod_load import EPHEMERAL, EVERYTHING, INODES, Load, Part, Used
from podfit.decide.node.pressure import Observation, Threshold
from podfit.decide.pod.spare import is_spare
from podfit.decide.pod.system_priority import is_critical

EVICTED = "Evicted"
RESOURCES = {
    "memory.available": "memory",
    "nodefs.available": EPHEMERAL,
    "imagefs.available": EPHEMERAL,
    "nodefs.inodesFree": INODES,
    "imagefs.inodesFree": INODES,
    "pid.available": "pids",
}
"""The resource that each signal is about, as messages name it."""


class Shortage(msgspec.Struct, frozen=True):
    """A threshold that is met, and what was seen."""

    threshold: Threshold
    seen: Observation

    @property
    def resource(self) -> str:
        return RESOURCES[self.threshold.signal]

    @property
    def of_disk(self) -> bool:
        return self.resource in (EPHEMERAL, INODES)


class Eviction(msgspec.Struct, frozen=True):
    pod: Pod
    message: str


def shortages(thresholds: Iterable[Threshold], seen: Mapping[str, Observation]) -> tuple[Shortage, ...]:
    """Thresholds that are met, memory first."""
    met = (
        Shortage(threshold, seen[threshold.signal])
        for threshold in thresholds
        if threshold.signal in seen and threshold.met(seen[threshold.signal])
    )
    return tuple(sorted(met, key=lambda shortage: shortage.resource != "memory"))


def is_split(seen: Mapping[str, Observation]) -> bool:
    """Whether images and writable layers are on another disk than volumes and logs."""
    node, images = seen.get("nodefs.available"), seen.get("imagefs.available")
    return node is not None and images is not None and node.device != images.device


def reclaims(short: Shortage, *, split: bool) -> bool:
    """Whether removing unused images and ended containers may help."""
    return short.of_disk and (not split or short.threshold.signal.startswith("imagefs"))


def measured(short: Shortage, *, split: bool) -> tuple[Part, ...]:
    """What of a pod's storage is on the disk that is short."""
    if not split:
        return EVERYTHING
    return ("roots",) if short.threshold.signal.startswith("imagefs") else ("logs", "volumes", "own")


def ranked(loads: Iterable[Load], short: Shortage, *, split: bool = False) -> list[Load]:
    """Who goes first comes first."""
    may_go = [load for load in loads if not is_critical(load.pod)]
    if short.resource == "pids":
        return sorted(may_go, key=lambda load: (not is_spare(load.pod), load.priority))
    parts = measured(short, split=split)

    def over(load: Load) -> int:
        return load.storage_over(parts, short.resource) if short.of_disk else load.memory_over

    def lent(load: Load) -> bool:
        return short.resource == "memory" and is_spare(load.pod)

    return sorted(may_go, key=lambda load: (not lent(load), over(load) <= 0, load.priority, -over(load)))


def eviction(short: Sequence[Shortage], loads: Iterable[Load], *, split: bool = False) -> Eviction | None:
    """What is to be done about the first shortage; None when there is none, or nobody may go."""
    if not short:
        return None
    candidates = ranked(loads, short[0], split=split)
    return Eviction(candidates[0].pod, message(short[0], candidates[0])) if candidates else None


def message(short: Shortage, load: Load) -> str:
    """The message of the eviction, in upstream's words."""
    resource, seen = short.resource, short.seen
    threshold, available = Quantity.of_bytes(short.threshold.of(seen.capacity)), _said(seen.available, resource)
    text = f"The node was low on resource: {resource}. "
    text += f"Threshold quantity: {threshold}, available: {available}. "
    for name, used in _by_container(load, resource).items():
        asked = _requested(load.pod, name, resource)
        if used > asked:
            text += f"Container {name} was using {_said(used, resource)}, "
            text += f"request is {_said(asked, resource)}, has larger consumption of {resource}. "
    return text


def _by_container(load: Load, resource: str) -> Mapping[str, int]:
    """What each container uses of a resource that can be requested."""
    if resource == "memory":
        return load.memory
    if resource != EPHEMERAL:
        return {}
    logs = load.storage.logs
    return {name: (used + logs.get(name, Used())).bytes for name, used in load.storage.roots.items()}


def _requested(pod: Pod, name: str, resource: str) -> int:
    for container in all_containers(pod.spec):
        amount = container.resources.requests.get(resource)
        if container.name == name and amount is not None:
            return amount.value()
    return 0


def _said(amount: int, resource: str) -> str:
    return str(Quantity.of_bytes(amount) if resource in ("memory", EPHEMERAL) else Quantity.of(amount))

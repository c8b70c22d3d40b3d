"""What a resize that goes ahead does to the containers: amounts that change, restarts, and the risk of less memory."""

from collections.abc import Iterator

import msgspec

from podfit.answers.snapshot import Snapshot
from podfit.api.base import ResourceList
from podfit.api.core.containers import ResourceRequirements
from podfit.api.core.pods import Pod
from podfit.core.quantity import ZERO
from podfit.decide import resize
from podfit.decide.by_status import actuated
from podfit.decide.overlay import NOTHING, PodResources, resizable
from podfit.decide.shrink import Memory, objection

RESOURCES = ("cpu", "memory")


class Change(msgspec.Struct, frozen=True):
    """`container` is empty for the pod as a whole; `side` is requests or limits; amounts are empty when not set."""

    container: str
    resource: str
    side: str
    before: str
    after: str


class Restart(msgspec.Struct, frozen=True):
    container: str
    why: str


def changes(new: Pod, old: Pod) -> Iterator[Change]:
    """Those of the pod as a whole first, then by container."""
    before = {each.name: each.resources for each in (*old.spec.init_containers, *old.spec.containers)}
    yield from _differences("", new.spec.resources or NOTHING, old.spec.resources or NOTHING)
    for each in (*new.spec.init_containers, *new.spec.containers):
        yield from _differences(each.name, each.resources, before[each.name])


def _differences(name: str, new: ResourceRequirements, old: ResourceRequirements) -> Iterator[Change]:
    for resource in RESOURCES:
        for side in ("requests", "limits"):
            after, before = (_text(getattr(each, side), resource) for each in (new, old))
            if after != before:
                yield Change(name, resource, side, before, after)


def _text(amounts: ResourceList, name: str) -> str:
    return str(amounts[name]) if name in amounts else ""


class Effects:
    """Of one pod: `new` as the API would store it, `old` as it is stored now."""

    def __init__(self, new: Pod, old: Pod, snapshot: Snapshot) -> None:
        self._new = new
        self._gates = snapshot.age.gates
        self._usage = (snapshot.usage or {}).get((old.metadata.namespace, old.metadata.name))
        statuses = (*old.status.init_container_statuses, *old.status.container_statuses)
        self._live = {each.name for each in statuses if each.state.running is not None}
        spec = {each.name: each.resources for each in resizable(old, self._gates)}
        seen = actuated(old, self._gates) or PodResources()
        self._actuated = PodResources(spec | dict(seen.containers), seen.pod)

    def restarts(self) -> tuple[Restart, ...]:
        names = resize.restarts(self._new, self._actuated, self._live, self._gates)
        return tuple(Restart(name, self._policies(name)) for name in names)

    def _policies(self, name: str) -> str:
        container = next(each for each in resizable(self._new, self._gates) if each.name == name)
        named = [each.resource_name for each in container.resize_policy if each.restart_policy == "RestartContainer"]
        return f"resizePolicy {', '.join(named)}: RestartContainer"

    def shrink(self) -> tuple[str, bool]:
        """What the memory limits that become lower risk, and whether the node would refuse them now."""
        lowered = self._lowered()
        if not lowered:
            return "", False
        if self._usage is None:
            return "no metrics are served here; the node compares memory usage with the new limit first", False
        seen = {name: self._usage.get(name) for name in lowered}
        if text := objection(Memory(containers=lowered), Memory(containers=seen)):
            return text, True
        shares = (f"{name} uses {100 * (seen[name] or 0) // limit} %" for name, limit in lowered.items())
        return f"{', '.join(shares)} of the lower memory limit", False

    def _lowered(self) -> dict[str, int]:
        """New limits in bytes, by running container that is not restarted anyway."""
        restarted = {each.container for each in self.restarts()}
        limits = {
            each.name: each.resources.limits.get("memory", ZERO)
            for each in resizable(self._new, self._gates)
            if each.name in self._live - restarted
        }
        before = self._actuated.containers
        return {
            name: limit.value()
            for name, limit in limits.items()
            if resize.lowers(limit, before[name].limits.get("memory", ZERO))
        }

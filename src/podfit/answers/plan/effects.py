"""Effects of a resize that is granted: which amounts of which containers change, what restarts, where
memory shrinks.
"""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.facts.readable import readable
from podfit.answers.facts.snapshot import Snapshot
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.cgroup.pod_cgroup import pod_config
from podfit.decide.pod.allocated import NOTHING, PodResources, overlay, resizable
from podfit.decide.resize import steps as resize
from podfit.decide.resize.by_status import actuated
from podfit.decide.resize.memory_shrink import Memory, objection

KIBI, BYTE = 1024, Quantity.of(1).nano
START = Quantity.of_bytes(6 << 20)
"""With a lower memory limit runc may not get as far as to start a container; Docker refuses to try for that reason."""


class Change(msgspec.Struct, frozen=True):
    """`container` is empty for the pod as a whole; `side` is requests or limits; amounts are empty when not set."""

    container: str
    resource: str
    side: str
    before: str
    after: str


class Amounts(msgspec.Struct, frozen=True):
    """Request and limit; empty when not set."""

    request: str = ""
    limit: str = ""

    def __str__(self) -> str:
        """`500m`, or with a limit `500m/1`."""
        return f"{self.request or 'none'}/{self.limit}" if self.limit else self.request or "none"


class ResourceChange(msgspec.Struct, frozen=True):
    """One resource of a container (empty for the pod as a whole) of which request or limit changes."""

    container: str
    resource: str
    before: Amounts
    after: Amounts

    def __str__(self) -> str:
        """`200m/800m → 1/4`."""
        both = self.before.limit or self.after.limit
        if both and not (self.before.limit and self.after.limit):  # a limit is added or taken away
            return " → ".join(f"{size.request or 'none'}/{size.limit or 'none'}" for size in (self.before, self.after))
        return f"{self.before} → {self.after}"


class Restart(msgspec.Struct, frozen=True):
    container: str
    why: str


def changes(new: Pod, old: Pod) -> Iterator[Change]:
    """Those of the pod as a whole first, then by container."""
    before = {container.name: container.resources for container in all_containers(old.spec)}
    yield from _differences("", new.spec.resources or NOTHING, old.spec.resources or NOTHING)
    for container in all_containers(new.spec):
        yield from _differences(container.name, container.resources, before[container.name])


def resizing(new: Pod, old: Pod) -> Iterator[ResourceChange]:
    """With the request beside a limit that changes, and the other way round; in the order of `changes`."""
    levels = {"": (new.spec.resources or NOTHING, old.spec.resources or NOTHING)}
    before = {container.name: container.resources for container in all_containers(old.spec)}
    levels |= {container.name: (container.resources, before[container.name]) for container in all_containers(new.spec)}
    for name, (after, earlier) in levels.items():
        for resource in RESOURCES:
            sizes = [
                Amounts(_text(resources.requests, resource), _text(resources.limits, resource))
                for resources in (earlier, after)
            ]
            if sizes[0] != sizes[1]:
                yield ResourceChange(name, resource, sizes[0], sizes[1])


def _differences(name: str, new: ResourceRequirements, old: ResourceRequirements) -> Iterator[Change]:
    for resource in RESOURCES:
        for side in ("requests", "limits"):
            after, before = (_text(getattr(resources, side), resource) for resources in (new, old))
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
        self._live = {status.name for status in statuses if status.state.running is not None}
        spec = {container.name: container.resources for container in resizable(old, self._gates)}
        seen = actuated(old, self._gates) or PodResources()
        self._actuated = PodResources(spec | dict(seen.containers), seen.pod)

    def restarts(self) -> tuple[Restart, ...]:
        names = resize.restarts(self._new, self._actuated, self._live, self._gates)
        return tuple(Restart(name, self._policies(name)) for name in names)

    def _policies(self, name: str) -> str:
        """The policies of those resources of the container that change."""
        container = next(container for container in resizable(self._new, self._gates) if container.name == name)
        before = self._actuated.containers[name]
        policies = [
            policy.resource_name for policy in container.resize_policy if policy.restart_policy == "RestartContainer"
        ]
        new = effective(self._new, container)
        changed = [resource for resource in policies if resize.differs(new, before, resource)]
        return f"resizePolicy {', '.join(changed or policies)}: RestartContainer"

    def refused(self) -> str:
        """Why the node cannot lower a memory limit now, in the words of its condition; empty when it can, or when
        usage is not known.
        """
        lowered, pod = self._lowered(), self._pod_limit()
        if self._usage is None or not (lowered or pod is not None):
            return ""
        total = sum(self._usage.values())  # without the sandbox's own, which is next to nothing
        return objection(Memory(pod, lowered), Memory(total, self._seen(lowered)))

    def _pod_limit(self) -> int | None:
        """The pod's own memory limit where it becomes lower now: what restarts lowers it later."""
        if not self._live or self.restarts():
            return None
        machine = Machine(memory=0, gates=self._gates)
        has = overlay(self._new, self._actuated, self._gates)
        new, before = (pod_config(pod, machine).memory for pod in (self._new, has))
        return new if new is not None and (before is None or new < before) else None

    def crashes(self) -> str:
        """Why a container would not live with its new memory limit; empty when nothing speaks for it."""
        return "; ".join(filter(None, map(self._too_tight, resizable(self._new, self._gates))))

    def _too_tight(self, container: Container) -> str:
        name, limit = container.name, container.resources.limits.get("memory", ZERO)
        if not limit or limit == self._before(name):
            return ""
        starts = name not in self._live or name in {restart.container for restart in self.restarts()}
        used = (self._usage or {}).get(name, 0)
        if limit < START and (starts or name not in (self._usage or {})):
            what = "may not start" if starts else "may not run"
            return f'container "{name}" {what} with a memory limit of {readable(limit.value())}: less than {START}'
        if starts and used >= limit.value():
            now = readable(used)
            text = f"restarted with a memory limit of {readable(limit.value())} it may be killed (OOMKilled)"
            return f'container "{name}" uses {now} of memory: {text}'
        return ""

    def shrink(self) -> str:
        """What is known of the memory that limits which become lower have to hold."""
        lowered = self._lowered()
        if not lowered:
            return ""
        if self._usage is None:
            return "memory usage is not known here; the node compares it with the new limit first"
        seen = self._seen(lowered)
        shares = (f"{name} uses {100 * (seen[name] or 0) // limit} %" for name, limit in lowered.items() if limit)
        tiny = any(limit < START.value() for limit in lowered.values())
        again = f"; started again with less than {START} it may not run" if tiny else ""
        kind = "lower" if all(self._before(name) for name in lowered) else "new"
        return f"{', '.join(shares)} of the {kind} memory limit{again}"

    def _seen(self, names: Iterable[str]) -> dict[str, int | None]:
        return {name: (self._usage or {}).get(name) for name in names}

    def _before(self, name: str) -> Quantity:
        return self._actuated.containers[name].limits.get("memory", ZERO)

    def _lowered(self) -> dict[str, int]:
        """New limits in bytes, by running container that is not restarted anyway."""
        restarted = {restart.container for restart in self.restarts()}
        limits = {
            container.name: container.resources.limits.get("memory", ZERO)
            for container in resizable(self._new, self._gates)
            if container.name in self._live - restarted
        }
        return {name: limit.value() for name, limit in limits.items() if resize.lowers(limit, self._before(name))}


def doubts(new: Pod, old: Pod) -> Iterator[str]:
    """Amounts that are accepted and hardly meant, as kubectl warns of them."""
    before = {container.name: container.resources for container in all_containers(old.spec)}
    for field, containers in (("initContainers", new.spec.init_containers), ("containers", new.spec.containers)):
        for index, container in enumerate(containers):
            yield from _odd(f"spec.{field}[{index}].resources", container.resources, before[container.name])
    if new.spec.resources is not None:
        yield from _odd("spec.resources", new.spec.resources, old.spec.resources or NOTHING)


def _odd(path: str, new: ResourceRequirements, old: ResourceRequirements) -> Iterator[str]:
    for side in ("limits", "requests"):
        amount = getattr(new, side).get("memory")
        if amount is None or amount == getattr(old, side).get("memory"):
            continue
        if amount.nano % BYTE:
            yield f'{path}.{side}[memory]: fractional byte value "{amount}" is invalid, must be an integer'
        elif amount.value() < KIBI * KIBI:
            yield f"{path}.{side}[memory]: {amount} is {amount.value()} bytes; was {amount.value()}Mi meant?"

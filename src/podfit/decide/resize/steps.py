"""Steps of an actuation: which containers restart, and in which order cgroups and containers change.

    check memory        nothing at all happens when a limit would go below usage
    for memory, then cpu:
        pod cgroup up       so that no container ever exceeds its pod (v1 refuses that)
        container decreases
        container increases
        pod cgroup down

Where the kernel comes first (docs/kernel-first.md), the pod cgroup goes up for both, and what grows of containers is
written, before the runtime is told of anything: `growth` is that part, which need not wait for a look at the runtime.

The pod cgroup follows `pod_config` whenever it differs, not only when a container changed: a limit raised while its
container was down, or a sync that stopped half way, is made good by the next one. A limit that comes where
there was none counts as a decrease, because it is one: upstream calls it an increase and leaves it unchecked.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.cgroup import conversion as cgroups
from podfit.decide.cgroup.container_resources import (
    RESOURCES,
    ContainerResources,
    Machine,
    container_resources,
    effective,
    memory,
)
from podfit.decide.cgroup.pod_cgroup import PodConfig, PodValues, pod_config
from podfit.decide.pod.allocated import NOTHING, PodResources, resizable
from podfit.decide.resize.memory_shrink import Memory
from podfit.decide.resize.restart_policy import restarting


class CheckMemory(msgspec.Struct, frozen=True):
    """Compare usage with the limits that are about to come; stop everything when one is below."""

    limits: Memory


class SetPod(msgspec.Struct, frozen=True):
    """Write one value of the pod cgroup. `config` is all it holds afterwards, `before` all it held."""

    resource: str
    value: str  # "limit" or "shares"
    config: PodConfig
    before: PodConfig


class UpdateContainer(msgspec.Struct, frozen=True):
    """Change one resource of a live container; `actuated` is the record once that has worked."""

    name: str
    resource: str
    resources: ContainerResources
    actuated: ResourceRequirements


class GrowContainer(msgspec.Struct, frozen=True):
    """Raise one value of a live container's cgroup before the runtime is told; only where the kernel holds `before`.

    Where it holds `config` the value was raised before, by the same step. Any other value, as one that somebody else
    has set, is left to the runtime. The record stays: until the runtime has agreed, nothing is actuated.
    """

    name: str
    resource: str
    value: str  # "limit" or "shares"
    config: PodConfig
    before: PodConfig

    def applies(self, now: PodValues) -> bool:
        """Whether the container's cgroup, which holds `now`, is as it was last actuated."""
        return not self._change(now, self.before)

    def is_done(self, now: PodValues) -> bool:
        """Whether the value was raised before."""
        return not self._change(now, self.config)

    def goes_back(self, usage: int | None) -> bool:
        """Whether `before` may be written again with so many bytes in use: a limit below usage would kill (R-143)."""
        return self.resource != "memory" or (usage is not None and usage < (self.before.memory or 0))

    def agreed(self, done: Collection["Step"]) -> bool:
        """Whether the runtime was told, and agreed, in the steps that are `done`."""
        return any(
            isinstance(step, UpdateContainer) and (step.name, step.resource) == (self.name, self.resource)
            for step in done
        )

    def _change(self, now: PodValues, config: PodConfig) -> int:
        return now.shares_change(config) if self.value == "shares" else now.limit_change(config, self.resource)

    @property
    def grows(self) -> bool:
        return self._change(PodValues.of(self.before), self.config) > 0


class RecordPod(msgspec.Struct, frozen=True):
    """The pod-level resources are real now."""

    actuated: ResourceRequirements


Step = CheckMemory | SetPod | GrowContainer | UpdateContainer | RecordPod


class _Change(msgspec.Struct, frozen=True):
    """One container whose effective resources are not what was actuated; `resources` are those that differ."""

    container: Container
    want: ResourceRequirements
    have: ResourceRequirements | None
    resources: tuple[str, ...]

    @property
    def needs_restart(self) -> bool:
        return bool(restarting(self.container, self.resources))

    def decreases(self, resource: str) -> bool:
        want, have = self.want, self.have or NOTHING
        if _amount(want.limits, resource) != _amount(have.limits, resource):
            return lowers(_amount(want.limits, resource), _amount(have.limits, resource))
        return _amount(want.requests, resource) < _amount(have.requests, resource)


def _amount(amounts: dict[str, Quantity], name: str) -> Quantity:
    return amounts.get(name, ZERO)


def differs(want: ResourceRequirements, have: ResourceRequirements, name: str) -> bool:
    """Whether request or limit of one resource differ; absent is zero."""
    return (_amount(want.limits, name), _amount(want.requests, name)) != (
        _amount(have.limits, name),
        _amount(have.requests, name),
    )


def lowers(new: Quantity, old: Quantity) -> bool:
    """Whether a limit becomes tighter; zero is no limit."""
    return bool(new) and (not old or new < old)


def _changes(pod: Pod, actuated: PodResources, running: Collection[str], gates: FeatureGates) -> Iterator[_Change]:
    for container in resizable(pod, gates):
        if container.name not in running:
            continue
        want, have = effective(pod, container), actuated.containers.get(container.name)
        if resources := tuple(name for name in RESOURCES if differs(want, have or NOTHING, name)):
            yield _Change(container, want, have, resources)


def pod_level_differs(pod: Pod, actuated: PodResources, gates: FeatureGates) -> bool:
    """Whether `spec.resources` are not yet what was actuated; without a record nothing is known to differ."""
    if actuated.pod is None or not gates["InPlacePodLevelResourcesVerticalScaling"]:
        return False
    return any(differs(pod.spec.resources or NOTHING, actuated.pod, name) for name in RESOURCES)


def in_progress(pod: Pod, actuated: PodResources, running: Collection[str], gates: FeatureGates) -> bool:
    """Whether the allocated `pod` is not yet what was actuated. Plain init containers count while they run."""
    return any(_changes(pod, actuated, running, gates)) or pod_level_differs(pod, actuated, gates)


def restarts(pod: Pod, actuated: PodResources, running: Collection[str], gates: FeatureGates) -> tuple[str, ...]:
    """Running containers that have to be started anew to change: one resource with that policy is enough (R-126)."""
    return tuple(change.container.name for change in _changes(pod, actuated, running, gates) if change.needs_restart)


def steps(
    pod: Pod, actuated: PodResources, running: Collection[str], now: PodValues, machine: Machine
) -> tuple[Step, ...]:
    """The steps in the order in which they are to be done; the first that fails ends the list.

    `running` are the containers that run, those that `restarts` names being stopped already: as long as one of them
    still runs the pod's limits are not lowered.
    """
    changes = tuple(_changes(pod, actuated, running, machine.gates))
    live = [change for change in changes if not change.needs_restart]
    plan = _Plan(
        pod=pod,
        target=pod_config(pod, machine),
        machine=machine,
        now=now,
        config=now.as_config(),
        records={change.container.name: change.have for change in live},
        may_lower=len(live) == len(changes),
    )
    done = [*plan.growth(live)] if machine.kernel_first else []
    done += [step for resource in RESOURCES for step in plan.steps(resource, live)]
    if pod_level_differs(pod, actuated, machine.gates):
        done.append(RecordPod(pod.spec.resources or NOTHING))
    limits = plan.lowered(live)
    return (CheckMemory(limits), *done) if limits else tuple(done)


def growth(
    pod: Pod, actuated: PodResources, running: Collection[str], now: PodValues, machine: Machine
) -> tuple[SetPod | GrowContainer, ...]:
    """The first of `steps`, which may be done as soon as the size is allocated, whatever else runs by then.

    None while a container has to restart, or a memory limit is to be checked: nothing at all happens before that.
    """
    if not machine.kernel_first or restarts(pod, actuated, running, machine.gates):
        return ()
    begun = takewhile(
        lambda step: isinstance(step, SetPod | GrowContainer), steps(pod, actuated, running, now, machine)
    )
    first = tuple(step for step in begun if isinstance(step, SetPod | GrowContainer))
    return first if any(isinstance(step, GrowContainer) for step in first) else ()


def recorded(actuated: PodResources, done: Iterable[Step]) -> PodResources:
    """What is real once these steps have worked."""
    for step in done:
        match step:
            case UpdateContainer(name=name, actuated=resources):
                actuated = actuated.with_container(name, resources)
            case RecordPod(actuated=resources):
                actuated = replace(actuated, pod=resources)
            case SetPod() | GrowContainer() | CheckMemory():
                pass
    return actuated


def holding(pod: Pod, actuated: PodResources, containers: Mapping[str, PodValues], machine: Machine) -> PodResources:
    """What was actuated, with limits of `containers`' cgroups that are above both this and what is allocated: growth
    that was written before the runtime was told, and asked back before it had answered.
    """
    if not machine.kernel_first:
        return actuated
    for container in resizable(pod, machine.gates):
        have, now = actuated.containers.get(container.name), containers.get(container.name)
        if have is None or now is None:
            continue
        known = [_held(container_resources(pod, container, machine, size)) for size in (have, None)]
        limits = dict(have.limits)
        if now.quota is not None and all(now.limit_change(config, "cpu") < 0 for config in known):
            limits["cpu"] = Quantity.of_milli(cgroups.milli_from_quota(now.quota, now.period))
        if now.memory is not None and all(now.limit_change(config, "memory") < 0 for config in known):
            limits["memory"] = Quantity.of_bytes(now.memory)
        if limits != have.limits:
            actuated = actuated.with_container(container.name, msgspec.structs.replace(have, limits=limits))
    return actuated


class _Plan(msgspec.Struct):
    """The state that steps build on: what the pod cgroup and each container's record hold so far."""

    pod: Pod
    target: PodConfig
    machine: Machine
    now: PodValues
    config: PodConfig
    records: dict[str, ResourceRequirements | None]
    may_lower: bool
    raised: set[str] = msgspec.field(default_factory=set)
    """Resources for which the pod's cgroup has gone up."""
    grown: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Resources of containers that are raised before the runtime is told of anything."""

    def lowered(self, live: list[_Change]) -> Memory:
        """The memory limits that the steps would tighten."""
        pod = self.target.memory if self.may_lower and self.now.limit_change(self.target, "memory") < 0 else None
        return Memory(
            pod,
            {
                change.container.name: memory(change.want.limits)
                for change in live
                if lowers(_amount(change.want.limits, "memory"), _amount((change.have or NOTHING).limits, "memory"))
            },
        )

    def growth(self, live: list[_Change]) -> Iterator[Step]:
        """What is raised before the runtime is told."""
        for resource in RESOURCES:
            yield from self._raised(resource)
        for resource in RESOURCES:
            for change in live:
                if resource in change.resources and not change.decreases(resource):
                    yield from self._grow(change, resource)

    def steps(self, resource: str, live: list[_Change]) -> Iterator[Step]:
        changes = [change for change in live if resource in change.resources]
        yield from self._raised(resource)
        for change in sorted(changes, key=lambda change: not change.decreases(resource)):
            yield self._update(change, resource)
        if self._change(resource, "shares") < 0:
            yield self._set(resource, "shares")
        if self.may_lower and self._change(resource, "limit") < 0:
            yield self._set(resource, "limit")

    def _raised(self, resource: str) -> Iterator[Step]:
        """Once, whether the kernel comes first or not."""
        if resource in self.raised:
            return
        self.raised.add(resource)
        for value in ("limit", "shares"):
            if self._change(resource, value) > 0:
                yield self._set(resource, value)

    def _change(self, resource: str, value: str) -> int:
        """The change of the pod's cgroup: positive when it rises."""
        if value == "limit":
            return self.now.limit_change(self.target, resource)
        return self.now.shares_change(self.target) if resource == "cpu" else 0

    def _set(self, resource: str, value: str) -> SetPod:
        before, target = self.config, self.target
        if value == "shares":
            self.config = replace(before, shares=target.shares)
        elif resource == "cpu":
            self.config = replace(before, quota=target.quota, period=target.period)
        else:
            self.config = replace(before, memory=target.memory)
        return SetPod(resource, value, self.config, before)

    def _grow(self, change: _Change, resource: str) -> Iterator[GrowContainer]:
        """A runtime class may keep its containers elsewhere."""
        have = self.records[change.container.name]
        if not self.machine.kernel_first or have is None or self.pod.spec.runtime_class_name:
            return
        before, after = (
            _held(container_resources(self.pod, change.container, self.machine, resources))
            for resources in (have, _mix(change.want, have, resource))
        )
        for value in ("limit", "shares") if resource == "cpu" else ("limit",):
            step = GrowContainer(change.container.name, resource, value, after, before)
            if step.grows:
                self.grown.setdefault(step.name, []).append(resource)
                yield step

    def _update(self, change: _Change, resource: str) -> UpdateContainer:
        """One resource is new, the others stay as last actuated; of what was never recorded nothing is said (R-137).
        What has grown is told with it: the runtime writes all that it is told.
        """
        name, have = change.container.name, self.records[change.container.name]
        mixed = _mix(change.want, have or NOTHING, resource)
        told = _mix(change.want, mixed, resource, *self.grown.get(name, ()))
        values = container_resources(self.pod, change.container, self.machine, told)
        if have is None and resource != "cpu":
            values = replace(values, cpu_shares=0, cpu_quota=0, cpu_period=0)
        self.records[name] = mixed
        return UpdateContainer(name, resource, values, mixed)


def _held(resources: ContainerResources) -> PodConfig:
    """What the runtime makes of them in the container's cgroup."""
    return PodConfig(
        shares=resources.cpu_shares,
        quota=resources.cpu_quota or None,
        period=resources.cpu_period,
        memory=resources.memory_limit or None,
    )


def _mix(new: ResourceRequirements, old: ResourceRequirements, *resources: str) -> ResourceRequirements:
    """`new`, but with the other resizable resources of `old`."""
    kept = [name for name in RESOURCES if name not in resources]

    def merge(ours: dict[str, Quantity], theirs: dict[str, Quantity]) -> dict[str, Quantity]:
        merged = {name: amount for name, amount in ours.items() if name not in kept}
        return merged | {name: theirs[name] for name in kept if name in theirs}

    return msgspec.structs.replace(
        new, limits=merge(new.limits, old.limits), requests=merge(new.requests, old.requests)
    )

"""A node in virtual time: the node machine with a world in which nothing takes long and nothing fails by itself.

What is granted is actuated at once: containers that restart are up again, steps have worked, and the status tells so.
Only what is used of memory is real, as far as it was read; what is not known is in nobody's way.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.shared_map import SharedMap
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.cgroup.pod_cgroup import PodValues, pod_config
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.drive import at_once, drive
from podfit.decide.node.effects import Effect
from podfit.decide.node.events import Event
from podfit.decide.node.machine import step
from podfit.decide.node.settled import settled_status
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import PodResources, overlay, resizable
from podfit.decide.pod.resize_state import ERROR, IN_PROGRESS
from podfit.decide.resize import by_status
from podfit.decide.resize.memory_shrink import Memory
from podfit.decide.resize.steps import SetPod, recorded
from podfit.decide.resize.verdict import NodeView

Usage = Mapping[tuple[str, str], Mapping[str, int]]
"""Bytes of memory by pod (namespace and name) and container."""
_NOW = datetime(2000, 1, 1, tzinfo=UTC)  # of conditions that are set in virtual time: nobody is told it


class VirtualNode:
    """Machine and world in one. `restarted` and `lowered` are what was stopped and measured, by UID; `victims` the
    names of the pods that end, by the UID of the critical pod for which they do.
    """

    def __init__(self, state: NodeState, usage: Usage | None) -> None:
        self.state, self._usage = state, usage
        self._cgroups: dict[str, PodValues] = {}
        self._granted: list[str] = []
        self.restarted: dict[str, tuple[str, ...]] = {}
        self.lowered: dict[str, Memory] = {}
        self.victims: dict[str, tuple[str, ...]] = {}

    def happens(self, event: Event) -> tuple[str, ...]:
        """Let it happen, and all that follows; the UIDs of those whose resize is granted by it, in order."""
        self._granted = []
        at_once(drive(self, self, event))
        return tuple(self._granted)

    def error(self, uid: str) -> str:
        """Why the last actuation of a pod failed; empty when it did not."""
        condition = self.state.conditions.get(IN_PROGRESS, uid)
        return condition.message if condition is not None and condition.reason == ERROR else ""

    async def take(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = step(self.state, event, now=_NOW)
        return effects

    async def carry_out(self, effect: Effect) -> Iterable[Event]:
        match effect:
            case do.RecordEvent(pod=pod, reason="ResizeStarted"):
                self._granted.append(pod.metadata.uid)
            case do.RecordEvent(pod=pod, reason="ResizeCompleted"):
                return (on.StatusGenerated(pod.metadata.uid, settled_status(self._allocated(pod.metadata.uid))),)
            case do.Sync(uid=uid) if uid in self._granted:
                return self._synced(uid)
            case do.End(uid=uid, by=by):
                self.victims[by] = (*self.victims.get(by, ()), _name(self.state.pods[uid].pod))
            case do.StopForResize(pod=pod, restarting=names):
                return self._restart(pod, names)
            case do.MeasureMemory(due=due, limits=limits):
                self.lowered[due.pod.metadata.uid] = limits
                return (on.MemoryMeasured(due, self._used(due, limits)),)
            case do.Actuate(pod=pod, steps=steps):
                uid = pod.metadata.uid
                for pod_step in (step for step in steps if isinstance(step, SetPod)):
                    self._cgroups[uid] = PodValues.of(pod_step.config)
                actuated = recorded(self.state.actuated.get(uid, PodResources()), steps)
                return on.Actuated(uid, actuated), on.ActuationEnded(pod), *self._looked(uid)
        return ()

    def due(self, pod: Pod, running: Collection[str]) -> on.ActuationDue:
        """A sync is at the resources of the allocated `pod`. Its cgroup holds what was last written there."""
        uid = pod.metadata.uid
        if uid not in self._cgroups:
            machine = self.state.view.machine
            was = overlay(pod, self.state.actuated.get(uid), machine.gates)
            self._cgroups[uid] = PodValues.of(pod_config(was, machine))
        return on.ActuationDue(pod, {name: name for name in running}, self._cgroups[uid])

    def _synced(self, uid: str) -> Iterable[Event]:
        """The look comes second: it tells the size of a pod of which nothing had to be changed."""
        allocated = self._allocated(uid)
        return self.due(allocated, running(allocated)), *self._looked(uid)

    def _looked(self, uid: str) -> Iterable[Event]:
        entry = self.state.pods.get(uid)
        return () if entry is None else (on.SyncStarted(entry.pod, running(entry.pod)),)

    def _restart(self, pod: Pod, names: tuple[str, ...]) -> Iterable[Event]:
        """They start at their new size, and what they used is given back; what is left of the pod is changed then."""
        uid = pod.metadata.uid
        staying = [name for name in running(pod) if name not in names]
        due = self.due(pod, staying)
        self.restarted[uid] = names
        actuated = self.state.actuated.get(uid, PodResources())
        for container in resizable(pod, self.state.view.gates):
            if container.name in names:
                actuated = actuated.with_container(container.name, effective(pod, container))
        return on.Actuated(uid, actuated), due

    def _used(self, due: on.ActuationDue, limits: Memory) -> Memory | None:
        """The whole pod's is without the sandbox's own, which is next to nothing."""
        meta = due.pod.metadata
        used = (self._usage or {}).get((meta.namespace, meta.name))
        if used is None:
            return None
        whole = sum(amount for name, amount in used.items() if name in due.running)
        return Memory(whole, {name: used.get(name) for name in limits.containers})

    def _allocated(self, uid: str) -> Pod:
        return self.state.allocated_pod(self.state.pods[uid].pod)


def running(pod: Pod) -> tuple[str, ...]:
    """Names of the containers that run, as the pod's status tells."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return tuple(status.name for status in statuses if status.state.running is not None)


def actuated_by_status(pod: Pod, gates: FeatureGates) -> PodResources:
    """What a pod's status tells of its actual sizes; those that it does not tell are taken to be as its spec asks."""
    seen = by_status.actuated(pod, gates) or PodResources()
    spec = {container.name: effective(pod, container) for container in resizable(pod, gates)}
    return PodResources(spec | dict(seen.containers), seen.pod)


class Actuation(msgspec.Struct, frozen=True):
    """What a node does to carry out a size: the containers that it restarts, the memory limits that it lowers under
    running ones, and why it refuses to lower them now (empty when it does not).
    """

    restarts: tuple[str, ...]
    lowered: Memory
    refused: str
    actuated: PodResources


def actuation(new: Pod, old: Pod, gates: FeatureGates, usage: Usage | None) -> Actuation:
    """Once the size of `new` is allocated to the pod that is `old` now, on whatever node."""
    uid = old.metadata.uid
    before, sized = actuated_by_status(old, gates), replace(new, status=old.status)
    view = NodeView(allocatable={}, machine=Machine(memory=0, gates=gates))
    node = VirtualNode(NodeState(view=view, actuated=SharedMap({uid: before})), usage)
    node.happens(node.due(sized, running(old)))
    return Actuation(node.restarted.get(uid, ()), node.lowered.get(uid, Memory()), node.error(uid), before)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"

"""A node as its kubelet decides, made of what the API tells about it.

The kubelet's allocations are in a file of its own; the status of each pod tells them (`decide.by_status`). A resize is
asked for, and then everything that waits is tried in order, each success counting at once for the rest, exactly as the
kubelet's own pass does (spec 5.4).
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.answers.ages import Age
from podfit.answers.policies import Policies
from podfit.answers.snapshot import Snapshot
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.core.quantity import ZERO
from podfit.core.times import parse_time
from podfit.decide import critical, fit
from podfit.decide.by_status import promised
from podfit.decide.container_resources import Machine
from podfit.decide.critical import Occupant, Preempts
from podfit.decide.fit import Deferred, Fits, Infeasible, Neighbour, NodeView, Verdict
from podfit.decide.order import queue_key
from podfit.decide.overlay import overlay
from podfit.decide.requests import pod_requests

PENDING = "PodResizePending"
NO_POLICIES = Policies()
PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure")


class Member(msgspec.Struct, frozen=True):
    """A pod of the node. `since` is when its resize began to wait, `counts` what it holds now."""

    desired: Pod
    allocated: Pod
    counts: Neighbour
    since: datetime | None = None
    infeasible: bool = False

    @property
    def name(self) -> str:
        return self.counts.name

    @property
    def waits(self) -> bool:
        return self.desired is not self.allocated

    @property
    def leaves(self) -> bool:
        return self.desired.metadata.deletion_timestamp is not None


def member(pod: Pod, age: Age) -> Member:
    gates = age.gates
    allocated = overlay(pod, promised(pod, gates), gates)
    pending = next((each for each in pod.status.conditions if each.type == PENDING), None)
    since = parse_time(pending.last_transition_time) if pending and pending.last_transition_time else None
    infeasible = (pending is not None and pending.reason == "Infeasible") or pod.status.resize == "Infeasible"
    return Member(pod, allocated, fit.neighbour(allocated, gates), since, infeasible)


class NodeModel:
    """`ask` for a resize and learn what becomes of it and of all that waits."""

    def __init__(self, node: Node, pods: Iterable[Pod], age: Age, policies: Policies = NO_POLICIES) -> None:
        self._age = age
        self.view = _view(node, age, policies)
        self.members = {pod.metadata.uid: member(pod, age) for pod in pods}
        self._victims: dict[str, tuple[Pod, ...]] = {}

    def others(self, uid: str) -> list[Neighbour]:
        return [each.counts for other, each in self.members.items() if other != uid]

    def ask(self, desired: Pod) -> tuple[str, ...]:
        """The pod gets a new desire; the uids that are granted what they wait for, in order."""
        uid = desired.metadata.uid
        old = self.members[uid]
        self.members[uid] = replace(old, desired=_kept(desired, old.allocated), infeasible=False, since=None)
        return self._settle()

    def verdict(self, uid: str) -> Verdict:
        """Of what the pod desires, beside what the others hold now."""
        mine = self.members[uid]
        if not mine.waits:
            return Fits()
        too_big = self._too_big(mine.desired)
        return too_big or fit.resize(mine.desired, mine.allocated, self.view, self.others(uid))

    def ends(self, uid: str) -> tuple[str, ...]:
        """Names of the pods that the node ends so that this one, a critical pod, gets the room that it lacks (R-117).
        """
        verdict = self.verdict(uid)
        if uid not in self._victims and isinstance(verdict, Deferred):
            answer = self._preemption(uid, verdict)
            self._victims[uid] = answer.victims if answer else ()
        return tuple(f"{each.metadata.namespace}/{each.metadata.name}" for each in self._victims.get(uid, ()))

    def _preemption(self, uid: str, refusal: Deferred) -> Preempts | None:
        ending = {victim.metadata.uid for victims in self._victims.values() for victim in victims}
        occupants = [
            Occupant(each.allocated, each.counts, going=other in ending or each.leaves)
            for other, each in self.members.items() if other != uid]
        return critical.preemption(self.members[uid].desired, refusal, self.view, occupants)

    def queue(self) -> list[Member]:
        """What waits, in the order in which it is tried."""
        waiting = (each for each in self.members.values() if each.waits and not each.infeasible)
        return sorted(waiting, key=lambda each: queue_key(each.desired, each.allocated, each.since))

    def _settle(self) -> tuple[str, ...]:
        granted = []
        for each in self.queue():
            uid = each.desired.metadata.uid
            verdict = self.verdict(uid)
            if isinstance(verdict, Fits):
                self.members[uid] = Member(each.desired, each.desired, self._claim(each))
                granted.append(uid)
            elif isinstance(verdict, Infeasible):
                self.members[uid] = replace(each, infeasible=True)
            elif answer := self._preemption(uid, verdict):
                self._victims[uid] = (*self._victims.get(uid, ()), *answer.victims)
                self.members[uid] = replace(each, counts=self._claim(each))
        return tuple(granted)

    def _claim(self, each: Member) -> Neighbour:
        """What it holds at its desired size, or what is kept for it until others have ended for it."""
        return Neighbour(each.name, pod_requests(each.desired, gates=self.view.gates))

    def _too_big(self, desired: Pod) -> Infeasible | None:
        """Up to 1.35 it was the node, not the API, that refused what it can never hold; memory is named over CPU."""
        if self._age.checks_capacity:
            return None
        wanted, room = pod_requests(desired, gates=self.view.gates), self.view.allocatable
        for name in ("memory", "cpu"):
            if wanted.get(name, ZERO) > room.get(name, ZERO):
                amounts = [each.milli() if name == "cpu" else each.value() for each in (wanted[name], room[name])]
                text = f"Node didn't have enough capacity: {name}, requested: {amounts[0]}, capacity: {amounts[1]}"
                return Infeasible(text, "insufficient_node_allocatable")
        return None


def _kept(desired: Pod, allocated: Pod) -> Pod:
    """The allocated object itself when that is what is desired, which is how `overlay` says that nothing waits."""
    return allocated if desired.spec == allocated.spec else desired


def model_of(name: str, snapshot: Snapshot) -> NodeModel:
    """KeyError: the node was not read."""
    pods = [pod for pod in snapshot.neighbours if pod.spec.node_name == name]
    return NodeModel(snapshot.nodes[name], pods, snapshot.age, snapshot.policies.get(name, NO_POLICIES))


def _view(node: Node, age: Age, policies: Policies) -> NodeView:
    """What the API tells, with the kubelet's configuration. Only the kubelet knows whose CPUs are whose, and whether it
    is about to shut down. A node that swaps is taken for one with cgroup v2, as others cannot.
    """
    status, gates = node.status, policies.on(age.gates)
    swap = status.node_info.swap.capacity if status.node_info.swap else 0
    machine = Machine(
        memory=status.capacity.get("memory", ZERO).value(), gates=gates, swap=swap if policies.swap else 0,
        cgroup="v2" if policies.swap else "v1", static_cpus=policies.cpu_manager == "static")
    return NodeView(
        allocatable=status.allocatable, node=node, machine=machine,
        platform=node.metadata.labels.get("kubernetes.io/os", "linux"), cpu_manager=policies.cpu_manager,
        memory_manager=policies.memory_manager,
        pressure=tuple(each.type for each in status.conditions if each.type in PRESSURES and each.status == "True"),
    )


def short(verdict: Verdict) -> str:
    """`180m cpu, 12Mi memory` of a deferred one."""
    if not isinstance(verdict, Deferred):
        return ""
    return ", ".join(f"{amount} {name}" for name, amount in verdict.short_by.items())

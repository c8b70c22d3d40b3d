"""The state of the node machine, built from what the API tells of a node: what would its kubelet decide?

The kubelet's allocations are in a file of its own; the status of each pod tells them (`decide.resize.by_status`). A
resize is the same event here as on the node, and what is granted is then carried out in virtual time
(`answers.node.virtual_time`), so that room which comes free by it is given on as the node will.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.ages import Age
from podfit.answers.facts.settings import Policies
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.virtual_time import Usage, VirtualNode, actuated_by_status
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.core.shared_map import SharedMap
from podfit.decide.node import critical
from podfit.decide.node import events as on
from podfit.decide.node.conditions import Conditions
from podfit.decide.node.critical import Occupant
from podfit.decide.node.pending_resizes import queued, verdict_of
from podfit.decide.node.state import NodeState
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import ResizeState
from podfit.decide.resize import by_status
from podfit.decide.resize.neighbours import Neighbour
from podfit.decide.resize.verdict import Deferred, Infeasible, NodeView, Verdict

NO_POLICIES = Policies()


class NodePod(msgspec.Struct, frozen=True):
    """A pod of the node. `counts` is what it holds now, `infeasible` that the node has refused its resize for good."""

    desired: Pod
    allocated: Pod
    counts: Neighbour
    infeasible: bool = False

    @property
    def name(self) -> str:
        return self.counts.name


class LiveNode:
    """`ask` for a resize and learn what becomes of it and of all that waits."""

    def __init__(
        self, node: Node, pods: Iterable[Pod], age: Age, policies: Policies = NO_POLICIES, usage: Usage | None = None
    ) -> None:
        self._age = age
        self._refused: dict[str, Infeasible] = {}
        self._victims: dict[str, tuple[str, ...]] = {}
        self._node = VirtualNode(_state(_view(node, age, policies), pods, age), usage)

    @property
    def state(self) -> NodeState:
        return self._node.state

    @property
    def view(self) -> NodeView:
        return self.state.view

    @property
    def members(self) -> dict[str, NodePod]:
        """The pods of the node by UID."""
        return {
            uid: NodePod(
                entry.pod,
                self.state.allocated_pod(entry.pod),
                entry.counts,
                self.state.conditions.resize_state(entry.pod).infeasible,
            )
            for uid, entry in self.state.pods.items()
        }

    def ask(self, desired: Pod) -> tuple[str, ...]:
        """The pod gets a new desired size; the UIDs of those that are granted what they wait for, in order.

        A size that the node grants and then does not carry out, as more memory is used, leaves what it gives up held.
        """
        uid = desired.metadata.uid
        self._refused.pop(uid, None)
        if refusal := self._beyond_node(desired):
            self._refused[uid] = refusal
            return ()
        return self._node.happens(on.PodsUpdated((desired,)))

    def leave(self, uid: str) -> tuple[str, ...]:
        """The pod goes; the UIDs of those that are granted what they wait for, in order."""
        return self._node.happens(on.PodsRemoved((uid,)))

    def verdict(self, uid: str) -> Verdict:
        """The verdict on what the pod desires, beside what the others hold now."""
        if uid in self._refused:
            return self._refused[uid]
        return self._beyond_node(self.state.pods[uid].pod) or verdict_of(self.state, uid)

    def message(self, uid: str) -> str:
        """What PodResizePending says: of the last time that the resize was tried; empty when it does not wait."""
        condition = self.state.conditions.pending.get(uid)
        return condition.message if condition else ""

    def ends(self, uid: str) -> tuple[str, ...]:
        """Names of the pods that the node ends so that this critical pod gets the room that it lacks (R-117)."""
        if uid in self._node.victims:
            return self._node.victims[uid]
        verdict = self.verdict(uid)
        if uid not in self._victims and isinstance(verdict, Deferred):
            occupants = [
                Occupant(self.state.allocated_pod(entry.pod), entry.counts, going=entry.terminating)
                for other, entry in self.state.pods.items()
                if other != uid
            ]
            answer = critical.preemption(self.state.pods[uid].pod, verdict, self.view, occupants)
            self._victims[uid] = tuple(_name(pod) for pod in answer.victims) if answer else ()
        return self._victims.get(uid, ())

    def queue(self) -> list[NodePod]:
        """What waits, in the order in which it is tried."""
        members = self.members
        return [members[uid] for uid in queued(self.state, self.state.queue)]

    def _beyond_node(self, desired: Pod) -> Infeasible | None:
        """Up to 1.35 it was the node, not the API, that refused what it can never hold; memory is named over CPU."""
        if self._age.checks_capacity:
            return None
        wanted, room = pod_requests(desired, gates=self.view.gates), self.view.allocatable
        for name in ("memory", "cpu"):
            if wanted.get(name, ZERO) > room.get(name, ZERO):
                amounts = [amount.milli() if name == "cpu" else amount.value() for amount in (wanted[name], room[name])]
                text = f"Node didn't have enough capacity: {name}, requested: {amounts[0]}, capacity: {amounts[1]}"
                return Infeasible(text, "insufficient_node_allocatable")
        return None


def live_node(name: str, snapshot: Snapshot) -> LiveNode:
    """KeyError: the node was not read."""
    pods = [pod for pod in snapshot.neighbours if pod.spec.node_name == name]
    policies = snapshot.policies.get(name, NO_POLICIES)
    return LiveNode(snapshot.nodes[name], pods, snapshot.age, policies, snapshot.usage)


def _state(view: NodeView, pods: Iterable[Pod], age: Age) -> NodeState:
    """The state of a kubelet after a restart: allocations by the last status, conditions as the API remembers them."""
    pods = tuple(pods)
    by_uid = {pod.metadata.uid: by_status.allocated(pod, view.gates) for pod in pods}
    conditions = Conditions()
    for pod in pods:
        conditions = conditions.adopt(pod)
    allocated = SharedMap({uid: resources for uid, resources in by_uid.items() if resources is not None})
    actuated = SharedMap({pod.metadata.uid: actuated_by_status(pod, view.gates) for pod in pods})
    state = NodeState(view=view, allocated=allocated, actuated=actuated, conditions=conditions, sources_ready=True)
    for pod in pods:
        state = state.with_pod(state.entry(pod))
    waiting = [
        pod.metadata.uid
        for pod in pods
        if state.allocated_pod(pod) is not pod and not _refused_for_good(state, pod, age)
    ]
    return replace(state, queue=queued(state, waiting))


def _refused_for_good(state: NodeState, pod: Pod, age: Age) -> bool:
    told = state.conditions.resize_state(pod) if age.has_conditions else ResizeState.by_field(pod)
    return told.infeasible


def _view(node: Node, age: Age, policies: Policies) -> NodeView:
    """What the API tells, with the kubelet's configuration."""
    managers = {"cpu_manager": policies.cpu_manager, "memory_manager": policies.memory_manager}
    return by_status.node_view(node, policies.on(age.gates), swaps=policies.swap, **managers)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def short(verdict: Verdict) -> str:
    """`180m cpu, 12Mi memory` of a deferred one."""
    if not isinstance(verdict, Deferred):
        return ""
    return ", ".join(f"{amount} {name}" for name, amount in verdict.short_by.items())

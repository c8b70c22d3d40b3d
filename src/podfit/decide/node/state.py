"""The state of the node machine: a frozen value, kept by a kubelet or built from a snapshot of any cluster."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.shared_map import SharedMap
from podfit.decide.managers import cpu as cpusets
from podfit.decide.managers import memory as memory_blocks
from podfit.decide.node.conditions import Conditions
from podfit.decide.node.reservations import Reservations
from podfit.decide.pod.allocated import PodResources, overlay
from podfit.decide.resize.neighbours import Neighbour, Others, Totals, neighbour
from podfit.decide.resize.verdict import NodeView


class PodEntry(msgspec.Struct, frozen=True):
    """A pod of the node: as desired, with its newest status.

    `counts` is what it counts for: its allocated form, status considered, so what it is allocated or still holds,
    whichever is more. `deleted`: the API has it no more; it counts for nothing while its containers end.
    """

    pod: Pod
    counts: Neighbour
    deleted: bool = False

    @property
    def active(self) -> bool:
        return not self.deleted and not has_ended(self.pod)

    @property
    def terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """`pods`, `allocated` and `actuated` (what was last made real) are by UID; `queue` are the UIDs of resizes that
    wait, in the order of the last pass.

    `totals` are of the active pods, kept up with each of them, so that a step costs as much on a full node as on an
    empty one. `failing` are pods whose last actuation failed. `sources_ready`: every pod of the node was added, so that
    resizes may be decided (R-173).
    """

    view: NodeView
    pods: SharedMap[str, PodEntry] = msgspec.field(default_factory=SharedMap)
    allocated: SharedMap[str, PodResources] = msgspec.field(default_factory=SharedMap)
    actuated: SharedMap[str, PodResources] = msgspec.field(default_factory=SharedMap)
    queue: tuple[str, ...] = ()
    reservations: Reservations = Reservations()
    conditions: Conditions = msgspec.field(default_factory=Conditions)
    failing: frozenset[str] = frozenset()
    sources_ready: bool = False
    totals: Totals = Totals()

    def allocated_pod(self, pod: Pod) -> Pod:
        """The pod at its allocated size; the same object when that is what it desires."""
        return overlay(pod, self.allocated.get(pod.metadata.uid), self.view.gates)

    def entry(self, pod: Pod) -> PodEntry:
        return PodEntry(pod, neighbour(self.allocated_pod(pod), self.view.gates))

    def with_pod(self, entry: PodEntry) -> "NodeState":
        uid = entry.pod.metadata.uid
        totals = self._totals_without(uid)
        return replace(
            self, pods=self.pods.set(uid, entry), totals=totals.plus(entry.counts) if entry.active else totals
        )

    def without_pod(self, uid: str) -> "NodeState":
        """What was allocated to it stays."""
        return replace(self, pods=self.pods.without([uid]), totals=self._totals_without(uid))

    def without_pods(self, uids: Collection[str]) -> "NodeState":
        state = self
        for uid in uids:
            state = state.without_pod(uid)
        return replace(state, allocated=state.allocated.without(uids), actuated=state.actuated.without(uids))

    def _totals_without(self, uid: str) -> Totals:
        entry = self.pods.get(uid)
        return self.totals.minus(entry.counts) if entry is not None and entry.active else self.totals

    def with_allocation(self, uid: str, resources: PodResources) -> "NodeState":
        return replace(self, allocated=self.allocated.set(uid, resources))

    def with_actuated(self, uid: str, resources: PodResources) -> "NodeState":
        return replace(self, actuated=self.actuated.set(uid, resources))

    def others(self, uid: str, *, reserved: bool = True) -> Others:
        """What every other pod holds, and what is `reserved` for critical ones, which then count for no more."""
        held = self.reservations.held if reserved else {}
        totals = self._totals_without(uid)
        for other, counts in held.items():
            if other != uid:
                entry = self.pods.get(other)
                totals = (totals.minus(entry.counts) if entry is not None and entry.active else totals).plus(counts)
        return Others(totals, partial(self._one_by_one, uid, held))

    def _one_by_one(self, uid: str, reserved: Mapping[str, Neighbour]) -> list[Neighbour]:
        held = {other: entry.counts for other, entry in self.pods.items() if entry.active} | dict(reserved)
        return [counts for other, counts in held.items() if other != uid]


def released(view: NodeView, uids: Iterable[str]) -> NodeView:
    """The node without the CPUs and the memory that were set aside for these pods."""
    cpus, memory = view.cpus, view.memory
    for uid in uids:
        cpus = cpusets.release(uid, cpus) if cpus is not None else None
        memory = memory_blocks.release(uid, memory) if memory is not None else None
    return view if cpus is view.cpus and memory is view.memory else replace(view, cpus=cpus, memory=memory)

"""The pods of this node and what each of them counts for.

A pod counts with its allocated form, status considered: what it was promised or still holds, whichever is more. The
checkpoint is the one place where a promise is kept; the ledger only reads it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from podfit.api.core.pods import Pod
from podfit.decide import critical, fit
from podfit.decide.critical import Occupant, Preempts
from podfit.decide.fit import Deferred, Neighbour, NodeView
from podfit.decide.overlay import NOTHING, overlay, resizable
from podfit.kubelet.allocation import rebuild
from podfit.kubelet.allocation.checkpoint import Checkpoint
from podfit.kubelet.allocation.claims import Claims

TERMINAL = ("Succeeded", "Failed")


class Member(msgspec.Struct, frozen=True):
    """A pod of this node: as desired, with the newest status known, and what it counts for."""

    pod: Pod
    counts: Neighbour

    @property
    def active(self) -> bool:
        return self.pod.status.phase not in TERMINAL

    @property
    def leaves(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None


class Ledger:
    """`members` is by pod UID. A batch of admissions works on a copy and puts it in place when all is written."""

    def __init__(self, allocated: Checkpoint, actuated: Checkpoint, node: Callable[[], NodeView]) -> None:
        self._allocated, self._actuated, self._node = allocated, actuated, node
        self.members: dict[str, Member] = {}
        self.claims = Claims()

    def allocated(self, pod: Pod) -> Pod:
        """The pod at the size that was promised; the same object when that is what it desires."""
        return overlay(pod, self._allocated.get(pod.metadata.uid), self._node().gates)

    def active(self) -> list[Pod]:
        """As desired, with the newest status known."""
        return [each.pod for each in self.members.values() if each.active]

    def has_promised(self, pod: Pod) -> bool:
        return self._allocated.get(pod.metadata.uid) is not None

    def promised(self, pods: Iterable[Pod]) -> dict[str, Member]:
        """Those for which something was promised before, which keep their room."""
        return {pod.metadata.uid: self.member(pod) for pod in pods if self.has_promised(pod)}

    def member(self, pod: Pod) -> Member:
        return Member(pod, fit.neighbour(self.allocated(pod), self._node().gates))

    def preemption(
        self, pod: Pod, refusal: Deferred, node: NodeView, members: Mapping[str, Member], claims: Claims
    ) -> tuple[Preempts | None, Claims]:
        """What the pod may do about its refusal, and the claims with which everyone else has to live."""
        uid = pod.metadata.uid
        occupants = [
            Occupant(
                self.allocated(each.pod), claims.held.get(other, each.counts),
                going=other in claims.ending or each.leaves)
            for other, each in members.items()
            if other != uid and each.active
        ]  # fmt: skip
        reserved = [counts for other, counts in claims.held.items() if other != uid and other not in members]
        answer = critical.preemption(pod, refusal, node, occupants, reserved)
        if answer is None:
            return None, claims.without_claim(uid)
        victims = (each.metadata.uid for each in answer.victims)
        return answer, claims.with_claim(uid, fit.neighbour(pod, node.gates), victims)

    def resources_differ(self, old: Pod, new: Pod) -> bool:
        gates = self._node().gates
        before = {each.name: each.resources for each in resizable(old, gates)}
        after = {each.name: each.resources for each in resizable(new, gates)}
        return before != after or (old.spec.resources or NOTHING) != (new.spec.resources or NOTHING)

    def rebuild(self, pods: Collection[Pod], seen: Mapping[str, rebuild.Seen]) -> None:
        """After damage the runtime and the last status speak for pods that are in no file (R-091)."""
        machine = self._node().machine
        for checkpoint, read in ((self._allocated, rebuild.promised), (self._actuated, rebuild.actuated)):
            if checkpoint.damage:
                found = {pod.metadata.uid: read(pod, seen.get(pod.metadata.uid, {}), machine) for pod in pods}
                checkpoint.restore({uid: resources for uid, resources in found.items() if resources is not None})


def others(pod: Pod, members: Mapping[str, Member], claims: Claims) -> list[Neighbour]:
    """What everyone else holds, or has a claim to."""
    held = {uid: each.counts for uid, each in members.items() if each.active} | dict(claims.held)
    return [each for uid, each in held.items() if uid != pod.metadata.uid]

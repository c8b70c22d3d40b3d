"""New pods: admitted at their allocated size, or rejected (spec 5.3).

A batch is decided in order, each pod that is admitted counting at once for those that follow; nothing of it is true
before the caller has written `changes` and put `draft` in place.
"""

import msgspec

from podfit.api.core.pods import Pod
from podfit.decide import fit
from podfit.decide.critical import Preempts
from podfit.decide.fit import Deferred, NodeView
from podfit.decide.overlay import PodResources, resources_of
from podfit.kubelet.allocation.claims import Claims
from podfit.kubelet.allocation.ledger import TERMINAL, Ledger, Member, others


class Admitted(msgspec.Struct, frozen=True):
    """`pod` is the allocated one."""

    pod: Pod


class Rejected(msgspec.Struct, frozen=True):
    """The pod goes to phase Failed with this reason and `Pod was rejected: ` + message."""

    pod: Pod
    reason: str
    message: str


class Unsaved(msgspec.Struct, frozen=True):
    """There is room, but the promise could not be written; `message` says why. Nothing of the pod was taken in."""

    pod: Pod
    message: str


class Preempting(msgspec.Struct, frozen=True):
    """A critical pod that is not taken in yet: others are to end first, or are ending already."""

    pod: Pod
    preempts: Preempts


Answer = Admitted | Rejected | Unsaved | Preempting


class Batch(msgspec.Struct):
    """`draft` are the members, `changes` the promises, `claims` and `node` what the batch has led to so far."""

    ledger: Ledger
    node: NodeView
    draft: dict[str, Member]
    claims: Claims
    changes: dict[str, PodResources] = msgspec.field(default_factory=dict)

    def admit(self, pod: Pod) -> Answer:
        """Decide on one pod. One that is over, or on its way out, is not asked whether it fits.

        A pod that had a promise before the kubelet was restarted keeps it whatever its neighbours count for (R-172):
        the last status of a neighbour may still show a size that it gave up, or a pod that ended, meanwhile.
        """
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is None and pod.status.phase not in TERMINAL:
            allocated = self.ledger.allocated(pod)
            kept = self.ledger.has_promised(pod)
            verdict = fit.admit(allocated, self.node, () if kept else others(pod, self.draft, self.claims))
            if isinstance(verdict, Deferred):
                return self._refused(pod, allocated, verdict)
            self.node = fit.occupied(allocated, self.node)
            self.changes[uid] = resources_of(allocated, self.node.gates)
        self.claims = self.claims.without_claim(uid)
        self.draft[uid] = self.ledger.member(pod)
        return Admitted(pod)

    def _refused(self, pod: Pod, allocated: Pod, verdict: Deferred) -> Preempting | Rejected:
        preempts, self.claims = self.ledger.preemption(allocated, verdict, self.node, self.draft, self.claims)
        self.draft.pop(pod.metadata.uid, None)
        return Preempting(pod, preempts) if preempts else Rejected(pod, verdict.reason, verdict.message)

    def unsaved(self, answer: Answer, message: str) -> Answer:
        """The answer when `changes` could not be written: only what had been promised before is admitted."""
        uid = answer.pod.metadata.uid
        if not isinstance(answer, Admitted) or uid not in self.changes or self.ledger.has_promised(answer.pod):
            return answer
        self.draft.pop(uid)
        return Unsaved(answer.pod, message)

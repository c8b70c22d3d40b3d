"""Pod admission on a node: new pods are admitted at their allocated size, or rejected (R-089, R-172).

A batch is decided oldest first, each pod that is admitted counting at once for those that follow.
"""

from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.draft import Draft
from podfit.decide.node.effects import Admitted, Answer, Preempting, Rejected, Unsaved
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.spare import REFUSED, refusal
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import NOBODY
from podfit.decide.resize.verdict import Deferred


def admit_all(draft: Draft, pods: tuple[Pod, ...]) -> list[Answer]:
    """Room is kept for every pod of the batch that was allocated some before, whichever comes first."""
    batch = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.uid))
    before = draft.state.allocated
    for pod in batch:
        if pod.metadata.uid in before:
            draft.state = draft.state.with_pod(draft.state.entry(pod))
    return [_admit(draft, pod, before.get(pod.metadata.uid)) for pod in batch]


def _admit(draft: Draft, pod: Pod, before: PodResources | None) -> Answer:
    """A pod that is over, or on its way out, is not asked whether it fits.

    A pod that was allocated something before the kubelet was restarted keeps it, whatever its neighbours count for
    (R-172): the last status of a neighbour may still show a size that it gave up, or a pod that ended, meanwhile. It is
    admitted even while nothing can be persisted.
    """
    uid, unsaved = pod.metadata.uid, False
    if is_active(pod):
        allocated = draft.state.allocated_pod(pod)
        others = draft.state.others(uid) if before is None else NOBODY
        if before is None and (unfit := refusal(pod)):
            draft.state = draft.state.without_pod(uid)
            return Rejected(pod, REFUSED, unfit)
        verdict = verdicts.admit(allocated, draft.state.view, others)
        if isinstance(verdict, Deferred):
            return _refused(draft, pod, allocated, verdict)
        unsaved = bool(draft.unsaved) and before is None
        if not unsaved:
            draft.occupy(allocated)
            draft.allocate(allocated)
    if unsaved:
        return Unsaved(pod, draft.unsaved)
    draft.release_reservation(uid)
    draft.state = draft.state.with_pod(draft.state.entry(pod))
    return Admitted(pod)


def _refused(draft: Draft, pod: Pod, allocated: Pod, verdict: Deferred) -> Preempting | Rejected:
    preempts = draft.preemption(allocated, verdict)
    draft.state = draft.state.without_pod(pod.metadata.uid)
    return Preempting(pod, preempts) if preempts else Rejected(pod, verdict.reason, verdict.message)

"""The retry of pending resizes in queue order; one that is granted counts at once for the rest (R-104 to R-112).

A resize that cannot be granted does not hold up a smaller one behind it (R-108). An infeasible one is not tried again
(R-112).
"""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.decide.node.draft import NORMAL, WARNING, Draft
from podfit.decide.node.effects import Count, RecordEvent, Sync, WakeUp
from podfit.decide.node.messages import details
from podfit.decide.node.state import NodeState
from podfit.decide.pod.resize_state import DEFERRED, IN_PROGRESS, INFEASIBLE, PENDING
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import Neighbour
from podfit.decide.resize.queue_order import QueueKey, increases, queue_key
from podfit.decide.resize.verdict import Deferred, Fits, Infeasible

UNSAVED = "CheckpointUnwritable"
"""Reason of a deferral that no room would end."""
RETRY_SOON = 30.0
RETRY_PERIOD = 180.0
SAVE_RETRY = 10.0
"""Seconds until the next try while nothing can be persisted: nobody tells when it can be again."""


def queued(state: NodeState, uids: Iterable[str]) -> tuple[str, ...]:
    """Those of the UIDs that are pods of the node, in the order in which their resizes are tried."""

    def key(uid: str) -> QueueKey:
        pod = state.pods[uid].pod
        return queue_key(pod, state.allocated_pod(pod), state.conditions.resize_state(pod).waits_since)

    return tuple(sorted((uid for uid in dict.fromkeys(uids) if uid in state.pods), key=key))


def enqueue(draft: Draft, uids: Iterable[str]) -> None:
    draft.state = replace(draft.state, queue=queued(draft.state, (*draft.state.queue, *uids)))


def try_all(draft: Draft, trigger: str) -> None:
    """Decide about everything that waits."""
    if not draft.state.sources_ready:
        draft.add(WakeUp(RETRY_SOON))
        return
    waiting = tuple(uid for uid in draft.state.queue if _still_waits(draft, uid, trigger))
    draft.state = replace(draft.state, queue=waiting)
    if waiting:
        draft.add(WakeUp(SAVE_RETRY if draft.unsaved else RETRY_PERIOD))


def verdict_of(state: NodeState, uid: str) -> Fits | Deferred | Infeasible:
    """The verdict on what the pod desires, beside what the others hold now. A pod that asks for no more than it was
    allocated takes no room from a reservation."""
    pod = state.pods[uid].pod
    allocated = state.allocated_pod(pod)
    if allocated is pod:
        return Fits()
    return verdicts.resize(pod, allocated, state.view, state.others(uid, reserved=increases(pod, allocated)))


def would_fit(state: NodeState, pod: Pod) -> bool:
    """Whether this version of a pod of the node would be granted now: what moves a burst asks before it does."""
    uid = pod.metadata.uid
    allocated = state.allocated_pod(pod)
    if uid not in state.pods or not state.sources_ready:
        return False
    return allocated is pod or isinstance(verdicts.resize(pod, allocated, state.view, state.others(uid)), Fits)


def shrank(old: Neighbour, new: Neighbour) -> bool:
    """Whether a pod gave up room that another may take (R-101)."""
    return any(new.requests.get(name, ZERO) < old.requests.get(name, ZERO) for name in ("cpu", "memory"))


def _still_waits(draft: Draft, uid: str, trigger: str) -> bool:
    """Decide about one resize. A pod that is over is allocated what it asks for, and neither takes room nor waits."""
    entry = draft.state.pods[uid]
    pod, active = entry.pod, entry.active
    if draft.state.allocated_pod(pod) is pod:
        _taken_back(draft, pod, trigger)
        return False
    verdict = verdict_of(draft.state, uid)
    if isinstance(verdict, Fits) and not draft.unsaved:
        _grant(draft, pod, trigger, active=active)
        return False
    refusal = Deferred(UNSAVED, draft.unsaved) if isinstance(verdict, Fits) else verdict
    preempts = None
    if isinstance(refusal, Infeasible):
        draft.release_reservation(uid)
    elif active and not draft.unsaved:
        preempts = draft.preemption(pod, refusal)
    _refuse(draft, pod, refusal, trigger, active=active)
    if preempts is not None:
        draft.preempt(preempts, by=uid)
    return active and isinstance(refusal, Deferred)


def _taken_back(draft: Draft, pod: Pod, trigger: str) -> None:
    """Nothing is pending any more: the pod desires what it was allocated (R-111)."""
    uid = pod.metadata.uid
    draft.release_reservation(uid)
    if draft.state.conditions.get(PENDING, uid) is not None:
        draft.state = replace(draft.state, conditions=draft.state.conditions.clear(PENDING, uid))
        draft.add(Sync(uid, trigger))


def _grant(draft: Draft, pod: Pod, trigger: str, *, active: bool) -> None:
    """The desired size is the allocated one now. A pod that is over has nothing in progress (R-094, R-095)."""
    uid, generation = pod.metadata.uid, pod.metadata.generation
    draft.allocate(pod)
    draft.release_reservation(uid)
    if active:
        draft.occupy(pod)
        draft.grow(pod)
    before = draft.state.conditions.get(PENDING, uid)
    conditions = draft.state.conditions.forget(uid)
    if active:
        conditions = conditions.set(IN_PROGRESS, uid, generation=generation, now=draft.now)
    entry = replace(draft.state.entry(pod), deleted=draft.state.pods[uid].deleted)
    draft.state = replace(draft.state.with_pod(entry), conditions=conditions, failing=draft.state.failing - {uid})
    text = details(pod, generation=generation)
    draft.add(RecordEvent(pod, NORMAL, "ResizeStarted", f"Pod resize started: {text}"))
    if before is not None and before.reason == DEFERRED:
        draft.add(Count("deferred_accepted", trigger))
    draft.add(Sync(uid, trigger))


def _refuse(draft: Draft, pod: Pod, verdict: Deferred | Infeasible, trigger: str, *, active: bool) -> None:
    """Set PodResizePending, but for a pod that is over (R-176).

    One event for each generation and reason, however often the resize is tried (R-098).
    """
    uid, generation = pod.metadata.uid, pod.metadata.generation
    reason = DEFERRED if isinstance(verdict, Deferred) else INFEASIBLE
    if isinstance(verdict, Infeasible):
        draft.add(Count("infeasible", verdict.detail))
    before = None
    if active:
        conditions = draft.state.conditions
        before = conditions.get(PENDING, uid)
        conditions = conditions.set(PENDING, uid, reason, verdict.message, generation=generation, now=draft.now)
        draft.state = replace(draft.state, conditions=conditions)
    is_new = before is None or (before.reason, before.observed_generation) != (reason, generation)
    if is_new:
        text = details(pod, generation=generation, error=verdict.message)
        draft.add(RecordEvent(pod, WARNING, f"Resize{reason}", f"Pod resize {verdict.reason}: {text}"))
    if is_new or (before is not None and before.message != verdict.message):
        draft.add(Sync(uid, trigger))

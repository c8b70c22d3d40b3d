"""`step`, the function of the node machine. The package says what states, events and effects are."""

from collections.abc import Collection
from datetime import datetime

from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.node import actuation, pending_resizes
from podfit.decide.node.admission import admit_all
from podfit.decide.node.draft import Draft
from podfit.decide.node.effects import Admitted, Effect, Forget, Preempting, Requested, Sync
from podfit.decide.node.events import (
    Actuated,
    ActuationDue,
    ActuationEnded,
    Event,
    MemoryMeasured,
    PodsAdded,
    PodsDeleted,
    PodsRemoved,
    PodsUpdated,
    Retry,
    SourcesReady,
    StatusGenerated,
    SyncStarted,
)
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import NOTHING, resizable
from podfit.decide.pod.resize_state import PENDING


def step(state: NodeState, event: Event, *, now: datetime, unsaved: str = "") -> tuple[NodeState, tuple[Effect, ...]]:  # noqa: C901  (a list of events)
    """The state after the event, and what to do, in order.

    `unsaved` says why `Persist` failed when this step was taken before: now it allocates nothing, and what would have
    been granted waits. The result holds only once `Persist`, when there is one, has succeeded.
    """
    draft = Draft(state, now, unsaved)
    match event:
        case PodsAdded(pods=pods):
            _added(draft, pods)
        case PodsUpdated(pods=pods):
            _updated(draft, pods)
        case PodsDeleted(uids=uids):
            _deleted(draft, uids)
        case PodsRemoved(uids=uids):
            draft.state = draft.state.without_pods(uids)
            draft.over(uids)
            draft.add(Forget(uids))
            _room_came_free(draft, "pods_removed")
        case StatusGenerated(uid=uid, status=status):
            _status(draft, uid, status)
        case SourcesReady():
            _sources_ready(draft)
        case Retry(trigger=trigger):
            _room_came_free(draft, trigger)
        case SyncStarted():
            actuation.sync_started(draft, event)
        case ActuationDue():
            actuation.due(draft, event)
        case MemoryMeasured():
            actuation.measured(draft, event)
        case Actuated(uid=uid, resources=resources):
            draft.state = draft.state.with_actuated(uid, resources)
        case ActuationEnded(pod=pod, error=error, outage=outage):
            actuation.ended(draft, pod, error, outage=outage)
    return draft.state, draft.effects()


def _added(draft: Draft, pods: tuple[Pod, ...]) -> None:
    answers = admit_all(draft, pods)
    for answer in answers:
        if isinstance(answer, Preempting):
            draft.preempt(answer.preempts, by=answer.pod.metadata.uid)
    admitted = [answer.pod for answer in answers if isinstance(answer, Admitted)]
    waiting = [pod.metadata.uid for pod in admitted if _adopt(draft, pod)]
    if waiting:
        pending_resizes.enqueue(draft, waiting)
        pending_resizes.try_all(draft, "pods_added")
    for answer in answers:
        draft.add(Admitted(draft.state.allocated_pod(answer.pod)) if isinstance(answer, Admitted) else answer)


def _adopt(draft: Draft, pod: Pod) -> bool:
    """Take over the conditions of an admitted pod; whether a resize of it waits."""
    if has_ended(pod):
        return False
    conditions = draft.state.conditions.adopt(pod)
    waits = draft.state.allocated_pod(pod) is not pod
    if not waits:
        conditions = conditions.clear(PENDING, pod.metadata.uid)
    draft.state = replace(draft.state, conditions=conditions)
    return waits


def _updated(draft: Draft, pods: tuple[Pod, ...]) -> None:
    changed = []
    for pod in pods:
        old = draft.state.pods.get(pod.metadata.uid)
        if old is None:
            continue
        entry = draft.state.entry(replace(pod, status=old.pod.status))
        draft.state = draft.state.with_pod(replace(entry, deleted=old.deleted))
        if _resources_differ(draft.state, old.pod, pod):
            draft.add(Requested(old.pod, pod))
            changed.append(pod.metadata.uid)
    if changed:
        pending_resizes.enqueue(draft, changed)
        pending_resizes.try_all(draft, "pod_updated")


def _resources_differ(state: NodeState, old: Pod, new: Pod) -> bool:
    gates = state.view.gates
    before = {container.name: container.resources for container in resizable(old, gates)}
    after = {container.name: container.resources for container in resizable(new, gates)}
    return before != after or (old.spec.resources or NOTHING) != (new.spec.resources or NOTHING)


def _deleted(draft: Draft, uids: Collection[str]) -> None:
    known = [uid for uid in uids if uid in draft.state.pods and not draft.state.pods[uid].deleted]
    for uid in known:
        draft.state = draft.state.with_pod(replace(draft.state.pods[uid], deleted=True))
    if known:
        draft.over(known, release=False)
        _room_came_free(draft, "pods_removed")


def _status(draft: Draft, uid: str, status: PodStatus) -> None:
    old = draft.state.pods.get(uid)
    if old is None:
        return
    new = replace(draft.state.entry(replace(old.pod, status=status)), deleted=old.deleted)
    draft.state = draft.state.with_pod(new)
    if not new.active:
        draft.over([uid])
    if old.active and not new.active:
        _room_came_free(draft, "pod_terminated")
    elif pending_resizes.shrank(old.counts, new.counts):
        _room_came_free(draft, "pod_resized")


def _sources_ready(draft: Draft) -> None:
    """Allocations of pods that are gone are dropped, and what was set aside for them is given back."""
    state = draft.state
    known = state.pods.keys() | state.reservations.held.keys()
    set_aside = {
        *(state.view.cpus.assigned if state.view.cpus else ()),
        *(state.view.memory.assigned if state.view.memory else ()),
    }
    gone = sorted((state.allocated.keys() | set_aside) - known)
    draft.state = replace(state.without_pods(gone), sources_ready=True)
    if gone:
        draft.over(gone)
        draft.add(Forget(tuple(gone)))
    if draft.state.queue:
        pending_resizes.try_all(draft, "pods_added")


def _room_came_free(draft: Draft, trigger: str) -> None:
    """First for the resizes that wait, then for the critical pods that are to be added again."""
    if draft.state.queue:
        pending_resizes.try_all(draft, trigger)
    for uid in draft.state.reservations.held:
        if uid not in draft.state.pods:
            draft.add(Sync(uid, trigger))

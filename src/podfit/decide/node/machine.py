"""`step`, the function of the node machine. The package says what states, events and effects are."""

from collections.abc import Collection
from datetime import datetime

from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.node import resizes
from podfit.decide.node.admission import admit_all
from podfit.decide.node.draft import NORMAL, WARNING, Draft
from podfit.decide.node.effects import Admitted, Effect, Forget, Preempting, Record, Requested, Sync
from podfit.decide.node.events import (
    ActuationEnded,
    Event,
    PodsAdded,
    PodsDeleted,
    PodsRemoved,
    PodsUpdated,
    Retry,
    SourcesReady,
    StatusGenerated,
    SyncStarted,
)
from podfit.decide.node.messages import details
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import NOTHING, resizable
from podfit.decide.pod.resize_state import ERROR, IN_PROGRESS, PENDING
from podfit.decide.resize import steps as resize


def step(state: NodeState, event: Event, *, now: datetime, unsaved: str = "") -> tuple[NodeState, tuple[Effect, ...]]:
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
            _sync_started(draft, event)
        case ActuationEnded(pod=pod, error=error):
            _actuation_ended(draft, pod, error)
    return draft.state, draft.effects()


def _added(draft: Draft, pods: tuple[Pod, ...]) -> None:
    answers = admit_all(draft, pods)
    for answer in answers:
        if isinstance(answer, Preempting):
            draft.preempt(answer.preempts, by=answer.pod.metadata.uid)
    admitted = [answer.pod for answer in answers if isinstance(answer, Admitted)]
    waiting = [pod.metadata.uid for pod in admitted if _adopt(draft, pod)]
    if waiting:
        resizes.enqueue(draft, waiting)
        resizes.try_all(draft, "pods_added")
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
        resizes.enqueue(draft, changed)
        resizes.try_all(draft, "pod_updated")


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
    elif resizes.shrank(old.counts, new.counts):
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
        resizes.try_all(draft, "pods_added")


def _room_came_free(draft: Draft, trigger: str) -> None:
    """First for the resizes that wait, then for the critical pods that are to be added again."""
    if draft.state.queue:
        resizes.try_all(draft, trigger)
    for uid in draft.state.reservations.held:
        if uid not in draft.state.pods:
            draft.add(Sync(uid, trigger))


def _sync_started(draft: Draft, event: SyncStarted) -> None:
    """PodResizeInProgress comes, stays, or goes with ResizeCompleted (R-146).

    A resize whose last actuation failed is not over, even if the records of its containers agree.
    """
    uid, conditions = event.pod.metadata.uid, draft.state.conditions
    allocated = draft.state.allocated_pod(event.pod)
    ongoing = uid in draft.state.failing or resize.in_progress(
        allocated, event.actuated, event.running, draft.state.view.gates
    )
    before = conditions.get(IN_PROGRESS, uid)
    if ongoing and before is None:
        generation = event.pod.metadata.generation
        conditions = conditions.set(IN_PROGRESS, uid, generation=generation, now=draft.now)
    elif ongoing:
        conditions = conditions.probed(IN_PROGRESS, uid, now=draft.now)
    elif before is not None:
        conditions = conditions.clear(IN_PROGRESS, uid)
        text = details(allocated, generation=before.observed_generation)
        draft.add(Record(event.pod, NORMAL, "ResizeCompleted", f"Pod resize completed: {text}"))
    draft.state = replace(draft.state, conditions=conditions)


def _actuation_ended(draft: Draft, pod: Pod, error: str) -> None:
    """When it failed, one event while the text is the same; the generation stays (R-121, R-141)."""
    uid, state = pod.metadata.uid, draft.state
    if not error:
        draft.state = replace(state, failing=state.failing - {uid})
        return
    before = state.conditions.get(IN_PROGRESS, uid)
    generation = before.observed_generation if before else pod.metadata.generation
    conditions = state.conditions.set(IN_PROGRESS, uid, ERROR, error, generation=generation, now=draft.now)
    draft.state = replace(state, failing=state.failing | {uid}, conditions=conditions)
    if before is None or (before.reason, before.message) != (ERROR, error):
        text = details(state.allocated_pod(pod), generation=generation, error=error)
        draft.add(Record(pod, WARNING, "ResizeError", f"Pod resize error: {text}"))

"""The actuation of a resize, from what runs to the last step: what restarts, what is changed in place, what is refused.

    ActuationDue ──▶ NoteRestarts                what starts anew is noted, so that it does even if the kubelet ends
                     StopForResize               what restarts is stopped first; then it is due again
                 ──▶ MeasureMemory ──▶ MemoryMeasured ──▶ Actuate, or an error
                 ──▶ Actuate ──▶ Actuated for each step, ActuationEnded

A sync asks in each of its rounds. Nearly always there is nothing to do, which is one event without an effect.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle.backoff import OUTAGE_SECONDS, RETRY_SECONDS
from podfit.decide.node.draft import NORMAL, WARNING, Draft
from podfit.decide.node.effects import Actuate, MeasureMemory, NoteRestarts, RecordEvent, StopForResize, SyncAgain
from podfit.decide.node.events import ActuationDue, MemoryMeasured, SyncStarted, Unreadable
from podfit.decide.node.messages import details
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.resize_state import ERROR, IN_PROGRESS
from podfit.decide.resize import steps as resize_steps
from podfit.decide.resize.memory_shrink import objection
from podfit.decide.resize.steps import CheckMemory, Step


def sync_started(draft: Draft, event: SyncStarted) -> None:
    """PodResizeInProgress comes, stays, or goes with ResizeCompleted (R-146).

    A resize whose last actuation failed is not over, even if the records of its containers agree.
    """
    uid, conditions = event.pod.metadata.uid, draft.state.conditions
    allocated = draft.state.allocated_pod(event.pod)
    ongoing = uid in draft.state.failing or resize_steps.in_progress(
        allocated, draft.state.actuated.get(uid, PodResources()), event.running, draft.state.view.gates
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
        draft.add(RecordEvent(event.pod, NORMAL, "ResizeCompleted", f"Pod resize completed: {text}"))
    draft.state = replace(draft.state, conditions=conditions)


def due(draft: Draft, event: ActuationDue) -> None:
    """What stops comes first (R-125, R-126): while a container that restarts still runs, its pod's limits stay."""
    pod, gates = event.pod, draft.state.view.gates
    staying = [name for name in event.running if name not in event.ending]
    restarting = resize_steps.restarts(pod, _actuated(draft, pod), staying, gates)
    _note(draft, event, {**event.again, **{name: event.running[name] for name in restarting}})
    if event.ending or restarting:
        draft.add(StopForResize(pod, event.ending, restarting))
        return
    if isinstance(event.cgroup, Unreadable):
        ended(draft, pod, event.cgroup.message)
        return
    match _steps(draft, event):
        case ():
            ended(draft, pod)
        case (CheckMemory(limits=limits), *_):
            draft.add(MeasureMemory(event, limits))
        case steps:
            draft.add(Actuate(pod, steps))


def measured(draft: Draft, event: MemoryMeasured) -> None:
    """Nothing at all is changed when one limit would come below usage (R-143)."""
    check, *steps = _steps(draft, event.due)
    assert isinstance(check, CheckMemory)
    refusal = objection(check.limits, event.usage) if event.usage is not None else ""
    if refusal:
        ended(draft, event.due.pod, refusal)
    else:
        draft.add(Actuate(event.due.pod, tuple(steps)))


def ended(draft: Draft, pod: Pod, error: str = "", *, outage: bool = False) -> None:
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
        draft.add(RecordEvent(pod, WARNING, "ResizeError", f"Pod resize error: {text}"))
    draft.add(SyncAgain(uid, OUTAGE_SECONDS if outage else RETRY_SECONDS))


def _note(draft: Draft, event: ActuationDue, restarting: Mapping[str, str]) -> None:
    """A note of an instance that runs, and is not to be stopped any more, would start it again after its own end."""
    noted, running = _actuated(draft, event.pod).restarting, event.running
    stays = {name for name, instance in noted.items() if name not in restarting and running.get(name) == instance}
    if stays or any(noted.get(name) != instance for name, instance in restarting.items()):
        ended = {name: instance for name, instance in noted.items() if name not in running}
        draft.add(NoteRestarts(event.pod, {**ended, **restarting}))


def _steps(draft: Draft, event: ActuationDue) -> tuple[Step, ...]:
    """None for a pod without a cgroup: it has not been started."""
    if event.cgroup is None or isinstance(event.cgroup, Unreadable):
        return ()
    machine = draft.state.view.machine
    actuated = _actuated(draft, event.pod)
    holding = resize_steps.holding(event.pod, actuated, event.containers, machine)
    return resize_steps.steps(event.pod, holding, event.running, event.cgroup, machine)


def _actuated(draft: Draft, pod: Pod) -> PodResources:
    return draft.state.actuated.get(pod.metadata.uid, PodResources())

"""The state of a pod's resize (deferred, infeasible, in progress, done), in the words of `plan`, `why` and `top`."""

from collections.abc import Sequence

from podfit.answers.ages import Age
from podfit.answers.sizes import Size, sizes_of
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.decide.node.room.annotation import gave
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.pod.resize_state import ResizeStage, ResizeState

SETTLED, DEFERRED, INFEASIBLE, IN_PROGRESS, FAILING, UNSEEN, UNSCHEDULED, ENDED = (
    "settled",
    "deferred",
    "infeasible",
    "in progress",
    "failing",
    "not seen yet",
    "not scheduled",
    "ended",
)

_STATES = {
    ResizeStage.PROPOSED: UNSEEN,
    ResizeStage.DEFERRED: DEFERRED,
    ResizeStage.INFEASIBLE: INFEASIBLE,
    ResizeStage.IN_PROGRESS: IN_PROGRESS,
    ResizeStage.ERROR: FAILING,
}


def state_of(pod: Pod, sizes: Sequence[Size], age: Age) -> tuple[str, PodCondition | None]:
    """Pending speaks before in progress, as both may stand; before 1.33 `status.resize` is all there is."""
    if has_ended(pod):
        return ENDED, None
    if not pod.spec.node_name:
        return UNSCHEDULED, None
    if not age.has_conditions and pod.status.resize:
        return _STATES.get(ResizeState.by_field(pod).stage, DEFERRED), None
    state = ResizeState.of(pod)
    if state.overtaken and all(size.agrees for size in sizes):
        state = ResizeState(progress=state.progress)
    if state.stage is ResizeStage.NONE:
        behind = age.has_conditions and pod.status.observed_generation < pod.metadata.generation
        return UNSEEN if behind and not all(size.agrees for size in sizes) else SETTLED, None
    if state.stage is ResizeStage.UNKNOWN:
        return DEFERRED if state.pending else IN_PROGRESS, state.condition
    return _STATES[state.stage], None if state.overtaken else state.condition


def gift_of(pod: Pod) -> str:
    """For whom the pod was shrunk, and by how much; empty when it was not, or has been resized since."""
    found = gave(pod)
    return f"shrunk to make room for {found.to}: {found.text}" if found else ""


def granted(pod: Pod, age: Age) -> Pod:
    """The pod at the size that its node has granted and can carry out: not at one that waits, was refused or fails."""
    state, _ = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
    return pod if state in (SETTLED, IN_PROGRESS) else allocated_form(pod, age.gates)


def waits(pod: Pod, age: Age) -> bool:
    """Whether it desires a size that its node has not granted, and may grant any moment."""
    state, _ = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
    return state in (DEFERRED, UNSEEN)

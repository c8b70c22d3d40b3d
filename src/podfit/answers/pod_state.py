"""The state of a pod's resize (deferred, infeasible, in progress, done), read off its status."""

from collections.abc import Sequence

from podfit.answers.ages import Age
from podfit.answers.sizes import Size, sizes_of
from podfit.answers.snapshot import ENDED as OVER
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.decide.node.room.annotation import gave
from podfit.decide.node.room.plan import allocated_form

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


def state_of(pod: Pod, sizes: Sequence[Size], age: Age) -> tuple[str, PodCondition | None]:
    """Pending speaks before in progress, as both may stand; before 1.33 `status.resize` is all there is."""
    if pod.status.phase in OVER:
        return ENDED, None
    if not pod.spec.node_name:
        return UNSCHEDULED, None
    conditions = {condition.type: condition for condition in pod.status.conditions}
    pending, progress = conditions.get("PodResizePending"), conditions.get("PodResizeInProgress")
    if not age.has_conditions and pod.status.resize:
        told = {"Deferred": DEFERRED, "Infeasible": INFEASIBLE, "InProgress": IN_PROGRESS, "Proposed": UNSEEN}
        return told.get(pod.status.resize, DEFERRED), None
    if pending is not None:
        return INFEASIBLE if pending.reason == "Infeasible" else DEFERRED, pending
    if progress is not None:
        return FAILING if progress.reason == "Error" else IN_PROGRESS, progress
    behind = age.has_conditions and pod.status.observed_generation < pod.metadata.generation
    return UNSEEN if behind and not all(size.agrees for size in sizes) else SETTLED, None


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

"""How a pod stands: its sizes side by side, its resize, and what troubles its containers.

Sizes are desired (spec), allocated (what the node set aside) and actual (what is enforced). A resize is deferred,
infeasible, in progress or done, in the words of `plan`, `why` and `top`. Problems of containers (waiting to restart,
not starting, killed) are told whatever their sizes.
"""

from collections.abc import Iterator, Sequence

import msgspec

from podfit.answers.facts.ages import Age
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.core.features import FeatureGates
from podfit.decide.node.room.annotation import gave
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.pod.allocated import NOTHING, resizable
from podfit.decide.pod.burst_ceiling import ranges_of
from podfit.decide.pod.resize_state import BURST, ResizeStage, ResizeState
from podfit.decide.resize.by_status import allocated as allocated_by_status

RESOURCES = ("cpu", "memory")


class Size(msgspec.Struct, frozen=True):
    """One amount in its three states; `container` is empty for the pod as a whole, an amount that is not set is empty.

    Limits are not allocated separately: `allocated` repeats what the node enforces of them.
    """

    container: str
    resource: str
    side: str
    desired: str
    allocated: str
    actual: str

    @property
    def agrees(self) -> bool:
        return self.desired == self.allocated == self.actual


def sizes_of(pod: Pod, gates: FeatureGates) -> Iterator[Size]:
    """The pod as a whole first when it has resources, then by container."""
    record = allocated_by_status(pod, gates)
    statuses = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    if pod.spec.resources is not None:
        allocated = (record.pod if record else None) or (pod.spec.resources if pod.spec.node_name else NOTHING)
        yield from _amounts("", pod.spec.resources, allocated, pod.status.resources or NOTHING)
    for container in resizable(pod, gates):
        status = statuses.get(container.name)
        actual = (status.resources if status else None) or NOTHING
        admitted = container.resources if pod.spec.node_name else NOTHING
        allocated = record.containers.get(container.name, admitted) if record else admitted
        yield from _amounts(container.name, container.resources, allocated, actual)


def _amounts(
    name: str, desired: ResourceRequirements, allocated: ResourceRequirements, actual: ResourceRequirements
) -> Iterator[Size]:
    for resource in RESOURCES:
        for side in ("requests", "limits"):
            three = [str(getattr(amounts, side).get(resource, "")) for amounts in (desired, allocated, actual)]
            if any(three):
                yield Size(name, resource, side, *three)


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


def bursts_of(pod: Pod) -> Iterator[str]:
    """Between what its node may move its limits by itself, and what it has moved (docs/burst.md)."""
    for name, between in ranges_of(pod).items():
        for resource, most in between.ceiling.items():
            yield f"its node may move the {resource} limit of {name} between {between.floor[resource]} and {most}"
    said = next((condition for condition in pod.status.conditions if condition.type == BURST), None)
    if said is not None and said.status == "True":
        yield f"moved, and the spec follows: {said.message}"


def granted(pod: Pod, age: Age) -> Pod:
    """The pod at the size that its node has granted and can carry out: not at one that waits, was refused or fails."""
    state, _ = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
    return pod if state in (SETTLED, IN_PROGRESS) else allocated_form(pod, age.gates)


def waits(pod: Pod, age: Age) -> bool:
    """Whether it desires a size that its node has not granted, and may grant any moment."""
    state, _ = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
    return state in (DEFERRED, UNSEEN)


STARTING = ("", "ContainerCreating", "PodInitializing")
"""Reasons to wait that are no trouble."""


def troubles(pod: Pod) -> Iterator[str]:
    """A line for each container of a pod that waits to be started again, cannot be started, or was killed."""
    if pod.metadata.deletion_timestamp:
        return
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in STARTING:
            why = ": ".join(filter(None, (waiting.reason, waiting.message)))
            yield f'container "{status.name}": {why}{_last(status)}'
        elif ran_out_of_memory(status):
            yield f'container "{status.name}" was killed: OOMKilled{_counted(status)}'


def ran_out_of_memory(status: ContainerStatus) -> bool:
    """Whether that is how it ended the last time."""
    ended = status.state.terminated or status.last_state.terminated
    return ended is not None and ended.reason == "OOMKilled"


def _last(status: ContainerStatus) -> str:
    """How one that has run ended."""
    ended = status.last_state.terminated
    if ended is None:
        return ""
    why = f"; it ended with {ended.reason or 'Error'} (exit code {ended.exit_code})"
    return why + (f": {ended.message.strip()}" if ended.message.strip() else "") + _counted(status)


def _counted(status: ContainerStatus) -> str:
    return f", {status.restart_count} restarts" if status.restart_count > 1 else ""

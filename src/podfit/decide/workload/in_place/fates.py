"""What is to become of a pod in a rollout in place, and how many may be restarted at once.

another size than a new pod would have   ToBeResized
its node has yet to grant or do it       Waits, with the seconds after which that is too long
it has the size, and its node says so    Finished: it counts as a pod of the new template from now on
infeasible, refused, waited too long     Replaced, as any rollout does it
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.core.durations import go_duration
from podfit.core.resources import CPU, MEMORY
from podfit.core.times import parse_time
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize.restart_policy import restarting
from podfit.decide.workload.in_place.asking import sized_as

OTHER_TEMPLATE = "its template differs in more than resources"
NO_RESTART = "the resize would restart a container, and no pod may be unavailable"


class ToBeResized(msgspec.Struct, frozen=True):
    """`wanted` is the pod at its new size; `restarts`: a resizePolicy restarts a container of it."""

    wanted: Pod
    restarts: bool


class Waits(msgspec.Struct, frozen=True):
    """For its node, `seconds` at most; None when only an event brings the next look."""

    seconds: float | None = None
    restarts: bool = False


class Finished(msgspec.Struct, frozen=True):
    pass


class Replaced(msgspec.Struct, frozen=True):
    why: str


Fate: TypeAlias = ToBeResized | Waits | Finished | Replaced


def fate_of(pod: Pod, admitted: Pod, *, deadline: float, now: datetime, refused: str = "") -> Fate:
    """`admitted` is what the API makes of a new pod today; `refused` why it would not resize this one to that."""
    wanted = sized_as(pod, admitted)
    if wanted is not pod:
        return (
            Replaced(f"the resize was refused: {refused}") if refused else ToBeResized(wanted, _restarts(wanted, pod))
        )
    if not pod.spec.node_name:
        return Finished()
    state, may_restart = ResizeState.of(pod), any(map(restarting, all_containers(pod.spec)))
    match state.stage:
        case ResizeStage.NONE:
            return Finished() if _seen(pod) else Waits(restarts=may_restart)
        case ResizeStage.INFEASIBLE:
            return Replaced(f"the resize is infeasible: {state.message}")
        case ResizeStage.DEFERRED | ResizeStage.ERROR:
            left = deadline - _waited(state, now)
            if left > 0:
                return Waits(left, may_restart)
            stage = state.stage.value.lower()
            return Replaced(f"the resize was {stage} for more than {go_duration(deadline)}: {state.message}")
    return Waits(restarts=may_restart)


def _restarts(wanted: Pod, pod: Pod) -> bool:
    for new, old in zip(all_containers(wanted.spec), all_containers(pod.spec), strict=True):
        changed = [
            name
            for name in (CPU, MEMORY)
            if (new.resources.requests.get(name), new.resources.limits.get(name))
            != (old.resources.requests.get(name), old.resources.limits.get(name))
        ]
        if restarting(old, changed):
            return True
    return False


def _seen(pod: Pod) -> bool:
    """Whether the node has looked at the present spec. One before 1.34 does not say; then its containers tell."""
    if pod.status.observed_generation:
        return pod.status.observed_generation >= pod.metadata.generation
    actual = {status.name: status.resources for status in pod.status.container_statuses}
    return all(
        actual.get(container.name) is not None and actual[container.name] == container.resources
        for container in pod.spec.containers
    )


def _waited(state: ResizeState, now: datetime) -> float:
    """Seconds since the node first said so."""
    since = state.condition.last_transition_time if state.condition else None
    return (now - parse_time(since)).total_seconds() if since else 0.0


class PodSteps(msgspec.Struct, frozen=True):
    """`resize` now; `finished` pods become pods of the new template; `kept` are the UIDs of all that are not
    `replaced`; `room` is how many more pods may become unavailable; `again` in seconds.
    """

    resize: tuple[ToBeResized, ...] = ()
    finished: tuple[Pod, ...] = ()
    kept: frozenset[str] = frozenset()
    replaced: tuple[Pod, ...] = ()
    room: int = 0
    again: float | None = None


def pod_steps(
    pods: Iterable[Pod], fates: Mapping[str, Fate], available: Callable[[Pod], bool], *, spare: int, most: int
) -> PodSteps:
    """For pods of old templates, the first to be served first; `fates` by UID.

    `most` may be unavailable, and `spare` more than are now. A resize that restarts a container counts; where none
    may be unavailable, its pod is replaced instead, after another has come. A pod that is not available anyway is
    restarted at once.
    """
    known = [(pod, available(pod), fates[pod.metadata.uid]) for pod in pods if pod.metadata.uid in fates]
    if most <= 0:
        known = [(pod, ready, Replaced(NO_RESTART) if _unbearable(ready, fate) else fate) for pod, ready, fate in known]
    spare -= sum(ready and isinstance(fate, Waits) and fate.restarts for _, ready, fate in known)
    resizes = list[ToBeResized]()
    for _, ready, fate in known:
        if isinstance(fate, ToBeResized) and (not _unbearable(ready, fate) or spare > 0):
            spare -= _unbearable(ready, fate)
            resizes.append(fate)
    waits = (fate.seconds for *_, fate in known if isinstance(fate, Waits) and fate.seconds is not None)
    return PodSteps(
        resize=tuple(resizes),
        finished=tuple(pod for pod, _, fate in known if isinstance(fate, Finished)),
        kept=frozenset(pod.metadata.uid for pod, _, fate in known if not isinstance(fate, Replaced)),
        replaced=tuple(pod for pod, _, fate in known if isinstance(fate, Replaced)),
        room=spare,
        again=min(waits, default=None),
    )


def _unbearable(available: bool, fate: Fate) -> bool:
    """Whether it makes a pod unavailable for a while."""
    return available and isinstance(fate, ToBeResized) and fate.restarts

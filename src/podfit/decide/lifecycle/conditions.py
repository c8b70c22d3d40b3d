"""The pod's standard conditions, and their order in the list.

conditions of others · podfit.dev/Spare, of pods on spare capacity · DisruptionTarget, when the node ends the pod ·
PodResizePending · PodResizeInProgress · podfit.dev/Burst · PodReadyToStartContainers · Initialized · Ready ·
ContainersReady · PodScheduled
"""

from collections.abc import Iterable, Sequence

import msgspec

from podfit.api.core.v1.pods.aggregate import sidecar_names, sidecars
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.phase import ENDED, FAILED, SUCCEEDED
from podfit.api.core.v1.pods.types import PodCondition, PodSpec, PodStatus
from podfit.core.times import format_time
from podfit.decide.lifecycle.facts import StatusInput
from podfit.decide.pod.resize_state import BURST
from podfit.decide.pod.resize_state import CONDITIONS as RESIZE
from podfit.decide.pod.spare import CONDITION as SPARE
from podfit.decide.pod.spare import REASON, is_spare, refusal, told

BY_KUBELET = "TerminationByKubelet"
DISRUPTION = "DisruptionTarget"
STANDARD = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class _Finding(msgspec.Struct, frozen=True):
    """A condition without its times."""

    holds: bool
    reason: str = ""
    message: str = ""


def conditions(
    facts: StatusInput, phase: str, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]
) -> tuple[PodCondition, ...]:
    """`phase` is what the containers amount to, which the reported one may still lag behind."""
    disrupted = (DISRUPTION,) if facts.failure is not None and facts.failure.disruption else ()
    spec, ours = facts.allocated.spec, (*disrupted, *RESIZE, BURST, *STANDARD)
    foreign = tuple(condition for condition in facts.pod.status.conditions if condition.type not in ours)
    over = facts.ended and not facts.observed.anything_runs
    resizes = () if over or phase in ENDED else (*facts.resize_conditions, *facts.burst_conditions)
    containers = _containers_ready(spec, phase, init, regular)
    findings = (
        _Finding(facts.observed.sandbox_ready),
        _initialized(spec, phase, init, regular),
        _ready(spec, containers, foreign),
        containers,
        _Finding(True),
    )
    lent: tuple[PodCondition, ...] = ()
    if is_spare(facts.allocated) and not refusal(facts.allocated):
        foreign = tuple(condition for condition in foreign if condition.type != SPARE)
        lent = (_dated(facts, SPARE, _Finding(True, REASON, told(facts.allocated))),)
    standard = (_dated(facts, kind, finding) for kind, finding in zip(STANDARD, findings, strict=True))
    target = (_dated(facts, DISRUPTION, _disruption(facts)) for _ in disrupted)
    return (*foreign, *lent, *target, *resizes, *standard)


def keeping_foreign(status: PodStatus, known: PodStatus) -> PodStatus:
    """`status` with the conditions that others have written meanwhile, as `known` has them, and without those gone."""
    ours = (*RESIZE, BURST, *STANDARD)
    own = tuple(condition for condition in status.conditions if condition.type in ours or _is_ours(condition))
    taken = {condition.type for condition in own}
    foreign = tuple(condition for condition in known.conditions if condition.type not in (*ours, *taken))
    conditions_ = (*foreign, *own)
    return status if conditions_ == status.conditions else msgspec.structs.replace(status, conditions=conditions_)


def _is_ours(condition: PodCondition) -> bool:
    return (condition.type, condition.reason) in ((DISRUPTION, BY_KUBELET), (SPARE, REASON))


def _disruption(facts: StatusInput) -> _Finding:
    return _Finding(True, BY_KUBELET, facts.failure.disruption if facts.failure is not None else "")


def _dated(facts: StatusInput, kind: str, finding: _Finding) -> PodCondition:
    """The transition time moves with the status only."""
    status = "True" if finding.holds else "False"
    known = (*facts.previous.conditions, *facts.pod.status.conditions)
    before = next((condition for condition in known if condition.type == kind), None)
    kept = before.last_transition_time if before is not None and before.status == status else None
    return PodCondition(
        type=kind,
        status=status,
        reason=finding.reason,
        message=finding.message,
        observed_generation=facts.pod.metadata.generation,
        last_transition_time=kept or format_time(facts.now),
    )


def _initialized(
    spec: PodSpec, phase: str, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]
) -> _Finding:
    if phase == SUCCEEDED:
        return _Finding(True, "PodCompleted")
    if any(status.state.running or status.state.terminated or status.last_state.terminated for status in regular):
        return _Finding(True)
    lasting = sidecar_names(spec)
    incomplete = [status.name for status in init if not (status.started if status.name in lasting else status.ready)]
    if not incomplete:
        return _Finding(True)
    return _Finding(False, "ContainersNotInitialized", f"containers with incomplete status: {_listed(incomplete)}")


def _containers_ready(
    spec: PodSpec, phase: str, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]
) -> _Finding:
    if phase == SUCCEEDED:
        return _Finding(False, "PodCompleted")
    if phase == FAILED:
        return _Finding(False, "PodFailed")
    ready = {status.name for status in (*init, *regular) if status.ready}
    unready = [container.name for container in (*sidecars(spec), *spec.containers) if container.name not in ready]
    if not unready:
        return _Finding(True)
    return _Finding(False, "ContainersNotReady", f"containers with unready status: {_listed(unready)}")


def _ready(spec: PodSpec, containers: _Finding, foreign: Iterable[PodCondition]) -> _Finding:
    """ContainersReady, and every readiness gate that the pod names."""
    if not containers.holds:
        return containers
    known = {condition.type: condition for condition in foreign}
    problems = []
    for gate in spec.readiness_gates:
        name, held = gate.condition_type, known.get(gate.condition_type)
        if held is None:
            problems.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif held.status != "True":
            problems.append(f'the status of pod readiness gate "{name}" is not "True", but {held.status}')
    return _Finding(False, "ReadinessGatesNotReady", ", ".join(problems)) if problems else _Finding(True)


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"

"""The `v1.PodStatus` of a pod, made from facts, and its phase.

    generate(facts) -> PodStatus          the status as it should stand in the API now
    rejected(pod, reason, message, now)   the status of a pod that was not admitted

Pending    something has not started yet
Running    everything was started; something runs, or will again
Succeeded  everything ended well and nothing will be started again
Failed     something ended badly and nothing will be started again
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.phase import ENDED, FAILED, SUCCEEDED
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import HostIP, Pod, PodIP, PodSpec, PodStatus
from podfit.core.times import format_time
from podfit.decide.lifecycle.conditions import conditions
from podfit.decide.lifecycle.container_statuses import container_statuses, ephemeral_container_statuses, was_never_there
from podfit.decide.lifecycle.facts import SandboxStatus, StatusInput
from podfit.decide.resize.reported_status import pod_allocated, pod_resources


def generate(facts: StatusInput, *, freed: bool = False) -> PodStatus:
    """The status as it should stand in the API now.

    A terminal phase is reported once nothing runs any more and the sandbox is down, as upstream's status manager delays
    it; the conditions say it before. With `freed` the sandbox does not count: it holds no room. A pod never leaves a
    terminal phase.
    """
    init, regular = container_statuses(facts, init=True), container_statuses(facts, init=False)
    amounts_to = _phase(facts, init, regular)
    stands = facts.observed.anything_runs or (facts.observed.sandbox_stands and not freed)
    lags = amounts_to in ENDED and stands
    phase = facts.previous.phase or "Pending" if lags else amounts_to
    reason, message = _failure(facts) if phase == FAILED else ("", "")
    known, pod, ips = facts.previous, facts.pod, _pod_ips(facts)
    return PodStatus(
        observed_generation=max(known.observed_generation, pod.metadata.generation),
        phase=phase,
        conditions=conditions(facts, _shown(facts, amounts_to, regular), init, regular),
        reason=reason,
        message=message,
        host_ip=facts.node_ip,
        host_ips=(HostIP(ip=facts.node_ip),),
        pod_ip=ips[0].ip if ips else "",
        pod_ips=ips,
        start_time=known.start_time or pod.status.start_time or format_time(facts.now),
        init_container_statuses=init,
        container_statuses=regular,
        ephemeral_container_statuses=ephemeral_container_statuses(facts),
        qos_class=pod.status.qos_class,
        allocated_resources=dict(pod_allocated(facts.allocated, facts.machine)) if _reports_pod_level(facts) else {},
        resources=_resources(facts, phase),
    )


def rejected(pod: Pod, reason: str, message: str, now: datetime) -> PodStatus:
    """The status of a pod that this node did not admit."""
    return PodStatus(
        observed_generation=pod.metadata.generation,
        phase=FAILED,
        reason=reason,
        message=f"Pod was rejected: {message}",
        start_time=pod.status.start_time or format_time(now),
        qos_class=pod.status.qos_class,
    )


def _phase(facts: StatusInput, init: Sequence[ContainerStatus], regular: Sequence[ContainerStatus]) -> str:
    if facts.previous.phase in ENDED:
        return facts.previous.phase
    if facts.failure is not None:
        return FAILED
    over = facts.ended and not facts.observed.anything_runs
    return phase_of(facts.allocated.spec, init, regular, ended=over, again=facts.observed.starting_again)


def _shown(facts: StatusInput, phase: str, regular: Sequence[ContainerStatus]) -> str:
    """What the conditions go by: a pod that was ended before all of it had begun stays as unready as it was."""
    never = facts.ended and facts.failure is None and any(was_never_there(status) for status in regular)
    return "Pending" if never and phase == FAILED else phase


def _failure(facts: StatusInput) -> tuple[str, str]:
    """Why it failed, if not by its containers alone."""
    told = facts.failure or facts.previous
    return told.reason, told.message


def _pod_ips(facts: StatusInput) -> tuple[PodIP, ...]:
    """An address once known is kept to the end. On the host's network it is the node's, which the runtime leaves to us
    to say.
    """
    sandbox = facts.observed.status
    if facts.allocated.spec.host_network or (sandbox is not None and sandbox.host_network):
        return (PodIP(ip=facts.node_ip),)
    return tuple(PodIP(ip=ip) for ip in sandbox.ips) if sandbox and sandbox.ips else facts.previous.pod_ips


def addressed(pod: Pod, sandbox: SandboxStatus | None, node_ip: str) -> Pod:
    """The pod with the addresses that its sandbox has, which the API may not have been told yet."""
    if sandbox is None:
        return pod
    ips = (node_ip,) if sandbox.host_network else sandbox.ips
    status = pod.status
    if tuple(known.ip for known in status.pod_ips) == ips and status.host_ip:
        return pod
    told = replace(
        status,
        pod_ip=ips[0] if ips else "",
        pod_ips=tuple(PodIP(ip=ip) for ip in ips),
        host_ip=status.host_ip or node_ip,
        host_ips=status.host_ips or (HostIP(ip=node_ip),),
    )
    return replace(pod, status=told)


def _resources(facts: StatusInput, phase: str) -> ResourceRequirements | None:
    """Pod-level resources, reported for every pod (R-159)."""
    if not _reports_pod_level(facts):
        return None
    values = facts.pod_values if phase == "Running" else None
    return pod_resources(facts.allocated, facts.actuated, values, facts.machine, facts.previous.resources)


def _reports_pod_level(facts: StatusInput) -> bool:
    return facts.machine.gates["InPlacePodLevelResourcesVerticalScaling"]


def phase_of(
    spec: PodSpec,
    init: Iterable[ContainerStatus],
    regular: Iterable[ContainerStatus],
    *,
    ended: bool,
    again: Collection[str] = (),
) -> str:
    """The phase that the containers amount to. `ended`: restart policies no longer count, nor do the containers that
    start `again` whatever they say. Sidecars decide nothing.
    """
    states, initial = list(regular), {status.name: status for status in init}
    if any(
        _failed_for_good(spec, container, initial) for container in spec.init_containers if not is_sidecar(container)
    ):
        return FAILED
    running = [status for status in states if status.state.running]
    stopped = [status for status in states if _has_ended(status)]
    if ended:
        return SUCCEEDED if stopped and all(_ended_well(status) for status in states) else FAILED
    if len(running) + len(stopped) < len(states) or not states:
        return "Pending"
    declared = {container.name: container for container in spec.containers}
    if running or any(
        status.name in again or starts_again(spec, declared[status.name], _exit_code(status)) for status in stopped
    ):
        return "Running"
    return SUCCEEDED if all(_ended_well(status) for status in stopped) else FAILED


def _has_ended(status: ContainerStatus) -> bool:
    """Ended at least once, be it waiting for its next start."""
    return bool(status.state.terminated or (status.state.waiting and status.last_state.terminated))


def _ended_well(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0


def _exit_code(status: ContainerStatus) -> int:
    """The exit code of its last end."""
    over = status.state.terminated or status.last_state.terminated
    return over.exit_code if over is not None else 0


def _failed_for_good(spec: PodSpec, container: Container, statuses: Mapping[str, ContainerStatus]) -> bool:
    status = statuses.get(container.name)
    over = status.state.terminated if status is not None else None
    return over is not None and over.exit_code != 0 and not starts_again(spec, container, over.exit_code)

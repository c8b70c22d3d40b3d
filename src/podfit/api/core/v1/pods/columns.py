"""Columns of `kubectl get pods`. STATUS is no field of the pod: it is the most telling thing its containers report."""

from typing import Any

from podfit.api.core.v1.pods.aggregate import sidecar_names
from podfit.api.core.v1.pods.container_status import ContainerStateTerminated, ContainerStatus
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.columns import AGE, NAME, NONE, age, since, wide
from podfit.api.meta.resource_info import Column

POD = (
    NAME,
    Column("Ready", description="Containers that are ready, of all that should be."),
    Column("Status", description="What the pod is doing, or what keeps it from it."),
    Column("Restarts", description="How often its containers were restarted, and when last."),
    AGE,
    wide("IP", "Address of the pod."),
    wide("Node", "The node it is bound to."),
    wide("Nominated Node", "The node where room is being made for it."),
    wide("Readiness Gates", "Extra conditions that hold, of those asked for."),
)

_ENDED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_row(pod: Pod, now: str) -> list[Any]:
    status = pod.status
    address = status.pod_ips[0].ip if status.pod_ips else status.pod_ip
    return [
        pod.metadata.name,
        f"{_ready(pod)}/{_expected(pod)}",
        pod_status(pod),
        _restarts(pod, now),
        age(pod, now),
        address or NONE,
        pod.spec.node_name or NONE,
        status.nominated_node_name or NONE,
        _gates(pod),
    ]


def pod_row_conditions(pod: Pod) -> list[dict[str, str]]:
    """What a table says of the row of a pod that has ended, so that clients may leave it out."""
    message = _ENDED.get(pod.status.phase)
    if message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": pod.status.phase, "message": message}]


def pod_status(pod: Pod) -> str:
    """`Running`, `Init:0/1`, `CrashLoopBackOff`, `Terminating`, …"""
    going = pod.metadata.deletion_timestamp is not None
    if going and pod.status.reason == "NodeLost":
        return "Unknown"
    if going and not has_ended(pod):
        return "Terminating"
    initializing = _initializing(pod)
    if initializing and not _holds(pod, "Initialized"):
        return initializing
    return _of_containers(pod, initializing or _of_pod(pod))


def _of_pod(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "SchedulingGated":
            return "SchedulingGated"
    return pod.status.reason or pod.status.phase


def _holds(pod: Pod, sort: str) -> bool:
    return any(condition.type == sort and condition.status == "True" for condition in pod.status.conditions)


def _done(status: ContainerStatus, sidecars: frozenset[str]) -> bool:
    """Whether what comes after this init container may begin."""
    return _succeeded(status) or bool(status.name in sidecars and status.started)


def _succeeded(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0


def _looked_at(pod: Pod) -> tuple[ContainerStatus, ...]:
    """Init containers up to the first that is not through; what is told of later ones does not count."""
    sidecars, initial = sidecar_names(pod.spec), pod.status.init_container_statuses
    waits = next((index for index, status in enumerate(initial) if not _done(status, sidecars)), len(initial))
    return initial[: waits + 1]


def _initializing(pod: Pod) -> str:
    """What the first init container that is not through says; empty when all are."""
    sidecars = sidecar_names(pod.spec)
    for index, status in enumerate(pod.status.init_container_statuses):
        state = status.state
        if _done(status, sidecars):
            continue
        if state.terminated is not None:
            return f"Init:{_ended(state.terminated)}"
        if state.waiting is not None and state.waiting.reason not in ("", "PodInitializing"):
            return f"Init:{state.waiting.reason}"
        return f"Init:{index}/{len(pod.spec.init_containers)}"
    return ""


def _ended(state: ContainerStateTerminated) -> str:
    return state.reason or (f"Signal:{state.signal}" if state.signal else f"ExitCode:{state.exit_code}")


def _of_containers(pod: Pod, otherwise: str) -> str:
    """The first container that has something to say; one that runs on beside completed ones keeps the pod running."""
    reason, running = otherwise, False
    for status in reversed(pod.status.container_statuses):
        state = status.state
        if state.waiting is not None and state.waiting.reason:
            reason = state.waiting.reason
        elif state.terminated is not None:
            reason = _ended(state.terminated)
        elif status.ready and state.running is not None:
            running = True
    if reason == "Completed" and running:
        return "Running" if _holds(pod, "Ready") else "NotReady"
    return reason


def _expected(pod: Pod) -> int:
    return len(pod.spec.containers) + len(sidecar_names(pod.spec))


def _ready(pod: Pod) -> int:
    sidecars = sidecar_names(pod.spec)
    ready = sum(
        bool(status.name in sidecars and status.started and status.ready) and not _succeeded(status)
        for status in _looked_at(pod)
    )
    if _initializing(pod) and not _holds(pod, "Initialized"):
        return ready
    return ready + sum(status.ready and status.state.running is not None for status in pod.status.container_statuses)


def _restarts(pod: Pod, now: str) -> str:
    """While initialising those of init containers count, afterwards those of sidecars and regular ones."""
    sidecars = sidecar_names(pod.spec)
    initial = _looked_at(pod)
    if _initializing(pod) and not _holds(pod, "Initialized"):
        counted = initial
    else:
        counted = (
            *(container_status for container_status in initial if container_status.name in sidecars),
            *pod.status.container_statuses,
        )
    total = sum(status.restart_count for status in counted)
    ended = [
        status.last_state.terminated.finished_at or "" for status in counted if status.last_state.terminated is not None
    ]
    last = max(ended, default="")
    return f"{total} ({since(last, now)} ago)" if total and last else str(total)


def _gates(pod: Pod) -> str:
    gates = pod.spec.readiness_gates
    holding = sum(_holds(pod, gate.condition_type) for gate in gates)
    return f"{holding}/{len(gates)}" if gates else NONE

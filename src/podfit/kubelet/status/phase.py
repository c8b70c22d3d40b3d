"""The phase of a pod, from the states of its containers.

Pending    something has not started yet
Running    everything was started; something runs, or will again
Succeeded  everything ended well and nothing will be started again
Failed     something ended badly and nothing will be started again
"""

from collections.abc import Iterable, Mapping

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import PodSpec


def phase_of(spec: PodSpec, init: Iterable[ContainerStatus], regular: Iterable[ContainerStatus], *, ended: bool) -> str:
    """The phase that the containers amount to. `ended`: restart policies no longer count. Sidecars decide nothing."""
    states, initial = list(regular), {status.name: status for status in init}
    if any(
        _failed_for_good(spec, container, initial) for container in spec.init_containers if not is_sidecar(container)
    ):
        return "Failed"
    running = [status for status in states if status.state.running]
    stopped = [status for status in states if _has_ended(status)]
    if ended:
        return "Succeeded" if stopped and all(_ended_well(status) for status in states) else "Failed"
    if len(running) + len(stopped) < len(states) or not states:
        return "Pending"
    declared = {container.name: container for container in spec.containers}
    if running or any(starts_again(spec, declared[status.name], _exit_code(status)) for status in stopped):
        return "Running"
    return "Succeeded" if all(_ended_well(status) for status in stopped) else "Failed"


def _has_ended(status: ContainerStatus) -> bool:
    """Ended at least once, be it waiting for its next start."""
    return bool(status.state.terminated or (status.state.waiting and status.last_state.terminated))


def _ended_well(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0


def _exit_code(status: ContainerStatus) -> int:
    """Of its last end."""
    over = status.state.terminated or status.last_state.terminated
    return over.exit_code if over is not None else 0


def _failed_for_good(spec: PodSpec, container: Container, statuses: Mapping[str, ContainerStatus]) -> bool:
    status = statuses.get(container.name)
    over = status.state.terminated if status is not None else None
    return over is not None and over.exit_code != 0 and not starts_again(spec, container, over.exit_code)

"""Where a pod is in its life, from the states of its containers.

    Pending    something has not started yet
    Running    everything was started; something runs, or will again
    Succeeded  everything ended well and nothing will be started again
    Failed     something ended badly and nothing will be started again
"""

from collections.abc import Iterable, Mapping

from podfit.api.core.container_status import ContainerStatus
from podfit.api.core.pods import PodSpec
from podfit.decide.overlay import is_sidecar

TERMINAL = ("Succeeded", "Failed")


def phase_of(
    spec: PodSpec, init: Iterable[ContainerStatus], regular: Iterable[ContainerStatus], *, ended: bool
) -> str:
    """The phase that the containers amount to. `ended`: restart policies no longer count. Sidecars decide nothing."""
    states = list(regular)
    initial = {each.name: each for each in init}
    if spec.restart_policy == "Never" and any(_failed(initial, each.name) for each in spec.init_containers
                                              if not is_sidecar(each)):  # fmt: skip
        return "Failed"
    running = [each for each in states if each.state.running]
    stopped = [each for each in states if _has_ended(each)]
    if ended:
        return "Succeeded" if stopped and all(_ended_well(each) for each in states) else "Failed"
    if len(running) + len(stopped) < len(states) or not states:
        return "Pending"
    if running or spec.restart_policy in ("Always", ""):
        return "Running"
    if all(_ended_well(each) for each in stopped):
        return "Succeeded"
    return "Failed" if spec.restart_policy == "Never" else "Running"


def _has_ended(status: ContainerStatus) -> bool:
    """Ended at least once, be it waiting for its next start."""
    return bool(status.state.terminated or (status.state.waiting and status.last_state.terminated))


def _ended_well(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0


def _failed(statuses: Mapping[str, ContainerStatus], name: str) -> bool:
    status = statuses.get(name)
    return bool(status and status.state.terminated and status.state.terminated.exit_code)

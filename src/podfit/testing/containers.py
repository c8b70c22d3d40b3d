"""The containers of simulated nodes, as a test moves them: one ends, or its readiness probe fails."""

from collections.abc import Sequence

from podfit.api.core.v1.pods.aggregate import all_containers, sidecar_names
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.simulated import SimulatedRuntime


def end(runtimes: Sequence[SimulatedRuntime], pod: Pod, container: str, *, code: int, reason: str) -> None:
    """Ends it as if it had ended by itself. Raises LookupError when it does not run."""
    runtime, status = running(runtimes, pod, container)
    runtime.end(status.id, code, reason=reason)


def answer_readiness(runtimes: Sequence[SimulatedRuntime], pod: Pod, container: str, *, ready: bool) -> None:
    """What its readiness probe is answered. Raises LookupError when it does not run, ValueError when it has none."""
    runtime, status = running(runtimes, pod, container)
    probed = {container.name for container in all_containers(pod.spec) if container.readiness_probe is not None}
    if status.name not in probed:
        raise ValueError(f"container {status.name} of {_named(pod)} has no readinessProbe: it is ready while it runs")
    (runtime.unready.discard if ready else runtime.unready.add)(status.id)


def running(runtimes: Sequence[SimulatedRuntime], pod: Pod, name: str) -> tuple[SimulatedRuntime, ContainerStatus]:
    """The container of this name that runs; without a name the only one beside sidecars.

    Raises LookupError when it does not run, ValueError when several could be meant.
    """
    beside = sidecar_names(pod.spec)
    found = [
        (runtime, status)
        for runtime in runtimes
        for status in runtime.containers()
        if status.labels.get(labels.POD_UID) == pod.metadata.uid and status.state is ContainerState.RUNNING
    ]
    wanted = [(runtime, status) for runtime, status in found if status.name == name]
    if not name:
        wanted = [(runtime, status) for runtime, status in found if status.name not in beside]
    if len(wanted) > 1:
        names = ", ".join(sorted(status.name for _, status in wanted))
        raise ValueError(f"several containers of {_named(pod)} run, say which: {names}")
    if not wanted:
        names = ", ".join(sorted(status.name for _, status in found)) or "none"
        raise LookupError(f"container {name or 'of any name'} of {_named(pod)} does not run; these do: {names}")
    return wanted[0]


def _named(pod: Pod) -> str:
    return f"pod {pod.metadata.namespace}/{pod.metadata.name}"

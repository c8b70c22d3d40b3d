"""What is stopped, in which order, and how many seconds it gets.

regular containers and plain init containers    all at once
sidecars                                        one by one, the last one first, so that they outlive what they serve
sandboxes                                       after the containers, which frees what they hold
"""

from collections.abc import Iterable

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.lifecycle.actions import Kill
from podfit.decide.lifecycle.effects import Stop, StopContainers
from podfit.decide.lifecycle.facts import ContainerState, Failure, PodFacts

DEFAULT_GRACE = 30  # as the API defaults terminationGracePeriodSeconds
MINIMUM_GRACE = 2
"""Seconds given to a container that is stopped alone, as for a restart, and to every one after its preStop hook."""

_ALIVE = (ContainerState.RUNNING, ContainerState.UNKNOWN)


def spec_grace(pod: Pod) -> int:
    """Seconds between SIGTERM and SIGKILL when nobody has asked for less."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace


def grace_of(pod: Pod, failure: Failure | None, *, gone: bool) -> int:
    """For the end of a pod: at least a second; an object that vanished was deleted by force, a file was not."""
    if gone and not is_static(pod):
        return 1
    if failure is not None and failure.grace is not None:
        return failure.grace
    asked = pod.metadata.deletion_grace_period_seconds
    if pod.metadata.deletion_timestamp is not None and asked is not None:
        return max(1, asked)
    return max(1, spec_grace(pod))


def remaining(grace: int, elapsed: float, *, least: int = 1) -> int:
    """What is left of a grace period after `elapsed` seconds of it."""
    return max(least, grace - int(elapsed))


def stop_all(pod: Pod, facts: PodFacts, grace: int) -> StopContainers:
    """Every container of the pod, with `grace` seconds for all of it; sandboxes stay."""
    sidecars = {
        container.name: place for place, container in enumerate(pod.spec.init_containers) if is_sidecar(container)
    }
    stops = [
        Stop(container.id, container.name, f"Stopping container {container.name}", grace)
        for container in facts.containers
        if container.state in _ALIVE
    ]
    first = tuple(stop for stop in stops if stop.name not in sidecars)
    later = sorted((stop for stop in stops if stop.name in sidecars), key=lambda stop: -sidecars[stop.name])
    return StopContainers(pod, (first, *((stop,) for stop in later)))


def stop_some(pod: Pod, kills: Iterable[Kill]) -> StopContainers:
    """These containers, all at once, while the pod goes on."""
    stops = (
        Stop(
            kill.container.id,
            kill.container.name,
            kill.message,
            max(MINIMUM_GRACE, spec_grace(pod) if kill.grace is None else kill.grace),
        )
        for kill in kills
    )
    return StopContainers(pod, (tuple(stops),))

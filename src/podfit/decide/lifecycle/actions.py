"""`PodActions`: which containers and sandbox of a pod to start and to kill, from what is allocated and what runs.

no sandbox that is ready    stop what is left of the old one, make a new one, begin again with the init containers
init containers             one after the other; a sidecar counts once it runs, a plain one once it has exited 0
the others                  start what never ran, or ended and is to be restarted
image changed               stop and start again, whatever the restart policy (R-178)
ephemeral containers        start those that never ran, whatever else there is to do; they never run again
"""

import hashlib
import json
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import Pod
from podfit.core.bounded_cache import cached_where_short
from podfit.decide.lifecycle.facts import KILLED, ContainerState, ContainerStatus, PodFacts
from podfit.decide.pod.ephemeral_containers import ephemeral_containers
from podfit.decide.pod.probing import ProbeKind

CONTAINER_HASH = "io.kubernetes.container.hash"  # the annotation of a container in the runtime


class Kill(msgspec.Struct, frozen=True):
    """A container to stop. `again`: it is started anew; `waits`: not before its back-off is over. `grace` in seconds,
    None for the pod's own.
    """

    container: ContainerStatus
    message: str
    again: bool = True
    waits: bool = False
    grace: int | None = None


class PodActions(msgspec.Struct, frozen=True, kw_only=True):
    """`over`: nothing runs on and nothing will start again, so what is left (sidecars) can be stopped."""

    over: bool = False
    new_sandbox: bool = False
    kill: tuple[Kill, ...] = ()
    start: tuple[Container, ...] = ()
    initialised: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.over or self.new_sandbox or self.kill or self.start)


def plan(pod: Pod, facts: PodFacts) -> PodActions:
    if facts.sandbox is None:
        return _without_sandbox(pod, facts)
    initialised = is_initialised(pod, facts)
    if _failed(pod, facts, initialised) or (initialised and _all_done(pod, facts)):
        return PodActions(over=True, initialised=initialised)
    kill = tuple(_outdated(pod, facts, initialised=initialised))
    replaced = {killed.container.name for killed in kill if killed.again}
    start = (*_ephemeral(pod, facts), *_to_start(pod, facts, replaced, initialised=initialised))
    if not start and len(kill) == len(facts.running):  # the whole pod comes to its end
        kill = tuple(
            replace(killed, message=f"Stopping container {killed.container.name}", grace=None) for killed in kill
        )
    return PodActions(kill=kill, start=start, initialised=initialised)


def is_initialised(pod: Pod, facts: PodFacts) -> bool:
    """A regular container that was created in this sandbox proves it, whatever became of the init containers since."""
    if any(facts.here(container.name) for container in pod.spec.containers):
        return True
    return all(_passed(container, facts, facts.here(container.name)) for container in pod.spec.init_containers)


def definition_hash(container: Container) -> str:
    """Changes when the container has to be replaced: only its name and image count (R-178)."""
    return _hash(container.image, container.name)


@cached_where_short(1024, longest=512)
def _hash(image: str, name: str) -> str:
    return hashlib.sha256(json.dumps([name, image]).encode()).hexdigest()[:16]


def _without_sandbox(pod: Pod, facts: PodFacts) -> PodActions:
    """Containers of a sandbox that died were killed with it, unless they had ended before."""
    ended = [facts.last(container.name) for container in pod.spec.containers]
    done = [
        last is not None and last.state is ContainerState.EXITED and not facts.comes_again(pod.spec, container, last)
        for container, last in zip(pod.spec.containers, ended, strict=True)
    ]
    once = pod.spec.restart_policy == "Never" and (any(ended) or _has_run(pod))
    if once or (facts.sandboxes and all(done)):
        return PodActions(over=True)
    kill = tuple(Kill(container, f"Stopping container {container.name}") for container in facts.running)
    first = tuple(pod.spec.init_containers[:1]) or pod.spec.containers
    return PodActions(new_sandbox=True, kill=kill, start=first, initialised=not pod.spec.init_containers)


def _has_run(pod: Pod) -> bool:
    """Whether the status remembers an instance that the runtime has lost; such a pod must not do its work twice."""
    return any(status.container_id or status.last_state.terminated for status in pod.status.container_statuses)


def _passed(container: Container, facts: PodFacts, status: ContainerStatus | None) -> bool:
    if status is None:
        return False
    if is_sidecar(container):
        return status.state is ContainerState.RUNNING and status.id not in facts.health.unstarted
    return _succeeded(status) and status.id not in facts.restarting


def _succeeded(status: ContainerStatus) -> bool:
    return status.state is ContainerState.EXITED and status.exit_code == 0


def _failed(pod: Pod, facts: PodFacts, initialised: bool) -> bool:
    """A plain init container failed for good."""
    if initialised:
        return False
    for container in pod.spec.init_containers:
        status = facts.here(container.name)
        if is_sidecar(container) or status is None or status.state is not ContainerState.EXITED or _succeeded(status):
            continue
        return not facts.comes_again(pod.spec, container, status)
    return False


def _all_done(pod: Pod, facts: PodFacts) -> bool:
    for container in pod.spec.containers:
        status = facts.here(container.name)
        if status is None or status.state is not ContainerState.EXITED:
            return False
        if facts.comes_again(pod.spec, container, status):
            return False
    return True


def _outdated(pod: Pod, facts: PodFacts, *, initialised: bool) -> Iterator[Kill]:
    """Running containers whose definition changed, and those the runtime has lost track of."""
    initial = (container for container in pod.spec.init_containers if is_sidecar(container) or not initialised)
    for container in (*pod.spec.containers, *initial):
        status = facts.here(container.name)
        if status is None or status.state not in (ContainerState.RUNNING, ContainerState.UNKNOWN):
            continue
        if status.state is ContainerState.UNKNOWN:
            yield Kill(status, f"Container {container.name} is in unknown state, try killing it before restart")
        elif status.annotations.get(CONTAINER_HASH) != definition_hash(container):
            yield Kill(status, f"Container {container.name} definition changed, will be restarted")
        elif (kind := facts.health.failed.get(status.id)) is not None:
            yield _unhealthy(pod, container, status, kind)


def _unhealthy(pod: Pod, container: Container, status: ContainerStatus, kind: ProbeKind) -> Kill:
    """A container that has failed its liveness or startup probe ends, and comes again as if it had ended badly."""
    probe = container.liveness_probe if kind is ProbeKind.LIVENESS else container.startup_probe
    again = starts_again(pod.spec, container, KILLED)
    text = f"{'Init container' if is_sidecar(container) else 'Container'} {container.name} failed {kind.lower()} probe"
    return Kill(
        status,
        f"{text}, will be restarted" if again and not is_sidecar(container) else text,
        again=again,
        waits=True,
        grace=probe.termination_grace_period_seconds if probe is not None else None,
    )


def _ephemeral(pod: Pod, facts: PodFacts) -> Iterator[Container]:
    ran = {status.name for status in pod.status.ephemeral_container_statuses if status.container_id}
    return (
        container
        for container in ephemeral_containers(pod)
        if container.name not in ran and facts.last(container.name) is None
    )


def _to_start(pod: Pod, facts: PodFacts, replaced: set[str], *, initialised: bool) -> Iterator[Container]:
    for container in pod.spec.init_containers:
        status = None if container.name in replaced else facts.here(container.name)
        running = status is not None and status.state is ContainerState.RUNNING
        wanted = is_sidecar(container) or (not initialised and not _passed(container, facts, status))
        if wanted and not running:
            yield container
        if not initialised and not _passed(container, facts, status):
            return
    for container in pod.spec.containers if initialised else ():
        status = None if container.name in replaced else facts.here(container.name)
        if status is None or _to_run_again(pod, container, status, facts):
            yield container


def _to_run_again(pod: Pod, container: Container, status: ContainerStatus, facts: PodFacts) -> bool:
    """Whether an instance that exists is no reason not to start one: it never started, is lost, or has ended."""
    if status.state is ContainerState.EXITED:
        return facts.comes_again(pod.spec, container, status)
    return status.state is not ContainerState.RUNNING

"""One container's status, from the instances of it that the runtime knows and what was last reported."""

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.container_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    VolumeMountStatus,
)
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import PodStatus
from podfit.core.times import format_time
from podfit.decide.cgroup.container_resources import cpu, unthrottled
from podfit.decide.lifecycle import facts as runtime
from podfit.decide.lifecycle.facts import KILLED, StatusInput
from podfit.decide.pod.ephemeral_containers import ephemeral_containers
from podfit.decide.resize import reported_status as reported
from podfit.decide.resize.reported_status import Enforced, enforced

POST_START_ERROR = "PostStartHookError"
UNKNOWN = "ContainerStatusUnknown"
LOST = "The container could not be located when the pod was terminated"
LOST_WHILE_RUNNING = "The container could not be located when the pod was deleted.  The container used to be Running"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ephemeral_container_statuses(facts: StatusInput) -> tuple[ContainerStatus, ...]:
    """Ephemeral containers by name. They are never ready, nobody asks whether they started, nothing is set aside."""
    found = (_ephemeral(facts, container) for container in ephemeral_containers(facts.allocated))
    bare = (msgspec.structs.replace(status, ready=False, started=None, allocated_resources={}) for status in found)
    return tuple(sorted(bare, key=lambda status: status.name))


def _ephemeral(facts: StatusInput, container: Container) -> ContainerStatus:
    """One that has run and is lost is over: it does not come again."""
    previous = _reported(facts.previous, container.name, init=False)
    if previous is not None and previous.container_id and not facts.observed.instances(container.name):
        over = previous.state.terminated or _lost(LOST_WHILE_RUNNING, previous)
        return msgspec.structs.replace(previous, state=ContainerState(terminated=over))
    return _status(facts, container, init=False)


def container_statuses(facts: StatusInput, *, init: bool) -> tuple[ContainerStatus, ...]:
    """Regular containers by name, init containers in the order in which they run."""
    spec = facts.allocated.spec
    if init:
        return tuple(_status(facts, container, init=True) for container in spec.init_containers)
    return tuple(
        sorted((_status(facts, container, init=False) for container in spec.containers), key=lambda status: status.name)
    )


def _status(facts: StatusInput, container: Container, *, init: bool) -> ContainerStatus:
    previous = _reported(facts.previous, container.name, init=init)
    instances = facts.observed.instances(container.name)
    if not instances or (facts.ended and instances[0].state is runtime.ContainerState.CREATED):
        return _absent(facts, container, previous, init=init)
    newest = instances[0]
    container_id = f"{facts.runtime_name}://{newest.id}"
    state = _state(newest, container_id)
    last = _last_state(instances, container_id, previous, facts.runtime_name)
    waiting = facts.waiting.get(container.name)
    if waiting is not None and state.running is None and not _is_over(facts, container, newest, waiting):
        last, state = state if state.terminated else last, ContainerState(waiting=waiting)
    elif not facts.ended and _is_replaced(facts, container, newest):
        last, state = state, ContainerState(waiting=_default_waiting(facts))
    elif state.waiting is not None:
        state = ContainerState(waiting=_default_waiting(facts))
    same = previous if previous is not None and previous.container_id == container_id else None
    return ContainerStatus(
        name=container.name,
        state=state,
        last_state=last,
        ready=_ready(facts, container, newest.id, state, init=init),
        started=state.running is not None and newest.id not in facts.observed.health.unstarted,
        restart_count=max(newest.attempt, previous.restart_count if previous else 0),
        image=newest.image or container.image,
        image_id=newest.image_ref or newest.image_id,
        container_id=container_id,
        allocated_resources=container.resources.requests,
        resources=_resources(facts, container, newest, same),
        volume_mounts=_mounts(container, newest.recursive_read_only),
    )


def _is_replaced(facts: StatusInput, container: Container, newest: runtime.ContainerStatus) -> bool:
    """Whether it starts anew although its policy may not say so: stopped for that, or of a state that nobody knows. The
    API takes no container back that was told to have ended under such a policy.
    """
    if newest.state is runtime.ContainerState.UNKNOWN:
        return not starts_again(facts.allocated.spec, container, KILLED)
    return newest.state is runtime.ContainerState.EXITED and newest.id in facts.observed.restarting


def _is_over(
    facts: StatusInput, container: Container, newest: runtime.ContainerStatus, waiting: ContainerStateWaiting
) -> bool:
    """Whether it was ended for its postStart hook and does not come again: then nothing is waited for."""
    if waiting.reason != POST_START_ERROR or newest.state is not runtime.ContainerState.EXITED:
        return False
    return not facts.observed.comes_again(facts.allocated.spec, container, newest)


def _reported(status: PodStatus, name: str, *, init: bool) -> ContainerStatus | None:
    others = (*status.container_statuses, *status.ephemeral_container_statuses)
    return next((known for known in (status.init_container_statuses if init else others) if known.name == name), None)


def _absent(
    facts: StatusInput, container: Container, previous: ContainerStatus | None, *, init: bool
) -> ContainerStatus:
    """The runtime knows nothing of it that ever ran: not created yet, cleaned up after its end, or lost."""
    if previous is not None and previous.state.terminated is not None:
        return previous
    if facts.ended and _was_reached(facts, container, init=init):
        lost = ContainerState(terminated=_lost(LOST, previous))
        base = previous or _blank(container)
        return msgspec.structs.replace(base, state=lost, ready=False, started=False)
    waiting = facts.waiting.get(container.name) or _default_waiting(facts)
    last, restarts = (previous.last_state, previous.restart_count) if previous else (ContainerState(), 0)
    if previous is not None and previous.state.running is not None:
        last, restarts = ContainerState(terminated=_lost(LOST_WHILE_RUNNING, previous)), restarts + 1
    return msgspec.structs.replace(
        _blank(container), state=ContainerState(waiting=waiting), last_state=last, restart_count=restarts
    )


def _was_reached(facts: StatusInput, container: Container, *, init: bool) -> bool:
    """Whether the pod's initialisation had come to this container. Those it never came to go on waiting for ever."""
    started = [bool(facts.observed.instances(container.name)) for container in facts.allocated.spec.init_containers]
    if init:
        names = [container.name for container in facts.allocated.spec.init_containers]
        return any(started[names.index(container.name) :])
    if any(facts.observed.instances(container.name) for container in facts.allocated.spec.containers) or not started:
        return True
    last = facts.allocated.spec.init_containers[-1]
    ended = next(iter(facts.observed.instances(last.name)), None)
    return ended is not None and (is_sidecar(last) or _succeeded(ended))


def _succeeded(instance: runtime.ContainerStatus) -> bool:
    return instance.state is runtime.ContainerState.EXITED and instance.exit_code == 0


def was_never_there(status: ContainerStatus) -> bool:
    """Whether its end is only that of its pod."""
    over = status.state.terminated
    return over is not None and over.message == LOST and not over.container_id


def _blank(container: Container) -> ContainerStatus:
    """Before creation there are neither resources nor allocatedResources (R-151)."""
    return ContainerStatus(
        name=container.name, image=container.image, started=False, volume_mounts=_mounts(container, frozenset())
    )


def _lost(message: str, previous: ContainerStatus | None) -> ContainerStateTerminated:
    container_id = previous.container_id if previous else ""
    return ContainerStateTerminated(exit_code=KILLED, reason=UNKNOWN, message=message, container_id=container_id)


def _default_waiting(facts: StatusInput) -> ContainerStateWaiting:
    return ContainerStateWaiting(
        reason="PodInitializing" if facts.allocated.spec.init_containers else "ContainerCreating"
    )


def _state(instance: runtime.ContainerStatus, container_id: str) -> ContainerState:
    match instance.state:
        case runtime.ContainerState.RUNNING:
            return ContainerState(running=ContainerStateRunning(started_at=_time(instance.started_at)))
        case runtime.ContainerState.EXITED:
            return ContainerState(
                terminated=ContainerStateTerminated(
                    exit_code=instance.exit_code,
                    reason=instance.reason or ("Error" if instance.exit_code else "Completed"),
                    message=instance.message,
                    started_at=_time(instance.started_at),
                    finished_at=_time(instance.finished_at),
                    container_id=container_id,
                )
            )
        case runtime.ContainerState.UNKNOWN:
            lost = ContainerStateTerminated(
                exit_code=KILLED, reason=UNKNOWN, message=instance.message, container_id=container_id
            )
            return ContainerState(terminated=lost)
        case runtime.ContainerState.CREATED:
            return ContainerState(waiting=ContainerStateWaiting())


def _time(nanoseconds: int) -> str:
    return format_time(_EPOCH + timedelta(microseconds=nanoseconds // 1000))


def _last_state(
    instances: tuple[runtime.ContainerStatus, ...], container_id: str, previous: ContainerStatus | None, scheme: str
) -> ContainerState:
    """How the instance before this one ended, also when the runtime has forgotten it."""
    if len(instances) > 1:
        before = _state(instances[1], f"{scheme}://{instances[1].id}")
        return before if before.terminated else ContainerState()
    if previous is None:
        return ContainerState()
    if previous.container_id != container_id and previous.state.terminated is not None:
        return ContainerState(terminated=previous.state.terminated)
    return previous.last_state


def _ready(facts: StatusInput, container: Container, instance: str, state: ContainerState, *, init: bool) -> bool:
    """What runs and passes its probes is ready. An init container is once it has ended well."""
    if init and not is_sidecar(container):
        return state.terminated is not None and state.terminated.exit_code == 0
    return state.running is not None and instance not in facts.observed.health.unready


def _resources(
    facts: StatusInput, container: Container, newest: runtime.ContainerStatus, previous: ContainerStatus | None
) -> ResourceRequirements:
    """While it runs what is enforced, else what it will get. Empty is not absent (R-150)."""
    if newest.state is not runtime.ContainerState.RUNNING:
        return container.resources
    ran = previous is not None and previous.state.running is not None
    record = facts.actuated.containers.get(container.name)
    return reported.container_resources(
        container.resources,
        _enforced(facts, container, newest.resources, record),
        record,
        previous.resources if previous is not None and ran else None,
    )


def _enforced(
    facts: StatusInput,
    container: Container,
    resources: runtime.LinuxResources | None,
    record: ResourceRequirements | None,
) -> Enforced | None:
    """What the runtime says. Of a CPU limit that CPUs of its own stand for it says nothing: the record does."""
    if resources is None:
        return None
    seen = enforced(
        shares=resources.cpu_shares,
        quota=resources.cpu_quota,
        period=resources.cpu_period,
        memory_limit=resources.memory_limit,
    )
    if record is not None and unthrottled(facts.allocated, container, facts.machine):
        return replace(seen, cpu_limit=cpu(record.limits))
    return seen


def _mounts(container: Container, recursive: frozenset[str]) -> tuple[VolumeMountStatus, ...]:
    """`recursive` are the paths where all below is read-only too."""
    return tuple(
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only=("Enabled" if mount.mount_path in recursive else "Disabled")
            if mount.read_only
            else None,
        )
        for mount in container.volume_mounts
    )

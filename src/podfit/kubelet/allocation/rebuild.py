"""What was promised and actuated, put together again when a checkpoint was damaged (R-091).

Without it a pod would be taken at its desired size, so a resize that waits would slip through unexamined, and
containers that restart on a change would be restarted for no reason.

The last status says both. It may be a moment old: where the runtime already holds a container at the desired size, the
resize had been promised and was under way, and the desire is the promise.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podfit.api.core.container_status import ContainerStatus
from podfit.api.core.containers import Container, ResourceRequirements
from podfit.api.core.pods import Pod
from podfit.core.features import FeatureGates
from podfit.decide.container_resources import ContainerResources, Machine, container_resources, effective
from podfit.decide.overlay import PodResources, overlay, resizable, resources_of
from podfit.kubelet.runtime.types import LinuxResources

Seen = Mapping[str, LinuxResources]
"""What the runtime holds for the running containers of one pod, by name."""


def promised(pod: Pod, seen: Seen, machine: Machine) -> PodResources | None:
    """None when no container was ever reported with resources: then the pod never ran."""
    reported = _promised_by_status(pod, machine.gates)
    if reported is None or not _arrived(pod, reported, seen, machine):
        return reported
    return resources_of(pod, machine.gates)


def actuated(pod: Pod, seen: Seen, machine: Machine) -> PodResources | None:
    """What the runtime was last seen to enforce."""
    reported = _actuated_by_status(pod, machine.gates)
    if reported is None:
        return None
    arrived = _arrived(pod, reported, seen, machine)
    newer = {each.name: effective(pod, each) for each in resizable(pod, machine.gates) if each.name in arrived}
    return PodResources({**reported.containers, **newer}, reported.pod)


def _promised_by_status(pod: Pod, gates: FeatureGates) -> PodResources | None:
    """Allocated requests and actual limits as reported."""
    reported = {
        container.name: ResourceRequirements(
            claims=container.resources.claims,
            requests=status.allocated_resources,
            limits=status.resources.limits if status.resources else container.resources.limits,
        )
        for container, status in _reported(pod, gates)
    }
    if not reported:
        return None
    spec = {each.name: each.resources for each in resizable(pod, gates)}
    return PodResources(spec | reported, _level(pod, promised=True))


def _actuated_by_status(pod: Pod, gates: FeatureGates) -> PodResources | None:
    actual = {container.name: status.resources for container, status in _reported(pod, gates) if status.resources}
    if not actual:
        return None
    level = _level(pod, promised=False)
    seen = overlay(pod, PodResources(actual, level), gates)
    records = {each.name: effective(seen, each) for each in resizable(seen, gates) if each.name in actual}
    return PodResources(records, level)


def _arrived(pod: Pod, before: PodResources, seen: Seen, machine: Machine) -> set[str]:
    """The containers that the runtime holds at the desired size and no longer at the one before."""
    old = {each.name: (pod_before, each) for pod_before in [overlay(pod, before, machine.gates)]
           for each in resizable(pod_before, machine.gates)}
    return {
        each.name for each in resizable(pod, machine.gates) if each.name in seen
        and _holds(seen[each.name], container_resources(pod, each, machine))
        and not _holds(seen[each.name], container_resources(*old[each.name], machine))
    }


def _holds(seen: LinuxResources, want: ContainerResources) -> bool:
    """A value that is not asked for may be anything: the runtime fills some in."""
    pairs = ((seen.cpu_shares, want.cpu_shares), (seen.cpu_quota, want.cpu_quota),
             (seen.memory_limit, want.memory_limit))
    return all(not asked or held == asked for held, asked in pairs)


def _reported(pod: Pod, gates: FeatureGates) -> Iterator[tuple[Container, ContainerStatus]]:
    known = {each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    for container in resizable(pod, gates):
        status = known.get(container.name)
        if status is not None and status.resources is not None:
            yield container, status


def _level(pod: Pod, *, promised: bool) -> ResourceRequirements | None:
    """Only what the spec names: the status reports totals for every pod."""
    spec, status = pod.spec.resources, pod.status.resources
    if spec is None or status is None:
        return spec
    requests = pod.status.allocated_resources if promised else status.requests
    return msgspec.structs.replace(
        spec,
        requests={name: requests.get(name, amount) for name, amount in spec.requests.items()},
        limits={name: status.limits.get(name, amount) for name, amount in spec.limits.items()},
    )

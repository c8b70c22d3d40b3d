"""Rebuilds the allocated and actuated checkpoints from the runtime after damage (R-091).

Without it a pod would be taken at its desired size, so a resize that waits would slip through unexamined, and
containers that restart on a change would be restarted for no reason.

The last status says both. It may be a moment old: where the runtime already holds a container at the desired size, the
resize had been allocated and was under way, and the desired size is the allocated one.
"""

from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.cgroup.container_resources import ContainerResources, Machine, container_resources, effective
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.decide.pod.allocated import PodResources, overlay, resizable, resources_of
from podfit.decide.resize import by_status

Seen = Mapping[str, LinuxResources]
"""What the runtime holds for the running containers of one pod, by name."""


def allocated(pod: Pod, seen: Seen, machine: Machine) -> PodResources | None:
    """None when no container was ever reported with resources: then the pod never ran."""
    reported = by_status.allocated(pod, machine.gates)
    if reported is None or not _arrived(pod, reported, seen, machine):
        return reported
    return resources_of(pod, machine.gates)


def actuated(pod: Pod, seen: Seen, machine: Machine) -> PodResources | None:
    """What the runtime was last seen to enforce."""
    reported = by_status.actuated(pod, machine.gates)
    if reported is None:
        return None
    arrived = _arrived(pod, reported, seen, machine)
    newer = {
        container.name: effective(pod, container)
        for container in resizable(pod, machine.gates)
        if container.name in arrived
    }
    return PodResources({**reported.containers, **newer}, reported.pod)


def _arrived(pod: Pod, before: PodResources, seen: Seen, machine: Machine) -> set[str]:
    """The containers that the runtime holds at the desired size and no longer at the one before."""
    old = {
        container.name: (pod_before, container)
        for pod_before in [overlay(pod, before, machine.gates)]
        for container in resizable(pod_before, machine.gates)
    }
    return {
        container.name
        for container in resizable(pod, machine.gates)
        if container.name in seen
        and _holds(seen[container.name], container_resources(pod, container, machine))
        and not _holds(seen[container.name], container_resources(*old[container.name], machine))
    }


def _holds(seen: LinuxResources, want: ContainerResources) -> bool:
    """A value that is not asked for may be anything: the runtime fills some in."""
    pairs = (
        (seen.cpu_shares, want.cpu_shares),
        (seen.cpu_quota, want.cpu_quota),
        (seen.memory_limit, want.memory_limit),
    )
    return all(not asked or held == asked for held, asked in pairs)

"""Cgroup values of a container: shares, quota, memory limit, OOM score.

One rule makes the values for creation and for live updates alike: a container without a CPU request gets the shares of
its limit in both. Upstream's update path sends an explicit zero instead, which drops such a container to weight 1.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.cgroup import conversion as cgroups
from podfit.decide.cgroup.memory_qos import MemoryQoS
from podfit.decide.managers.cpu import exclusive_count
from podfit.decide.pod.allocated import NOTHING
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.system_priority import NODE_CRITICAL, is_critical

UNLIMITED = -1
"""Of a quota: written out, where 0 leaves the present one alone."""
RESOURCES = ("memory", "cpu")
"""What can be resized, in the order in which it is done (R-130)."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What of the node enters the arithmetic. Sizes are bytes, `cfs_period` microseconds.

    `processes` is how many the machine may have at once, 0 where that is not known.
    `swap` is the node's swap if LimitedSwap is configured, else 0; `swap_controller` says that cgroups can limit it.
    `page_sizes` are the kernel's huge page sizes as the runtime spells them: `2MB`, `1GB`. `static_cpus` is the static
    CPU manager policy. `memory_qos` is set where the gate is on and the kernel has cgroup v2.
    `memory_shrink` is for pods that do not say themselves (`decide.resize.guarded_shrink`). `kernel_first`: growth of a
    container is written into its cgroup before the runtime is told (`decide.resize.steps.GrowContainer`).
    """

    memory: int
    cgroup: Literal["v1", "v2"] = "v1"
    cfs_quota: bool = True
    cfs_period: int = 100_000
    pids_limit: int | None = None
    processes: int = 0
    page_sizes: tuple[str, ...] = ()
    swap: int = 0
    swap_controller: bool = False
    static_cpus: bool = False
    memory_qos: MemoryQoS | None = None
    memory_shrink: Literal["checked", "guarded"] = "checked"
    kernel_first: bool = False
    gates: FeatureGates = DEFAULT_GATES


class ContainerResources(msgspec.Struct, frozen=True, kw_only=True):
    """CRI's LinuxContainerResources; 0 or empty leaves a value alone."""

    cpu_shares: int = 0
    cpu_quota: int = 0
    cpu_period: int = 0
    memory_limit: int = 0
    oom_score_adj: int = 0
    hugepages: Mapping[str, int] = msgspec.field(default_factory=dict)
    unified: Mapping[str, str] = msgspec.field(default_factory=dict)
    swap_limit: int = 0


def cpu(amounts: ResourceList) -> int:
    """Milli-CPUs; 0 when absent."""
    return amounts.get("cpu", ZERO).milli()


def memory(amounts: ResourceList) -> int:
    """Bytes; 0 when absent."""
    return amounts.get("memory", ZERO).value()


def effective(pod: Pod, container: Container) -> ResourceRequirements:
    """The container's resources, with the pod's limits where it has none of its own; this is what is recorded."""
    own, level = container.resources, (pod.spec.resources or NOTHING).limits
    implied = {name: level[name] for name in RESOURCES if level.get(name) and not own.limits.get(name)}
    return msgspec.structs.replace(own, limits={**own.limits, **implied}) if implied else own


def container_resources(
    pod: Pod, container: Container, machine: Machine, resources: ResourceRequirements | None = None
) -> ContainerResources:
    """What the runtime is to hold for one container of the allocated `pod`.

    `resources` are effective ones that take the place of the pod's own: the mixture of new and actuated values that a
    single-resource update carries (R-137).
    """
    want = effective(pod, container) if resources is None else resources
    request, limit = cpu(want.requests if "cpu" in want.requests else want.limits), cpu(want.limits)
    most = memory(want.limits)
    v1 = machine.cgroup == "v1"
    quota = UNLIMITED if unthrottled(pod, container, machine) else cgroups.quota_from_milli(limit, machine.cfs_period)
    return ContainerResources(
        cpu_shares=cgroups.shares_from_milli(request),
        cpu_quota=quota if machine.cfs_quota else 0,
        cpu_period=machine.cfs_period if machine.cfs_quota else 0,
        memory_limit=most,
        oom_score_adj=oom_score_adj(pod, container, machine.memory),
        hugepages=_hugepages(pod, container, machine),
        unified={} if v1 else _unified(pod, container, machine, memory(want.requests), most),
        swap_limit=most if v1 and machine.swap_controller else 0,
    )


def _unified(pod: Pod, container: Container, machine: Machine, request: int, limit: int) -> dict[str, str]:
    qos = machine.memory_qos.container(pod.status.qos_class, request, limit) if machine.memory_qos else {}
    return {"memory.oom.group": "1"} | _swap_max(pod, container, machine) | qos


def unthrottled(pod: Pod, container: Container, machine: Machine) -> bool:
    """Whether the container has CPUs to itself, so that a quota could only get in its way."""
    alone = machine.static_cpus and machine.gates["DisableCPUQuotaWithExclusiveCPUs"]
    return alone and exclusive_count(pod, container, machine.gates) > 0


def limited_swap(pod: Pod, container: Container, machine: Machine) -> bool:
    """Whether the container may swap: Burstable, not critical, on v2, with a memory request unlike its limit."""
    request, limit = container.resources.requests.get("memory"), container.resources.limits.get("memory")
    eligible = pod.status.qos_class == "Burstable" and not is_critical(pod)
    return bool(machine.swap and machine.cgroup == "v2" and eligible and request and request != limit)


def _swap_max(pod: Pod, container: Container, machine: Machine) -> dict[str, str]:
    if not machine.swap_controller:
        return {}
    if not limited_swap(pod, container, machine):
        return {"memory.swap.max": "0"}
    share = memory(container.resources.requests) / machine.memory
    return {"memory.swap.max": str(int(share * machine.swap))}


_PAGE_NAMES = {"2Mi": "2MB", "1Gi": "1GB", "64Ki": "64KB", "32Mi": "32MB", "512Mi": "512MB"}


def _hugepages(pod: Pod, container: Container, machine: Machine) -> dict[str, int]:
    sizes = dict.fromkeys(machine.page_sizes, 0)
    for limits in ((pod.spec.resources or NOTHING).limits, container.resources.limits):
        for name, amount in limits.items():
            size = _PAGE_NAMES.get(name.removeprefix("hugepages-"))
            if name.startswith("hugepages-") and size in sizes:
                sizes[size] = amount.value()
    return sizes


def oom_score_adj(pod: Pod, container: Container, capacity: int) -> int:
    """Who dies first when memory runs out: -997 last, 1000 first. `capacity` is the machine's memory."""
    if (pod.spec.priority or 0) >= NODE_CRITICAL or pod.status.qos_class == "Guaranteed":
        return -997
    if pod.status.qos_class == "BestEffort" or not capacity:
        return 1000
    extra = _extra_memory(pod)
    score = _score(memory(container.resources.requests) + extra, capacity)
    if is_sidecar(container):
        smallest = min((memory(container.resources.requests) for container in pod.spec.containers), default=0)
        score = min(score, _score(smallest + extra, capacity))
    return 999 if score == 1000 else max(score, 3)


def _score(request: int, capacity: int) -> int:
    return 1000 - 1000 * request // capacity


def _extra_memory(pod: Pod) -> int:
    """Each container's share of what the pod asks for beyond its containers."""
    if not (pod.spec.resources or NOTHING).requests:
        return 0
    everyone = len(pod.spec.containers) + len(pod.spec.init_containers)
    level = memory((pod.spec.resources or NOTHING).requests)
    return (level - memory(pod_requests(pod, pod_level=False, overhead=False))) // everyone if level else 0

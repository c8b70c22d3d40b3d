"""Cgroup values of pods, of the QoS tiers above them, and of sandboxes.

A limit of the pod is written only when every container has one, or the pod itself does: otherwise a container without a
limit would be held by the sum of its neighbours' (R-134).
"""

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers, is_sidecar
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO
from podfit.decide.cgroup import conversion as cgroups
from podfit.decide.cgroup.container_resources import UNLIMITED, ContainerResources, Machine, cpu, memory, unthrottled
from podfit.decide.cgroup.memory_qos import Kept
from podfit.decide.pod.allocated import NOTHING
from podfit.decide.pod.requests import pod_limits, pod_requests
from podfit.decide.pod.spare import is_spare, memory_limit

SPARE_PROCESSES = 4
"""A quarter of the process numbers that the machine has is for pods on spare capacity, all together."""
PAGE = 4096
"""The kernel keeps memory limits in whole pages, so nothing finer is compared."""


class PodConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the cgroup should hold. `quota` in microseconds a `period`, `memory` in bytes; None = not limited by us,
    which leaves what is there, while a quota of -1 takes it away.
    """

    shares: int
    quota: int | None = None
    period: int = 100_000
    memory: int | None = None


def pod_config(pod: Pod, machine: Machine) -> PodConfig:
    """For the allocated `pod`; its status is not looked at."""
    if pod.status.qos_class == "BestEffort":
        lent = memory_limit(pod) if is_spare(pod) else None
        return PodConfig(shares=cgroups.MIN_SHARES, period=machine.cfs_period, memory=lent)
    requests, limits = pod_requests(pod, gates=machine.gates), pod_limits(pod, gates=machine.gates)
    quota = cgroups.quota_from_milli(cpu(limits), machine.cfs_period) if machine.cfs_quota else 0
    if quota and any(unthrottled(pod, container, machine) for container in all_containers(pod.spec)):
        quota = UNLIMITED
    return PodConfig(
        shares=cgroups.shares_from_milli(cpu(requests)),
        quota=quota if quota and _bounded(pod, "cpu") else None,
        period=machine.cfs_period,
        memory=memory(limits) if memory(limits) and _bounded(pod, "memory") else None,
    )


def pod_kept(pod: Pod, machine: Machine) -> Kept | None:
    """What the pod's cgroup keeps from reclaim, at its creation: a resize does not touch it. None = not ours."""
    if machine.memory_qos is None:
        return None
    return machine.memory_qos.kept(pod.status.qos_class, memory(pod_requests(pod, gates=machine.gates)))


def _bounded(pod: Pod, name: str) -> bool:
    return pod.status.qos_class == "Guaranteed" or _declared(pod, name)


def _declared(pod: Pod, name: str) -> bool:
    """Whether the pod, or each of its containers, has a limit. An init container counts with the sidecars before it."""
    if (pod.spec.resources or NOTHING).limits.get(name):
        return True
    sidecars = ZERO
    for container in pod.spec.init_containers:
        candidate = sidecars + container.resources.limits.get(name, ZERO)
        if not candidate:
            return False
        if is_sidecar(container):
            sidecars = candidate
    return all(container.resources.limits.get(name) for container in pod.spec.containers)


def tier(pod: Pod) -> str:
    """Below which cgroup the pod's is: of its QoS class, or of those that run on spare capacity."""
    return "Spare" if pod.status.qos_class == "BestEffort" and is_spare(pod) else pod.status.qos_class


def burstable_cpu(pod: Pod) -> int:
    """Millicores that an allocated pod, not as desired, adds to the Burstable tier."""
    return cpu(pod_requests(pod)) if pod.status.qos_class == "Burstable" else 0


def tier_shares(burstable: int) -> dict[str, int]:
    """cpu.shares of the Burstable and BestEffort tiers, for so many millicores of burstable pods."""
    return {"Burstable": cgroups.shares_from_milli(burstable), "BestEffort": cgroups.MIN_SHARES}


def spare_processes(machine: Machine) -> int | None:
    """How many processes pods on spare capacity have at the most, all together; None = not known, not limited. They
    have no number of their own, and pressure is seen every ten seconds only: what forks without end is faster."""
    return max(1, machine.processes // SPARE_PROCESSES) if machine.processes else None


class SandboxResources(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime is told of the pod: its share without overhead, and the overhead (None = it has none)."""

    resources: ContainerResources
    overhead: ContainerResources | None = None


def sandbox_resources(pod: Pod, machine: Machine) -> SandboxResources:
    """For RunPodSandbox."""
    requests = pod_requests(pod, gates=machine.gates, overhead=False)
    limits = pod_limits(pod, gates=machine.gates, overhead=False)
    return SandboxResources(resources=_values(requests, limits, machine), overhead=_overhead(pod, machine))


def sandbox_update(pod: Pod, config: PodConfig, machine: Machine) -> SandboxResources:
    """For UpdatePodSandboxResources: what the pod cgroup is about to hold, less the overhead (R-138)."""
    extra = pod.spec.overhead
    own_milli = max(0, cgroups.milli_from_shares(config.shares) - cpu(extra))
    shares = cgroups.shares_from_milli(own_milli) if extra else config.shares
    quota = config.quota or 0
    if quota > 0:
        quota -= cgroups.quota_from_milli(cpu(extra), config.period)
    resources = ContainerResources(
        cpu_shares=shares,
        cpu_quota=quota,
        cpu_period=config.period if config.quota else 0,
        memory_limit=config.memory - memory(extra) if config.memory else 0,
    )
    return SandboxResources(resources=resources, overhead=_overhead(pod, machine))


def _overhead(pod: Pod, machine: Machine) -> ContainerResources | None:
    return _values(pod.spec.overhead, pod.spec.overhead, machine) if pod.spec.overhead else None


def _values(requests: ResourceList, limits: ResourceList, machine: Machine) -> ContainerResources:
    return ContainerResources(
        cpu_shares=cgroups.shares_from_milli(cpu(requests)),
        cpu_quota=cgroups.quota_from_milli(cpu(limits), machine.cfs_period) if machine.cfs_quota else 0,
        cpu_period=machine.cfs_period if machine.cfs_quota else 0,
        memory_limit=memory(limits),
    )


class PodValues(msgspec.Struct, frozen=True, kw_only=True):
    """What the cgroup holds; None = unlimited. v2 has a `weight`, from which `shares` were computed lossily."""

    shares: int
    quota: int | None
    period: int
    memory: int | None
    weight: int | None = None

    @classmethod
    def of(cls, config: PodConfig) -> "PodValues":
        """What a cgroup holds in which `config` was written."""
        quota = None if config.quota == UNLIMITED else config.quota
        return cls(shares=config.shares, quota=quota, period=config.period, memory=config.memory)

    def shares_change(self, config: PodConfig) -> int:
        """Positive when `config` wants more than there is, 0 when it is what is there."""
        if self.weight is not None:
            return cgroups.weight_from_shares_linear(config.shares) - self.weight
        return config.shares - self.shares

    def limit_change(self, config: PodConfig, resource: str) -> int:
        """The same for the CPU or memory limit. A limit that `config` lacks is left as it is: 0."""
        if resource == "memory":
            if config.memory is None:
                return 0
            return -1 if self.memory is None else config.memory // PAGE - self.memory // PAGE
        if config.quota is None:
            return 0
        if config.quota == UNLIMITED:
            return 0 if self.quota is None else 1
        return -1 if self.quota is None else config.quota * self.period - self.quota * config.period

    def as_config(self) -> PodConfig:
        return PodConfig(shares=self.shares, quota=self.quota, period=self.period, memory=self.memory)

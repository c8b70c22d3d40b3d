"""The cgroups of pods and of their QoS tiers: making, reading and writing them."""

from collections.abc import Iterable

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.conversion import MIN_SHARES, shares_from_milli
from podfit.decide.cgroup.pod_cgroup import (
    PodConfig,
    PodValues,
    burstable_cpu,
    pod_config,
    pod_kept,
    spare_processes,
    tier,
    tier_shares,
)
from podfit.decide.resize.steps import GrowContainer, SetPod
from podfit.kubelet.cgroup.protocol import QOS, UNLIMITED, CgroupConfig, CgroupError, Cgroups, CPUValues, Missing


class PodCgroups:
    def __init__(self, cgroups: Cgroups, machine: Machine) -> None:
        self._cgroups, self._machine = cgroups, machine
        self._burstable: dict[str, tuple[PodSpec, int]] = {}  # by uid, millicores as long as the spec is this one

    def enforce_allocatable(self, cpu: int, memory: int) -> None:
        """All pods together have so many millicores and bytes at the most. Raises CgroupError."""
        config = CgroupConfig(cpu_shares=shares_from_milli(cpu), memory_limit=memory)
        self._cgroups.create(self._cgroups.layout.root, config)

    def refresh_tiers(self, active: Iterable[Pod]) -> None:
        """Shares of the burstable and besteffort cgroups, and what memory the tiers keep for their pods; also to be
        called once a minute (R-135).
        """
        pods = tuple(active)
        known, self._burstable = self._burstable, {}
        for pod in pods:  # those of a whole node, with each pod that starts there
            uid, spec = pod.metadata.uid, pod.spec
            before = known.get(uid, (None, 0))
            self._burstable[uid] = spec, before[1] if before[0] is spec else burstable_cpu(pod)
        total = sum(milli for _, milli in self._burstable.values())
        for qos, shares in tier_shares(total).items():
            self._cgroups.create(self._cgroups.layout.qos(_qos(qos)), CgroupConfig(cpu_shares=shares))
        if any(tier(pod) == "Spare" for pod in pods):
            self._ensure_spare_tier()
        for qos, kept in self._machine.memory_qos.tiers(pods).items() if self._machine.memory_qos else ():
            config = CgroupConfig(memory_min=kept.min, memory_low=kept.low)
            self._cgroups.create(self._cgroups.layout.qos(_qos(qos)), config)

    def _ensure_spare_tier(self) -> None:
        """Once it is idle its weight cannot be written. Without a CPU controller it has neither."""
        path = self._cgroups.layout.qos("Spare")
        if not self._cgroups.exists(path):
            self._cgroups.create(path, CgroupConfig(cpu_shares=MIN_SHARES))
        self._cgroups.create(path, CgroupConfig(pids_limit=spare_processes(self._machine)))
        if self._cgroups.enforced.cpu:
            self._cgroups.set_idle(path)

    def create(self, pod: Pod) -> None:
        """Raises CgroupError."""
        want, kept = pod_config(pod, self._machine), pod_kept(pod, self._machine)
        self._cgroups.create(
            self.path(pod),
            CgroupConfig(
                cpu_shares=want.shares,
                cpu_quota=want.quota,
                cpu_period=want.period,
                memory_limit=want.memory,
                memory_min=kept.min if kept else None,
                memory_low=kept.low if kept else None,
                pids_limit=self._machine.pids_limit,
            ),
        )

    def exists(self, pod: Pod) -> bool:
        return self._cgroups.exists(self.path(pod))

    def write(self, pod: Pod, step: SetPod) -> None:
        """Raises CgroupError."""
        self._write(self.path(pod), step, step.config)

    def grow(self, pod: Pod, container_id: str, step: GrowContainer) -> bool:
        """Whether the container has grown by the step, now or before. Raises CgroupError."""
        now = self.container(pod, container_id)
        if not step.applies(now):
            return step.is_done(now)
        self._write(f"{self.path(pod)}/{container_id}", step, step.config)
        return True

    def put_back(self, pod: Pod, container_id: str, step: GrowContainer) -> bool:
        """False when it cannot be put back, for what is in use. Raises CgroupError."""
        path = f"{self.path(pod)}/{container_id}"
        if not step.goes_back(self._cgroups.memory_usage(path)):
            return False
        self._write(path, step, step.before)
        return True

    def _write(self, path: str, step: SetPod | GrowContainer, want: PodConfig) -> None:
        if step.value == "shares":
            self._cgroups.set_cpu_shares(path, want.shares)
        elif step.resource == "cpu":
            self._cgroups.set_cpu_limit(path, quota=want.quota or UNLIMITED, period=want.period)
        else:
            self._cgroups.set_memory_limit(path, want.memory or UNLIMITED)

    def path(self, pod: Pod) -> str:
        """Also the sandbox's `cgroup_parent`."""
        return self._cgroups.layout.pod(pod.metadata.uid, _qos(tier(pod)))

    def values(self, pod: Pod) -> PodValues | None:
        """What the pod's cgroup holds, for the status; None when it cannot be read."""
        try:
            return self.read(pod)
        except CgroupError:
            return None

    def read(self, pod: Pod) -> PodValues | None:
        """None when there is no cgroup. CgroupError says which half could not be read."""
        path = self.path(pod)
        resource = "memory"
        try:
            limit = self._cgroups.read_memory(path)
            resource = "cpu"
            cpu = self._cgroups.read_cpu(path)
        except Missing:
            return None
        except CgroupError as error:
            name = pod.metadata.name
            raise CgroupError(f"unable to get pod cgroup {resource} config for pod {name}: {error}") from error
        return _values(cpu, limit)

    def container(self, pod: Pod, container_id: str) -> PodValues:
        """What a container's cgroup holds. Raises CgroupError."""
        path = f"{self.path(pod)}/{container_id}"
        return _values(self._cgroups.read_cpu(path), self._cgroups.read_memory(path))


def _values(cpu: CPUValues, memory: int | None) -> PodValues:
    return PodValues(shares=cpu.shares, quota=cpu.quota, period=cpu.period, memory=memory, weight=cpu.weight)


def _qos(name: str) -> QOS:
    match name:
        case "Guaranteed" | "Burstable" | "BestEffort" | "Spare":
            return name
        case _:
            raise ValueError(f"a pod on a node has a QoS class, not {name!r}")

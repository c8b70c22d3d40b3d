"""/configz: the KubeletConfiguration in effect."""

from typing import Any

from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.config import KubeletConfig


def configuration(config: KubeletConfig, machine: Machine) -> dict[str, Any]:
    """Upstream's names and spellings; what this kubelet has no such thing of is left out."""
    managers = config.managers
    found: dict[str, Any] = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "enableServer": True,
        "address": config.host_ip,
        "port": config.port,
        "cgroupsPerQOS": True,
        "cgroupDriver": "cgroupfs",
        "cpuManagerPolicy": managers.cpu_policy,
        "memoryManagerPolicy": managers.memory_policy,
        "topologyManagerPolicy": "none",
        "topologyManagerScope": "container",
        "maxPods": config.capacity["pods"].value() if "pods" in config.capacity else 0,
        "podPidsLimit": machine.pids_limit if machine.pids_limit is not None else -1,
        "cpuCFSQuota": machine.cfs_quota,
        "cpuCFSQuotaPeriod": f"{machine.cfs_period // 1000}ms",
        "evictionHard": {
            threshold.signal: _threshold(threshold.amount, threshold.share) for threshold in config.eviction_hard
        },
        "evictionPressureTransitionPeriod": f"{config.pressure_transition:g}s",
        "imageGCHighThresholdPercent": config.images.high,
        "imageGCLowThresholdPercent": config.images.low,
        "imageMinimumGCAge": f"{config.images.least_age:g}s",
        "imageMaximumGCAge": f"{config.images.most_age:g}s",
        "failSwapOn": False,
        "memorySwap": {"swapBehavior": "LimitedSwap"} if machine.swap else {},
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "syncFrequency": "1m0s",
        "registerNode": True,
        "failCgroupV1": False,
    }
    if config.shutdown:
        found["shutdownGracePeriodByPodPriority"] = [
            {"priority": group.priority, "shutdownGracePeriodSeconds": group.seconds} for group in config.shutdown
        ]
    if config.manifests is not None:
        found["staticPodPath"] = str(config.manifests)
    if managers.reserved_cpus:
        found["reservedSystemCPUs"] = ",".join(map(str, sorted(managers.reserved_cpus)))
    if machine.gates.overrides:
        found["featureGates"] = dict(machine.gates.overrides)
    return {"kubeletconfig": found}


def _threshold(amount: int, share: float) -> str:
    return str(amount) if amount else f"{share * 100:g}%"

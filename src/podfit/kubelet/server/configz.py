"""/configz: the KubeletConfiguration in effect."""

from typing import Any

from podfit.core.options import document
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.config import KubeletConfig


def configuration(config: KubeletConfig, machine: Machine) -> dict[str, Any]:
    """What the kubelet was told, and what follows from that and from the machine, under upstream's names.

    What this kubelet has no such thing of is left out.
    """
    managers, told = config.managers, document(config.options)
    found = told | {
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
        "failSwapOn": False,
        "memorySwap": {"swapBehavior": "LimitedSwap"} if machine.swap else {},
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "syncFrequency": "1m0s",
        "registerNode": True,
        "failCgroupV1": False,
    }
    if machine.gates.overrides:
        found["featureGates"] = dict(machine.gates.overrides)
    return {"kubeletconfig": {name: value for name, value in found.items() if value not in ("", [])}}

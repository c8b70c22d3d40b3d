"""Machine information: capacity, and the names for nodeInfo."""

import os
import platform
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from podfit.api.core.v1.nodes.types import NodeSwapStatus, NodeSystemInfo
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity

KUBELET_VERSION = "v1.36.2-podfit"
PODS = 110

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def capacity(root: Path, *, pods: int = PODS) -> ResourceList:
    """CPUs this process may use, memory, pods, and the size of the file system that holds `root`."""
    return {
        "cpu": Quantity.of(len(os.sched_getaffinity(0))),
        "memory": Quantity.of_bytes(memory_bytes()),
        "pods": Quantity.of(pods),
        "ephemeral-storage": Quantity.of_bytes(shutil.disk_usage(existing(root)).total),
    }


def memory_bytes() -> int:
    return int(meminfo()["MemTotal"].split()[0]) * 1024


def working_set_bytes() -> int:
    """Memory in use without file pages that nobody has touched for long, as the kubelet counts it."""
    sizes = {name: int(text.split()[0]) * 1024 for name, text in meminfo().items()}
    return sizes["MemTotal"] - sizes["MemFree"] - sizes["Inactive(file)"]


def cpu_seconds(stat: Path = Path("/proc/stat")) -> float:
    """CPU time that was worked since the machine started: neither idle nor waiting for a disk."""
    user, nice, system, _, _, irq, softirq, steal = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def process_numbers(kernel: Path = Path("/proc/sys/kernel")) -> int:
    """How many processes and threads the machine may have at once."""
    return min(int((kernel / name).read_text()) for name in ("pid_max", "threads-max"))


@cache
def architecture() -> str:
    """In Go's words, which the kubernetes.io/arch label uses."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def swap_bytes() -> int:
    """The machine's swap space."""
    return int(meminfo()["SwapTotal"].split()[0]) * 1024


def limits_swap(cgroup: str, root: Path = Path("/sys/fs/cgroup")) -> bool:
    """Whether cgroups of this version can limit swap here. v2's root has no limits of its own, its children show it."""
    if cgroup == "v1":
        return (root / "memory" / "memory.memsw.limit_in_bytes").exists()
    return any(root.glob("*/memory.swap.max"))


@cache
def system_info(runtime_version: str) -> NodeSystemInfo:
    """`runtime_version` such as `containerd://1.6.20`. Asked every ten seconds, of a machine that stays the same."""
    machine_id = _read("/etc/machine-id")
    return NodeSystemInfo(
        machine_id=machine_id,
        system_uuid=_read("/sys/class/dmi/id/product_uuid") or machine_id,
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
        kernel_version=platform.release(),
        os_image=_os_image(),
        container_runtime_version=runtime_version,
        kubelet_version=KUBELET_VERSION,
        operating_system=platform.system().lower(),
        architecture=architecture(),
        swap=NodeSwapStatus(capacity=swap_bytes()) if swap_bytes() else None,
    )


def meminfo() -> Mapping[str, str]:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _os_image() -> str:
    for line in _read("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return platform.system()


def _read(path: str) -> str:
    """Empty when this machine does not have it, or does not show it to us."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def existing(path: Path) -> Path:
    """The path, or the nearest one above it that is there."""
    return next(place for place in (path, *path.parents) if place.exists())

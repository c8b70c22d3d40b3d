"""cgroup v1: one hierarchy for each controller.

A pod's directory is made in every hierarchy, because the OCI runtime puts containers below it in all of them and never
removes what it made. In the cpuset hierarchy a new directory may hold no process until it has CPUs and memory nodes,
which it takes from its parent. A missing controller is recorded in `enforced` and passed over.
"""

import os
from pathlib import Path
from typing import Literal

from podfit.kubelet.cgroup import files
from podfit.kubelet.cgroup.common import Tree, below, counted, inside, without_idle_cache
from podfit.kubelet.cgroup.counters import Counters, Files, opened, text, whole
from podfit.kubelet.cgroup.protocol import (
    UNLIMITED,
    CgroupConfig,
    ContainerValues,
    CPUValues,
    Enforcement,
    Layout,
    Missing,
    PodCgroup,
    Throttling,
    Unsupported,
)

NO_LIMIT = 1 << 62  # the kernel shows "unlimited" as a number near 2^63, rounded to pages
WANTED = ("cpu", "memory", "pids")


class CgroupsV1(Tree):
    """`mounts` maps controllers to the mount points of their hierarchies; several may share one."""

    def __init__(self, mounts: dict[str, Path], layout: Layout) -> None:
        super().__init__(layout)
        self._mounts = mounts
        self._hierarchies = tuple(sorted(set(mounts.values())))

    @property
    def version(self) -> Literal["v1"]:
        return "v1"

    @property
    def enforced(self) -> Enforcement:
        missing = tuple(name for name in WANTED if name not in self._mounts)
        return Enforcement(
            cpu="cpu" in self._mounts, memory="memory" in self._mounts, pids="pids" in self._mounts, missing=missing
        )

    def create(self, path: str, config: CgroupConfig) -> None:
        for hierarchy in self._hierarchies:
            self._make(hierarchy, path)
        if config.cpu_shares is not None and "cpu" in self._mounts:
            self.set_cpu_shares(path, config.cpu_shares)
        if config.cpu_quota is not None and "cpu" in self._mounts:
            self.set_cpu_limit(path, quota=config.cpu_quota, period=config.cpu_period)
        if config.memory_limit is not None and "memory" in self._mounts:
            self.set_memory_limit(path, config.memory_limit)
        if config.pids_limit is not None and "pids" in self._mounts:
            files.write(f"{self._at('pids', path)}/pids.max", config.pids_limit)

    def _make(self, hierarchy: Path, path: str) -> None:
        directory = hierarchy
        for part in path.strip("/").split("/"):
            parent, directory = directory, directory / part
            try:
                directory.mkdir(exist_ok=True)
            except OSError as error:
                raise files.failed(f"making {directory}", error) from error
            if hierarchy == self._mounts.get("cpuset"):
                _inherit_cpuset(parent, directory)

    def exists(self, path: str) -> bool:
        return all(os.path.isdir(below(hierarchy, path)) for hierarchy in self._hierarchies)

    def read_cpu(self, path: str) -> CPUValues:
        directory = self._at("cpu", path)
        quota = files.read_int(f"{directory}/cpu.cfs_quota_us")
        return CPUValues(
            shares=files.read_int(f"{directory}/cpu.shares"),
            quota=quota if quota > 0 else None,
            period=files.read_int(f"{directory}/cpu.cfs_period_us"),
        )

    def read_memory(self, path: str) -> int | None:
        limit = files.read_int(f"{self._at('memory', path)}/memory.limit_in_bytes")
        return limit if 0 <= limit < NO_LIMIT else None

    def set_cpu_shares(self, path: str, shares: int) -> None:
        files.write(f"{self._at('cpu', path)}/cpu.shares", shares)

    def set_idle(self, path: str) -> bool:
        file = f"{self._at('cpu', path)}/cpu.idle"
        if not os.path.exists(file):
            return False
        files.write(file, 1)
        return True

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        directory = self._at("cpu", path)
        if files.read_int(f"{directory}/cpu.cfs_period_us") != period:
            files.write(f"{directory}/cpu.cfs_period_us", period)
        files.write(f"{directory}/cpu.cfs_quota_us", quota)

    def set_memory_limit(self, path: str, limit: int) -> None:
        """A limit of memory with swap that is the same, as runtimes set it to give no swap, moves along; the kernel
        wants it at or above the other at any time.
        """
        directory, value = self._at("memory", path), UNLIMITED if limit < 0 else limit
        order = [f"{directory}/memory.limit_in_bytes"]
        before = files.read_int(order[0])
        swap = f"{directory}/memory.memsw.limit_in_bytes"
        if before < NO_LIMIT and os.path.exists(swap) and files.read_int(swap) == before:
            order.insert(0 if limit < 0 or limit > before else 1, swap)
        for file in order:
            files.write(file, value)

    def memory_usage(self, path: str) -> int | None:
        if "memory" not in self._mounts:
            return None
        return files.read_int(f"{self._at('memory', path)}/memory.usage_in_bytes")

    def working_set(self, path: str) -> int | None:
        usage = self.memory_usage(path)
        return None if usage is None else without_idle_cache(usage, self._at("memory", path), "total_inactive_file")

    def memory_high(self, path: str) -> int | None:
        raise Unsupported("cgroup v1 has no memory.high")

    def set_memory_high(self, path: str, high: int) -> None:
        raise Unsupported("cgroup v1 has no memory.high")

    def reclaim(self, path: str, amount: int) -> None:
        raise Unsupported("cgroup v1 has no memory.reclaim")

    def memory_stall(self, path: str) -> int | None:
        return None

    def throttling(self, path: str) -> Throttling | None:
        return counted(files.read(f"{self._at('cpu', path)}/cpu.stat"))

    def counters(self, path: str) -> Counters:
        unified = self._mounts.get("unified")
        paths = {"cpu.stat": Path(self._at("cpu", path)) / "cpu.stat"}
        if "cpuacct" in self._mounts:
            paths["cpu"] = inside(self._mounts["cpuacct"], path) / "cpuacct.usage"
        if "memory" in self._mounts:
            memory = inside(self._mounts["memory"], path)
            paths |= {"memory": memory / "memory.usage_in_bytes", "memory.stat": memory / "memory.stat"}
        if unified is not None:
            paths["pressure"] = inside(unified, path) / "memory.pressure"
        return Counters(opened(paths, needed="cpu.stat"), cpu=_used, idle=b"total_inactive_file")

    def read_container(self, path: str) -> ContainerValues:
        known = "memory" in self._mounts
        return ContainerValues(
            cpu=self.read_cpu(path),
            memory_limit=self.read_memory(path) if known else None,
            memory_usage=self.memory_usage(path),
            processes=files.processes(self._at("cpu", path)),
        )

    def remove(self, path: str) -> None:
        for hierarchy in self._hierarchies:
            files.remove_tree(inside(hierarchy, path))

    def kill(self, path: str) -> tuple[int, ...]:
        return files.kill_tree(*(inside(hierarchy, path) for hierarchy in self._hierarchies))

    def list_pods(self) -> tuple[PodCgroup, ...]:
        found = {pod for hierarchy in self._hierarchies for pod in self.pods_below(hierarchy)}
        return tuple(sorted(found, key=lambda pod: pod.path))

    def _at(self, controller: str, path: str) -> str:
        mount = self._mounts.get(controller)
        if mount is None:
            raise Unsupported(f"this machine has no {controller} controller")
        directory = below(mount, path)
        if not os.path.isdir(directory):
            raise Missing(f"no cgroup {directory}")
        return directory


def _used(found: Files) -> float | None:
    nanoseconds = whole(text(found, "cpu"))
    return None if nanoseconds is None else nanoseconds / 1e9


def _inherit_cpuset(parent: Path, directory: Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not files.read(directory / name):
            files.write(directory / name, files.read(parent / name))

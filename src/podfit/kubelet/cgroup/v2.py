"""cgroup v2: one hierarchy, in which a parent hands controllers down to its children.

`cpu.weight` takes the place of shares, by the kubelet's own linear conversion (R-183). Unlike v1 the kernel accepts
a memory limit below usage, and kills.
"""

from pathlib import Path
from typing import Literal

from podfit.decide.cgroup.conversion import shares_from_weight, weight_from_shares_linear
from podfit.kubelet.cgroup import files
from podfit.kubelet.cgroup.common import Tree, below, counted, inside, without_idle_cache
from podfit.kubelet.cgroup.counters import Counters, Files, named, opened, text
from podfit.kubelet.cgroup.protocol import (
    CgroupConfig,
    CgroupError,
    ContainerValues,
    CPUValues,
    Enforcement,
    Layout,
    Missing,
    PartlyDone,
    PodCgroup,
    Throttling,
    Unsupported,
)

WANTED = ("cpu", "cpuset", "memory", "hugetlb", "pids", "io")
LIMITS = ("cpu", "memory", "pids")


class CgroupsV2(Tree):
    def __init__(self, mount: Path, layout: Layout) -> None:
        super().__init__(layout)
        self._mount = mount
        available = files.read(mount / "cgroup.controllers").split()
        self._controllers = tuple(name for name in WANTED if name in available)

    @property
    def version(self) -> Literal["v2"]:
        return "v2"

    @property
    def enforced(self) -> Enforcement:
        has = {name: name in self._controllers for name in LIMITS}
        missing = tuple(name for name, there in has.items() if not there)
        return Enforcement(cpu=has["cpu"], memory=has["memory"], pids=has["pids"], missing=missing)

    def create(self, path: str, config: CgroupConfig) -> None:
        directory = self._mount
        for part in path.strip("/").split("/"):
            self._enable_controllers(directory)
            directory = directory / part
            try:
                directory.mkdir(exist_ok=True)
            except OSError as error:
                raise files.failed(f"making {directory}", error) from error
        if config.cpu_shares is not None and "cpu" in self._controllers:
            self.set_cpu_shares(path, config.cpu_shares)
        if config.cpu_quota is not None and "cpu" in self._controllers:
            self.set_cpu_limit(path, quota=config.cpu_quota, period=config.cpu_period)
        if config.memory_limit is not None and "memory" in self._controllers:
            self.set_memory_limit(path, config.memory_limit)
        for name, kept in (("memory.min", config.memory_min), ("memory.low", config.memory_low)):
            if kept is not None and "memory" in self._controllers:
                files.write(directory / name, kept)
        if config.pids_limit is not None and "pids" in self._controllers:
            files.write(directory / "pids.max", config.pids_limit)

    def _enable_controllers(self, directory: Path) -> None:
        control = directory / "cgroup.subtree_control"
        missing = set(self._controllers) - set(files.read(control).split())
        if missing:
            files.write(control, " ".join(f"+{name}" for name in sorted(missing)))

    def exists(self, path: str) -> bool:
        directory = below(self._mount, path)
        try:
            return set(self._controllers) <= set(files.read(f"{directory}/cgroup.controllers").split())
        except CgroupError:
            return False

    def read_cpu(self, path: str) -> CPUValues:
        directory = self._at("cpu", path)
        weight = files.read_int(f"{directory}/cpu.weight")
        quota, period = files.read(f"{directory}/cpu.max").split()
        return CPUValues(
            shares=shares_from_weight(weight),
            weight=weight,
            quota=None if quota == "max" else int(quota),
            period=int(period),
        )

    def read_memory(self, path: str) -> int | None:
        limit = files.read(f"{self._at('memory', path)}/memory.max")
        return None if limit == "max" else int(limit)

    def set_cpu_shares(self, path: str, shares: int) -> None:
        files.write(self._at("cpu", path) / "cpu.weight", weight_from_shares_linear(shares))

    def set_idle(self, path: str) -> bool:
        directory = self._at("cpu", path)
        if not (directory / "cpu.idle").exists():
            return False
        files.write(directory / "cpu.idle", 1)
        return True

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        files.write(self._at("cpu", path) / "cpu.max", f"{'max' if quota < 0 else quota} {period}")

    def set_memory_limit(self, path: str, limit: int) -> None:
        files.write(self._at("memory", path) / "memory.max", "max" if limit < 0 else limit)

    def memory_usage(self, path: str) -> int | None:
        if "memory" not in self._controllers:
            return None
        return files.read_int(self._at("memory", path) / "memory.current")

    def working_set(self, path: str) -> int | None:
        usage = self.memory_usage(path)
        return None if usage is None else without_idle_cache(usage, self._at("memory", path), "inactive_file")

    def memory_high(self, path: str) -> int | None:
        high = files.read(self._at("memory", path) / "memory.high")
        return None if high == "max" else int(high)

    def set_memory_high(self, path: str, high: int) -> None:
        files.write(self._at("memory", path) / "memory.high", "max" if high < 0 else high)

    def reclaim(self, path: str, amount: int) -> None:
        """The kernel answers EAGAIN when it got less than that; what counts is the usage afterwards."""
        try:
            files.write(self._at("memory", path) / "memory.reclaim", amount)
        except (PartlyDone, Missing):
            return

    def memory_stall(self, path: str) -> int | None:
        try:
            text = files.read(self._at("memory", path) / "memory.pressure")
        except CgroupError:
            return None
        full = next((line for line in text.splitlines() if line.startswith("full ")), "")
        return int(full.rpartition("total=")[2]) if full else None

    def throttling(self, path: str) -> Throttling | None:
        return counted(files.read(self._at("cpu", path) / "cpu.stat"))

    def counters(self, path: str) -> Counters:
        directory = self._at("cpu", path)
        paths = {
            "cpu.stat": directory / "cpu.stat",
            "memory": directory / "memory.current",
            "memory.stat": directory / "memory.stat",
            "pressure": directory / "memory.pressure",
        }
        return Counters(opened(paths, needed="cpu.stat"), cpu=_used, idle=b"inactive_file")

    def read_container(self, path: str) -> ContainerValues:
        known = "memory" in self._controllers
        return ContainerValues(
            cpu=self.read_cpu(path),
            memory_limit=self.read_memory(path) if known else None,
            memory_usage=self.memory_usage(path),
            processes=files.processes(inside(self._mount, path)),
        )

    def remove(self, path: str) -> None:
        files.remove_tree(inside(self._mount, path))

    def kill(self, path: str) -> tuple[int, ...]:
        return files.kill_tree(inside(self._mount, path))

    def list_pods(self) -> tuple[PodCgroup, ...]:
        return self.pods_below(self._mount)

    def _at(self, controller: str, path: str) -> Path:
        if controller not in self._controllers:
            raise Unsupported(f"this machine has no {controller} controller")
        directory = inside(self._mount, path)
        if not directory.is_dir():
            raise Missing(f"no cgroup {directory}")
        return directory


def _used(found: Files) -> float | None:
    microseconds = named(text(found, "cpu.stat"), b"usage_usec")
    return None if microseconds is None else microseconds / 1e6

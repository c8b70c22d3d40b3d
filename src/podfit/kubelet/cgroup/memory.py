"""A cgroup tree in memory, for the simulated runtime.

It refuses what the kernel refuses: as v1 by default (`Busy` below usage, `Invalid` for a pod quota below a
container's), or as v2, which accepts both. Container groups are filled in by the simulated runtime.
"""

from pathlib import PurePosixPath
from typing import Literal

from msgspec.structs import replace

from podfit.decide.cgroup.conversion import MIN_SHARES, weight_from_shares_linear
from podfit.kubelet.cgroup.common import TIERS
from podfit.kubelet.cgroup.counters import Counters, Files
from podfit.kubelet.cgroup.protocol import (
    Busy,
    CgroupConfig,
    ContainerValues,
    CPUValues,
    Enforcement,
    Invalid,
    Layout,
    Missing,
    PodCgroup,
    Throttling,
    Unsupported,
    Version,
)

DEFAULT_SHARES = 1024


class MemoryCgroups:
    """`usage` maps paths to bytes in use, of leaves; a parent uses what its children use together."""

    def __init__(self, layout: Layout | None = None, *, version: Version = "v1") -> None:
        self._layout = layout or Layout("/simulated")
        self._version: Version = version
        self._groups: dict[str, CgroupConfig] = {}
        self._high: dict[str, int] = {}
        self.usage: dict[str, int] = {}

    @property
    def version(self) -> Version:
        return self._version

    @property
    def driver(self) -> Literal["cgroupfs"]:
        return "cgroupfs"

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def enforced(self) -> Enforcement:
        return Enforcement(cpu=True, memory=True, pids=True)

    def create(self, path: str, config: CgroupConfig) -> None:
        known = self._groups.get(path)
        if known is None:
            known = CgroupConfig()
            for parent in PurePosixPath(path).parents:
                if parent.name:
                    self._groups.setdefault(str(parent), CgroupConfig())
        given = {name: value for name in CgroupConfig.__struct_fields__ if (value := getattr(config, name)) is not None}
        self._groups[path] = replace(known, **given)

    def exists(self, path: str) -> bool:
        return path in self._groups

    def read_cpu(self, path: str) -> CPUValues:
        config = self._group(path)
        shares = DEFAULT_SHARES if config.cpu_shares is None else max(config.cpu_shares, MIN_SHARES)
        quota = config.cpu_quota if config.cpu_quota and config.cpu_quota > 0 else None
        weight = weight_from_shares_linear(shares) if self._version == "v2" else None
        return CPUValues(shares=shares, quota=quota, period=config.cpu_period, weight=weight)

    def read_memory(self, path: str) -> int | None:
        limit = self._group(path).memory_limit
        return limit if limit is not None and limit > 0 else None

    def set_cpu_shares(self, path: str, shares: int) -> None:
        self._groups[path] = replace(self._group(path), cpu_shares=shares)

    def set_idle(self, path: str) -> bool:
        self._group(path)
        return False

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        if self._version == "v1" and quota > 0:
            larger = [child for child in self._children(path) if (self.read_cpu(child).quota or 0) > quota]
            if larger:
                raise Invalid(f"writing {quota} to {path}: {larger[0]} has more")
        self._groups[path] = replace(self._group(path), cpu_quota=quota, cpu_period=period)

    def set_memory_limit(self, path: str, limit: int) -> None:
        if self._version == "v1" and 0 <= limit < (self.memory_usage(path) or 0):
            raise Busy(f"writing {limit} to {path}: Device or resource busy")
        self._groups[path] = replace(self._group(path), memory_limit=limit)

    def memory_usage(self, path: str) -> int | None:
        self._group(path)
        return sum(used for leaf, used in self.usage.items() if leaf == path or leaf.startswith(path + "/"))

    def working_set(self, path: str) -> int | None:
        return self.memory_usage(path)

    def memory_high(self, path: str) -> int | None:
        self._group(path)
        return self._high.get(path)

    def set_memory_high(self, path: str, high: int) -> None:
        self._group(path)
        if self._version == "v1":
            raise Unsupported("cgroup v1 has no memory.high")
        self._high.pop(path, None)
        if high >= 0:
            self._high[path] = high

    def reclaim(self, path: str, amount: int) -> None:
        """What simulated containers use is never a cache."""

    def memory_stall(self, path: str) -> int | None:
        return None

    def throttling(self, path: str) -> Throttling | None:
        return None

    def counters(self, path: str) -> Counters:
        """Nothing is counted of containers that do not run."""
        self._group(path)
        return Counters(Files(), cpu=lambda _found: None, idle=b"")

    def read_container(self, path: str) -> ContainerValues:
        return ContainerValues(
            cpu=self.read_cpu(path), memory_limit=self.read_memory(path), memory_usage=self.memory_usage(path)
        )

    def remove(self, path: str) -> None:
        below = path + "/"
        self._groups = {group: config for group, config in self._groups.items() if not _within(group, path, below)}
        self._high = {group: high for group, high in self._high.items() if not _within(group, path, below)}
        self.usage = {group: used for group, used in self.usage.items() if not _within(group, path, below)}

    def kill(self, path: str) -> tuple[int, ...]:
        """Simulated containers have no processes."""
        return ()

    def list_pods(self) -> tuple[PodCgroup, ...]:
        found = []
        for qos in TIERS:
            start = f"{self._layout.qos(qos)}/pod"
            for path in sorted(self._groups):
                uid = path.removeprefix(start)
                if path.startswith(start) and "/" not in uid:
                    found.append(PodCgroup(path=path, uid=uid, qos=qos))
        return tuple(found)

    def _children(self, path: str) -> list[str]:
        return [group for group in self._groups if group.rpartition("/")[0] == path]

    def _group(self, path: str) -> CgroupConfig:
        if path not in self._groups:
            raise Missing(f"no cgroup {path}")
        return self._groups[path]


def _within(path: str, root: str, below: str) -> bool:
    return path == root or path.startswith(below)

"""What cgroup v1 and v2 share: the layout of the tree, and finding pod cgroups in it."""

from pathlib import Path
from typing import Literal

from podfit.kubelet.cgroup import files
from podfit.kubelet.cgroup.protocol import QOS, Layout, PodCgroup, Throttling

TIERS: tuple[QOS, ...] = ("Guaranteed", "Burstable", "BestEffort", "Spare")


class Tree:
    """A cgroup hierarchy below a mount point."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def driver(self) -> Literal["cgroupfs"]:
        return "cgroupfs"

    def pods_below(self, mount: Path) -> tuple[PodCgroup, ...]:
        found = []
        for qos in TIERS:
            tier = inside(mount, self._layout.qos(qos))
            for directory in sorted(tier.glob("pod*")) if tier.is_dir() else []:
                uid = directory.name.removeprefix("pod")
                found.append(PodCgroup(path=self._layout.pod(uid, qos), uid=uid, qos=qos))
        return tuple(found)


def inside(mount: Path, path: str) -> Path:
    return mount / path.lstrip("/")


def below(mount: Path, path: str) -> str:
    """The same as text: a turn of a pod looks at thirty paths, and a Path for each takes longer than the looking."""
    return f"{mount}/{path.lstrip('/')}"


def without_idle_cache(usage: int, directory: Path | str, name: str) -> int:
    """`usage` in bytes without what memory.stat has under that name. Raises CgroupError."""
    values = dict(line.split(maxsplit=1) for line in files.read(f"{directory}/memory.stat").splitlines() if " " in line)
    return max(0, usage - int(values.get(name, 0)))


def counted(stat: str) -> Throttling | None:
    """What cpu.stat says of the quota, under either version's names; None while there was no period with one."""
    values = dict(line.split(maxsplit=1) for line in stat.splitlines() if " " in line)
    periods = int(values.get("nr_periods", 0))
    if not periods:
        return None
    seconds = int(values["throttled_usec"]) / 1e6 if "throttled_usec" in values else int(values["throttled_time"]) / 1e9
    return Throttling(periods=periods, throttled=int(values["nr_throttled"]), seconds=seconds)

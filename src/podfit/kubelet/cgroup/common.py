"""What both versions share: the layout, and finding pod cgroups in it."""

from pathlib import Path
from typing import Literal

from podfit.kubelet.cgroup.protocol import QOS, Layout, PodCgroup

TIERS: tuple[QOS, ...] = ("Guaranteed", "Burstable", "BestEffort")


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

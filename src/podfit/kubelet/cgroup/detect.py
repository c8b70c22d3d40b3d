"""Detects the machine's cgroup version. A hybrid, with v2 mounted beside v1, is v1: the controllers are there."""

from pathlib import Path

import msgspec

from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups, Layout
from podfit.kubelet.cgroup.v1 import CgroupsV1
from podfit.kubelet.cgroup.v2 import CgroupsV2

MOUNTS = Path("/proc/self/mounts")


class DetectedCgroups(msgspec.Struct, frozen=True):
    """`described` is for people: version, driver, what cannot be enforced."""

    cgroups: Cgroups
    described: str


def detect(layout: Layout, *, mounts: Path = MOUNTS) -> DetectedCgroups:
    """Raises CgroupError where there are no cgroups at all."""
    v1: dict[str, Path] = {}
    v2: Path | None = None
    for line in mounts.read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            # Named hierarchies (systemd's) have no controller, but runtimes put containers there too.
            names = [name for name in options.split(",") if name not in ("rw", "relatime", "nosuid", "nodev", "noexec")]
            v1 |= {name: Path(where) for name in names if not name.startswith(("xattr", "release_agent", "clone_"))}
        elif kind == "cgroup2" and v2 is None:
            v2 = Path(where)
    if v1.keys() & {"cpu", "memory"}:
        if v2 is not None:
            v1["unified"] = v2  # without controllers, but OCI runtimes make their directories there too
        return _described(CgroupsV1(v1, layout), "cgroup v1 (hybrid)" if v2 else "cgroup v1")
    if v2 is None:
        raise CgroupError("no cgroup hierarchy is mounted")
    return _described(CgroupsV2(v2, layout), "cgroup v2")


def _described(cgroups: Cgroups, version: str) -> DetectedCgroups:
    missing = cgroups.enforced.missing
    lacks = f", no {' and '.join(missing)} controller" if missing else ""
    return DetectedCgroups(cgroups, f"{version}, {cgroups.driver} driver{lacks}")

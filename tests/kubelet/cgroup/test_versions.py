"""One suite for all cgroup trees: v1 and v2 over directories that look like the kernel's, and the one in memory."""

import errno
import os
from pathlib import Path

import pytest

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import Busy, CgroupConfig, CgroupError, Cgroups, Invalid, Layout, Missing, PodCgroup
from podfit.kubelet.cgroup.v1 import CgroupsV1
from podfit.kubelet.cgroup.v2 import CgroupsV2

LAYOUT = Layout("/podfit-test")
V1_STAT = "inactive_file 0\ntotal_inactive_file 1024\n"
V1_FILES = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "cgroup.procs": ""},
    "memory": {"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "4096", "memory.stat": V1_STAT},
    "pids": {"pids.max": "max"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
}
V2_FILES = {
    "cpu.weight": "100",
    "cpu.max": "max 100000",
    "memory.max": "max",
    "memory.current": "4096",
    "memory.stat": "inactive_anon 7\ninactive_file 1024\n",
    "pids.max": "max",
    "cgroup.controllers": "cpu memory pids",
    "cgroup.subtree_control": "",
    "cgroup.procs": "",
}
POD = LAYOUT.pod("u1", "Burstable")


def _fill(directory: Path, content: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (directory / name).write_text(text)


def _pretend(directory: Path, content: dict[str, str]) -> None:
    """What the kernel puts into a cgroup directory when it is made, on every level down to the pod's."""
    path = directory
    for part in ("", *POD.strip("/").split("/")):
        path = path / part
        _fill(path, content)


@pytest.fixture(params=["v1", "v2", "memory"])
def cgroups(request: pytest.FixtureRequest, tmp_path: Path) -> Cgroups:
    if request.param == "memory":
        made: Cgroups = MemoryCgroups(LAYOUT)
    elif request.param == "v1":
        for controller, content in V1_FILES.items():
            _pretend(tmp_path / controller, content)
        _fill(tmp_path / "cpuset", {"cpuset.cpus": "0-1", "cpuset.mems": "0"})
        made = CgroupsV1({name: tmp_path / name for name in V1_FILES}, LAYOUT)
    else:
        _pretend(tmp_path, V2_FILES)
        made = CgroupsV2(tmp_path, LAYOUT)
    made.create(POD, CgroupConfig(cpu_shares=512, cpu_quota=50_000, memory_limit=64 << 20))
    return made


def test_what_is_written_is_read_back(cgroups: Cgroups) -> None:
    cpu = cgroups.read_cpu(POD)
    assert (cpu.quota, cpu.period) == (50_000, 100_000)
    assert cpu.weight == 20 if cgroups.version == "v2" else cpu.shares == 512
    assert cgroups.read_memory(POD) == 64 << 20
    cgroups.set_cpu_limit(POD, quota=80_000, period=200_000)
    cgroups.set_memory_limit(POD, 96 << 20)
    assert cgroups.read_cpu(POD).quota == 80_000
    assert cgroups.read_cpu(POD).period == 200_000
    assert cgroups.read_memory(POD) == 96 << 20


def test_minus_one_is_no_limit(cgroups: Cgroups) -> None:
    cgroups.set_cpu_limit(POD, quota=-1, period=100_000)
    cgroups.set_memory_limit(POD, -1)
    assert cgroups.read_cpu(POD).quota is None
    assert cgroups.read_memory(POD) is None


def test_pods_are_found_by_their_tier(cgroups: Cgroups) -> None:
    assert cgroups.exists(POD)
    assert cgroups.list_pods() == (PodCgroup(path=POD, uid="u1", qos="Burstable"),)


def test_a_cgroup_that_is_not_there_is_missing(cgroups: Cgroups) -> None:
    with pytest.raises(Missing):
        cgroups.read_cpu(LAYOUT.pod("other", "Burstable"))
    assert not cgroups.exists(LAYOUT.pod("other", "Burstable"))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_process_of_another_namespace_is_not_killed(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel shows it as 0, which as a target of a signal is the sender's whole process group."""
    killed: list[int] = []
    monkeypatch.setattr("os.kill", lambda pid, _signal: killed.append(pid))
    _pretend(tmp_path, V2_FILES | {"cgroup.procs": "0\n"})
    made: Cgroups = CgroupsV1({"cpu": tmp_path}, LAYOUT) if version == "v1" else CgroupsV2(tmp_path, LAYOUT)
    _fill(tmp_path / POD.strip("/") / "child", {"cgroup.procs": "0\n71\n"})
    assert made.kill(POD) == (71,)
    assert killed == [71]


def test_a_process_that_may_not_be_killed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_pid: int, _signal: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("os.kill", refused)
    _pretend(tmp_path, V2_FILES | {"cgroup.procs": "71\n"})
    with pytest.raises(CgroupError, match="ending process 71: Operation not permitted"):
        CgroupsV2(tmp_path, LAYOUT).kill(POD)


def test_v1_hands_cpus_and_memory_nodes_down(tmp_path: Path) -> None:
    for controller, content in V1_FILES.items():
        _pretend(tmp_path / controller, content)
    _fill(tmp_path / "cpuset", {"cpuset.cpus": "0-1", "cpuset.mems": "0"})
    CgroupsV1({name: tmp_path / name for name in V1_FILES}, LAYOUT).create(POD, CgroupConfig())
    assert (tmp_path / "cpuset" / POD.strip("/") / "cpuset.cpus").read_text() == "0-1"


def test_v2_hands_controllers_down(tmp_path: Path) -> None:
    _pretend(tmp_path, V2_FILES)
    CgroupsV2(tmp_path, LAYOUT).create(POD, CgroupConfig())
    parent = tmp_path / LAYOUT.qos("Burstable").strip("/")
    assert (parent / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_memory_refuses_what_v1_refuses_and_v2_does_not() -> None:
    child = f"{POD}/c"
    for version, refuses in (("v1", True), ("v2", False)):
        made = MemoryCgroups(LAYOUT, version=version)  # type: ignore[arg-type]  # an int of the table
        made.create(POD, CgroupConfig())
        made.create(child, CgroupConfig(cpu_quota=50_000))
        made.usage[child] = 100 << 20
        if refuses:
            with pytest.raises(Busy):
                made.set_memory_limit(POD, 64 << 20)
            with pytest.raises(Invalid):
                made.set_cpu_limit(POD, quota=20_000, period=100_000)
        else:
            made.set_memory_limit(POD, 64 << 20)
            made.set_cpu_limit(POD, quota=20_000, period=100_000)


@pytest.mark.parametrize(
    ("mounts", "version", "described"),
    [
        ("cgroup /c/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup /c/memory cgroup rw,memory 0 0\n", "v1", "cgroup v1"),
        ("cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n", "v1", "cgroup v1 (hybrid)"),
    ],
)
def test_detection(tmp_path: Path, mounts: str, version: str, described: str) -> None:
    table = tmp_path / "mounts"
    table.write_text(mounts)
    found = detect(LAYOUT, mounts=table)
    assert found.cgroups.version == version
    assert found.described.startswith(described)


def test_detection_of_v2(tmp_path: Path) -> None:
    _fill(tmp_path / "cg", V2_FILES)
    table = tmp_path / "mounts"
    table.write_text(f"cgroup2 {tmp_path / 'cg'} cgroup2 rw 0 0\n")
    assert detect(LAYOUT, mounts=table).described == "cgroup v2, cgroupfs driver"


def test_no_cgroups_is_an_error(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_text("proc /proc proc rw 0 0\n")
    with pytest.raises(CgroupError, match="no cgroup hierarchy"):
        detect(LAYOUT, mounts=table)


def test_the_working_set_is_without_idle_file_cache(cgroups: Cgroups) -> None:
    idle = 0 if isinstance(cgroups, MemoryCgroups) else 1024
    assert cgroups.working_set(POD) == (cgroups.memory_usage(POD) or 0) - idle

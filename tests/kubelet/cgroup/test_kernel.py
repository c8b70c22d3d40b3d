"""The cgroup tree against this machine's kernel: its real refusals, and nothing left when removed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Busy, CgroupConfig, Cgroups, Invalid, Layout, Missing

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]

LAYOUT = Layout(f"/podfit-kernel-test-{os.getpid()}")
POD = LAYOUT.pod("u1", "Burstable")
MIB = 1 << 20
USER = """
import sys
for path in sys.argv[1:]:
    with open(path, "w") as file:
        file.write("0")  # cgroup v1 and v2 both read 0 as the writer
used = bytearray(b"x" * (24 << 20))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    found = detect(LAYOUT).cgroups
    found.create(POD, CgroupConfig(cpu_shares=512, cpu_quota=50_000, memory_limit=64 * MIB))
    yield found
    found.remove(LAYOUT.prefix)
    assert _directories() == []


@pytest.fixture
def user(cgroups: Cgroups) -> Iterator[subprocess.Popen[str]]:
    """A process with 24 MiB in use inside the pod."""
    entries = [str(directory / "cgroup.procs") for directory in _directories() if str(directory).endswith(POD)]
    command = [sys.executable, "-c", USER, *entries]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def _directories() -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").rglob("*") if LAYOUT.prefix in str(path) and path.is_dir()]


def test_values_reach_the_kernel_and_come_back(cgroups: Cgroups) -> None:
    assert cgroups.exists(POD)
    cpu = cgroups.read_cpu(POD)
    assert (cpu.quota, cpu.period, cgroups.read_memory(POD)) == (50_000, 100_000, 64 * MIB)
    assert cpu.shares == 512 or cpu.weight == 20
    cgroups.set_cpu_limit(POD, quota=-1, period=50_000)
    cgroups.set_memory_limit(POD, -1)
    assert (cgroups.read_cpu(POD).quota, cgroups.read_cpu(POD).period) == (None, 50_000)
    assert cgroups.read_memory(POD) is None
    assert [pod.uid for pod in cgroups.list_pods()] == ["u1"]


def test_a_tier_that_was_never_limited_reads_as_unlimited(cgroups: Cgroups) -> None:
    assert cgroups.read_memory(LAYOUT.qos("Burstable")) is None
    assert cgroups.read_cpu(LAYOUT.qos("Burstable")).quota is None


def test_a_quota_below_a_childs_is_invalid_on_v1(cgroups: Cgroups) -> None:
    cgroups.create(f"{POD}/c1", CgroupConfig(cpu_quota=40_000))
    if cgroups.version == "v2":
        cgroups.set_cpu_limit(POD, quota=20_000, period=100_000)
        return
    with pytest.raises(Invalid, match=r"cpu\.cfs_quota_us"):
        cgroups.set_cpu_limit(POD, quota=20_000, period=100_000)
    assert cgroups.read_cpu(POD).quota == 50_000


def test_a_value_the_kernel_does_not_take_is_invalid(cgroups: Cgroups) -> None:
    with pytest.raises(Invalid):
        cgroups.set_cpu_limit(POD, quota=1, period=100_000)


def test_memory_below_usage_is_busy_on_v1(cgroups: Cgroups, user: subprocess.Popen[str]) -> None:
    used = cgroups.memory_usage(POD)
    assert used is not None
    assert used > 24 * MIB
    if cgroups.version == "v2":
        pytest.skip("v2 accepts it and kills")
    with pytest.raises(Busy, match=r"memory\.limit_in_bytes"):
        cgroups.set_memory_limit(POD, 8 * MIB)
    assert cgroups.read_memory(POD) == 64 * MIB
    assert user.poll() is None


def test_a_cgroup_with_a_process_inside_is_not_removed(cgroups: Cgroups, user: subprocess.Popen[str]) -> None:
    with pytest.raises(Busy):
        cgroups.remove(POD)
    assert user.poll() is None
    assert user.pid in cgroups.read_container(POD).processes


def test_processes_inside_and_below_are_ended(cgroups: Cgroups, user: subprocess.Popen[str]) -> None:
    assert cgroups.kill(f"{POD}/nobody") == ()
    assert cgroups.kill(LAYOUT.qos("Burstable")) == (user.pid,)
    assert user.wait(timeout=10) == -signal.SIGKILL
    cgroups.remove(POD)
    assert cgroups.kill(POD) == ()


def test_removing_twice_is_fine(cgroups: Cgroups) -> None:
    cgroups.remove(POD)
    cgroups.remove(POD)
    assert not cgroups.exists(POD)
    with pytest.raises(Missing):
        cgroups.read_cpu(POD)

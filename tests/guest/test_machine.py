"""What the guest is: without this nothing else here would show anything about cgroup v2."""

import os
from pathlib import Path

import pytest

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Layout

pytestmark = [pytest.mark.guest, pytest.mark.node]
MOUNT = Path("/sys/fs/cgroup")


def test_it_has_nothing_but_cgroup_v2() -> None:
    kinds = {line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    assert "cgroup" not in kinds
    assert set((MOUNT / "cgroup.controllers").read_text().split()) == {"cpu", "io", "memory", "pids"}
    found = detect(Layout("/podfit-x"))
    assert found.cgroups.version == "v2"
    assert found.cgroups.enforced.missing == ()
    assert found.described == "cgroup v2, cgroupfs driver"


def test_it_lacks_what_docs_cgroups_says_it_lacks() -> None:
    controllers = (MOUNT / "cgroup.controllers").read_text().split()
    assert "cpuset" not in controllers
    assert "hugetlb" not in controllers
    assert not Path("/proc/pressure").exists()
    assert os.cpu_count() == 1

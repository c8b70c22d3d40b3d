"""CPUs and NUMA nodes as /sys shows them."""

import os
from pathlib import Path

from podfit.decide.managers.cpu import CpuLocation
from podfit.decide.managers.memory import Bank
from podfit.kubelet.managers.machine import banks, topology


def two_sockets(root: Path) -> Path:
    """CPU n and n + 2 are threads of a core; each core is a socket and a NUMA node of its own."""
    for cpu in range(4):
        directory = root / f"cpu/cpu{cpu}/topology"
        directory.mkdir(parents=True)
        (directory / "thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
        (directory / "physical_package_id").write_text(f"{cpu % 2}\n")
    for node in range(2):
        directory = root / f"node/node{node}"
        directory.mkdir(parents=True)
        (directory / "cpulist").write_text(f"{node},{node + 2}\n")
        (directory / "meminfo").write_text(f"Node {node} MemTotal:       {1024 * (node + 1)} kB\n")
    return root


def test_threads_cores_and_nodes(tmp_path: Path) -> None:
    sys = two_sockets(tmp_path)
    assert topology(frozenset({0, 1, 2}), sys) == {
        0: CpuLocation(0, 0, 0),
        1: CpuLocation(1, 1, 1),
        2: CpuLocation(0, 0, 0),
    }
    assert banks(999, {1: 5}, sys) == {0: Bank(1 << 20), 1: Bank(2 << 20, 5)}


def test_a_machine_that_tells_nothing_is_flat(tmp_path: Path) -> None:
    assert topology(frozenset({0, 1}), tmp_path) == {0: CpuLocation(0), 1: CpuLocation(1)}
    assert banks(999, {0: 9}, tmp_path) == {0: Bank(999, 9)}


def test_this_machine() -> None:
    found = topology(frozenset(os.sched_getaffinity(0)))
    assert set(found) == os.sched_getaffinity(0)

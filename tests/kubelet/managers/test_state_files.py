"""The managers' files: upstream's, down to the checksum, and what becomes of those that are not right."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from podfit.decide.managers.cpu import CpuState, flat, parse, show
from podfit.decide.managers.memory import Bank, Block, MemoryState
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.checkpoints.format import Damaged
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.managers import state_files
from podfit.kubelet.managers.config import ManagerError, ManagersConfig, read_reserved_cpus, read_reserved_memory
from podfit.kubelet.managers.manager import ResourceManagers
from support.clock import FakeClock

FRESH = CpuState.fresh(flat(4), parse("0"))
BANKS = {0: Bank(2048, 512)}
STATIC = ManagersConfig(
    cpu_policy="static", topology=flat(4), reserved_cpus=parse("0"), memory_policy="Static", banks=BANKS
)
CPUS = CpuState(topology=flat(4), reserved=parse("0"), shared=parse("0,3"), assigned={"u1": {"c1": parse("1-2")}})
MEMORY = MemoryState(banks=BANKS, assigned={"u1": {"c1": Block(0, 512)}})


@pytest.mark.parametrize(
    ("policy", "shared", "entries", "known"),
    [
        ("none", "4-6", {}, 354655845),
        ("none", "1-3", {"pod": {"container1": "4-6", "container2": "1-3"}}, 3610638499),
        ("other", "1-3", {}, 1394507217),
    ],
)
def test_checksums_of_upstreams_cpu_states(
    policy: str, shared: str, entries: dict[str, dict[str, str]], known: int
) -> None:
    assert state_files.cpu_checksum(policy, shared, entries) == known


def test_checksum_of_upstreams_memory_state() -> None:
    table = {"total": 2048, "systemReserved": 512, "allocatable": 1536, "reserved": 512, "free": 1024}
    assert (
        state_files.memory_checksum(
            {
                "policyName": "static",
                "machineState": {"0": {"numberOfAssignments": 0, "memoryMap": {"memory": table}, "cells": []}},
                "entries": {"pod": {"container1": [{"numaAffinity": [0], "type": "memory", "size": 512}]}},
            }
        )
        == 4215593881
    )


def test_states_survive_their_files() -> None:
    assert state_files.restored_cpus(state_files.dump_cpus(CPUS), FRESH) == CPUS
    assert state_files.restored_cpus(state_files.dump_cpus(FRESH), FRESH) == FRESH
    assert state_files.restored_memory(state_files.dump_memory(MEMORY), BANKS) == MEMORY
    written = json.loads(state_files.dump_memory(MEMORY))
    assert written["machineState"]["0"]["memoryMap"]["memory"] == {
        "total": 2048,
        "systemReserved": 512,
        "allocatable": 1536,
        "reserved": 512,
        "free": 1024,
    }


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"policyName":"static"}', b"\xff"])
def test_what_is_no_state_is_damaged(content: bytes) -> None:
    with pytest.raises(Damaged):
        state_files.restored_cpus(content, FRESH)
    with pytest.raises(Damaged):
        state_files.restored_memory(content, BANKS)


def changed(content: bytes, **fields: Any) -> bytes:
    document = json.loads(content) | fields
    return json.dumps(document).encode()


def test_a_change_by_hand_is_damage() -> None:
    with pytest.raises(Damaged):
        state_files.restored_cpus(changed(state_files.dump_cpus(CPUS), defaultCpuSet="0"), FRESH)
    with pytest.raises(Damaged):
        state_files.restored_memory(changed(state_files.dump_memory(MEMORY), entries={}), BANKS)


async def test_what_was_kept_is_there_after_a_crash(tmp_path: Path) -> None:
    managers = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()))
    await managers.keep(CPUS, MEMORY)
    again = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()))
    assert (again.cpus, again.memory) == (CPUS, MEMORY)
    assert show(again.cpuset("u1", "c1")) == "1-2"
    assert show(again.cpuset("u2", "c1")) == "0,3"
    assert (again.mems("u1", "c1"), again.mems("u2", "c1")) == ("0", "")
    again.release("u1")
    await again.flush()
    assert ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock())).cpus == FRESH


async def test_what_cannot_be_written_is_not_in_force(tmp_path: Path) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError("no space")

    managers = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()), write=full)
    with pytest.raises(CheckpointError, match="no space"):
        await managers.keep(CPUS, MEMORY)
    assert managers.cpus == FRESH
    assert not managers.changed.is_set()


async def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "cpu_manager_state").write_bytes(b"{")
    managers = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()))
    assert managers.lost
    assert managers.cpus == FRESH
    assert (tmp_path / "cpu_manager_state.damaged").read_bytes() == b"{"


async def test_a_file_of_another_policy_or_machine_is_refused(tmp_path: Path) -> None:
    managers = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()))
    await managers.keep(CPUS, MEMORY)
    with pytest.raises(ManagerError, match='"none" differs from state checkpoint policy "static"'):
        ResourceManagers(ManagersConfig(), tmp_path, DiskWriter(FakeClock()))
    for config in (
        ManagersConfig(),
        ManagersConfig(memory_policy="Static", banks=BANKS),
        ManagersConfig(cpu_policy="static", topology=flat(8), reserved_cpus=parse("0")),
        ManagersConfig(
            cpu_policy="static", topology=flat(4), reserved_cpus=parse("1"), memory_policy="Static", banks=BANKS
        ),
        ManagersConfig(
            cpu_policy="static",
            topology=flat(4),
            reserved_cpus=parse("0"),
            memory_policy="Static",
            banks={0: Bank(4096, 512)},
        ),
    ):
        with pytest.raises(ManagerError, match=r"could not restore state .* drain this node"):
            ResourceManagers(config, tmp_path, DiskWriter(FakeClock()))


async def test_a_file_that_speaks_of_nobody_does_not_hinder_another_policy(tmp_path: Path) -> None:
    await ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock())).flush()
    assert ResourceManagers(ManagersConfig(), tmp_path, DiskWriter(FakeClock())).cpus is None
    assert not (tmp_path / "cpu_manager_state").exists()


@pytest.mark.parametrize(
    "config",
    [
        ManagersConfig(cpu_policy="static", topology=flat(4)),
        ManagersConfig(cpu_policy="static", topology=flat(2), reserved_cpus=parse("0-1")),
        ManagersConfig(topology=flat(2), reserved_cpus=parse("7")),
        ManagersConfig(memory_policy="Static", banks={0: Bank(2048)}),
    ],
)
def test_options_that_cannot_work_are_refused(config: ManagersConfig, tmp_path: Path) -> None:
    with pytest.raises(ManagerError, match="--reserved"):
        ResourceManagers(config, tmp_path, DiskWriter(FakeClock()))


def test_reserved_options_are_read() -> None:
    assert read_reserved_cpus("0-1,4") == {0, 1, 4}
    assert read_reserved_memory("0:memory=1Gi;1:memory=500Mi") == {0: 1 << 30, 1: 500 << 20}
    with pytest.raises(ManagerError):
        read_reserved_cpus("x")
    for text in ("memory=1Gi", "0:memory=", "0:memory=-1", "0:hugepages-2Mi=1"):
        with pytest.raises(ManagerError):
            read_reserved_memory(text)


async def test_writes_do_not_overtake_each_other(tmp_path: Path) -> None:
    """A flush that began before a decision must not put the state before it back on disk."""
    managers = ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock()))
    await asyncio.gather(managers.flush(), managers.keep(CPUS, MEMORY), managers.flush())
    assert ResourceManagers(STATIC, tmp_path, DiskWriter(FakeClock())).cpus == CPUS

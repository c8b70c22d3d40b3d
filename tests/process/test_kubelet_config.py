"""What the options of `up` tell a kubelet."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.core.features import FeatureGates
from podfit.decide.cgroup.memory_qos import MemoryQoS
from podfit.decide.node.options import (
    Actuation,
    CpuPolicy,
    KubeletOptions,
    MemoryPolicy,
    MemoryReservation,
    MemoryShrink,
    SwapBehavior,
)
from podfit.decide.node.pressure import DEFAULT, parse
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.node.machine import swap_bytes
from podfit.process.config_file import read
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError, UsageError
from podfit.process.node.kubelet_config import check, kubelet_config, node_machine
from podfit.process.options import ApiServerOptions, UpOptions

STATIC = KubeletOptions(
    cpu_manager_policy=CpuPolicy.STATIC,
    reserved_cpus="0",
    memory_manager_policy=MemoryPolicy.STATIC,
    reserved_memory="0:memory=1Gi",
)


def options(tmp_path: Path, kubelet: KubeletOptions) -> UpOptions:
    return UpOptions(api=ApiServerOptions(data=DataDir.at(tmp_path)), kubelet=kubelet)


def config(tmp_path: Path, kubelet: KubeletOptions, *, simulated: bool = True) -> KubeletConfig:
    return kubelet_config("n1", options(tmp_path, kubelet), simulated=simulated)


def test_what_is_reserved_is_not_allocatable(tmp_path: Path) -> None:
    made = config(tmp_path, STATIC)
    assert (made.capacity["cpu"].value(), made.allocatable["cpu"].value()) == (4, 3)
    assert made.capacity["memory"].value() - made.allocatable["memory"].value() == 1 << 30
    assert (made.managers.cpu_policy, made.managers.memory_policy) == ("static", "Static")
    machine = node_machine(made, MemoryCgroups(), options(tmp_path, STATIC))
    assert machine.static_cpus


def test_a_real_node_has_its_own_cpus_and_thresholds(tmp_path: Path) -> None:
    made = config(tmp_path, KubeletOptions(), simulated=False)
    assert len(made.managers.topology) == made.capacity["cpu"].value()
    assert sum(bank.total for bank in made.managers.banks.values()) > 0
    assert made.eviction_hard == parse(DEFAULT)
    assert made.capacity["memory"].value() - made.allocatable["memory"].value() == 100 << 20
    storage = made.capacity["ephemeral-storage"].value()
    assert storage - made.allocatable["ephemeral-storage"].value() == int(storage * 0.1)
    free = config(tmp_path, KubeletOptions(eviction_hard=""), simulated=False)
    assert free.allocatable == free.capacity
    assert config(tmp_path, KubeletOptions()).eviction_hard == (), "a simulated node knows no pressure"


def test_swap_is_the_machines_when_it_is_allowed(tmp_path: Path) -> None:
    limited = KubeletOptions(swap_behavior=SwapBehavior.LIMITED)
    real = config(tmp_path, limited, simulated=False)
    assert node_machine(real, MemoryCgroups(), options(tmp_path, limited)).swap == swap_bytes()
    assert node_machine(real, MemoryCgroups(), options(tmp_path, KubeletOptions())).swap == 0


@pytest.mark.parametrize(
    "given",
    [
        {"reserved_cpus": "x"},
        {"reserved_memory": "1Gi"},
        {"eviction_hard": "memory.available=1"},
        {"cgroup_root": "pods"},
        {"cgroup_root": "/pods/../.."},
        {"shutdown_grace_period_critical_pods": 5.0},
        {"image_gc_high_threshold": 80},
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_starts(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        check(KubeletOptions(**given))


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("memory-throttling-factor", 0.0, "--memory-throttling-factor 0: it has to be above 0 and at most 1"),
        ("memory-throttling-factor", 1.5, "--memory-throttling-factor 1.5: it has to be above 0 and at most 1"),
        ("eviction-pressure-transition-period", "soon", "transition-period: 'soon' is no duration, such as 15s"),
        ("swap-behavior", "Sometimes", "--swap-behavior: 'Sometimes'"),
    ],
)
def test_a_flag_that_says_nothing_is_refused(flag: str, value: object, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(UpOptions, {flag: value})


@pytest.mark.parametrize(
    "given",
    [
        {"cpu_manager_policy": CpuPolicy.STATIC},
        {"cpu_manager_policy": CpuPolicy.STATIC, "reserved_cpus": "0-3"},
        {"reserved_cpus": "99"},
        {"memory_manager_policy": MemoryPolicy.STATIC},
    ],
)
def test_what_this_machine_cannot_do_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(MachineError, match="--reserved"):
        config(tmp_path, KubeletOptions(**given))


def test_memory_qos_needs_the_gate_and_cgroup_v2(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiered = KubeletOptions(memory_reservation_policy=MemoryReservation.TIERED, memory_throttling_factor=0.5)
    ungated = options(tmp_path, tiered)
    gated = replace(ungated, api=replace(ungated.api, gates=FeatureGates({"MemoryQoS": True})))
    made = config(tmp_path, tiered)
    assert node_machine(made, MemoryCgroups(version="v2"), gated).memory_qos == MemoryQoS(
        allocatable=made.allocatable["memory"].value(), reserve=True, factor=0.5
    )
    assert node_machine(made, MemoryCgroups(version="v2"), options(tmp_path, tiered)).memory_qos is None
    assert node_machine(made, MemoryCgroups(), gated).memory_qos is None
    assert "no effect on cgroup v1" in caplog.text


def test_a_guarded_shrink_is_asked_for_by_the_node_too(tmp_path: Path) -> None:
    asked = KubeletOptions(memory_shrink=MemoryShrink.GUARDED)
    made = config(tmp_path, asked)
    assert node_machine(made, MemoryCgroups(), options(tmp_path, asked)).memory_shrink == "guarded"
    assert node_machine(made, MemoryCgroups(), options(tmp_path, KubeletOptions())).memory_shrink == "checked"


@pytest.mark.parametrize(
    ("asked", "endpoint", "first"),
    [
        (None, "", True),
        (None, "/run/x.sock", False),
        (Actuation.RUNTIME, "", False),
        (Actuation.KERNEL_FIRST, "/run/x.sock", True),
    ],
)
def test_growth_is_written_first_where_nobody_may_change_it(
    tmp_path: Path, asked: Actuation | None, endpoint: str, first: bool
) -> None:
    given = KubeletOptions(actuation=asked)
    made = kubelet_config("n1", options(tmp_path, given), simulated=False, memory=512 << 20)
    named = replace(options(tmp_path, given), runtime_endpoint=endpoint)
    assert node_machine(made, MemoryCgroups(), named).kernel_first is first
    assert not node_machine(replace(made, simulated=True), MemoryCgroups(), named).kernel_first


def test_the_limit_of_a_cgroup_is_the_nodes_memory(tmp_path: Path) -> None:
    made = kubelet_config("n1", options(tmp_path, KubeletOptions()), simulated=False, memory=512 << 20)
    assert (str(made.capacity["memory"]), str(made.allocatable["memory"])) == ("512Mi", "412Mi")

"""Builds a kubelet's configuration from the options of `up` and from the machine."""

import logging
import os
import re

import msgspec
from msgspec.structs import replace

from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.memory_qos import MemoryQoS
from podfit.decide.lifecycle.effects import Passing
from podfit.decide.managers.cpu import flat
from podfit.decide.managers.memory import Bank
from podfit.decide.node.options import Actuation, KubeletOptions, MemoryReservation, SwapBehavior
from podfit.decide.node.pressure import BadThreshold, Threshold, kept_free
from podfit.decide.node.pressure import parse as parse_thresholds
from podfit.decide.node.simulated import Played
from podfit.kubelet.cgroup.protocol import Cgroups
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.managers import machine as numa
from podfit.kubelet.managers.config import ManagerError, ManagersConfig, read_reserved_cpus, read_reserved_memory
from podfit.kubelet.node import machine as machine_facts
from podfit.net.addresses import own_address
from podfit.process.errors import MachineError, UsageError
from podfit.process.options import NodeOptions

log = logging.getLogger(__name__)

_CGROUP = re.compile(r"(/[\w.:@-]{1,255}(?<!/\.)(?<!/\.\.)){1,16}")

LOOPBACK = "127.0.0.1"
SIMULATED: ResourceList = {"cpu": Quantity.of(4), "memory": Quantity.of_bytes(8 << 30)}
"""The size of a simulated node."""


class PlayedNode(msgspec.Struct, frozen=True):
    """What is known of a Node that is played: what it says of its size, and who we are in its Lease."""

    size: Played
    holder: str


def check(options: KubeletOptions) -> None:
    """UsageError when an option cannot be read."""
    try:
        read_reserved_cpus(options.reserved_cpus)
        read_reserved_memory(options.reserved_memory)
        parse_thresholds(options.eviction_hard)
    except (ManagerError, BadThreshold) as error:
        raise UsageError(str(error)) from error
    if options.cgroup_root and not _CGROUP.fullmatch(options.cgroup_root):
        raise UsageError(f"--cgroup-root {options.cgroup_root}: a cgroup is a path such as /pods")
    if problem := options.problem:
        raise UsageError(problem)


PASSING = {Passing.START: 0.25, Passing.RESIZE: 0.5}
"""Seconds that a status of a pod has to last to be told where containers run. Most starts and resizes take less."""


def kubelet_config(
    name: str,
    options: NodeOptions,
    *,
    simulated: bool,
    passing_seconds: float = 0.0,
    memory: int | None = None,
    size: ResourceList | None = None,
    played: PlayedNode | None = None,
    api_server: str = "",
    address: str = "",
    port: int = 0,
    bursts: bool = False,
) -> KubeletConfig:
    """MachineError when this machine cannot do what was asked for. What is reserved is not allocatable.

    `passing_seconds` is how long a state of a start has to last to be told, on a simulated node.
    `memory` is the limit of the cgroup that all pods are in, None without one. `size` is what a
    simulated node has otherwise than others. `address` is the node's own, by default
    this machine's for others; `port` is where its server listens there. `bursts` is for options that do not say.
    """
    root = options.data.kubelet(name) if played is None else options.data.played(name)
    capacity = machine_facts.capacity(root)
    if memory is not None:
        capacity |= {"memory": Quantity.of_bytes(min(memory, capacity["memory"].value()))}
    if simulated:
        capacity |= SIMULATED | (size or {})
    if played is not None:
        capacity |= played.size.capacity
    managers = ManagersConfig() if played is not None else _managers(options.kubelet, capacity, simulated=simulated)
    thresholds = () if simulated else parse_thresholds(options.kubelet.eviction_hard)
    return KubeletConfig(
        name=name,
        root=root,
        host_ip=address or _own_address(name),
        port=port,
        capacity=capacity,
        simulated=simulated,
        files=not simulated,
        lease_holder=played.holder if played is not None else "",
        passing_seconds={Passing.START: passing_seconds} if simulated else PASSING,
        allocatable=_allocatable(capacity, managers, thresholds)
        | (played.size.allocatable if played is not None else {}),
        managers=managers,
        lends=not simulated if options.kubelet.lend_spare is None else options.kubelet.lend_spare,
        options=replace(options.kubelet, eviction_hard="") if simulated else options.kubelet,
        api_server=api_server,
        bursts=(bursts if options.kubelet.bursts is None else options.kubelet.bursts) and not simulated,
    )


def _own_address(name: str) -> str:
    """Loopback only where this machine has nothing else; endpoints do not take it."""
    if not (found := own_address()):
        log.warning("this machine has no address but loopback, so endpoints for its pods are refused node=%s", name)
    return found or LOOPBACK


def _allocatable(capacity: ResourceList, managers: ManagersConfig, thresholds: tuple[Threshold, ...]) -> ResourceList:
    """The capacity without what is reserved, and without what has to stay free lest the node be under pressure."""
    memory, storage = capacity["memory"].value(), capacity["ephemeral-storage"].value()
    less = {
        "cpu": Quantity.of(len(managers.reserved_cpus)),
        "memory": Quantity.of_bytes(managers.reserved_memory + kept_free(thresholds, "memory.available", memory)),
        "ephemeral-storage": Quantity.of_bytes(kept_free(thresholds, "nodefs.available", storage)),
    }
    return capacity | {name: capacity[name] - amount for name, amount in less.items() if amount}


def _managers(options: KubeletOptions, capacity: ResourceList, *, simulated: bool) -> ManagersConfig:
    reserved, memory = read_reserved_memory(options.reserved_memory), capacity["memory"].value()
    if simulated:
        topology, banks = flat(capacity["cpu"].value()), {0: Bank(memory, reserved.get(0, 0))}
    else:
        topology, banks = numa.topology(frozenset(os.sched_getaffinity(0))), numa.banks(memory, reserved)
    config = ManagersConfig(
        cpu_policy=options.cpu_manager_policy.value,
        memory_policy=options.memory_manager_policy.value,
        topology=topology,
        banks=banks,
        reserved_cpus=read_reserved_cpus(options.reserved_cpus),
    )
    try:
        config.check()
    except ManagerError as error:
        raise MachineError(str(error)) from error
    return config


def node_machine(config: KubeletConfig, cgroups: Cgroups, options: NodeOptions) -> Machine:
    swapping = options.kubelet.swap_behavior is SwapBehavior.LIMITED and not config.simulated
    return Machine(
        processes=0 if config.simulated else machine_facts.process_numbers(),
        swap=machine_facts.swap_bytes() if swapping else 0,
        swap_controller=not config.simulated and machine_facts.limits_swap(cgroups.version),
        memory=config.capacity["memory"].value(),
        cgroup=cgroups.version,
        gates=options.gates,
        static_cpus=config.managers.cpu_policy == "static",
        memory_qos=_memory_qos(config, cgroups, options),
        memory_shrink=options.kubelet.memory_shrink.value,
        kernel_first=_kernel_first(options) and not config.simulated,
    )


def _kernel_first(options: NodeOptions) -> bool:
    """Another's runtime may change what it is asked for (NRI), so it goes first unless the user knows better."""
    if options.kubelet.actuation is None:
        return not options.runtime_endpoint
    return options.kubelet.actuation is Actuation.KERNEL_FIRST


def _memory_qos(config: KubeletConfig, cgroups: Cgroups, options: NodeOptions) -> MemoryQoS | None:
    if not options.gates["MemoryQoS"]:
        return None
    if cgroups.version == "v1":
        log.warning("the gate MemoryQoS has no effect on cgroup v1")
        return None
    return MemoryQoS(
        allocatable=config.allocatable["memory"].value(),
        reserve=options.kubelet.memory_reservation_policy is MemoryReservation.TIERED,
        factor=options.kubelet.memory_throttling_factor,
    )

"""The flags about a node, which `up` and `kubelet` have in common."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter
from msgspec.structs import replace

from podfit.decide.cgroup.memory_qos import THROTTLING_FACTOR
from podfit.decide.node.pressure import DEFAULT
from podfit.process.options import (
    Actuation,
    CpuPolicy,
    KubeletOptions,
    MemoryPolicy,
    MemoryReservation,
    MemoryShrink,
    PodNetworkKind,
    SwapBehavior,
)


@dataclass(frozen=True, kw_only=True)
class NodeFlags:
    """None: not given, so what a configuration file says counts, else the default."""

    cpu_manager_policy: Annotated[
        CpuPolicy | None,
        Parameter(help="static: whole CPUs of Guaranteed pods are theirs alone. [default: none]", show_choices=True),
    ] = None
    reserved_cpus: Annotated[str | None, Parameter(help="CPUs that are never given away, such as 0-1.")] = None
    memory_manager_policy: Annotated[
        MemoryPolicy | None,
        Parameter(
            help="Static: memory of Guaranteed pods comes from one NUMA node. [default: None]", show_choices=True
        ),
    ] = None
    reserved_memory: Annotated[str | None, Parameter(help="Memory that is never given away, such as 0:memory=1Gi.")] = (
        None
    )
    memory_reservation_policy: Annotated[
        MemoryReservation | None,
        Parameter(
            help="TieredReservation: memory requests are kept from reclaim (gate MemoryQoS). [default: None]",
            show_choices=True,
        ),
    ] = None
    memory_throttling_factor: Annotated[
        float | None,
        Parameter(
            help=f"Where memory.high lies between request and limit (gate MemoryQoS). [default: {THROTTLING_FACTOR}]"
        ),
    ] = None
    swap_behavior: Annotated[
        SwapBehavior | None,
        Parameter(
            help="LimitedSwap: Burstable pods may use the node's swap (cgroup v2). [default: NoSwap]", show_choices=True
        ),
    ] = None
    eviction_hard: Annotated[
        str | None,
        Parameter(
            help="When the node is under pressure and takes no pods, such as "
            f"memory.available<100Mi. [default: {DEFAULT}]"
        ),
    ] = None
    eviction_pressure_transition_period: Annotated[
        str | None, Parameter(help="How long a pressure outlasts its cause. [default: 5m]")
    ] = None
    image_gc_high_threshold: Annotated[
        int | None,
        Parameter(help="Percent of the images' disk in use from which unused images go; 100: never. [default: 85]"),
    ] = None
    image_gc_low_threshold: Annotated[int | None, Parameter(help="Percent at which that ends. [default: 80]")] = None
    memory_shrink: Annotated[
        MemoryShrink | None,
        Parameter(
            help="guarded: reclaim before a memory limit is lowered, and give up instead of killing (cgroup v2, "
            "docs/shrink.md). [default: checked]",
            show_choices=True,
        ),
    ] = None
    actuation: Annotated[
        Actuation | None,
        Parameter(
            help="Who raises a limit first: kernel-first writes the cgroup and then tells the runtime "
            "(docs/kernel-first.md). [default: kernel-first with podfit's own containerd, runtime with another's]",
            show_choices=True,
        ),
    ] = None
    shutdown_grace_period: Annotated[
        str | None, Parameter(help="Time for pods to end, in order of priority, when the node goes down. [default: 0s]")
    ] = None
    shutdown_grace_period_critical_pods: Annotated[
        str | None, Parameter(help="How much of it is for critical pods. [default: 0s]")
    ] = None
    cgroup_root: Annotated[
        str | None, Parameter(help="A cgroup below which pods are; its memory limit is the node's memory. [default: /]")
    ] = None
    pod_network: Annotated[
        PodNetworkKind | None,
        Parameter(
            help="pod: each pod has an address of its own (docs/network.md); host: all are on the node's network. "
            "[default: pod]",
            show_choices=True,
        ),
    ] = None
    pod_manifest_path: Annotated[Path | None, Parameter(help="Directory with manifests of static pods.")] = None

    def over(self, base: KubeletOptions) -> KubeletOptions:
        """The options, with what was given on the command line instead of what `base` says."""
        given: dict[str, Any] = {
            field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None
        }
        if "cgroup_root" in given:
            given["cgroup_root"] = given["cgroup_root"].rstrip("/")
        if given.get("pod_manifest_path"):
            given["pod_manifest_path"] = str(given["pod_manifest_path"].absolute())
        return replace(base, **given)


Node: TypeAlias = Annotated[NodeFlags | None, Parameter(name="*")]

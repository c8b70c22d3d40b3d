"""`podfit up`: a cluster in this process, or, detached, in one of its own."""

import asyncio
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from podfit.apiserver.audit.options import AuditOptions
from podfit.cli import exits, logs, render, serving
from podfit.cli.logs import LogFormat
from podfit.cluster.layout import DEFAULT_PORT, DataDir, default_data_dir
from podfit.cluster.listening import listening
from podfit.cluster.options import (
    CpuPolicy,
    KubeletOptions,
    MakeRoom,
    MemoryPolicy,
    MemoryReservation,
    MemoryShrink,
    NodeKind,
    SwapBehavior,
    UpOptions,
    legacy_of,
    ranges_of,
)
from podfit.core.features import FeatureGates
from podfit.decide.memory_qos import THROTTLING_FACTOR
from podfit.decide.pressure import DEFAULT


def up(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    port: serving.Port = DEFAULT_PORT,
    bind_address: serving.BindAddress = (),
    advertise_address: serving.AdvertiseAddress = "",
    tls_san: serving.TlsSan = (),
    service_cluster_ip_range: serving.ServiceRange = serving.SERVICES,
    service_node_port_range: serving.NodePortRange = serving.NODE_PORTS,
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="Write a complete kubeconfig. [default: context podfit in your own, current unchanged]"),
    ] = None,
    node: Annotated[
        NodeKind | None,
        Parameter(help="[default: real when root, Linux and containerd are there, else simulated]", show_choices=True),
    ] = None,
    nodes: Annotated[int, Parameter(help="How many nodes; more than one are simulated.")] = 1,
    container_runtime_endpoint: Annotated[
        str, Parameter(help="CRI socket of a runtime that is running. [default: a private containerd]")
    ] = "",
    make_room: Annotated[
        bool | Literal["preempt"],
        Parameter(help="Shrink lower-priority neighbours for a deferred resize, down to their podfit.dev/minimum; "
                  "=preempt also evicts where that is not enough (docs/room.md).", negative=""),
    ] = False,
    feature_gates: serving.Gates = "",
    legacy: Annotated[
        str, Parameter(help="For clients of 1.27 to 1.32: resize-status,pod-updates,draft-policies. [default: none]")
    ] = "",
    legacy_clients: Annotated[
        str, Parameter(help="User agents that resize-status is for, as NAME,OTHER. [default: everyone]")
    ] = "",
    encryption_provider_config: serving.EncryptionConfig = None,
    cpu_manager_policy: Annotated[
        CpuPolicy, Parameter(help="static: whole CPUs of Guaranteed pods are theirs alone.", show_choices=True)
    ] = CpuPolicy.NONE,
    reserved_cpus: Annotated[str, Parameter(help="CPUs that are never given away, such as 0-1.")] = "",
    memory_manager_policy: Annotated[
        MemoryPolicy, Parameter(help="Static: memory of Guaranteed pods comes from one NUMA node.", show_choices=True)
    ] = MemoryPolicy.NONE,
    reserved_memory: Annotated[str, Parameter(help="Memory that is never given away, such as 0:memory=1Gi.")] = "",
    memory_reservation_policy: Annotated[
        MemoryReservation,
        Parameter(help="TieredReservation: memory requests are kept from reclaim (gate MemoryQoS).", show_choices=True),
    ] = MemoryReservation.NONE,
    memory_throttling_factor: Annotated[
        float, Parameter(help="Where memory.high lies between request and limit (gate MemoryQoS).")
    ] = THROTTLING_FACTOR,
    swap_behavior: Annotated[
        SwapBehavior,
        Parameter(help="LimitedSwap: Burstable pods may use the node's swap (cgroup v2).", show_choices=True),
    ] = SwapBehavior.NO_SWAP,
    eviction_hard: Annotated[
        str, Parameter(help="When the node is under pressure and takes no pods, such as memory.available<100Mi.")
    ] = DEFAULT,
    memory_shrink: Annotated[
        MemoryShrink,
        Parameter(help="guarded: reclaim before a memory limit is lowered, and give up instead of killing (cgroup v2, "
                  "docs/shrink.md).", show_choices=True),
    ] = MemoryShrink.CHECKED,
    pod_manifest_path: Annotated[str, Parameter(help="Directory with manifests of static pods.")] = "",
    detach: Annotated[
        bool, Parameter(help="Return once the cluster is ready and leave it running.", negative="")
    ] = False,
    audit_log_path: serving.AuditLog = None,
    audit_policy_file: serving.AuditPolicy = None,
    log_format: serving.LogForm = LogFormat.TEXT,
    verbose: serving.Verbose = 0,
) -> int:
    """Start API server, scheduler and node in one process. Ctrl-C stops everything, containers too.

    SIGTERM and SIGKILL leave the containers running; the next `up` on the same data directory takes them over.
    """
    options = UpOptions(
        data=DataDir.at(data), port=port, kubeconfig=kubeconfig, node=node, nodes=nodes,
        gates=FeatureGates.parse(feature_gates), runtime_endpoint=container_runtime_endpoint.removeprefix("unix://"),
        listening=listening(bind_address, advertise_address, tls_san),
        ranges=ranges_of(service_cluster_ip_range, service_node_port_range),
        make_room=_make_room(make_room),
        legacy=legacy_of(legacy, legacy_clients), encryption=encryption_provider_config,
        audit=AuditOptions(log=audit_log_path, policy=audit_policy_file),
        kubelet=KubeletOptions(
            cpu_manager_policy=cpu_manager_policy, reserved_cpus=reserved_cpus,
            memory_manager_policy=memory_manager_policy, reserved_memory=reserved_memory,
            swap_behavior=swap_behavior, eviction_hard=eviction_hard,
            pod_manifest_path=str(Path(pod_manifest_path).absolute()) if pod_manifest_path else "",
            memory_reservation_policy=memory_reservation_policy, memory_throttling_factor=memory_throttling_factor,
            memory_shrink=memory_shrink),
    )  # fmt: skip
    options.check()
    logs.configure(log_format, verbose)
    if detach:
        from podfit.cluster.detach import start_detached

        start_detached(options, log_format=log_format, verbose=verbose, announce=render.line)
        return exits.DONE
    from podfit.cluster.foreground import run_until_stopped
    from podfit.net.event_loop import run

    try:
        run(run_until_stopped(options, announce=render.line))
    except asyncio.CancelledError:
        render.error("interrupted before the cluster was ready")
        return exits.INTERRUPTED
    return exits.DONE


def _make_room(asked: bool | Literal["preempt"]) -> MakeRoom:
    if asked == "preempt":
        return MakeRoom.PREEMPT
    return MakeRoom.SHRINK if asked else MakeRoom.NO

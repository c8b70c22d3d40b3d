"""`podfit up`: a cluster in this process, or, detached, in one of its own."""

import asyncio
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from podfit.apiserver.audit.options import AuditOptions
from podfit.cli import exits, logs, render, serving
from podfit.cli.logs import LogFormat
from podfit.cli.node_flags import Node, NodeFlags, RuntimeEndpoint
from podfit.core.features import FeatureGates
from podfit.process.layout import DEFAULT_PORT, DataDir, default_data_dir
from podfit.process.listening import listening
from podfit.process.options import KubeletOptions, MakeRoom, NodeKind, UpOptions, legacy_of, ranges_of


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
        Parameter(
            name=["--write-kubeconfig", "--kubeconfig"],
            help="Write a complete kubeconfig. [default: context podfit in your own; current if none was]",
        ),
    ] = None,
    node: Annotated[
        NodeKind | None,
        Parameter(help="[default: real when root, Linux and containerd are there, else simulated]", show_choices=True),
    ] = None,
    nodes: Annotated[int, Parameter(help="How many nodes; more than one are simulated.")] = 1,
    container_runtime_endpoint: RuntimeEndpoint = "",
    make_room: Annotated[
        bool | Literal["preempt"],
        Parameter(
            help="Shrink lower-priority neighbours for a deferred resize, down to their podfit.dev/minimum; "
            "=preempt also evicts where that is not enough (docs/room.md).",
            negative="",
        ),
    ] = False,
    feature_gates: serving.Gates = "",
    legacy: Annotated[
        str, Parameter(help="For clients of 1.27 to 1.32: resize-status,pod-updates,draft-policies.")
    ] = "",
    legacy_clients: Annotated[
        str, Parameter(help="User agents that resize-status is for, as NAME,OTHER. [default: everyone]")
    ] = "",
    encryption_provider_config: serving.EncryptionConfig = None,
    node_flags: Node = None,
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
        data=DataDir.at(data),
        port=port,
        kubeconfig=kubeconfig,
        node=node,
        nodes=nodes,
        gates=FeatureGates.parse(feature_gates),
        runtime_endpoint=container_runtime_endpoint.removeprefix("unix://"),
        listening=listening(bind_address, advertise_address, tls_san),
        ranges=ranges_of(service_cluster_ip_range, service_node_port_range),
        make_room=_make_room(make_room),
        legacy=legacy_of(legacy, legacy_clients),
        encryption=encryption_provider_config,
        audit=AuditOptions(log=audit_log_path, policy=audit_policy_file),
        kubelet=(node_flags or NodeFlags()).over(KubeletOptions()),
    )
    options.check()
    logs.configure(log_format, verbose)
    if detach:
        from podfit.process.detach import start_detached

        start_detached(options, log_format=log_format, verbose=verbose, announce=render.line)
        return exits.DONE
    from podfit.net.event_loop import run
    from podfit.process.foreground import run_until_stopped

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

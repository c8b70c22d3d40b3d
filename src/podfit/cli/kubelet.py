"""`podfit kubelet`: a node of an API server somewhere else."""

import asyncio
import socket
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, logs, render
from podfit.cli.flags import Gates, Log, LogFlags, RuntimeEndpoint, key_pair
from podfit.cli.node_flags import Node, NodeFlags
from podfit.core.features import FeatureGates
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process import kubelet_file
from podfit.process.data_dir import DataDir
from podfit.process.foreground import run_until_stopped
from podfit.process.kubelet import DEFAULT_PORT, KubeletProcess, KubeletProcessOptions
from podfit.process.options import NodeKind


class Runtime(StrEnum):
    CONTAINERD = "containerd"
    SIMULATED = "simulated"


def kubelet(
    *,
    data: Annotated[
        Path, Parameter(help="Directory for what the node keeps: certificates, checkpoints, volumes, containerd.")
    ] = Path("/var/lib/podfit-kubelet"),
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            help="How the node reaches the API server. With a bootstrap kubeconfig it is written "
            "here. [default: DATA/kubelet.kubeconfig]"
        ),
    ] = None,
    bootstrap_kubeconfig: Annotated[
        Path | None, Parameter(help="With a bootstrap token (podfit token create), to join with.")
    ] = None,
    config: Annotated[
        Path | None, Parameter(help="A KubeletConfiguration; flags count more (docs/processes.md).")
    ] = None,
    node_name: Annotated[str, Parameter(help="[default: the host's name]", show_default=False)] = "",
    node_ip: Annotated[
        str,
        Parameter(
            help="Where others reach this machine. [default: the address of the default route]", show_default=False
        ),
    ] = "",
    address: Annotated[
        str, Parameter(help="Where its server listens. [default: the node's address]", show_default=False)
    ] = "",
    port: Annotated[int | None, Parameter(help="Of its server; 0 takes a free one. [default: 10250]")] = None,
    runtime: Annotated[Runtime, Parameter(help="What runs the containers.", show_choices=True)] = Runtime.CONTAINERD,
    container_runtime_endpoint: RuntimeEndpoint = "",
    tls_cert_file: Annotated[
        Path | None, Parameter(help="Certificate to serve with. [default: asked for and renewed]")
    ] = None,
    tls_private_key_file: Annotated[Path | None, Parameter(help="Its key.")] = None,
    client_ca_file: Annotated[
        Path | None, Parameter(help="Who signs callers' certificates. [default: the kubeconfig's authority]")
    ] = None,
    feature_gates: Gates = "",
    node_flags: Node = None,
    log: Log = None,
) -> int:
    """Run this machine as a node, until SIGTERM, which leaves its containers running. Ctrl-C ends them too."""

    said = kubelet_file.read(config) if config else kubelet_file.KubeletFile()
    endpoint = container_runtime_endpoint or said.container_runtime_endpoint
    directory = DataDir.at(data)
    authority = said.authentication.x509.client_ca_file
    options = KubeletProcessOptions(
        data=directory,
        kubeconfig=(kubeconfig or directory.root / "kubelet.kubeconfig").absolute(),
        bootstrap_kubeconfig=bootstrap_kubeconfig,
        name=node_name or socket.gethostname().lower(),
        kind=NodeKind.SIMULATED if runtime is Runtime.SIMULATED else NodeKind.REAL,
        node_ip=node_ip,
        address=address or said.address,
        port=port if port is not None else said.port if said.port is not None else DEFAULT_PORT,
        runtime_endpoint=endpoint.removeprefix("unix://"),
        tls=key_pair(tls_cert_file, tls_private_key_file)
        or key_pair(_path(said.tls_cert_file), _path(said.tls_private_key_file)),
        client_ca=client_ca_file or _path(authority),
        kubelet=(node_flags or NodeFlags()).over(said.options()),
        gates=FeatureGates.parse(",".join(filter(None, (said.gates, feature_gates)))),
    )
    options.check()
    logs.configure(log or LogFlags())
    try:
        start = KubeletProcess.start(options, announce=render.line, clock=SystemClock())
        event_loop.run(run_until_stopped(start, terminated=KubeletProcess.terminated))
    except asyncio.CancelledError:
        render.error("interrupted before the node was ready")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE


def _path(text: str) -> Path | None:
    return Path(text) if text else None

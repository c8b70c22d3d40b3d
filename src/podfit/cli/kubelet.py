"""`podfit kubelet`: a node of an API server somewhere else."""

import asyncio
import socket
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podfit.cli import exits, logs, render, serving
from podfit.cli.logs import LogFormat
from podfit.cli.node_flags import Node, NodeFlags, RuntimeEndpoint

if TYPE_CHECKING:
    from podfit.net.tls import KeyPair
    from podfit.process.kubelet_file import KubeletFile


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
    feature_gates: serving.Gates = "",
    node_flags: Node = None,
    log_format: serving.LogForm = LogFormat.TEXT,
    verbose: serving.Verbose = 0,
) -> int:
    """Run this machine as a node, until SIGTERM, which leaves its containers running. Ctrl-C ends them too."""
    from podfit.core.features import FeatureGates
    from podfit.net import event_loop
    from podfit.net.system import SystemClock
    from podfit.process import kubelet_file
    from podfit.process.kubelet_process import DEFAULT_PORT, KubeletProcessOptions, run_until_stopped
    from podfit.process.layout import DataDir
    from podfit.process.options import NodeKind

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
        tls=_pair(tls_cert_file, tls_private_key_file, said),
        client_ca=client_ca_file or (Path(authority) if authority else None),
        kubelet=(node_flags or NodeFlags()).over(said.options()),
        gates=FeatureGates.parse(",".join(filter(None, (said.gates, feature_gates)))),
    )
    options.check()
    logs.configure(log_format, verbose)
    try:
        event_loop.run(run_until_stopped(options, announce=render.line, clock=SystemClock()))
    except asyncio.CancelledError:
        render.error("interrupted before the node was ready")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE


def _pair(certificate: Path | None, key: Path | None, said: "KubeletFile") -> "KeyPair | None":
    from podfit.net.tls import KeyPair
    from podfit.process.errors import UsageError

    if (certificate is None) is not (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    if certificate is not None and key is not None:
        return KeyPair(certificate, key)
    return KeyPair(Path(said.tls_cert_file), Path(said.tls_private_key_file)) if said.tls_cert_file else None

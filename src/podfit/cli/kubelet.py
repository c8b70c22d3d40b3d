"""`podfit kubelet`: a node of an API server somewhere else."""

import asyncio
import socket
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from podfit.cli import exits, logs, render
from podfit.cli.flags import Gates, Log, LogFlags, RuntimeEndpoint, key_pair
from podfit.cli.node_flags import Node, NodeFlags
from podfit.core.features import FeatureGates
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir
from podfit.process.foreground import run_until_stopped
from podfit.process.node import kubelet_file
from podfit.process.node.kubelet import DEFAULT_PORT, KubeletProcess, KubeletProcessOptions
from podfit.process.node.kubelet_file import KubeletFile
from podfit.process.options import KubeletOptions, NodeKind


class Runtime(StrEnum):
    CONTAINERD = "containerd"
    SIMULATED = "simulated"


@dataclass(frozen=True, kw_only=True)
class KubeletFlags:
    """None and empty: not given, so what the file says counts, else the default."""

    data: Annotated[
        Path, Parameter(help="Directory for what the node keeps: certificates, checkpoints, volumes, containerd.")
    ] = Path("/var/lib/podfit-kubelet")
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            help="How the node reaches the API server. With a bootstrap kubeconfig it is written "
            "here. [default: DATA/kubelet.kubeconfig]"
        ),
    ] = None
    bootstrap_kubeconfig: Annotated[
        Path | None, Parameter(help="With a bootstrap token (podfit token create), to join with.")
    ] = None
    config: Annotated[Path | None, Parameter(help="A KubeletConfiguration; flags count more (docs/processes.md).")] = (
        None
    )
    node_name: Annotated[str, Parameter(help="[default: the host's name]", show_default=False)] = ""
    node_ip: Annotated[
        str,
        Parameter(
            help="Where others reach this machine. [default: the address of the default route]", show_default=False
        ),
    ] = ""
    address: Annotated[
        str, Parameter(help="Where its server listens. [default: the node's address]", show_default=False)
    ] = ""
    port: Annotated[int | None, Parameter(help="Of its server; 0 takes a free one. [default: 10250]")] = None
    runtime: Annotated[Runtime, Parameter(help="What runs the containers.", show_choices=True)] = Runtime.CONTAINERD
    container_runtime_endpoint: RuntimeEndpoint = ""
    tls_cert_file: Annotated[
        Path | None, Parameter(help="Certificate to serve with. [default: asked for and renewed]")
    ] = None
    tls_private_key_file: Annotated[Path | None, Parameter(help="Its key.")] = None
    client_ca_file: Annotated[
        Path | None, Parameter(help="Who signs callers' certificates. [default: the kubeconfig's authority]")
    ] = None
    feature_gates: Gates = ""

    def options(self, file: KubeletFile, node: KubeletOptions) -> KubeletProcessOptions:
        """`node` is what flags and file say of the node. Raises UsageError."""
        directory, authority = DataDir.at(self.data), file.authentication.x509.client_ca_file
        endpoint = self.container_runtime_endpoint or file.container_runtime_endpoint
        given = key_pair(self.tls_cert_file, self.tls_private_key_file)
        return KubeletProcessOptions(
            data=directory,
            kubeconfig=(self.kubeconfig or directory.root / "kubelet.kubeconfig").absolute(),
            bootstrap_kubeconfig=self.bootstrap_kubeconfig,
            name=self.node_name or socket.gethostname().lower(),
            kind=NodeKind.SIMULATED if self.runtime is Runtime.SIMULATED else NodeKind.REAL,
            node_ip=self.node_ip,
            address=self.address or file.address,
            port=next((port for port in (self.port, file.port) if port is not None), DEFAULT_PORT),
            runtime_endpoint=endpoint.removeprefix("unix://"),
            tls=given or key_pair(_path(file.tls_cert_file), _path(file.tls_private_key_file)),
            client_ca=self.client_ca_file or _path(authority),
            kubelet=node,
            gates=FeatureGates.parse(",".join(filter(None, (file.gates, self.feature_gates)))),
        )


def _path(text: str) -> Path | None:
    return Path(text) if text else None


Kubelet: TypeAlias = Annotated[KubeletFlags | None, Parameter(name="*")]


def kubelet(*, flags: Kubelet = None, node_flags: Node = None, log: Log = None) -> int:
    """Run this machine as a node, until SIGTERM, which leaves its containers running. Ctrl-C ends them too."""
    flags = flags or KubeletFlags()
    said = kubelet_file.read(flags.config) if flags.config else kubelet_file.KubeletFile()
    options = flags.options(said, (node_flags or NodeFlags()).over(said.options()))
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

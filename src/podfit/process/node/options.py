"""`KubeletProcessOptions`: what `podfit kubelet` is told, by flags and by a KubeletConfiguration."""

import socket
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from podfit.api.meta.validation.names import dns_subdomain
from podfit.core.features import FeatureGates
from podfit.core.options import PORT, Configured, Document, Fixed, Option, Part
from podfit.decide.node.addresses import is_reachable
from podfit.decide.node.options import KubeletOptions
from podfit.net.tls import KeyPair
from podfit.process import flag_files
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import UsageError
from podfit.process.node.kubelet_config import check
from podfit.process.options import DATA, GATES_OPTION, NodeKind, RuntimeEndpoint, check_plugins

DEFAULT_PORT = 10250
DIRECTORY = DataDir(Path("/var/lib/podfit-kubelet"))


class Runtime(StrEnum):
    CONTAINERD = "containerd"
    SIMULATED = "simulated"


class KubeletProcessOptions(Configured, frozen=True, kw_only=True):
    """`address` is where the server listens, by default the node's own (`node_ip`)."""

    document: ClassVar[Document] = Document(
        KubeletOptions.document.api_version,
        KubeletOptions.document.kind,
        fixed=(
            Fixed("readOnlyPort", 0, "there is no port without authorization; leave it 0"),
            Fixed("authentication.anonymous.enabled", False, "every caller has to be known; leave it false"),
            Fixed("authentication.webhook.enabled", True, "tokens are checked by the API server; leave it true"),
            Fixed("authorization.mode", "Webhook", "only Webhook, the API server decides"),
            Fixed("rotateCertificates", True, "certificates are always renewed; leave it true"),
        ),
    )

    data: Annotated[
        DataDir, Option("Directory for what the node keeps: certificates, checkpoints, volumes, containerd.", unit=DATA)
    ] = DIRECTORY
    kubeconfig_file: Annotated[
        Path | None,
        Option(
            "How the node reaches the API server. With a bootstrap kubeconfig it is written here.",
            flag="kubeconfig",
            usual="DATA/kubelet.kubeconfig",
        ),
    ] = None
    bootstrap_kubeconfig: Annotated[
        Path | None, Option("With a bootstrap token (podfit token create), to join with.")
    ] = None
    config: Annotated[Path | None, Option("A KubeletConfiguration; flags count more (docs/processes.md).")] = None
    name: Annotated[str, Option("What the Node is called.", flag="node-name", usual="the host's name")] = msgspec.field(
        default_factory=lambda: socket.gethostname().lower()
    )
    node_ip: Annotated[str, Option("Where others reach this machine.", usual="the address of the default route")] = ""
    address: Annotated[str, Option("Where its server listens.", path="address", usual="the node's address")] = ""
    port: Annotated[int, Option("Of its server; 0 takes a free one.", path="port", bound=PORT)] = DEFAULT_PORT
    runtime: Annotated[Runtime, Option("What runs the containers.")] = Runtime.CONTAINERD
    runtime_endpoint: RuntimeEndpoint = ""
    tls: Annotated[KeyPair | None, Part()] = None
    server_tls_bootstrap: Annotated[
        bool | None,
        Option(
            "Whether the serving certificate is asked for.",
            flag="",
            path="serverTLSBootstrap",
            usual="without tlsCertFile",
        ),
    ] = None
    client_ca: Annotated[
        Path | None,
        Option(
            "Who signs callers' certificates.",
            flag="client-ca-file",
            path="authentication.x509.clientCAFile",
            usual="the kubeconfig's authority",
        ),
    ] = None
    gates: Annotated[FeatureGates, replace(GATES_OPTION, path="featureGates")] = msgspec.field(
        default_factory=FeatureGates
    )
    kubelet: Annotated[KubeletOptions, Part()] = msgspec.field(default_factory=KubeletOptions)

    @property
    def kubeconfig(self) -> Path:
        return (self.kubeconfig_file or self.data.root / "kubelet.kubeconfig").absolute()

    @property
    def kind(self) -> NodeKind:
        return NodeKind.SIMULATED if self.runtime is Runtime.SIMULATED else NodeKind.REAL

    @property
    def problem(self) -> str:
        """Why the file contradicts itself; empty when it does not."""
        if self.server_tls_bootstrap is False and self.tls is None:
            return "serverTLSBootstrap: false needs tlsCertFile and tlsPrivateKeyFile"
        if self.server_tls_bootstrap and self.tls is not None:
            return "serverTLSBootstrap: true, but tlsCertFile names a certificate; which?"
        return ""

    def check(self) -> None:
        """UsageError when the options contradict each other, or name what is not there."""
        flag_files.check_data(self.data.root)
        if problem := dns_subdomain(self.name):
            raise UsageError(f"--node-name {self.name!r}: {problem}")
        if self.node_ip and not is_reachable(self.node_ip):
            raise UsageError(f"--node-ip {self.node_ip!r} is not an address at which other machines reach this one")
        if self.runtime_endpoint and self.kind is NodeKind.SIMULATED:
            raise UsageError("--container-runtime-endpoint means a real node, not --runtime simulated")
        check_plugins(self, real=self.kind is NodeKind.REAL)
        if self.client_ca is not None:
            flag_files.check_client_ca(self.client_ca)
        if self.tls is not None:
            flag_files.check_serving(self.tls)
        if self.kubelet.pod_manifest_path:
            flag_files.check_manifests(Path(self.kubelet.pod_manifest_path))
        check(self.kubelet)

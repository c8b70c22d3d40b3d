"""Options of each component, checked before anything is touched. `up` has those of all of them."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import msgspec

from podfit.api.meta.base import ResourceList
from podfit.apiserver.extensions.audit.options import AuditOptions
from podfit.apiserver.registry.service_allocation import ServiceRanges
from podfit.apiserver.request.legacy_options import OFF, Legacy
from podfit.client.kubeconfig import default_paths
from podfit.core.features import FeatureGates
from podfit.core.options import AT_LEAST_1, PORT, Option, Part, Unit
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.options import KubeletOptions
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.net.tls import KeyPair
from podfit.process import flag_files
from podfit.process.apiserver_options import check_audit, encryption_rules
from podfit.process.controllers_options import ControllersOptions
from podfit.process.data.data_dir import DEFAULT_PORT, DataDir
from podfit.process.errors import UsageError
from podfit.process.listening import Listening
from podfit.process.network_options import DnsOptions, ProxyOptions
from podfit.store.etcd.options import EtcdOptions

DEFAULT_SCHEDULER = "default-scheduler"


class NodeKind(StrEnum):
    REAL = "real"
    SIMULATED = "simulated"
    NONE = "none"


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that name `name` are its own. `weights` are those of scores that differ from the defaults; 0 is off.

    `fit` is how NodeResourcesFit scores; `spread` is about pods that name no constraint of topology spread.
    """

    name: str = DEFAULT_SCHEDULER
    weights: Mapping[str, int] = msgspec.field(default_factory=dict)
    fit: FitScoring = LEAST_ALLOCATED
    spread: SpreadDefaulting = SYSTEM_DEFAULTING


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """At least one profile, each of another name; they share a queue."""

    profiles: tuple[SchedulerProfile, ...] = (SchedulerProfile(),)


class NodeOptions(Protocol):
    """What a node is started with, by `up` or alone."""

    @property
    def data(self) -> DataDir: ...
    @property
    def kubelet(self) -> KubeletOptions: ...
    @property
    def gates(self) -> FeatureGates: ...
    @property
    def runtime_endpoint(self) -> str: ...


def makes_network(options: NodeOptions) -> bool:
    """Whether addresses of pods are podfit's to give, where pods have some."""
    return not options.runtime_endpoint and not options.kubelet.cni_conf_dir


def check_plugins(options: NodeOptions, *, real: bool) -> None:
    """UsageError where there is no containerd of podfit's own for them."""
    given = options.kubelet.cni_conf_dir
    if given and options.runtime_endpoint:
        raise UsageError("--cni-conf-dir: the runtime of --container-runtime-endpoint has a directory of its own")
    if given and not real:
        raise UsageError("--cni-conf-dir means a real node: simulated pods have no network")
    if given and not Path(given).is_dir():
        raise UsageError(f"--cni-conf-dir {given}: there is no such directory")


GATES = Unit(
    name="NAME=true,OTHER=false",
    read=FeatureGates.parse,
    text=lambda gates: ",".join(f"{name}={str(on).lower()}" for name, on in gates.overrides.items()),
    file=dict[str, bool],
    decode=FeatureGates,
    encode=lambda gates: dict(gates.overrides),
    joined=lambda file, flag: FeatureGates({**file.overrides, **flag.overrides}),
)
GATES_OPTION = Option("Upstream's names, defaults of 1.36.", flag="feature-gates", unit=GATES)
Gates: TypeAlias = Annotated[FeatureGates, GATES_OPTION]
RuntimeEndpoint: TypeAlias = Annotated[
    str,
    Option(
        "CRI socket of a runtime that is running.",
        flag="container-runtime-endpoint",
        path="containerRuntimeEndpoint",
        unit=Unit(read=lambda text: text.removeprefix("unix://")),
        usual="a private containerd",
    ),
]
DATA = Unit(name="path", flag=Path, read=DataDir.at, text=lambda data: str(data.root))


class ApiServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is not named lives in the data directory."""

    data: Annotated[DataDir, Option("Data directory: certificates, and the store without etcd.", unit=DATA)] = (
        msgspec.field(default_factory=lambda: DataDir.at(None))
    )
    etcd: Annotated[EtcdOptions | None, Part()] = None
    port: Annotated[int, Option("Port of the API server; 0 takes a free one.", also=("secure-port",), bound=PORT)] = (
        DEFAULT_PORT
    )
    listening: Annotated[Listening, Part()] = Listening()
    ranges: Annotated[ServiceRanges, Part()] = ServiceRanges()
    kubeconfig: Annotated[
        Path | None,
        Option(
            "File to add an administrator's context to, as the current one; what is in it stays.",
            flag="write-kubeconfig",
            also=("kubeconfig",),
            usual="`up`: your own, current if none was; `apiserver`: DATA/admin.kubeconfig",
        ),
    ] = None
    tls: Annotated[KeyPair | None, Part()] = None
    client_ca: Annotated[Path | None, Option("Who else may sign clients' certificates.", flag="client-ca-file")] = None
    signing_key: Annotated[
        Path | None,
        Option(
            "EC key that signs tokens.", flag="service-account-signing-key-file", usual="made in the data directory"
        ),
    ] = None
    encryption: Annotated[
        Path | None,
        Option(
            "An EncryptionConfiguration: what is encrypted at rest, and how (docs/store.md).",
            flag="encryption-provider-config",
        ),
    ] = None
    gates: Gates = msgspec.field(default_factory=FeatureGates)
    legacy: Annotated[Legacy, Part()] = OFF
    audit: Annotated[AuditOptions, Part()] = msgspec.field(default_factory=AuditOptions)

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        flag_files.check_data(self.data.root)
        if self.kubeconfig is not None:
            flag_files.check_kubeconfig(self.kubeconfig)
        self.listening.check()
        check_audit(self.audit)
        if self.etcd is not None:
            flag_files.check_etcd(self.etcd)
        if self.tls is not None:
            flag_files.check_serving(self.tls)
        if self.client_ca is not None:
            flag_files.check_client_ca(self.client_ca)
        if self.signing_key is not None:
            flag_files.check_signing_key(self.signing_key)
        encryption_rules(self.encryption)


NODE_GROUPS = Option("Templates of node groups by KWOK's contract, Nodes in YAML (docs/cluster-autoscaler.md).")
HistorySize: TypeAlias = Annotated[int, Option("MiB that the history may have.", bound=AT_LEAST_1)]


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Those of each component, and which nodes there are."""

    api: Annotated[ApiServerOptions, Part()] = msgspec.field(default_factory=ApiServerOptions)
    node: Annotated[NodeKind | None, Option(usual="real when root, Linux and containerd are there, else simulated")] = (
        None
    )
    nodes: Annotated[int, Option("How many nodes; more than one are simulated.")] = 1
    runtime_endpoint: RuntimeEndpoint = ""
    play_kwok_nodes: Annotated[
        bool,
        Option(
            "Play every Node annotated kwok.x-k8s.io/node: fake: it is Ready, and its pods run simulated "
            "(docs/kwok.md).",
            negative=False,
        ),
    ] = False
    node_groups: Annotated[Path | None, NODE_GROUPS] = None
    """With it the cluster autoscaler runs, and such nodes are played."""
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    metrics_server: Annotated[bool, Option("Serve metrics.k8s.io, for `kubectl top`.")] = True
    vpa: Annotated[bool, Option("Run the Vertical Pod Autoscaler (docs/vpa.md).")] = True
    history: Annotated[
        bool, Option("Keep what containers use, where podfit[history] is installed (docs/history.md).")
    ] = True
    history_size: HistorySize = 1024
    proxy: Annotated[ProxyOptions, Part()] = ProxyOptions()
    dns: Annotated[DnsOptions, Part()] = DnsOptions()
    controllers: Annotated[ControllersOptions, Part()] = ControllersOptions()
    scheduler: SchedulerOptions = SchedulerOptions()
    kubelet: Annotated[KubeletOptions, Part()] = msgspec.field(default_factory=KubeletOptions)
    sizes: Mapping[str, ResourceList] = msgspec.field(default_factory=dict)
    """Of simulated nodes, by name, where they are not to have 4 CPUs and 8 GiB."""
    programs_end: bool = False
    """On simulated nodes init containers and Jobs end well by themselves; a test ends them."""
    passing_seconds: float = 0.0
    """On simulated nodes a state of a pod's start is told when it lasts so long; a test sees them all."""

    @property
    def data(self) -> DataDir:
        return self.api.data

    @property
    def gates(self) -> FeatureGates:
        return self.api.gates

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        self.api.check()
        if self.api.kubeconfig is None:
            flag_files.check_own_kubeconfig(default_paths(os.environ)[0])
        if self.nodes < 1:
            raise UsageError(f"--nodes {self.nodes}: a cluster has at least one node (or use --node none)")
        if self.nodes > 1 and self.node is NodeKind.REAL:
            raise UsageError("--nodes above 1 needs --node simulated: this machine is one real node")
        if self.runtime_endpoint and self.node in (NodeKind.SIMULATED, NodeKind.NONE):
            raise UsageError(f"--container-runtime-endpoint means a real node, not --node {self.node}")
        check_plugins(self, real=self.node not in (NodeKind.SIMULATED, NodeKind.NONE) and self.nodes == 1)
        if self.kubelet.pod_manifest_path:
            flag_files.check_manifests(Path(self.kubelet.pod_manifest_path))

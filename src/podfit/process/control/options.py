"""Options of the processes that watch and act: their Lease, their connection, and what each of them does.

KubeSchedulerConfiguration            kubescheduler.config.k8s.io/v1
KubeControllerManagerConfiguration    kubecontrollermanager.config.k8s.io/v1alpha1, whose own fields begin in capitals
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, ClassVar, TypeAlias

import msgspec

from podfit.client.election import LeaseTiming
from podfit.client.rate_limit import Rate
from podfit.core.features import FeatureGates
from podfit.core.options import AT_LEAST_0, PORT, Configured, Document, Fixed, Option, Part, Unit
from podfit.decide.node.options import DOMAIN_UNIT
from podfit.decide.pod.resolver import DOMAIN
from podfit.process.config_file import Rejected
from podfit.process.control.scheduler_profiles import API_VERSION, Profile
from podfit.process.controllers_options import ControllersOptions
from podfit.process.data.data_dir import DataDir
from podfit.process.network_options import ADDRESSES, NETWORK, DnsOptions, ProxyOptions
from podfit.process.options import DATA, Gates, SchedulerOptions, SchedulerProfile

MOST_PROFILES = 16
ELECTION, CONNECTION = "leaderElection", "clientConnection"


class LeaderElection(msgspec.Struct, frozen=True, kw_only=True):
    """Without `elect` there is no Lease; without a `name` it is the component's."""

    elect: Annotated[bool, Option("Work only while the Lease is held.", flag="leader-elect", path="leaderElect")] = True
    pace: Annotated[LeaseTiming, Part()] = LeaseTiming()
    name: Annotated[
        str, Option("Of the Lease.", flag="leader-elect-resource-name", path="resourceName", usual="the component's")
    ] = ""
    namespace: Annotated[
        str, Option("Of the Lease.", flag="leader-elect-resource-namespace", path="resourceNamespace")
    ] = "kube-system"


KUBECONFIG = Option("How it reaches the API server.", path="kubeconfig", usual="the one that podfit apiserver writes")
Qps: TypeAlias = Annotated[
    float, Option("Requests a second; 0 is without a limit.", flag="kube-api-qps", path="qps", bound=AT_LEAST_0)
]
BURST = Option("Requests at once.", flag="kube-api-burst", path="burst", bound=AT_LEAST_0)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How a component asks the API server, and how fast."""

    kubeconfig: Annotated[Path | None, KUBECONFIG] = None
    qps: Qps = 0.0
    burst: Annotated[int, BURST] = 0

    @property
    def rate(self) -> Rate | None:
        """None: as fast as the API server lets it."""
        return Rate(self.qps, max(self.burst, 1)) if self.qps else None


SecurePort: TypeAlias = Annotated[
    int, Option("Of health and metrics; 0 takes a free one.", flag="secure-port", bound=PORT)
]


class ControlOptions(Configured, frozen=True, kw_only=True):
    """The options of each process that watches and acts."""

    connection: Annotated[Connection, Part(CONNECTION)] = Connection()
    port: SecurePort = 0
    address: Annotated[str, Option("Where its health and metrics are served.", flag="bind-address")] = "127.0.0.1"


class ElectedOptions(ControlOptions, frozen=True, kw_only=True):
    """The options of one that works alone of several."""

    election: Annotated[LeaderElection, Part(ELECTION)] = LeaderElection()


Data: TypeAlias = Annotated[DataDir, Option("Data directory of the API server.", unit=DATA)]
Config: TypeAlias = Annotated[
    Path | None,
    Option(
        "A KubeSchedulerConfiguration or KubeControllerManagerConfiguration; flags count more (docs/processes.md).",
        flag="config",
    ),
]


class ControllersProcessOptions(ElectedOptions, frozen=True, kw_only=True):
    """`podfit controllers`. It signs with the authority in `data`."""

    document: ClassVar[Document] = Document(
        "kubecontrollermanager.config.k8s.io/v1alpha1",
        "KubeControllerManagerConfiguration",
        fixed=(Fixed("Generic.LeaderElection.resourceLock", "leases", "only leases; leave it out"),),
    )

    data: Data = msgspec.field(default_factory=lambda: DataDir.at(None))
    config: Config = None
    election: Annotated[LeaderElection, Part("Generic.LeaderElection")] = LeaderElection()
    connection: Annotated[Connection, Part("Generic.ClientConnection")] = Connection()
    port: SecurePort = 10257
    gates: Gates = msgspec.field(default_factory=FeatureGates)
    controllers: Annotated[ControllersOptions, Part()] = ControllersOptions()


def _profiles(given: tuple[Profile, ...]) -> tuple[SchedulerProfile, ...]:
    """Raises Rejected."""
    if not 0 < len(given) <= MOST_PROFILES:
        raise Rejected(f"there are {len(given)}; from 1 to {MOST_PROFILES}")
    named = Counter(profile.scheduler_name for profile in given)
    if twice := [name for name, count in named.items() if count > 1]:
        raise Rejected(f"{twice[0]!r} is the schedulerName of {named[twice[0]]}; each needs its own")
    if "" in named:
        raise Rejected("schedulerName must not be empty")
    return tuple(profile.options(f"profiles[{index}]") for index, profile in enumerate(given))


class SchedulerProcessOptions(ElectedOptions, frozen=True, kw_only=True):
    """`podfit scheduler`."""

    document: ClassVar[Document] = Document(
        API_VERSION,
        "KubeSchedulerConfiguration",
        fixed=(
            Fixed(f"{ELECTION}.resourceLock", "leases", "only leases; leave it out"),
            Fixed("percentageOfNodesToScore", 100, "all nodes are looked at; leave it out"),
        ),
    )

    data: Data = msgspec.field(default_factory=lambda: DataDir.at(None))
    config: Config = None
    port: SecurePort = 10259
    gates: Gates = msgspec.field(default_factory=FeatureGates)
    profiles: Annotated[
        tuple[SchedulerProfile, ...],
        Option(
            "What scores, and how much, for pods of each scheduler name.",
            flag="",
            path="profiles",
            unit=Unit(file=tuple[Profile, ...], decode=_profiles),
            usual="upstream's",
        ),
    ] = SchedulerOptions().profiles


class ProxyProcessOptions(ControlOptions, frozen=True, kw_only=True):
    """`podfit proxy`. `data` names its table, as that of this node's kubelet."""

    data: Annotated[DataDir, Option("Names the table, as that of this node's kubelet.", unit=DATA)] = msgspec.field(
        default_factory=lambda: DataDir.at(None)
    )
    port: SecurePort = 10256
    node: Annotated[
        str, Option("The node.", flag="node-name", also=("hostname-override",), usual="this machine's name")
    ] = ""
    cluster_cidr: Annotated[str, Option("Addresses of all pods.", unit=NETWORK, usual="those of the node's own")] = ""
    services: Annotated[ProxyOptions, Part()] = ProxyOptions()


class DnsProcessOptions(ControlOptions, frozen=True, kw_only=True):
    """`podfit dns`."""

    data: Annotated[DataDir, Option("Data directory of the API server.", unit=DATA)] = msgspec.field(
        default_factory=lambda: DataDir.at(None)
    )
    port: SecurePort = 9153
    listen: Annotated[
        tuple[str, ...], Option("IP addresses to answer at, separated by commas.", flag="dns-address", unit=ADDRESSES)
    ] = ("127.0.0.1",)
    dns_port: Annotated[int, Option("Port of UDP and TCP; 0 takes a free one.", bound=PORT)] = 53
    cluster_domain: Annotated[str, Option("Domain of the cluster's names.", unit=DOMAIN_UNIT)] = DOMAIN
    publish: Annotated[
        bool,
        Option(
            "Keep the Service kube-dns in kube-system and lead it to the first address, unless it is somebody else's."
        ),
    ] = False
    node: Annotated[
        str,
        Option("The node, for --publish.", flag="node-name", also=("hostname-override",), usual="this machine's name"),
    ] = ""
    names: Annotated[DnsOptions, Part()] = DnsOptions()

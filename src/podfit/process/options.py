"""Options of each component, checked before anything is touched. `up` has those of all of them."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from podfit.api.meta.base import ResourceList
from podfit.apiserver.extensions.audit.options import AuditOptions
from podfit.apiserver.registry.service_allocation import ServiceRanges
from podfit.apiserver.request.legacy_options import OFF, Legacy
from podfit.client.kubeconfig import default_paths
from podfit.core.features import FeatureGates
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.cgroup.memory_qos import THROTTLING_FACTOR
from podfit.decide.node.image_gc import ImagePolicy
from podfit.decide.node.pressure import DEFAULT
from podfit.decide.node.shutdown import Groups
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.decide.workload.nodes.ipam import DEFAULT_CLUSTER_RANGE, DEFAULT_MASK, BadRange, NodeRanges
from podfit.process import flag_files
from podfit.process.apiserver_options import check_audit, encryption_rules
from podfit.process.data.data_dir import DEFAULT_PORT, DataDir
from podfit.process.errors import UsageError
from podfit.process.listening import Listening
from podfit.store.etcd.options import EtcdOptions

if TYPE_CHECKING:
    from podfit.net.tls import KeyPair


HORIZONTAL = "horizontal-pod-autoscaler"
NODE_IPAM = "node-ipam-controller"
CONTROLLERS = (
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "persistentvolumeclaim-protection-controller",
    "certificatesigningrequest-signing-controller",
    "persistentvolume-protection-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
    "disruption-controller",
    "pod-garbage-collector-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    NODE_IPAM,
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "persistentvolume-binder-controller",
    "ephemeral-volume-controller",
    HORIZONTAL,
)
"""Under upstream's names; the one of certificates approves, too."""
MAKERS = {
    "deployment-controller": "deployments",
    "replicaset-controller": "replicasets",
    "replicationcontroller-controller": "replicationcontrollers",
    "statefulset-controller": "statefulsets",
    "daemonset-controller": "daemonsets",
    "job-controller": "jobs",
    "cronjob-controller": "cronjobs",
}
"""Which resources become pods by which controller."""
ATTENDED = MAKERS | {HORIZONTAL: "horizontalpodautoscalers"}
"""Of which resources a warning says that nobody acts on them, where their controller does not run."""
DEFAULT_SCHEDULER = "default-scheduler"


class MakeRoom(StrEnum):
    """What may be done to lower-priority pods for a deferred resize (docs/room.md)."""

    NO = "no"
    SHRINK = "shrink"
    PREEMPT = "preempt"


class PodNetworkKind(StrEnum):
    """Where pods are that do not say hostNetwork: each on a network of its own, or all on the node's."""

    POD = "pod"
    HOST = "host"


class NodeKind(StrEnum):
    REAL = "real"
    SIMULATED = "simulated"
    NONE = "none"


class CpuPolicy(StrEnum):
    NONE = "none"
    STATIC = "static"


class SwapBehavior(StrEnum):
    NO_SWAP = "NoSwap"
    LIMITED = "LimitedSwap"


class MemoryPolicy(StrEnum):
    NONE = "None"
    STATIC = "Static"


class MemoryReservation(StrEnum):
    NONE = "None"
    TIERED = "TieredReservation"


class MemoryShrink(StrEnum):
    CHECKED = "checked"
    GUARDED = "guarded"


class Actuation(StrEnum):
    KERNEL_FIRST = "kernel-first"
    RUNTIME = "runtime"


class KubeletOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes are told, in the kubelet's own words."""

    cpu_manager_policy: CpuPolicy = CpuPolicy.NONE
    reserved_cpus: str = ""
    memory_manager_policy: MemoryPolicy = MemoryPolicy.NONE
    reserved_memory: str = ""
    swap_behavior: SwapBehavior = SwapBehavior.NO_SWAP
    eviction_hard: str = DEFAULT
    eviction_pressure_transition_period: str = "5m"
    shutdown_grace_period: str = "0s"
    shutdown_grace_period_critical_pods: str = "0s"
    shutdown_by_priority: Groups = ()
    cgroup_root: str = ""  # without a slash at its end
    pod_manifest_path: str = ""
    pod_network: PodNetworkKind = PodNetworkKind.HOST
    memory_reservation_policy: MemoryReservation = MemoryReservation.NONE
    memory_throttling_factor: float = THROTTLING_FACTOR
    memory_shrink: MemoryShrink = MemoryShrink.CHECKED
    actuation: Actuation | None = None  # kernel-first with a containerd of our own, runtime with another's
    image_gc_high_threshold: int = 85
    image_gc_low_threshold: int = 80
    image_minimum_age: float = 120.0  # seconds
    image_maximum_age: float = 0.0

    @property
    def images(self) -> ImagePolicy:
        """When unused images go."""
        return ImagePolicy(
            high=self.image_gc_high_threshold,
            low=self.image_gc_low_threshold,
            least_age=self.image_minimum_age,
            most_age=self.image_maximum_age,
        )


class ControllersOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers` are upstream's names: `*` is all, `-NAME` all but it."""

    make_room: MakeRoom = MakeRoom.NO
    controllers: tuple[str, ...] = ("*",)
    horizontal: Settings = Settings(upstream_compatible=False)
    """Of the horizontal pod autoscaler."""
    allocate_node_cidrs: bool = True
    cluster_cidr: str = ""
    """Addresses of pods; empty is `DEFAULT_CLUSTER_RANGE`, and under `up` another where this machine uses that one."""
    node_cidr_mask_size: int = DEFAULT_MASK

    def ranges(self) -> NodeRanges:
        """Raises UsageError."""
        try:
            return NodeRanges.of(self.cluster_cidr or DEFAULT_CLUSTER_RANGE, self.node_cidr_mask_size)
        except BadRange as error:
            raise UsageError(str(error)) from None

    def check(self) -> None:
        """UsageError for a controller that there is not, and for ranges that cannot be."""
        self.ranges()
        if unknown := self.unknown():
            known = ", ".join(CONTROLLERS)
            raise UsageError(f"--controllers: there is no controller {unknown[0]!r} (known: {known})")

    def unknown(self) -> list[str]:
        """Names of none."""
        return sorted({controller.removeprefix("-") for controller in self.controllers} - {"*", *CONTROLLERS})

    def controlled_resources(self) -> frozenset[str]:
        """The resources that are acted on in this process, of those that `ATTENDED` names."""
        return frozenset(resource for name, resource in ATTENDED.items() if self.runs(name))

    def runs(self, name: str) -> bool:
        """Whether it is wanted. The first word about a name counts, and a name more than `*`."""
        said = (controller for controller in self.controllers if controller.removeprefix("-") == name)
        return next(said, name if "*" in self.controllers else "") == name


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


class ApiServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is not named lives in the data directory."""

    data: DataDir
    etcd: "EtcdOptions | None" = None
    port: int = DEFAULT_PORT
    listening: Listening = Listening()
    ranges: ServiceRanges = ServiceRanges()
    kubeconfig: Path | None = None  # to write
    tls: "KeyPair | None" = None
    client_ca: Path | None = None
    signing_key: Path | None = None
    encryption: Path | None = None  # an EncryptionConfiguration
    gates: FeatureGates = msgspec.field(default_factory=FeatureGates)
    audit: AuditOptions = msgspec.field(default_factory=AuditOptions)
    legacy: Legacy = OFF

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        flag_files.check_data(self.data.root)
        if self.kubeconfig is not None:
            flag_files.check_kubeconfig(self.kubeconfig)
        check_port(self.port)
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


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Those of each component, and which nodes there are."""

    api: ApiServerOptions
    controllers: ControllersOptions = ControllersOptions()
    scheduler: SchedulerOptions = SchedulerOptions()
    kubelet: KubeletOptions = msgspec.field(default_factory=KubeletOptions)
    node: NodeKind | None = None
    nodes: int = 1
    sizes: Mapping[str, ResourceList] = msgspec.field(default_factory=dict)
    """Of simulated nodes, by name, where they are not to have 4 CPUs and 8 GiB."""
    programs_end: bool = False
    """On simulated nodes init containers and Jobs end well by themselves; a test ends them."""
    passing_seconds: float = 0.0
    """On simulated nodes a state of a pod's start is told when it lasts so long; a test sees them all."""
    runtime_endpoint: str = ""
    metrics_server: bool = True
    vpa: bool = True

    @property
    def data(self) -> DataDir:
        return self.api.data

    @property
    def gates(self) -> FeatureGates:
        return self.api.gates

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        self.api.check()
        self.controllers.check()
        if self.api.kubeconfig is None:
            flag_files.check_own_kubeconfig(default_paths(os.environ)[0])
        if self.nodes < 1:
            raise UsageError(f"--nodes {self.nodes}: a cluster has at least one node (or use --node none)")
        if self.nodes > 1 and self.node is NodeKind.REAL:
            raise UsageError("--nodes above 1 needs --node simulated: this machine is one real node")
        if self.runtime_endpoint and self.node in (NodeKind.SIMULATED, NodeKind.NONE):
            raise UsageError(f"--container-runtime-endpoint means a real node, not --node {self.node}")
        if self.kubelet.pod_manifest_path:
            flag_files.check_manifests(Path(self.kubelet.pod_manifest_path))


def check_port(port: int, flag: str = "--port") -> None:
    """UsageError for what is none."""
    if not 0 <= port <= 65535:
        raise UsageError(f"{flag} {port} is not a port (0 to 65535; 0 takes a free one)")

"""`KubeletOptions`: what a node is told, in the kubelet's own words."""

from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec.structs import replace

from podfit.api.meta.validation import names
from podfit.core.options import DURATION, LIST, Bound, Configured, Document, Option, Unit
from podfit.decide.cgroup.memory_qos import THROTTLING_FACTOR
from podfit.decide.node import shutdown
from podfit.decide.node.image_gc import ImagePolicy
from podfit.decide.node.pressure import DEFAULT, TRANSITION_SECONDS
from podfit.decide.node.shutdown import Groups, ShutdownGroup
from podfit.decide.pod.resolver import DOMAIN, ClusterNames


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


class PodNetworkKind(StrEnum):
    """Where pods are that do not say hostNetwork: each on a network of its own, or all on the node's. AUTO is for `up`
    to choose (`process.node.choice`): POD on a containerd of its own where the machine can; HOST elsewhere.
    """

    AUTO = "auto"
    POD = "pod"
    HOST = "host"


class MemoryShrink(StrEnum):
    CHECKED = "checked"
    GUARDED = "guarded"


class Actuation(StrEnum):
    KERNEL_FIRST = "kernel-first"
    RUNTIME = "runtime"


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the file that upstream writes as an object, and a flag in one word."""


class _Limits(_Strict, frozen=True):
    memory: str


class _ReservedMemory(_Strict, frozen=True):
    numa_node: int
    limits: _Limits


class _ShutdownGroup(_Strict, frozen=True):
    priority: int
    shutdown_grace_period_seconds: int


def _reserved(given: tuple[_ReservedMemory, ...]) -> str:
    return ";".join(f"{reservation.numa_node}:memory={reservation.limits.memory}" for reservation in given)


def _reservations(text: str) -> list[dict[str, Any]]:
    parts = (part.strip().partition(":memory=") for part in text.split(";") if part)
    return [{"numaNode": int(node), "limits": {"memory": amount}} for node, _, amount in parts]


def _thresholds(given: Mapping[str, str]) -> str:
    return ",".join(f"{name}<{value}" for name, value in given.items())


def _by_signal(text: str) -> dict[str, str]:
    parts = (part.strip().partition("<") for part in text.split(",") if part)
    return {signal: value for signal, _, value in parts}


def _groups(given: tuple[_ShutdownGroup, ...]) -> Groups:
    return tuple(ShutdownGroup(group.priority, group.shutdown_grace_period_seconds) for group in given)


def _written_groups(groups: Groups) -> list[dict[str, int]]:
    return [{"priority": group.priority, "shutdownGracePeriodSeconds": group.seconds} for group in groups]


_RESERVED = Unit(name="NODE:memory=AMOUNT", file=tuple[_ReservedMemory, ...], decode=_reserved, encode=_reservations)
_THRESHOLDS = Unit(name="SIGNAL<AMOUNT", file=dict[str, str], decode=_thresholds, encode=_by_signal)
_SHUTDOWN = Unit(file=tuple[_ShutdownGroup, ...], decode=_groups, encode=_written_groups)
_CGROUP = Unit(name="cgroup", read=lambda text: text.rstrip("/"))
_DIRECTORY = Unit(name="path", place=True)
_FILE = Unit(name="path", place=True)


def _dns_servers(given: tuple[str, ...]) -> tuple[str, ...]:
    """ValueError for what is no address."""
    for text in given:
        ip_address(text)
    return given


def _domain(text: str) -> str:
    """ValueError for what is no name."""
    domain = text.rstrip(".").lower()
    if domain and names.dns_subdomain(domain):
        raise ValueError(f"{text!r} is no domain name")
    return domain


_ADDRESSES = replace(LIST, read=lambda given: _dns_servers(LIST.read(given)), decode=_dns_servers)
DOMAIN_UNIT = Unit(name="name", read=_domain, decode=_domain)
_FACTOR = Bound("above 0 and at most 1", lambda value: 0 < value <= 1)


class KubeletOptions(Configured, frozen=True, kw_only=True):
    """Times in seconds. What is a text here is read where the machine is known (`process.node.kubelet_config`)."""

    document: ClassVar[Document] = Document("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")

    cpu_manager_policy: Annotated[
        CpuPolicy, Option("static: whole CPUs of Guaranteed pods are theirs alone.", path="cpuManagerPolicy")
    ] = CpuPolicy.NONE
    reserved_cpus: Annotated[str, Option("CPUs that are never given away, such as 0-1.", path="reservedSystemCPUs")] = (
        ""
    )
    memory_manager_policy: Annotated[
        MemoryPolicy, Option("Static: memory of Guaranteed pods comes from one NUMA node.", path="memoryManagerPolicy")
    ] = MemoryPolicy.NONE
    reserved_memory: Annotated[
        str, Option("Memory that is never given away, such as 0:memory=1Gi.", path="reservedMemory", unit=_RESERVED)
    ] = ""
    memory_reservation_policy: Annotated[
        MemoryReservation,
        Option(
            "TieredReservation: memory requests are kept from reclaim (gate MemoryQoS).", path="memoryReservationPolicy"
        ),
    ] = MemoryReservation.NONE
    memory_throttling_factor: Annotated[
        float,
        Option(
            "Where memory.high lies between request and limit (gate MemoryQoS).",
            path="memoryThrottlingFactor",
            bound=_FACTOR,
        ),
    ] = THROTTLING_FACTOR
    swap_behavior: Annotated[
        SwapBehavior,
        Option("LimitedSwap: Burstable pods may use the node's swap (cgroup v2).", path="memorySwap.swapBehavior"),
    ] = SwapBehavior.NO_SWAP
    eviction_hard: Annotated[
        str,
        Option(
            "When the node is under pressure and takes no pods, such as memory.available<100Mi.",
            path="evictionHard",
            unit=_THRESHOLDS,
        ),
    ] = DEFAULT
    eviction_pressure_transition_period: Annotated[
        float, Option("How long a pressure outlasts its cause.", path="evictionPressureTransitionPeriod", unit=DURATION)
    ] = TRANSITION_SECONDS
    image_gc_high_threshold: Annotated[
        int,
        Option(
            "Percent of the images' disk in use from which unused images go; 100: never.",
            path="imageGCHighThresholdPercent",
        ),
    ] = 85
    image_gc_low_threshold: Annotated[int, Option("Percent at which that ends.", path="imageGCLowThresholdPercent")] = (
        80
    )
    image_minimum_age: Annotated[
        float,
        Option("An unused image is at least so old when it goes.", flag="", path="imageMinimumGCAge", unit=DURATION),
    ] = 120.0
    image_maximum_age: Annotated[
        float,
        Option(
            "An unused image goes when it is so old, whatever the disk; 0s: never.",
            flag="",
            path="imageMaximumGCAge",
            unit=DURATION,
        ),
    ] = 0.0
    memory_shrink: Annotated[
        MemoryShrink,
        Option(
            "guarded: reclaim before a memory limit is lowered, and give up instead of killing (cgroup v2, "
            "docs/shrink.md)."
        ),
    ] = MemoryShrink.CHECKED
    actuation: Annotated[
        Actuation | None,
        Option(
            "Who raises a limit first: kernel-first writes the cgroup and then tells the runtime "
            "(docs/kernel-first.md).",
            usual="kernel-first with podfit's own containerd, runtime with another's",
        ),
    ] = None
    bursts: Annotated[
        bool | None,
        Option(
            "Move limits inside burst ceilings; only for an API server of podfit, which judges them (docs/burst.md).",
            usual="on under podfit up, off for podfit kubelet",
        ),
    ] = None
    lend_spare: Annotated[
        bool | None,
        Option(
            "Lend what is requested and unused, as podfit.dev/spare-cpu and podfit.dev/spare-memory (docs/spare.md).",
            usual="on a real node; a simulated one lends when it is told to",
        ),
    ] = None
    shutdown_grace_period: Annotated[
        float,
        Option(
            "Time for pods to end, in order of priority, when the node goes down.",
            path="shutdownGracePeriod",
            unit=DURATION,
        ),
    ] = 0.0
    shutdown_grace_period_critical_pods: Annotated[
        float, Option("How much of it is for critical pods.", path="shutdownGracePeriodCriticalPods", unit=DURATION)
    ] = 0.0
    shutdown_by_priority: Annotated[
        Groups,
        Option(
            "Groups of priorities, each with its seconds, instead of these two.",
            flag="",
            path="shutdownGracePeriodByPodPriority",
            unit=_SHUTDOWN,
        ),
    ] = ()
    cgroup_root: Annotated[
        str,
        Option(
            "A cgroup below which pods are; its memory limit is the node's memory.",
            path="cgroupRoot",
            unit=_CGROUP,
            usual="/",
        ),
    ] = ""
    pod_network: Annotated[
        PodNetworkKind,
        Option(
            "pod: each pod has an address of its own (docs/network.md); host: all are on the node's network; auto: pod "
            "with `up` on its own containerd, where nothing lacks for it, else host."
        ),
    ] = PodNetworkKind.AUTO
    cni_conf_dir: Annotated[
        str,
        Option(
            "Directory with somebody else's CNI configurations, for podfit's own containerd: pods have the addresses "
            "that their plugins give (docs/network.md).",
            unit=_DIRECTORY,
            usual="podfit's own",
        ),
    ] = ""
    cni_bin_dir: Annotated[
        str,
        Option(
            "Directory with the plugins that are named there.", unit=_DIRECTORY, usual="/usr/lib/cni or /opt/cni/bin"
        ),
    ] = ""
    cluster_dns: Annotated[
        tuple[str, ...],
        Option(
            "Addresses of the cluster's name servers, for pods with dnsPolicy ClusterFirst (docs/network.md).",
            path="clusterDNS",
            unit=_ADDRESSES,
            usual="with `up` the Service kube-dns, where pods have addresses; else none",
        ),
    ] = ()
    cluster_domain: Annotated[str, Option("Domain of the cluster's names.", path="clusterDomain", unit=DOMAIN_UNIT)] = (
        DOMAIN
    )
    resolv_conf: Annotated[
        str,
        Option(
            "File with the name servers of the node, which pods with dnsPolicy Default have; empty: they have none.",
            path="resolvConf",
            unit=_FILE,
        ),
    ] = "/etc/resolv.conf"
    pod_manifest_path: Annotated[
        str, Option("Directory with manifests of static pods.", path="staticPodPath", unit=_DIRECTORY)
    ] = ""

    @property
    def has_addresses(self) -> bool:
        """Whether pods have addresses of their own; who names plugins for that need not say so again."""
        return self.pod_network is PodNetworkKind.POD or bool(self.cni_conf_dir)

    @property
    def names(self) -> ClusterNames:
        """The cluster's, for pods."""
        return ClusterNames(self.cluster_dns, self.cluster_domain)

    @property
    def images(self) -> ImagePolicy:
        """When unused images go."""
        return ImagePolicy(
            high=self.image_gc_high_threshold,
            low=self.image_gc_low_threshold,
            least_age=self.image_minimum_age,
            most_age=self.image_maximum_age,
        )

    @property
    def problem(self) -> str:
        """Why what is said of images, shutdowns or plugins cannot be followed; empty when it can."""
        return (
            self.images.problem
            or shutdown.problem(
                self.shutdown_grace_period, self.shutdown_grace_period_critical_pods, self.shutdown_by_priority
            )
            or self._plugins_problem
        )

    @property
    def _plugins_problem(self) -> str:
        if self.cni_conf_dir and self.pod_network is PodNetworkKind.HOST:
            return "--cni-conf-dir gives pods addresses of their own, and --pod-network host none"
        if self.cni_bin_dir and not self.cni_conf_dir:
            return "--cni-bin-dir is for the plugins of a --cni-conf-dir"
        return ""

    @property
    def shutdown(self) -> Groups:
        """Who has how long when the node goes down."""
        period, critical = self.shutdown_grace_period, self.shutdown_grace_period_critical_pods
        return self.shutdown_by_priority or shutdown.two_groups(period, critical)

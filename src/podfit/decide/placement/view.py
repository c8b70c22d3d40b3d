"""`NodeInfo`: a node as the scheduler counts it; and refusals of nodes.

What a pod counts for is worked out once, when the pod is put on a node, and carried with it: a scheduling attempt looks
at every pod of every node, and none of that may cost a sum over containers.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.aggregate import all_containers, lasting_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import add
from podfit.decide.placement.default_spread import DefaultSpread
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import ResizeState

MOST_QUESTIONS = 16
"""Counts of its pods that a node remembers."""

HostPort = tuple[str, str, int]
"""Host IP, protocol, port."""

NamespaceLabels = Mapping[str, Mapping[str, str]]

FILTERS = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
)
"""Who may refuse a node, in the order in which they are asked, under upstream's names."""

ASSUMED = {"cpu": Quantity.of_milli(100), "memory": Quantity.of_bytes(200 << 20)}
"""What a container without a request is taken for when nodes are compared; never when they are filtered."""


def _has_status(pod: Pod) -> bool:
    status = pod.status
    reported = status.container_statuses or status.init_container_statuses or status.allocated_resources
    return bool(reported) or status.resources is not None


def _names_all(pod: Pod) -> bool:
    """Whether every container requests what one without a request is taken for, so that nothing has to be assumed."""
    return all(container.resources.requests.keys() >= ASSUMED.keys() for container in all_containers(pod.spec))


def host_ports(pod: Pod) -> frozenset[HostPort]:
    """The host ports that the pod's containers and sidecars hold while it runs."""
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in lasting_containers(pod.spec)
        for port in container.ports
        if port.host_port
    )


class Resident(msgspec.Struct, frozen=True):
    """A pod and what it counts for: `requests` against the node's room, `weight` (milli CPU, bytes) in comparisons.

    One that waits also has its `default_spread`, unless it names constraints of its own or nothing selects it.
    """

    pod: Pod
    requests: ResourceList
    weight: tuple[int, int] = (0, 0)
    ports: frozenset[HostPort] = frozenset()
    default_spread: DefaultSpread | None = None

    @staticmethod
    def of(
        pod: Pod,
        *,
        gates: FeatureGates = DEFAULT_GATES,
        placed: bool = True,
        default_spread: DefaultSpread | None = None,
    ) -> "Resident":
        """A placed pod counts with its status considered, one that waits by its spec alone."""
        requests = pod_requests(pod, gates=gates, use_status=placed)
        refused = placed and _has_status(pod) and ResizeState.of(pod).infeasible
        says_all = not refused and _names_all(pod)
        assumed = requests if says_all else pod_requests(pod, gates=gates, use_status=placed, missing=ASSUMED)
        weight = (assumed.get("cpu", ZERO).milli(), assumed.get("memory", ZERO).value())
        return Resident(pod, requests, weight, host_ports(pod), default_spread)

    def counts_like(self, other: "Resident") -> bool:
        """Whether it takes the same from a node. Labels are another matter: others may ask about them."""
        ours, theirs = self.pod.metadata, other.pod.metadata
        return (
            self.requests == other.requests
            and self.weight == other.weight
            and self.ports == other.ports
            and self.is_choosy == other.is_choosy
            and ours.deletion_timestamp == theirs.deletion_timestamp
        )

    @property
    def has_no_status(self) -> bool:
        """Whether no node has said anything of it that could count."""
        return not _has_status(self.pod)

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @property
    def is_choosy(self) -> bool:
        """Whether it says near whom, or far from whom, it would be: it counts for newcomers as well."""
        affinity = self.pod.spec.affinity
        return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


@dataclass(frozen=True)
class NodeInfo:
    """`requested` and `weight` are sums over `residents`; `nominated` are pods that are to get room here."""

    node: Node
    residents: tuple[Resident, ...] = ()
    requested: ResourceList = field(default_factory=dict)
    weight: tuple[int, int] = (0, 0)
    nominated: tuple[Resident, ...] = ()

    @staticmethod
    def of(node: Node, residents: Iterable[Resident], nominated: tuple[Resident, ...] = ()) -> "NodeInfo":
        residents = tuple(residents)
        cpu, memory = (sum(resident.weight[index] for resident in residents) for index in (0, 1))
        return NodeInfo(node, residents, add(*(resident.requests for resident in residents)), (cpu, memory), nominated)

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @cached_property
    def capacity(self) -> tuple[int, int]:
        """Milli CPU and bytes that pods may have."""
        return amounts(self.node.status.allocatable)

    @cached_property
    def used(self) -> tuple[int, int]:
        """Milli CPU and bytes that pods ask for."""
        return amounts(self.requested)

    @cached_property
    def ports(self) -> frozenset[HostPort]:
        return frozenset().union(*(resident.ports for resident in self.residents))

    @cached_property
    def choosy(self) -> tuple[Resident, ...]:
        return tuple(resident for resident in self.residents if resident.is_choosy)

    def count(self, question: Hashable, matches: Callable[[Pod], bool]) -> int:
        """How many residents match. `question` stands for the condition: what was counted is remembered for as long as
        the node stays as it is, since the pods of a workload ask the same one after the other."""
        known = self._counted.get(question)
        if known is None:
            if len(self._counted) >= MOST_QUESTIONS:
                self._counted.clear()
            known = self._counted[question] = sum(matches(resident.pod) for resident in self.residents)
        return known

    @cached_property
    def _counted(self) -> dict[Hashable, int]:
        return {}

    def with_residents(self, residents: Iterable[Resident]) -> "NodeInfo":
        return NodeInfo.of(self.node, residents, self.nominated)

    def plus(self, newcomer: Resident) -> "NodeInfo":
        cpu, memory = (sum(pair) for pair in zip(self.weight, newcomer.weight, strict=True))
        requested = add(self.requested, newcomer.requests)
        return NodeInfo(self.node, (*self.residents, newcomer), requested, (cpu, memory), self.nominated)


def amounts(resources: ResourceList) -> tuple[int, int]:
    """Milli CPU and bytes."""
    return resources.get("cpu", ZERO).milli(), resources.get("memory", ZERO).value()


class Refusal(msgspec.Struct, frozen=True):
    """Why one node will not do. Of the `resources` it is short: only more of one of them can change the answer.

    `final`: no eviction can change the answer either, so the node is no candidate for preemption.
    """

    filter: str
    reasons: tuple[str, ...]
    resources: frozenset[str] = frozenset()
    final: bool = False

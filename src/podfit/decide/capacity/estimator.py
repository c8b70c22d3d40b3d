"""The estimate of a scale-up: how many nodes of a template pending pods would need, and which of them get a place.

Upstream's binpacking (cluster-autoscaler, estimator): the largest groups of equivalent pods first, each pod on a node
that the estimate has added, else on the last one, else on a new one.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.pod_groups import PodGroup
from podfit.decide.placement.default_spread import HOSTNAME
from podfit.decide.placement.view import NodeInfo, Refusal, Resident
from podfit.decide.pod.requests import pod_requests

MOST_NODES = 1000
"""Upstream's max-nodes-per-scaleup."""


class Estimate(msgspec.Struct, frozen=True):
    """`nodes` new nodes would hold at least one of `pods`, which are in the order in which they were placed."""

    nodes: int
    pods: tuple[Pod, ...]


def schedulable_groups(cluster: HypotheticalCluster, template: NodeInfo, groups: Iterable[PodGroup]) -> list[PodGroup]:
    """The groups whose first pod the scheduler would put on a fresh node of the template."""
    fresh = cluster.copy()
    index = fresh.add(template, _name(template, 0))
    return [group for group in groups if fresh.asker(fresh.newcomer(group.first))(index) is None]


def estimate(
    cluster: HypotheticalCluster, template: NodeInfo, groups: Sequence[PodGroup], *, most_nodes: int = MOST_NODES
) -> Estimate:
    """Packs the groups onto nodes of the template. `most_nodes` 0 is no limit; the cluster itself stays as it is."""
    packing = _Packing(cluster.copy(), template, most_nodes)
    for group in sorted(groups, key=lambda group: -score(group.first, template)):
        packing.pack(group)
    return Estimate(len(packing.occupied), tuple(packing.placed))


def score(pod: Pod, template: NodeInfo) -> float:
    """The pod's share of the template: of its CPU and of its memory, added up."""
    requests, allocatable = pod_requests(pod), template.node.status.allocatable
    return sum(
        requests.get(name, ZERO).nano / allocatable[name].nano
        for name in ("cpu", "memory")
        if allocatable.get(name, ZERO) > ZERO
    )


class _Packing:
    """`added` are the indexes of new nodes, `occupied` of those nodes that have got a pod by the estimate."""

    def __init__(self, cluster: HypotheticalCluster, template: NodeInfo, most_nodes: int) -> None:
        self._cluster, self._template, self._most = cluster, template, most_nodes
        self._present = len(cluster.views)
        self._added: list[int] = []
        self.occupied: set[int] = set()
        self.placed: list[Pod] = []

    def pack(self, group: PodGroup) -> None:
        """Places pods of the group until one has no place; those behind it are like it, and have none either."""
        waiting = iter([self._cluster.newcomer(pod) for pod in group.pods])
        unplaced = next((newcomer for newcomer in waiting if not self._on_any(newcomer, self._added)), None)
        while unplaced is not None and self._on_last_or_new(unplaced):
            unplaced = next(waiting, None)

    def _on_last_or_new(self, newcomer: Resident) -> bool:
        if self._added:
            refusal = self._cluster.asker(newcomer)(self._added[-1])
            if refusal is None:
                return self._place(newcomer, self._added[-1])
            if _of_host_spread(newcomer, refusal) and self._on_any(newcomer, self._others()):
                return True
            if self._added[-1] not in self.occupied:  # it was refused by an empty node, so it would be by a new one
                return False
        if self._most and len(self._added) >= self._most:
            return False
        name = _name(self._template, len(self._added))
        self._added.append(self._cluster.add(self._template, name))
        return self._on_any(newcomer, self._added[-1:])

    def _others(self) -> Iterator[int]:
        return (index for index in range(len(self._cluster.views)) if index != self._added[-1])

    def _on_any(self, newcomer: Resident, indexes: Iterable[int]) -> bool:
        refuses = self._cluster.asker(newcomer)
        index = next((index for index in indexes if refuses(index) is None), None)
        return index is not None and self._place(newcomer, index)

    def _place(self, newcomer: Resident, index: int) -> bool:
        self._cluster.put(newcomer, index)
        if index >= self._present:
            self.occupied.add(index)
        self.placed.append(newcomer.pod)
        return True


def _of_host_spread(newcomer: Resident, refusal: Refusal) -> bool:
    """Whether only a spread over hosts stands in the way, for which another host may do."""
    keys = {constraint.topology_key for constraint in newcomer.pod.spec.topology_spread_constraints}
    return refusal.filter == "PodTopologySpread" and HOSTNAME in keys


def _name(template: NodeInfo, number: int) -> str:
    return f"{template.name}-new-{number}"

"""The scheduler's cache: nodes, the pods on them, and nominated pods.

A pod counts from the moment it is placed, before the API has confirmed the binding (assumed), so that two pods in a row
do not take the same room. Requests are status-aware: a deferred growth counts at its desired size (R-078), a
shrink only when the node has reported it (R-080). Views are kept until something on their node changes.
"""

from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.resources import add, subtract
from podfit.decide.placement.preempt import Budget
from podfit.decide.placement.rules import MANY, rules_of
from podfit.decide.placement.view import NodeInfo, Resident
from podfit.scheduler.match_counts import MatchCounts

Key = tuple[str, str]
MOST_CHANGES = 20_000


class _Tally(msgspec.Struct):
    requested: ResourceList = msgspec.field(default_factory=dict)
    weight: tuple[int, int] = (0, 0)
    residents: dict[Key, Resident] = msgspec.field(default_factory=dict)
    nominated: dict[Key, Resident] = msgspec.field(default_factory=dict)


class ClusterCache:
    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates
        self._nodes: dict[str, Node] = {}
        self._tallies: dict[str, _Tally] = {}
        self._where: dict[Key, str] = {}
        self._nominations: dict[Key, str] = {}
        self._views: dict[str, NodeInfo] = {}
        self._changed: list[str] = []
        self._forgotten = 0  # changes before these
        self.makeup = 0
        """Grows when nodes come, go, or have other images."""
        self.choosy: dict[Key, Resident] = {}
        self.many_rules: dict[Key, int] = {}
        """How many rules those of them have that have many."""
        self.choices = 0
        """Grows when a pod that says near whom it would be comes or goes, and with the labels of namespaces."""
        self.namespaces: dict[str, dict[str, str]] = {}
        self.budgets: dict[Key, Budget] = {}
        self.match_counts = MatchCounts(self._placed)

    def set_node(self, node: Node) -> None:
        before = self._nodes.get(node.metadata.name)
        self._nodes[node.metadata.name] = node
        self._touch(node.metadata.name)
        if before is None or before.status.images != node.status.images:
            self.makeup += 1

    def remove_node(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self.makeup += 1
        self._touch(name)

    def set_namespace(self, name: str, labels: dict[str, str]) -> None:
        if self.namespaces.get(name) != labels:
            self.choices += 1
        self.namespaces[name] = labels

    def remove_namespace(self, name: str) -> None:
        self.namespaces.pop(name, None)
        self.choices += 1

    def assume(self, subject: Resident, node: str) -> None:
        """Count a pod where it was placed. Without a status it asks there for what it asked for as it waited."""
        self._count(subject if subject.has_no_status else Resident.of(subject.pod, gates=self._gates), node)

    def count(self, pod: Pod, node: str) -> tuple[ResourceList, ResourceList]:
        """Count a pod on a node at what it asks for now; answers what it counted for before and counts for now."""
        return self._count(Resident.of(pod, gates=self._gates), node)

    def _count(self, resident: Resident, node: str) -> tuple[ResourceList, ResourceList]:
        pod = resident.pod
        key = (pod.metadata.namespace, pod.metadata.name)
        if self._is_still(key, node, resident):
            return resident.requests, resident.requests
        before = self.forget(key)
        self.withdraw(key)
        tally = self._tally(node)
        tally.requested = add(tally.requested, resident.requests)
        tally.weight = (tally.weight[0] + resident.weight[0], tally.weight[1] + resident.weight[1])
        tally.residents[key] = resident
        self._where[key] = node
        self.match_counts.add(pod, node)
        if resident.is_choosy:
            self.choosy[key] = resident
            self.choices += 1
            if (rules := rules_of(pod)) > MANY:
                self.many_rules[key] = rules
        return before, resident.requests

    def _is_still(self, key: Key, node: str, resident: Resident) -> bool:
        """Nothing that counts is different, as when a status was written: no node has to be judged anew."""
        if self._where.get(key) != node or key in self._nominations or resident.is_choosy:
            return False
        residents = self._tallies[node].residents
        before = residents[key]
        if not before.counts_like(resident) or not self.match_counts.same(before.pod, resident.pod):
            return False
        residents[key] = resident
        self._views.pop(node, None)
        return True

    def forget(self, key: Key) -> ResourceList:
        """The pod is gone, or its binding failed; answers what it counted for."""
        node = self._where.pop(key, None)
        if node is None:
            return {}
        tally = self._tally(node)
        resident = tally.residents.pop(key)
        self.match_counts.remove(resident.pod, node)
        if self.choosy.pop(key, None) is not None:
            self.choices += 1
            self.many_rules.pop(key, None)
        tally.requested = subtract(tally.requested, resident.requests)
        tally.weight = (tally.weight[0] - resident.weight[0], tally.weight[1] - resident.weight[1])
        self._drop_empty(node)
        return resident.requests

    def counts(self, key: Key) -> bool:
        return key in self._where

    def nominate(self, pod: Pod, node: str) -> None:
        """Keep room on the node for a pod that waits, against pods of lower priority."""
        key = (pod.metadata.namespace, pod.metadata.name)
        self.withdraw(key)
        self._tally(node).nominated[key] = Resident.of(pod, gates=self._gates, placed=False)
        self._nominations[key] = node

    def withdraw(self, key: Key) -> str:
        """End the nomination; answers the node it was about, or nothing."""
        node = self._nominations.pop(key, "")
        if node:
            del self._tally(node).nominated[key]
            self._drop_empty(node)
        return node

    def nominated_below(self, node: str, priority: int) -> list[Pod]:
        """The pods of lower priority that are nominated there; an eviction for a higher one takes it away."""
        tally = self._tallies.get(node)
        return [resident.pod for resident in tally.nominated.values() if resident.priority < priority] if tally else []

    def is_nominated(self, key: Key) -> bool:
        return key in self._nominations

    @property
    def mark(self) -> int:
        """Where the record of changes ends now, for `changed_since`."""
        return self._forgotten + len(self._changed)

    def changed_since(self, mark: int) -> list[str] | None:
        """Names of nodes whose view is another since then; None when that is not known any more."""
        return self._changed[mark - self._forgotten :] if mark >= self._forgotten else None

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    @property
    def names(self) -> list[str]:
        """The names of all nodes."""
        return list(self._nodes)

    def view(self, name: str) -> NodeInfo | None:
        """None for a node that there is not."""
        if (found := self._views.get(name)) is None and name in self._nodes:
            found = self._views[name] = self._view(name)
        return found

    def views(self) -> list[NodeInfo]:
        return [view for name in self._nodes if (view := self.view(name)) is not None]

    def _placed(self) -> Iterator[tuple[Pod, str]]:
        for name, tally in self._tallies.items():
            for resident in tally.residents.values():
                yield resident.pod, name

    def _view(self, name: str) -> NodeInfo:
        tally = self._tallies.get(name) or _Tally()
        residents, nominated = tuple(tally.residents.values()), tuple(tally.nominated.values())
        return NodeInfo(self._nodes[name], residents, tally.requested, tally.weight, nominated)

    def _tally(self, node: str) -> _Tally:
        """For a change: the node's view is out of date from here on."""
        self._touch(node)
        return self._tallies.setdefault(node, _Tally())

    def _touch(self, node: str) -> None:
        self._views.pop(node, None)
        if len(self._changed) >= MOST_CHANGES:
            self._forgotten += len(self._changed)
            self._changed.clear()
        self._changed.append(node)

    def _drop_empty(self, node: str) -> None:
        tally = self._tallies[node]
        if not tally.residents and not tally.nominated:
            del self._tallies[node]

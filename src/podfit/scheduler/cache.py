"""What the scheduler believes of the cluster: nodes, and what the pods on them count for.

A pod counts from the moment it is placed, before the API has confirmed the binding (assumed), so that two pods in a row
do not take the same room. Requests are status-aware (spec 4.1): a deferred growth counts at its desired size (R-078), a
shrink only when the node has reported it (R-080).
"""

from dataclasses import dataclass, field

from podfit.api.base import ResourceList
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.core.features import FeatureGates
from podfit.core.resources import add, subtract
from podfit.decide.place import HostPort, NodeView, host_ports
from podfit.decide.requests import pod_requests

Key = tuple[str, str]
TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Counted:
    node: str
    requests: ResourceList
    ports: frozenset[HostPort]


@dataclass(slots=True)
class _Tally:
    requested: ResourceList = field(default_factory=dict)
    pods: dict[Key, _Counted] = field(default_factory=dict)


class ClusterCache:
    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates
        self._nodes: dict[str, Node] = {}
        self._tallies: dict[str, _Tally] = {}
        self._counted: dict[Key, _Counted] = {}

    def set_node(self, node: Node) -> None:
        self._nodes[node.metadata.name] = node

    def remove_node(self, name: str) -> None:
        self._nodes.pop(name, None)

    def count(self, pod: Pod, node: str) -> tuple[ResourceList, ResourceList]:
        """Count a pod on a node at what it asks for now; answers what it counted for before and counts for now."""
        key = (pod.metadata.namespace, pod.metadata.name)
        before = self.forget(key)
        requests = pod_requests(pod, gates=self._gates, use_status=True)
        counted = _Counted(node, requests, host_ports(pod))
        tally = self._tallies.setdefault(node, _Tally())
        tally.requested = add(tally.requested, requests)
        tally.pods[key] = self._counted[key] = counted
        return before, requests

    def forget(self, key: Key) -> ResourceList:
        """The pod is gone, or its binding failed; answers what it counted for."""
        counted = self._counted.pop(key, None)
        if counted is None:
            return {}
        tally = self._tallies[counted.node]
        del tally.pods[key]
        tally.requested = subtract(tally.requested, counted.requests)
        if not tally.pods:
            del self._tallies[counted.node]
        return counted.requests

    def counts(self, key: Key) -> bool:
        return key in self._counted

    def views(self) -> list[NodeView]:
        return [self._view(node) for node in self._nodes.values()]

    def _view(self, node: Node) -> NodeView:
        tally = self._tallies.get(node.metadata.name) or _Tally()
        ports = frozenset().union(*(counted.ports for counted in tally.pods.values()))
        return NodeView(node, tally.requested, len(tally.pods), ports)

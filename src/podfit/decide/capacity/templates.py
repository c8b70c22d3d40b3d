"""The template of a group: what one more node of it would be like, and the pods that it would have from the start.

A healthy node of the group is believed before what the provider says (C-080). Pods of DaemonSets and static pods are
there from the start; pods that a DaemonSet has yet to make, too.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.features import FeatureGates
from podfit.decide.capacity.drain import is_daemon_set_pod
from podfit.decide.capacity.readiness import CANDIDATE, STARTUP_TAINTS, STATUS_TAINTS, TO_BE_DELETED, NodeReadiness
from podfit.decide.capacity.registered import GroupState
from podfit.decide.placement.default_spread import HOSTNAME
from podfit.decide.placement.view import NodeInfo, Resident
from podfit.decide.pod.spare import SPARE
from podfit.decide.workload.daemon.nodes import suits, tolerations

_PASSING = (
    TO_BE_DELETED,
    CANDIDATE,
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
"""Taints of a node's state, which a new one does not have for long."""


def template_of(
    state: GroupState, on_node: Mapping[str, Sequence[Pod]], daemon_sets: Iterable[DaemonSet], gates: FeatureGates
) -> NodeInfo | None:
    """None for a group without a healthy node whose provider tells of none."""
    ready = [node for node, node_state in state.nodes if node_state is NodeReadiness.READY and _is_whole(node)]
    real = min(ready, key=lambda node: node.metadata.name, default=None)
    node = real if real is not None else state.group.template
    if node is None:
        return None
    made = _new_node(node, f"template-node-for-{state.group.id}"[:253])
    kept = [pod for pod in on_node.get(node.metadata.name, ()) if _comes_with_node(pod)] if real is not None else []
    owners = {owner.uid for pod in kept if (owner := controller_of(pod.metadata)) is not None}
    missing = [daemons for daemons in daemon_sets if daemons.metadata.uid not in owners and suits(daemons, made)[0]]
    pods = (*kept, *map(_daemon, missing))
    return NodeInfo.of(made, (Resident.of(pod, gates=gates, placed=pod.status.start_time is not None) for pod in pods))


def _is_whole(node: Node) -> bool:
    return bool(node.status.allocatable) and not any(taint.key == TO_BE_DELETED for taint in node.spec.taints)


def _comes_with_node(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and (is_daemon_set_pod(pod) or is_mirror(pod))


def _daemon(daemons: DaemonSet) -> Pod:
    template = daemons.spec.template
    meta = ObjectMeta(
        name=f"{daemons.metadata.name}-new",
        namespace=daemons.metadata.namespace,
        uid=f"{daemons.metadata.uid}-new",
        labels=template.metadata.labels,
    )
    return Pod(metadata=meta, spec=replace(template.spec, tolerations=tolerations(template.spec)))


def _new_node(node: Node, name: str) -> Node:
    """Without what only holds of that one (C-079); nobody has requested anything on a new one, so it lends nothing."""
    taints = tuple(
        taint
        for taint in node.spec.taints
        if taint.key not in _PASSING and not taint.key.startswith((*STARTUP_TAINTS, *STATUS_TAINTS))
    )
    labels = {**node.metadata.labels, HOSTNAME: name}
    meta = ObjectMeta(name=name, labels=labels, annotations=node.metadata.annotations)
    capacity, allocatable = _owned(node.status.capacity), _owned(node.status.allocatable or node.status.capacity)
    status = replace(node.status, capacity=capacity, allocatable=allocatable, conditions=(), images=())
    return replace(node, metadata=meta, spec=replace(node.spec, taints=taints, unschedulable=False), status=status)


def _owned(amounts: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name not in SPARE}

"""Readiness of nodes, and how many of a group are in which state (C-013, C-093)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.core.times import parse_time

STARTUP_TAINTS = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
"""Prefixes of taints that hold until a node has been set up."""
STATUS_TAINTS = ("status-taint.cluster-autoscaler.kubernetes.io/",)
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
_UNREADY_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
)
_BAD_CONDITIONS = ("DiskPressure", "NetworkUnavailable")


class NodeReadiness(StrEnum):
    READY = "ready"
    NOT_STARTED = "notStarted"
    UNREADY = "unready"
    DELETED = "deleted"
    """Its provider knows it no more."""


def is_ready(node: Node) -> bool:
    """A node with DiskPressure counts as not ready, whatever Ready says."""
    conditions = {condition.type: condition.status for condition in node.status.conditions}
    if conditions.get("Ready") != "True" or any(conditions.get(name) == "True" for name in _BAD_CONDITIONS):
        return False
    return not any(taint.key in _UNREADY_TAINTS or taint.key.startswith(STARTUP_TAINTS) for taint in node.spec.taints)


def age(node: Node, now: datetime) -> float:
    """Seconds since the Node was made; one that does not say is old."""
    created = node.metadata.creation_timestamp
    return (now - parse_time(created)).total_seconds() if created else float("inf")


def is_going(node: Node) -> bool:
    """Whether somebody is removing it."""
    going = node.metadata.deletion_timestamp is not None
    return going or any(taint.key == TO_BE_DELETED for taint in node.spec.taints)


def state_of(node: Node, now: datetime, *, startup_time: float, has_instance: bool) -> NodeReadiness:
    if not has_instance:
        return NodeReadiness.DELETED
    if is_ready(node):
        return NodeReadiness.READY
    return NodeReadiness.NOT_STARTED if age(node, now) < startup_time else NodeReadiness.UNREADY


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a group, or of the cluster. `unregistered` are instances without a Node, `long_unregistered` those
    of them that should have one by now."""

    registered: int = 0
    ready: int = 0
    not_started: int = 0
    unready: int = 0
    being_deleted: int = 0
    unregistered: int = 0
    long_unregistered: int = 0

    def plus(self, other: "Counts") -> "Counts":
        names = self.__struct_fields__
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})


def counted(states: Iterable[NodeReadiness], unregistered: int = 0, long_unregistered: int = 0) -> Counts:
    numbers: dict[NodeReadiness, int] = {}
    for state in states:
        numbers[state] = numbers.get(state, 0) + 1
    return Counts(
        registered=sum(numbers.values()),
        ready=numbers.get(NodeReadiness.READY, 0),
        not_started=numbers.get(NodeReadiness.NOT_STARTED, 0),
        unready=numbers.get(NodeReadiness.UNREADY, 0),
        being_deleted=numbers.get(NodeReadiness.DELETED, 0),
        unregistered=unregistered,
        long_unregistered=long_unregistered,
    )


def total(counts: Mapping[str, Counts], others: Counts) -> Counts:
    """The counts of all groups and of nodes without one."""
    result = others
    for count in counts.values():
        result = result.plus(count)
    return result

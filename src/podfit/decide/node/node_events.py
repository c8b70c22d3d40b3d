"""Events about a node, in upstream's words."""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.nodes.types import Node, NodeCondition, NodeStatus

_REASONS = {
    ("Ready", "True"): "NodeReady",
    ("Ready", "False"): "NodeNotReady",
    ("MemoryPressure", "True"): "NodeHasInsufficientMemory",
    ("MemoryPressure", "False"): "NodeHasSufficientMemory",
    ("DiskPressure", "True"): "NodeHasDiskPressure",
    ("DiskPressure", "False"): "NodeHasNoDiskPressure",
    ("PIDPressure", "True"): "NodeHasInsufficientPID",
    ("PIDPressure", "False"): "NodeHasSufficientPID",
}
REBOOTED, SCHEDULABLE, NOT_SCHEDULABLE = "Rebooted", "NodeSchedulable", "NodeNotSchedulable"


class NodeEvent(msgspec.Struct, frozen=True):
    type: str
    reason: str
    message: str


def of_status(name: str, before: NodeStatus | None, after: NodeStatus) -> list[NodeEvent]:
    """An event for each condition that is not what it was. `before` None: the kubelet has just begun, and says how it
    is."""
    known = _statuses(before.conditions) if before is not None else {}
    reasons = (
        _REASONS[key] for key in _statuses(after.conditions).items() if key in _REASONS and known.get(key[0]) != key[1]
    )
    return [_state(name, reason) for reason in reasons]


def of_takeover(name: str, known: Node, status: NodeStatus) -> list[NodeEvent]:
    """Events of a node object that was there before this kubelet: whether its machine is another or was started anew,
    and whether it takes pods."""
    events = []
    boot = status.node_info.boot_id
    if known.status.node_info.boot_id not in ("", boot):
        events.append(NodeEvent("Warning", REBOOTED, f"Node {name} has been rebooted, boot id: {boot}"))
    return events + ([_state(name, NOT_SCHEDULABLE)] if known.spec.unschedulable else [])


def of_cordon(name: str, before: Node, after: Node) -> list[NodeEvent]:
    """The event of a node that was taken out of use, or back into it."""
    if before.spec.unschedulable == after.spec.unschedulable:
        return []
    return [_state(name, NOT_SCHEDULABLE if after.spec.unschedulable else SCHEDULABLE)]


def _statuses(conditions: Iterable[NodeCondition]) -> Mapping[str, str]:
    return {condition.type: condition.status for condition in conditions}


def _state(name: str, reason: str) -> NodeEvent:
    return NodeEvent("Normal", reason, f"Node {name} status is now: {reason}")

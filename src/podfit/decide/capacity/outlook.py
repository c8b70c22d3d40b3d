"""The outlook: what the autoscaler is about to do, when, and what is in the way, as `podfit why` tells it.

It is written with the status, in the same moment as the decision that it tells of.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from podfit.api.core.v1.nodes.types import Node, NodeSpec, NodeStatus, Taint
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.placement.view import NodeInfo

MOST_TOLD = 100
"""Pods, nodes or groups in an outlook; the most urgent come first."""


class Act(StrEnum):
    """What comes next for a pod that waits."""

    WAIT = "wait"
    SHRINK = "shrink"
    MOVE = "move"
    NODE = "node"
    NOTHING = "nothing"


class PodOutlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`who` is the pod that shrinks or moves (several that shrink are separated by commas), `what` by how much it
    shrinks, `to` the node that it moves to, `group` where a node comes from; `at` is the group of the node on which a
    resize waits.

    `begins`: not before then, as the resize has only begun to wait. `due` is the time until which that should have
    happened. `because` says why it is not done now, or not at all.
    """

    namespace: str
    pod: str
    act: Act
    resize: bool = False
    who: str = ""
    what: str = ""
    to: str = ""
    group: str = ""
    at: str = ""
    begins: str = ""
    due: str = ""
    because: str = ""


class GroupOutlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`coming` nodes have yet to be ready, the last at `due`. `grows` says why it does not grow now, where it could
    not."""

    name: str
    size: int
    min_size: int
    max_size: int
    ready: int
    coming: int = 0
    due: str = ""
    grows: str = ""
    backoff_until: str = ""
    problem: str = ""


class ComingNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A node that is on its way, as it will be; `free` is what those who wait for it already leave."""

    name: str
    group: str
    due: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    free: Mapping[str, str] = msgspec.field(default_factory=dict)

    def view(self) -> NodeInfo:
        """The node as the scheduler's filters look at it. Raises ValueError for an amount that is none."""
        free = {name: Quantity.parse(amount) for name, amount in self.free.items()}
        meta = ObjectMeta(name=self.name, labels=dict(self.labels))
        status = NodeStatus(allocatable=free, capacity=free)
        return NodeInfo.of(Node(metadata=meta, spec=NodeSpec(taints=self.taints), status=status), ())


def coming_node(view: NodeInfo, group: str, due: str) -> ComingNode:
    node, used = view.node, {**view.requested, "pods": Quantity.of(len(view.residents))}
    free = {name: max(amount - used.get(name, ZERO), ZERO) for name, amount in node.status.allocatable.items()}
    return ComingNode(
        name=view.name,
        group=group,
        due=due,
        labels=node.metadata.labels,
        taints=node.spec.taints,
        free={name: str(amount) for name, amount in free.items()},
    )


class NodeOutlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`removed` is when the node goes if nothing changes; `reason` (upstream's word) and `because`: what keeps it."""

    name: str
    group: str = ""
    removed: str = ""
    reason: str = ""
    because: str = ""


class Outlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`left_out` counts what did not fit; after `until` it is too old. `resizes` that wait count as demand, `delay`
    seconds after they began to, and neighbours shrink for them where `shrinks`."""

    time: str = ""
    until: str = ""
    pods: tuple[PodOutlook, ...] = ()
    groups: tuple[GroupOutlook, ...] = ()
    nodes: tuple[NodeOutlook, ...] = ()
    coming: tuple[ComingNode, ...] = ()
    left_out: int = 0
    resizes: bool = False
    shrinks: bool = False
    delay: float = 0.0

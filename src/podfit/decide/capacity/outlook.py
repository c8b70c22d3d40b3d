"""The outlook: what the autoscaler is about to do, when, and what is in the way, as `podfit why` tells it.

It is written with the status, in the same moment as the decision that it tells of.
"""

from enum import StrEnum

import msgspec

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


class NodeOutlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`removed` is when the node goes if nothing changes; `reason` (upstream's word) and `because`: what keeps it."""

    name: str
    group: str = ""
    removed: str = ""
    reason: str = ""
    because: str = ""


class Outlook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`left_out` counts what did not fit; after `until` it is too old. `resizes` that wait count as demand."""

    time: str = ""
    until: str = ""
    pods: tuple[PodOutlook, ...] = ()
    groups: tuple[GroupOutlook, ...] = ()
    nodes: tuple[NodeOutlook, ...] = ()
    left_out: int = 0
    resizes: bool = False

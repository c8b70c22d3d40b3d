"""What the autoscaler looks at, what it remembers between two looks, and what it does.

step(state, event, moment) -> (state, effects)          decide/capacity/machine.py

event     Looked  ScaledUp  Removed  Shrunk  Moved  InstancesDeleted
effects   ScaleUp  LowerTarget  DeleteInstances  RemoveNode  SoftTaint  ShrinkPods  MovePod  Say  Report
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.capacity.backoff import Backoff
from podfit.decide.capacity.drain import Controllers
from podfit.decide.capacity.expanders import Priorities
from podfit.decide.capacity.node_groups import Members, NodeGroup
from podfit.decide.capacity.outlook import Outlook
from podfit.decide.capacity.removal import Templates
from podfit.decide.capacity.status import AutoscalerStatus
from podfit.decide.node.room.plan import RoomPlan
from podfit.decide.placement.default_spread import DefaultSpread
from podfit.decide.placement.place import NO_NAMESPACES
from podfit.decide.placement.view import NamespaceLabels
from podfit.decide.placement.volumes import NO_CLAIMS, ClaimLookup

NEVER = float("-inf")
Sizes: TypeAlias = Mapping[str, Mapping[str, ResourceList]]
"""Requests by the UID of a pod and container."""


class Moment(msgspec.Struct, frozen=True):
    """The time of day, and seconds of a clock that nobody sets."""

    now: datetime
    at: float


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster and its node groups. `pods` are all that have not ended.

    `recommended` is what VPAs would give running pods, `templates` what controllers make successors of. `buffers` are
    pods that stand for headroom. `makes_room`: somebody shrinks neighbours for waiting resizes. `draw` decides between
    equals, from 0 up to 1. `problem` says why the provider told nothing.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    members: Members = msgspec.field(default_factory=dict)
    budgets: tuple[PodDisruptionBudget, ...] = ()
    controllers: Controllers | None = None
    templates: Templates = msgspec.field(default_factory=dict)
    daemon_sets: tuple[DaemonSet, ...] = ()
    recommended: Sizes = msgspec.field(default_factory=dict)
    buffers: tuple[Pod, ...] = ()
    priorities: Priorities = Priorities()
    namespaces: NamespaceLabels = NO_NAMESPACES
    claims: ClaimLookup = NO_CLAIMS
    default_spread: Callable[[Pod], DefaultSpread | None] = lambda _: None
    gates: FeatureGates = DEFAULT_GATES
    makes_room: bool = False
    draw: float = 0.0
    problem: str = ""
    refused: tuple[str, ...] = ()


# ------------------------------------------------------------------ what is remembered


class Request(msgspec.Struct, frozen=True):
    """New nodes that were asked for and have yet to come."""

    nodes: int
    at: float


class WrongSize(msgspec.Struct, frozen=True):
    """A group has `there` instances instead of `target`, since `at`."""

    there: int
    target: int
    at: float


class Kept(msgspec.Struct, frozen=True):
    """Why a node is not removed; with `until` it is not looked at again before."""

    reason: str
    text: str
    until: float = NEVER


class Removing(msgspec.Struct, frozen=True):
    group: str
    drains: bool


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered, by group: `requests`, `backoffs`, `wrong_sizes`, `removed` (when a node of it went last),
    `steady` (until when it keeps its nodes, since one that went was missed). By Node: `unneeded` (since when), `kept`,
    `removing`. `moves` are pods that were evicted for a waiting resize, `unwilling` those that the API refused to
    shrink for one, as they were then; `failed` are instances whose error was told; `said` is the last text about an
    object by UID and reason."""

    requests: Mapping[str, Request] = msgspec.field(default_factory=dict)
    backoffs: Mapping[str, Backoff] = msgspec.field(default_factory=dict)
    wrong_sizes: Mapping[str, WrongSize] = msgspec.field(default_factory=dict)
    removed: Mapping[str, float] = msgspec.field(default_factory=dict)
    steady: Mapping[str, float] = msgspec.field(default_factory=dict)
    unregistered: Mapping[str, float] = msgspec.field(default_factory=dict)
    unneeded: Mapping[str, float] = msgspec.field(default_factory=dict)
    kept: Mapping[str, Kept] = msgspec.field(default_factory=dict)
    removing: Mapping[str, Removing] = msgspec.field(default_factory=dict)
    moves: Mapping[str, float] = msgspec.field(default_factory=dict)
    unwilling: Mapping[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    said: Mapping[tuple[str, str], str] = msgspec.field(default_factory=dict)
    scaled_up_at: float = NEVER
    failed_at: float = NEVER
    removed_at: float = NEVER
    status: AutoscalerStatus | None = None


# ------------------------------------------------------------------ what is done

NORMAL, WARNING = "Normal", "Warning"


class Say(msgspec.Struct, frozen=True):
    """An event; `about` is None for one about the status ConfigMap."""

    about: Pod | Node | None
    type: str
    reason: str
    message: str


class Increase(msgspec.Struct, frozen=True):
    """So many more nodes of a group."""

    group: NodeGroup
    by: int

    @property
    def size(self) -> int:
        return self.group.target + self.by


class ScaleUp(msgspec.Struct, frozen=True):
    """All of them for these pods, which may stand for waiting resizes: `pods` are the real ones."""

    increases: tuple[Increase, ...]
    pods: tuple[Pod, ...]


class LowerTarget(msgspec.Struct, frozen=True):
    """Give up nodes that have not come."""

    group: str
    by: int


class DeleteInstances(msgspec.Struct, frozen=True):
    """Machines without a Node; `reason` begins the names of the events about it."""

    group: str
    ids: tuple[str, ...]
    reason: str


class RemoveNode(msgspec.Struct, frozen=True, kw_only=True):
    """`move` are the pods that run elsewhere then, in the order in which they are evicted."""

    node: Node
    group: str
    move: tuple[Pod, ...] = ()
    daemon_set: tuple[Pod, ...] = ()
    utilization: float = 0.0


class SoftTaint(msgspec.Struct, frozen=True):
    """Put it on a node that may go soon, or take it off."""

    node: str
    on: bool


class MovePod(msgspec.Struct, frozen=True):
    """Evict the pod, which has a place on node `to`, for the resize of `waiting`; they may be the same."""

    pod: Pod
    waiting: Pod
    to: str


class ShrinkPods(msgspec.Struct, frozen=True):
    """Shrink neighbours of `waiting`, so that its resize has room: all of the plan, or nobody. It evicts nobody."""

    waiting: Pod
    plan: RoomPlan


class Report(msgspec.Struct, frozen=True):
    status: AutoscalerStatus
    outlook: Outlook


Effect: TypeAlias = (
    Say | ScaleUp | LowerTarget | DeleteInstances | RemoveNode | SoftTaint | ShrinkPods | MovePod | Report
)


# ------------------------------------------------------------------ what comes in


class Looked(msgspec.Struct, frozen=True):
    look: Look


class ScaledUp(msgspec.Struct, frozen=True):
    """What came of it; `errors` by group, of those that failed."""

    scale_up: ScaleUp
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)


class Removed(msgspec.Struct, frozen=True):
    """`error` is empty when the node is gone."""

    node: str
    group: str
    error: str = ""


class Moved(msgspec.Struct, frozen=True):
    """`error` is empty when the pod was evicted."""

    move: MovePod
    error: str = ""


class Shrunk(msgspec.Struct, frozen=True):
    """What came of it. `refusals` by the UID of a neighbour, of those that the API would not shrink: then nobody was.
    `error`: it was not answered, or something else has changed meanwhile; the next look decides anew."""

    shrink: ShrinkPods
    refusals: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class InstancesDeleted(msgspec.Struct, frozen=True):
    """What came of it; `error` is empty when they are gone."""

    delete: DeleteInstances
    error: str = ""


Event: TypeAlias = Looked | ScaledUp | Removed | Shrunk | Moved | InstancesDeleted

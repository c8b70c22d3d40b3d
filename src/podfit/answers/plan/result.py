"""The result of a plan as JSON and text show it: a verdict for each pod, and the order in which resizes are granted."""

import msgspec

from podfit.answers.node.making_room import ShrunkPod
from podfit.answers.plan.changes import Change, ResourceChange
from podfit.answers.plan.effects import Restart
from podfit.answers.plan.initial_resources import InitialPlan
from podfit.answers.plan.template import TemplatePlan
from podfit.core.quantity import Quantity

FITS, DEFERRED, INFEASIBLE, REFUSED, UNCHANGED = "fits", "deferred", "infeasible", "refused", "unchanged"
IN_PROGRESS, ERROR, CRASH = "in progress", "error", "crash"
UNSCHEDULABLE, ENDED = "unschedulable", "ended"
PROTECTED, NOT_KNOWN = "protected", "not known"
"""PROTECTED: a container would restart, and a disruption budget does not let the pod go. NOT_KNOWN: the API takes it as
far as can be told; what the node says to it may not be read.
"""


class PodPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`text` is the reason in the API's or the node's own words, `code` the API's status for a refusal.

    `repeated`: the spec asks for this already, so there is nothing to send and the verdict is how it stands.
    `replaces`: the pod waits for another size now, so it is told this one before anybody gives up room.
    `withdraws`: so that one pod of a disruption budget restarts after the other, it is told to stay as it is then, and
    this size when it is its turn.
    `after` are pods that are tried before this one while it waits, `blocked_by` who holds what is short, largest first.
    `ends` are pods that are ended to make room for it, as a node does for critical pods.
    `changes` are the amounts that become others, `sizes` have request and limit beside each other.
    `gifts` are what other pods give first, where the cluster makes room.
    `protected` says which budget does not allow the restart that it needs; empty otherwise.
    `room` says why none is made for a pod that waits, on a cluster that makes room.
    `nodes` says which node on its way, or which neighbour, gives it its place, by the cluster autoscaler.
    `shrink` says what is known of memory usage when a memory limit is lowered; empty otherwise.
    """

    pod: str
    node: str
    verdict: str
    namespace: str = ""
    text: str = ""
    code: int = 0
    changes: tuple[Change, ...] = ()
    sizes: tuple[ResourceChange, ...] = ()
    restarts: tuple[Restart, ...] = ()
    short_by: str = ""
    blocked_by: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    qos: str = ""
    shrink: str = ""
    repeated: bool = False
    replaces: bool = False
    withdraws: bool = False
    protected: str = ""
    gifts: tuple[ShrunkPod, ...] = ()
    room: tuple[str, ...] = ()
    nodes: str = ""

    @property
    def gives(self) -> bool:
        """Whether it gives up room that the next pod may take."""
        pairs = [
            (change.before, change.after) for change in self.changes if change.side == "requests" and change.before
        ]
        return any(Quantity.parse(after or "0") < Quantity.parse(before) for before, after in pairs)

    @property
    def good(self) -> bool:
        """Whether the resize would complete now, or is about to."""
        return self.verdict in (FITS, UNCHANGED, IN_PROGRESS)

    @property
    def sendable(self) -> bool:
        """Whether nothing speaks against sending it: it would complete, wait for room, or the node has to be asked."""
        return self.good or self.verdict in (DEFERRED, NOT_KNOWN)


class Sum(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The sum of all pods: what they have now, what is asked for, and what they would have with what fits now."""

    resource: str
    side: str
    before: str
    after: str
    granted: str


class Plan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`order` are pods in the order in which their resizes would be granted; `notes` is what else there is to know,
    `doubts` amounts that are hardly meant, and
    `template` what becomes of the workload's own sizes, where that was asked; `initial` is what new pods get that ask
    for nothing, `sums` are of several targets.
    """

    server: str
    namespace: str
    pods: tuple[PodPlan, ...]
    order: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    template: TemplatePlan | None = None
    initial: tuple[InitialPlan, ...] = ()
    sums: tuple[Sum, ...] = ()

    @property
    def sending(self) -> tuple[PodPlan, ...]:
        """The pods in the order in which they are asked for."""
        return tuple(sorted(self.pods, key=lambda pod: not pod.replaces or pod.withdraws))

    @property
    def good(self) -> bool:
        template = self.template is None or self.template.good
        return template and not self.doubts and bool(self.pods) and all(pod.good for pod in self.pods)

    @property
    def advisable(self) -> bool:
        """Whether a resize is the next step: something would change, and nothing is known to be in the way."""
        pods = [pod for pod in self.pods if not pod.good]
        known = all(pod.verdict == NOT_KNOWN for pod in pods) and (self.template is None or self.template.good)
        return known and not self.doubts and any(pod.verdict in (FITS, NOT_KNOWN) for pod in self.pods)

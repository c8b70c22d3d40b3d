"""One pass over the resizes that wait (spec 5.4): in order, each success counting at once for the rest.

Nothing here acts or waits. A blocked entry does not hold up a smaller one behind it (R-108).
"""

from collections.abc import Iterable

import msgspec

from podfit.api.core.pods import Pod
from podfit.core.quantity import ZERO
from podfit.core.times import parse_time
from podfit.decide import fit
from podfit.decide.critical import Preempts
from podfit.decide.fit import Deferred, Fits, Infeasible, Neighbour, NodeView
from podfit.decide.order import QueueKey, queue_key
from podfit.decide.overlay import PodResources, resources_of
from podfit.kubelet.allocation.claims import Claims
from podfit.kubelet.allocation.conditions import PENDING, Conditions
from podfit.kubelet.allocation.ledger import Ledger, Member, others

UNSAVED = "CheckpointUnwritable"
"""Reason of a deferral that no room would end."""


class Decision(msgspec.Struct, frozen=True):
    """`active` is false of a pod that is over: it is promised what it asks for, and neither takes room nor waits."""

    pod: Pod
    verdict: Fits | Deferred | Infeasible | None  # None: nothing is pending any more
    active: bool
    preempts: Preempts | None = None


class Pass(msgspec.Struct, frozen=True):
    """What was decided of each pod, in order, and what to write before any of it is told: promises, and `node`'s CPUs
    and memory that are set aside.
    """

    decisions: tuple[Decision, ...]
    changes: dict[str, PodResources]
    node: NodeView
    claims: Claims
    unsaved: bool = False

    @property
    def waiting(self) -> list[str]:
        """An infeasible resize is not tried again (R-112)."""
        return [each.pod.metadata.uid for each in self.decisions if each.active and isinstance(each.verdict, Deferred)]


def decide(queue: Iterable[str], ledger: Ledger, node: NodeView, *, unsaved: str = "") -> Pass:
    """One consistent look at the node. `unsaved` says why no promise can be kept: then what would fit has to wait."""
    members, claims = dict(ledger.members), ledger.claims
    decisions, changes = list[Decision](), dict[str, PodResources]()
    for uid in queue:
        pod, active = ledger.members[uid].pod, ledger.members[uid].active
        allocated, preempts = ledger.allocated(pod), None
        if allocated is pod:
            claims = claims.without_claim(uid)
            decisions.append(Decision(pod, None, active))
            continue
        verdict = fit.resize(pod, allocated, node, others(pod, members, claims))
        if isinstance(verdict, Fits) and unsaved:
            verdict = Deferred(UNSAVED, unsaved)
        elif isinstance(verdict, Fits):
            changes[uid] = resources_of(pod, node.gates)
            claims = claims.without_claim(uid)
            if active:
                node = fit.occupied(pod, node)
                members[uid] = Member(pod, fit.neighbour(pod, node.gates))
        elif isinstance(verdict, Infeasible):
            claims = claims.without_claim(uid)
        elif active and not unsaved:
            preempts, claims = ledger.preemption(pod, verdict, node, members, claims)
        decisions.append(Decision(pod, verdict, active, preempts))
    return Pass(tuple(decisions), changes, node, claims, unsaved=bool(unsaved))


def ordered(uids: Iterable[str], ledger: Ledger, conditions: Conditions) -> list[str]:
    """Those that are members, in the order in which they are tried."""

    def key(uid: str) -> QueueKey:
        pod, pending = ledger.members[uid].pod, conditions.get(PENDING, uid)
        since = parse_time(pending.last_transition_time) if pending and pending.last_transition_time else None
        return queue_key(pod, ledger.allocated(pod), since)

    return sorted((uid for uid in dict.fromkeys(uids) if uid in ledger.members), key=key)


def shrank(old: Neighbour, new: Neighbour) -> bool:
    """Whether a pod gave up room that another may take (R-101)."""
    return any(new.requests.get(name, ZERO) < old.requests.get(name, ZERO) for name in ("cpu", "memory"))

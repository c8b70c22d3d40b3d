"""Preemption: which pods of lower priority have to go so that a pod fits.

On each node that eviction could open, all pods of lower priority are taken away in thought and given back, the most
important first, as long as the newcomer still fits; who cannot be given back is a victim. Of the nodes, the one that
hurts least is taken. It helps pods that wait for a node, never a resize: that is `decide.node.room`.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.selectors import requirements
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.selectors import Matcher
from podfit.decide.placement.place import (
    NO_NAMESPACES,
    PreFilterState,
    Unschedulable,
    pre_filter,
    refuse,
    replaced,
    sentence,
)
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Refusal, Resident

PREEMPTED = "PreemptionByScheduler"
_NEVER = "not eligible due to preemptionPolicy=Never."
_ON_THE_WAY = "not eligible due to a terminating pod on the nominated node."
_UNHELPFUL = Refusal("DefaultPreemption", ("Preemption is not helpful for scheduling",), final=True)
_NOBODY = Refusal("DefaultPreemption", ("No preemption victims found for incoming pod",), final=True)
_NOT_STARTED = "~"  # sorts after every time


class Budget(msgspec.Struct, frozen=True):
    """A disruption budget: how many more pods of its selection may go, and which are on their way already.

    `matcher` is None where it selects nothing, or everything.
    """

    namespace: str
    matcher: Matcher | None
    allowed: int
    disrupted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, budget: PodDisruptionBudget) -> "Budget":
        """The budget as its controller has counted last."""
        status, wanted = budget.status, requirements(budget.spec.selector)
        return cls(
            budget.metadata.namespace,
            Matcher(wanted) if wanted else None,
            status.disruptions_allowed,
            frozenset(status.disrupted_pods),
        )

    def covers(self, pod: Pod) -> bool:
        if self.matcher is None or self.namespace != pod.metadata.namespace:
            return False
        return self.matcher.matches(pod.metadata.labels)


class Eviction(msgspec.Struct, frozen=True):
    """`victims` go, most important first, and the pod is nominated for `node`; `violations` counts budgets."""

    node: str
    victims: tuple[Resident, ...]
    violations: int = 0


class CannotPreempt(msgspec.Struct, frozen=True):
    """`message` ends the sentence on the pod. `keeps_nomination`: an earlier one stays, its room is on the way."""

    message: str
    keeps_nomination: bool = False


def unschedulable_message(verdict: Unschedulable, outcome: CannotPreempt) -> str:
    """What is said of a pod that no node takes, and that no eviction helps."""
    return f"{verdict.message} no new claims to deallocate, preemption: {outcome.message}"


def preempt(
    subject: Resident,
    verdict: Unschedulable,
    views: Sequence[NodeInfo],
    *,
    namespaces: NamespaceLabels = NO_NAMESPACES,
    budgets: Sequence[Budget] = (),
) -> Eviction | CannotPreempt:
    """Ask it about a pod that `place` has just called unschedulable, of the same views."""
    if refusal := _ineligible(subject, verdict, views):
        return refusal
    surroundings = pre_filter(subject, views, namespaces)
    outcomes = [
        _UNHELPFUL
        if verdict.refusals[view.name].final
        else _evict(subject, view, views, surroundings, namespaces, budgets)
        for view in views
    ]
    evictions = [outcome for outcome in outcomes if isinstance(outcome, Eviction)]
    if evictions:
        return _mildest(evictions)
    return CannotPreempt(sentence((outcome for outcome in outcomes if isinstance(outcome, Refusal)), len(views)))


def _ineligible(subject: Resident, verdict: Unschedulable, views: Sequence[NodeInfo]) -> CannotPreempt | None:
    if subject.pod.spec.preemption_policy == "Never":
        return CannotPreempt(_NEVER)
    nominated = subject.pod.status.nominated_node_name
    view = next((view for view in views if view.name == nominated), None)
    if view is None or verdict.refusals[nominated].final:
        return None
    waits = any(resident.priority < subject.priority and _leaving(resident.pod) for resident in view.residents)
    return CannotPreempt(_ON_THE_WAY, keeps_nomination=True) if waits else None


def _leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and any(
        condition.type == "DisruptionTarget" and condition.status == "True" and condition.reason == PREEMPTED
        for condition in pod.status.conditions
    )


def _evict(
    subject: Resident,
    view: NodeInfo,
    views: Sequence[NodeInfo],
    surroundings: PreFilterState,
    namespaces: NamespaceLabels,
    budgets: Sequence[Budget],
) -> Eviction | Refusal:
    """The fewest that have to leave this node, or why it is no use."""
    lower = sorted((resident for resident in view.residents if resident.priority < subject.priority), key=_importance)
    if not lower:
        return _NOBODY

    def refused(changed: NodeInfo) -> Refusal | None:
        if not surroundings:  # removing pods adds no rule
            return refuse(subject, changed, views, surroundings, namespaces)
        others = replaced(views, changed)
        return refuse(subject, changed, others, pre_filter(subject, others, namespaces), namespaces)

    staying = view.with_residents(resident for resident in view.residents if resident.priority >= subject.priority)
    if refusal := refused(staying):
        return refusal
    protected = {resident.uid for resident in _protected(lower, budgets)}
    victims, violations = [], 0
    for candidate in sorted(lower, key=lambda one: one.uid not in protected):
        restored = staying.plus(candidate)
        if refused(restored):
            victims.append(candidate)
            violations += candidate.uid in protected
        else:
            staying = restored
    return Eviction(view.name, tuple(sorted(victims, key=_importance)), violations)


def _importance(resident: Resident) -> tuple[int, str, str, str]:
    """Higher priority first, then who has run longest."""
    meta = resident.pod.metadata
    return -resident.priority, resident.pod.status.start_time or _NOT_STARTED, meta.creation_timestamp or "", meta.name


def _protected(pods: Iterable[Resident], budgets: Sequence[Budget]) -> list[Resident]:
    """Those whose eviction would overdraw a budget, when they go in this order."""
    left = [budget.allowed for budget in budgets]
    found = []
    for pod in pods:
        covering = [
            index
            for index, budget in enumerate(budgets)
            if budget.covers(pod.pod) and pod.pod.metadata.name not in budget.disrupted
        ]
        for index in covering:
            left[index] -= 1
        if any(left[index] < 0 for index in covering):
            found.append(pod)
    return found


def _mildest(evictions: Sequence[Eviction]) -> Eviction:
    """Fewest violations, then lowest highest priority, lowest sum, fewest victims, latest start of the highest."""
    best = min(map(_cost, evictions))
    return max((eviction for eviction in evictions if _cost(eviction) == best), key=_start_of_highest)


def _cost(eviction: Eviction) -> tuple[int, int, int, int]:
    priorities = [victim.priority for victim in eviction.victims]
    highest = max(priorities, default=-(1 << 31))
    return eviction.violations, highest, sum(priority + (1 << 31) for priority in priorities), len(priorities)


def _start_of_highest(eviction: Eviction) -> str:
    highest = max((victim.priority for victim in eviction.victims), default=0)
    return min(
        (victim.pod.status.start_time or _NOT_STARTED for victim in eviction.victims if victim.priority == highest),
        default=_NOT_STARTED,
    )

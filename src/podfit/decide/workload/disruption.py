"""The eviction check: whether a disruption budget lets a pod go now.

A pod that has not begun, has ended or is going already disrupts nobody. Of the others, one that is not ready may go
while its application is whole, or always when its budget says so. All else needs an allowance, which the eviction
takes: the pod is noted in the budget until the controller of budgets has seen it go.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.selectors import holds, requirements
from podfit.api.meta.v1.types import Condition
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.selectors import Matcher

MOST_NOTED = 2000
_PASSED_OVER = (*ENDED, "Pending")
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_ALLOWED = "DisruptionAllowed"


class Evict(msgspec.Struct, frozen=True):
    """The pod may go; `budget` is the one that is charged for it, as it is after."""

    budget: PodDisruptionBudget | None = None


class Wait(msgspec.Struct, frozen=True):
    """Not now: `cause` says which budget is in the way. `retry_after`: seconds, 0 when nobody knows."""

    budget: str
    cause: str
    retry_after: int = 0


class Refuse(msgspec.Struct, frozen=True):
    """Never like this: `budget` is the name of the one that makes no sense, empty when there are too many."""

    text: str
    budget: str = ""


def evict(pod: Pod, budgets: Sequence[PodDisruptionBudget], now: str) -> Evict | Wait | Refuse:
    """`budgets` are those of the pod's namespace."""
    if pod.metadata.deletion_timestamp or pod.status.phase in _PASSED_OVER:
        return Evict()
    covering = [budget for budget in budgets if covers(budget, pod)]
    if not covering:
        return Evict()
    if len(covering) > 1:
        return Refuse(_SEVERAL)
    budget = covering[0]
    if not _is_ready(pod) and _spares_the_unready(budget):
        return Evict()
    return _charged(budget, pod.metadata.name, now)


def why_protected(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> str:
    """What an eviction of the pod would be told now, in its words; empty when the pod may go."""
    answer = evict(pod, budgets, "")
    match answer:
        case Wait():
            return answer.cause
        case Refuse():
            return answer.text
    return ""


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """An empty selector takes in all pods of the namespace, none takes in nobody."""
    return holds(requirements(budget.spec.selector), pod.metadata.labels)


def covered(budget: PodDisruptionBudget, pods: Iterable[Pod]) -> list[Pod]:
    """The pods of its namespace that it covers."""
    wanted = requirements(budget.spec.selector)
    if wanted is None:
        return []
    matcher = Matcher(wanted)
    return [pod for pod in pods if matcher.matches(pod.metadata.labels)]


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _spares_the_unready(budget: PodDisruptionBudget) -> bool:
    """Whether a pod that is not ready does not count."""
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _charged(budget: PodDisruptionBudget, pod: str, now: str) -> Evict | Wait | Refuse:
    name, status = budget.metadata.name, budget.status
    if status.observed_generation < budget.metadata.generation:
        cause = f"The disruption budget {name} is still being processed by the server."
        return Wait(name, cause, retry_after=10)
    if status.disruptions_allowed < 0:
        return Refuse("pdb disruptions allowed is negative", name)
    if len(status.disrupted_pods) > MOST_NOTED:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return Refuse(text, name)
    if status.disruptions_allowed == 0:
        needs = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
        return Wait(name, f"The disruption budget {name} {needs}")
    left = status.disruptions_allowed - 1
    conditions = status.conditions if left else _exhausted(budget, now)
    noted = {**status.disrupted_pods, pod: now}
    after = replace(status, disruptions_allowed=left, disrupted_pods=noted, conditions=conditions)
    return Evict(budget=replace(budget, status=after))


def _exhausted(budget: PodDisruptionBudget, now: str) -> tuple[Condition, ...]:
    """The conditions of a budget whose last allowance was taken."""
    before = next((condition for condition in budget.status.conditions if condition.type == _ALLOWED), None)
    since = before.last_transition_time if before is not None and before.status == "False" else now
    condition = Condition(
        type=_ALLOWED,
        status="False",
        reason="InsufficientPods",
        last_transition_time=since,
        observed_generation=budget.status.observed_generation,
    )
    others = tuple(condition for condition in budget.status.conditions if condition.type != _ALLOWED)
    return (*others, condition)

"""The status of a PodDisruptionBudget: healthy pods, desired healthy, disruptions allowed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.api.meta.selectors import go_text
from podfit.api.meta.v1.types import Condition
from podfit.api.policy.v1.types import PodDisruptionBudget, PodDisruptionBudgetStatus
from podfit.core.times import parse_time
from podfit.decide.workload.pods import is_ready, share

NOTED_SECONDS = 120
"""For so long a pod that was evicted counts as gone although it is there."""
ALLOWED = "DisruptionAllowed"


class EvictedPods(msgspec.Struct, frozen=True):
    """Evicted pods that are there still; those that should have gone; seconds until the next of them should have."""

    pods: Mapping[str, str] = msgspec.field(default_factory=dict)
    late: tuple[Pod, ...] = ()
    again: float | None = None


def managers(pods: Iterable[Pod]) -> dict[ObjectIdentity, Pod]:
    """By who manages it, a pod; whoever manages them says how many there are meant to be."""
    return {owner: pod for pod in pods if (owner := controller_named(pod.metadata)) is not None}


def unmanaged(budget: PodDisruptionBudget) -> str:
    """What is told of a budget with pods that nobody manages."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {go_text(budget.spec.selector)}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
        'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Whether it asks how many pods are meant to be, not only how many there are."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def expected(budget: PodDisruptionBudget, pods: Sequence[Pod], scale: int) -> tuple[int, int]:
    """How many pods there are meant to be, and how many of them have to be healthy. `scale` is what their managers want
    together.
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        return scale, max(0, scale - share(spec.max_unavailable, scale, up=True))
    if isinstance(spec.min_available, str):
        return scale, share(spec.min_available, scale, up=True)
    return len(pods), spec.min_available or 0


def noted(budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime) -> EvictedPods:
    kept: dict[str, str] = {}
    late: list[Pod] = []
    waits: list[float] = []
    for pod in pods:
        since = budget.status.disrupted_pods.get(pod.metadata.name)
        if since is None or pod.metadata.deletion_timestamp:
            continue
        left = (parse_time(since) + timedelta(seconds=NOTED_SECONDS) - now).total_seconds()
        if left < 0:
            late.append(pod)
        else:
            kept[pod.metadata.name] = since
            waits.append(left)
    return EvictedPods(kept, tuple(late), min(waits) if waits else None)


def healthy(pods: Iterable[Pod], disrupted: Mapping[str, str]) -> int:
    """Those that are ready and neither going nor about to."""
    return sum(
        is_ready(pod) and not pod.metadata.deletion_timestamp and pod.metadata.name not in disrupted for pod in pods
    )


def status_of(
    budget: PodDisruptionBudget, *, meant: int, desired: int, current: int, disrupted: Mapping[str, str], stamp: str
) -> PodDisruptionBudgetStatus:
    allowed = max(0, current - desired) if meant > 0 else 0
    generation = budget.metadata.generation
    status = replace(
        budget.status,
        current_healthy=current,
        desired_healthy=desired,
        expected_pods=meant,
        disruptions_allowed=allowed,
        disrupted_pods=dict(disrupted),
        observed_generation=generation,
    )
    word, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    return _with_condition(status, word, reason, "", generation, stamp)


def failed(budget: PodDisruptionBudget, message: str, stamp: str) -> PodDisruptionBudgetStatus:
    """When the status cannot be worked out: nothing may go."""
    status = replace(budget.status, disruptions_allowed=0, observed_generation=budget.metadata.generation)
    return _with_condition(status, "False", "SyncFailed", message, budget.metadata.generation, stamp)


def _with_condition(
    status: PodDisruptionBudgetStatus, word: str, reason: str, message: str, generation: int, stamp: str
) -> PodDisruptionBudgetStatus:
    before = next((condition for condition in status.conditions if condition.type == ALLOWED), None)
    since = before.last_transition_time if before is not None and before.status == word else stamp
    new = Condition(
        type=ALLOWED,
        status=word,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=generation,
    )
    others = tuple(condition for condition in status.conditions if condition.type != ALLOWED)
    return replace(status, conditions=(*others, new))

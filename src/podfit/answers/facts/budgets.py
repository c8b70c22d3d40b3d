"""Disruption budgets, for a resize that restarts a container: a pod that is down for a moment counts as disrupted.

Whether a budget lets a pod go is the eviction's own decision (`decide.workload.disruption`).
"""

import asyncio
from collections.abc import Collection

import msgspec

from podfit.answers.facts.kinds import BUDGETS
from podfit.answers.facts.rights import why_unread
from podfit.api.core.v1.pods.types import Pod
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.workload.disruption import covers, why_protected

NOT_FOUND = 404


class Budgets(msgspec.Struct, frozen=True):
    """Those of some namespaces; `problem` says why they could not be read."""

    known: tuple[PodDisruptionBudget, ...] = ()
    problem: str = ""

    def of(self, namespace: str) -> list[PodDisruptionBudget]:
        return [budget for budget in self.known if budget.metadata.namespace == namespace]

    def why_no_restart(self, pod: Pod) -> str:
        """Why the pod must not be disrupted now; empty when it may be."""
        if self.problem:
            return f"whether a disruption budget allows a restart is not known: {self.problem}"
        text = why_protected(pod, self.of(pod.metadata.namespace))
        return f"a restart would break its disruption budget: {text}" if text else ""


def cover_both(budgets: Budgets, pod: Pod, others: Collection[Pod]) -> bool:
    """Whether a budget covers the pod and one of the others, so that both may not be down at once."""
    return any(
        covers(budget, pod) and any(covers(budget, other) for other in others if _beside(other, pod))
        for budget in budgets.of(pod.metadata.namespace)
    )


def _beside(one: Pod, other: Pod) -> bool:
    return one.metadata.namespace == other.metadata.namespace


async def read_budgets(client: Client, namespaces: Collection[str]) -> Budgets:
    """What may not be read is part of the answer."""
    try:
        listed = await asyncio.gather(*(budgets_of(client, namespace) for namespace in sorted(namespaces)))
    except ApiError as error:
        return Budgets(problem=why_unread(error))
    return Budgets(tuple(budget for budgets in listed for budget in budgets))


async def budgets_of(client: Client, namespace: str) -> tuple[PodDisruptionBudget, ...]:
    """Those of a namespace; none where the cluster does not serve them."""
    try:
        return (await client.list(BUDGETS, namespace)).items
    except ApiError as error:
        if error.code == NOT_FOUND:
            return ()
        raise

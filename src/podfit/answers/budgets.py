"""Disruption budgets, for a resize that restarts a container: a pod that is down for a moment counts as disrupted."""

from podfit.answers.kinds import BUDGETS
from podfit.api.core.v1.pods.types import Pod
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.workload.disruption import covers


def protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether a pod of the budget's namespace must not be disrupted now."""
    return budget.status.disruptions_allowed <= 0 and covers(budget, pod)


async def budgets_of(client: Client, namespace: str) -> tuple[PodDisruptionBudget, ...]:
    """Those of a namespace; none where the cluster does not serve them."""
    try:
        return (await client.list(BUDGETS, namespace)).items
    except ApiError as error:
        if error.code == 404:
            return ()
        raise

"""Columns of `kubectl get` for disruption budgets."""

from typing import Any

from podfit.api.columns import AGE, NAME, age
from podfit.api.meta.base import IntOrString
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.api.registry import Column

BUDGET = (
    NAME,
    Column("Min Available", description="How many pods have to stay."),
    Column("Max Unavailable", description="How many pods may be away."),
    Column("Allowed Disruptions", "integer", description="How many more pods may go now."),
    AGE,
)


def budget_row(budget: PodDisruptionBudget, now: str) -> list[Any]:
    spec, status = budget.spec, budget.status
    bounds = [_shown(spec.min_available), _shown(spec.max_unavailable)]
    return [budget.metadata.name, *bounds, status.disruptions_allowed, age(budget, now)]


def _shown(bound: IntOrString | None) -> str:
    return "N/A" if bound is None else str(bound)

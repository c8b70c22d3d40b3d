"""The kinds of policy, and the eviction of a pod."""

from typing import Any

from podfit.api.meta.base import IntOrString
from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo, Subresource
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget

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


EVICTION = Subresource("eviction", ("create",), "Eviction", "policy", "v1", Eviction)
KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=PodDisruptionBudget,
        group="policy",
        resource="poddisruptionbudgets",
        singular="poddisruptionbudget",
        short_names=("pdb",),
        unconditional=False,
        subresources=(STATUS,),
        counted=lambda o: o.spec,
        columns=BUDGET,
        row=budget_row,
    ),
)

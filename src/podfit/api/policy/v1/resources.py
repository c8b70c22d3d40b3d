"""The kinds of policy, and the eviction of a pod."""

from podfit.api.policy.v1 import columns
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget
from podfit.api.registry import STATUS, ResourceInfo, Subresource

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
        columns=columns.BUDGET,
        row=columns.budget_row,
    ),
)

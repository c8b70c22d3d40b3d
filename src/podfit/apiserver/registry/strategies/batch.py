"""The strategy of jobs."""

from typing import Any

from podfit.api.batch.v1.types import Job
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.registry.strategies.strategy import DeleteStrategy, Strategy, new_object
from podfit.core.features import FeatureGates
from podfit.decide.workload.workloads import new_job

_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def _new_job(info: ResourceInfo, obj: Job, gates: FeatureGates) -> Any:
    return new_object(info, new_job(obj), gates)


def _pods_stay(options: DeleteOptions) -> tuple[str, ...]:
    """What is said to who deletes jobs without a word about their pods: those stay."""
    said = options.propagation_policy or options.orphan_dependents is not None
    return () if said else (_PODS_STAY,)


STRATEGIES: dict[type[Object], Strategy] = {
    Job: Strategy(prepare_create=_new_job, delete=DeleteStrategy(warnings=_pods_stay))
}

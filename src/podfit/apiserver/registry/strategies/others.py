"""Strategies of groups with one or two kinds of their own: batch, coordination, events and networking."""

from typing import Any

from msgspec.structs import replace

from podfit.api.batch.v1.types import Job
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.events.types import Event
from podfit.api.events.v1 import types as events
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.api.networking.v1.types import Ingress, NetworkPolicy
from podfit.apiserver.registry.strategies.strategy import DeleteStrategy, Strategy, UpdateStrategy, new_object
from podfit.core.features import FeatureGates
from podfit.decide.workload.workloads import new_job

_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_INGRESS = "podfit runs no ingress controller: nothing answers for an Ingress until you run one"
_POLICY = "podfit's nodes do not enforce a NetworkPolicy: pods share their node's network"
_EVENT = Strategy(delete=DeleteStrategy(propagates=False))
"""Events belong to nobody, so their deletion waits for no dependents."""


def _new_job(info: ResourceInfo, obj: Job, gates: FeatureGates) -> Any:
    return new_object(info, new_job(obj), gates)


def _pods_stay(options: DeleteOptions) -> tuple[str, ...]:
    """What is said to who deletes jobs without a word about their pods: those stay."""
    said = options.propagation_policy or options.orphan_dependents is not None
    return () if said else (_PODS_STAY,)


def _new_lease(_info: ResourceInfo, lease: Lease, _gates: FeatureGates) -> Lease:
    """Without coordinated leader election, which is off by default, nobody has its fields."""
    return replace(lease, spec=replace(lease.spec, strategy="", preferred_holder=""))


def _changed_lease(info: ResourceInfo, new: Lease, _old: Lease, gates: FeatureGates) -> Lease:
    return _new_lease(info, new, gates)


STRATEGIES: dict[type[Object], Strategy] = {
    Event: _EVENT,
    events.Event: _EVENT,
    Ingress: Strategy(unsupported_fields=lambda _ingress, _routed: (_INGRESS,)),
    Job: Strategy(prepare_create=_new_job, delete=DeleteStrategy(warnings=_pods_stay)),
    Lease: Strategy(prepare_create=_new_lease, update=UpdateStrategy(prepare=_changed_lease)),
    NetworkPolicy: Strategy(unsupported_fields=lambda _policy, _routed: (_POLICY,)),
}

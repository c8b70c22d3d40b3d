"""The strategy of leases."""

from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry.strategies.strategy import Strategy, UpdateStrategy
from podfit.core.features import FeatureGates


def _new_lease(_info: ResourceInfo, lease: Lease, _gates: FeatureGates) -> Lease:
    """Without coordinated leader election, which is off by default, nobody has its fields."""
    return replace(lease, spec=replace(lease.spec, strategy="", preferred_holder=""))


def _changed_lease(info: ResourceInfo, new: Lease, _old: Lease, gates: FeatureGates) -> Lease:
    return _new_lease(info, new, gates)


STRATEGIES: dict[type[Object], Strategy] = {
    Lease: Strategy(prepare_create=_new_lease, update=UpdateStrategy(prepare=_changed_lease))
}

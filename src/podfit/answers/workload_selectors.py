"""What selects pods that wait for a node, read from the API: the scheduler spreads such pods apart by default."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from podfit.answers.kinds import REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import Object
from podfit.api.meta.owners import ObjectIdentity, identity_of
from podfit.api.meta.selectors import requirements
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.selectors import Requirement
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, DefaultSpread, default_spread, owner_of, selects

T = TypeVar("T", bound=Object)


class WorkloadSelectors(msgspec.Struct, frozen=True):
    services: tuple[Service, ...] = ()
    owners: Mapping[ObjectIdentity, tuple[Requirement, ...]] = msgspec.field(default_factory=dict)

    def default_spread(self, pod: Pod) -> DefaultSpread | None:
        """By upstream's defaults; a profile of the cluster's scheduler may have others."""
        namespace, owner = pod.metadata.namespace, owner_of(pod)
        selecting = [
            service.spec.selector
            for service in self.services
            if service.metadata.namespace == namespace and selects(service.spec.selector, pod)
        ]
        controlling = self.owners.get(owner, ()) if owner is not None else ()
        return default_spread(pod, SYSTEM_DEFAULTING, selecting, controlling)


async def read_selectors(client: Client, pods: Sequence[Pod], unread: list[str]) -> WorkloadSelectors:
    """Of these pods. What may not be read is named in `unread`, and taken for absent."""
    spread = [pod for pod in pods if not pod.spec.topology_spread_constraints]
    if not spread:
        return WorkloadSelectors()
    kinds = {owner.kind for pod in spread if (owner := owner_of(pod)) is not None}

    async def listed(kind: Resource[T], *, wanted: bool = True) -> tuple[T, ...]:
        if not wanted:
            return ()
        try:
            return (await client.list(kind)).items
        except ApiError as error:
            unread.append(f"{kind.info.resource} of the cluster, for the scheduler's answer: {error.message}")
            return ()

    services, sets, stateful, controllers = await asyncio.gather(
        listed(SERVICES),
        listed(REPLICA_SETS, wanted="ReplicaSet" in kinds),
        listed(STATEFUL_SETS, wanted="StatefulSet" in kinds),
        listed(REPLICATION_CONTROLLERS, wanted="ReplicationController" in kinds),
    )
    owners: dict[ObjectIdentity, tuple[Requirement, ...]] = {}
    owners |= {identity_of(owner): requirements(owner.spec.selector) or () for owner in sets}
    owners |= {identity_of(owner): requirements(owner.spec.selector) or () for owner in stateful}
    owners |= {
        identity_of(owner): tuple(Requirement(key, "In", (value,)) for key, value in owner.spec.selector.items())
        for owner in controllers
    }
    return WorkloadSelectors(services, owners)

"""Asks the scheduler's own functions about a pending pod, on what the API tells.

What selects such pods is read too: the scheduler spreads them apart by default.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import msgspec

from podfit.answers.facts.kinds import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    VOLUMES,
)
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.phase import has_ended, is_active
from podfit.api.core.v1.pods.types import GATED, Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import ResourceList
from podfit.api.meta.owners import ObjectIdentity, identity_of
from podfit.api.storage.v1.types import StorageClass
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.selectors import Requirement
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, DefaultSpread, default_spread, owner_of, selects
from podfit.decide.placement.place import Placed, Unschedulable, place, pre_filter, refuse, replaced
from podfit.decide.placement.preempt import Budget, Eviction, preempt, unschedulable_message
from podfit.decide.placement.view import NodeInfo, Refusal, Resident
from podfit.decide.placement.volumes import ClaimLookup, claims_of
from podfit.decide.workload.kinds import selection


class ReadSelectors(msgspec.Struct, frozen=True):
    services: tuple[Service, ...] = ()
    owners: Mapping[ObjectIdentity, tuple[Requirement, ...]] = msgspec.field(default_factory=dict)

    def default_spread(self, pod: Pod) -> DefaultSpread | None:
        """The spread by upstream's defaults; a profile of the cluster's scheduler may have others."""
        namespace, owner = pod.metadata.namespace, owner_of(pod)
        selecting = [
            service.spec.selector
            for service in self.services
            if service.metadata.namespace == namespace and selects(service.spec.selector, pod)
        ]
        controlling = self.owners.get(owner, ()) if owner is not None else ()
        return default_spread(pod, SYSTEM_DEFAULTING, selecting, controlling)


async def read_selectors(client: Client, pods: Sequence[Pod], unread: list[str]) -> ReadSelectors:
    """The selectors of these pods. What may not be read is named in `unread`, and taken for absent."""
    spread = [pod for pod in pods if not pod.spec.topology_spread_constraints]
    if not spread:
        return ReadSelectors()
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
    known: list[ReplicaSet | StatefulSet | ReplicationController] = [*sets, *stateful, *controllers]
    owners = {identity_of(owner): selection(owner.spec.selector) or () for owner in known}
    return ReadSelectors(services, owners)


T = TypeVar("T")
NOTHING_HELD: Mapping[str, ResourceList] = MappingProxyType({})


class SchedulingState(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler looks at; `pods` are all that have not ended, `labels` those of the namespaces, `volumes` None
    where they were not read."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)
    claims: tuple[PersistentVolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    volumes: tuple[PersistentVolume, ...] | None = None
    budgets: tuple[Budget, ...] = ()
    selectors: ReadSelectors = ReadSelectors()

    def with_pod(self, pod: Pod) -> "SchedulingState":
        """One pod replaced, as after a resize of it."""
        others = (neighbour for neighbour in self.pods if neighbour.metadata.uid != pod.metadata.uid)
        return msgspec.structs.replace(self, pods=(*others, pod))


class SchedulingAnswer(msgspec.Struct, frozen=True):
    """`node` is where the pod would go, after `victims` were ended there; empty with the scheduler's text in `why`."""

    node: str = ""
    victims: tuple[str, ...] = ()
    why: str = ""


def waits_for_a_node(pod: Pod) -> bool:
    return not pod.spec.node_name and is_active(pod)


async def read_cluster(
    client: Client, homeless: Sequence[Pod], unread: list[str], *, preempting: bool = True
) -> SchedulingState:
    """For these pods. What may not be read is named in `unread`, and taken for absent. `preempting`: with the budgets
    that the scheduler looks at when it ends pods for others."""

    async def asked(kind: Resource[T]) -> tuple[T, ...] | None:
        try:
            return (await client.list(kind)).items
        except ApiError as error:
            if error.code == 404:
                return ()
            unread.append(f"{kind.info.resource} of the cluster, for the scheduler's answer: {error.message}")
            return None

    async def listed(kind: Resource[T]) -> tuple[T, ...]:
        return await asked(kind) or ()

    async def none() -> tuple[()]:
        return ()

    if all(pod.spec.scheduling_gates for pod in homeless):
        return SchedulingState()
    claimed = any(claims_of(pod) for pod in homeless)
    nodes, pods, namespaces, budgets = await asyncio.gather(
        listed(NODES), listed(PODS), listed(NAMESPACES), listed(BUDGETS) if preempting else none()
    )
    claims, classes, volumes, selectors = await asyncio.gather(
        listed(CLAIMS) if claimed else none(),
        listed(CLASSES) if claimed else none(),
        asked(VOLUMES) if claimed else none(),
        read_selectors(client, homeless, unread),
    )
    return SchedulingState(
        nodes=nodes,
        pods=tuple(pod for pod in pods if not has_ended(pod)),
        claims=claims,
        classes=classes,
        volumes=volumes,
        budgets=tuple(map(Budget.of, budgets)),
        selectors=selectors,
        labels={namespace.metadata.name: namespace.metadata.labels for namespace in namespaces},
    )


def scheduled(pod: Pod, cluster: SchedulingState, gates: FeatureGates) -> SchedulingAnswer:
    """Where the pod would go as it stands."""
    if pod.spec.scheduling_gates:
        return SchedulingAnswer(why=GATED)
    subject = Resident.of(pod, gates=gates, placed=False, default_spread=cluster.selectors.default_spread(pod))
    views = node_views(cluster, gates)
    verdict = place(subject, views, namespaces=cluster.labels, claims=claim_lookup(cluster))
    if isinstance(verdict, Placed):
        return SchedulingAnswer(verdict.node)
    if not views or verdict.outright:
        return SchedulingAnswer(why=verdict.message)
    outcome = preempt(subject, verdict, views, namespaces=cluster.labels, budgets=cluster.budgets)
    if isinstance(outcome, Eviction):
        names = (f"{victim.pod.metadata.namespace}/{victim.pod.metadata.name}" for victim in outcome.victims)
        return SchedulingAnswer(outcome.node, tuple(names))
    return SchedulingAnswer(why=unschedulable_message(verdict, outcome))


def blocked(pod: Pod) -> str:
    """The condition's words, and which gates there are: who set one takes it away."""
    return f"{GATED}: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"


def kept_off(
    pod: Pod,
    node: str,
    cluster: SchedulingState,
    gates: FeatureGates,
    *,
    held: Mapping[str, ResourceList] = NOTHING_HELD,
) -> Refusal | None:
    """Why the scheduler does not put the pod on this node; None when it may, or when the node is not known.

    `held` is what its pods are to count for by uid, where that is not what the scheduler counts.
    """
    if pod.spec.scheduling_gates:
        return Refusal("SchedulingGates", (GATED,), final=True)
    subject, views = Resident.of(pod, gates=gates, placed=False), node_views(cluster, gates)
    view = next((view for view in views if view.name == node), None)
    if view is None:
        return None
    if held:
        view = view.with_residents(
            msgspec.structs.replace(resident, requests=held.get(resident.uid, resident.requests))
            for resident in view.residents
        )
        views = replaced(views, view)
    whole = place(subject, views, namespaces=cluster.labels, claims=claim_lookup(cluster))
    if isinstance(whole, Unschedulable) and whole.outright:
        return whole.refusals[node]
    return refuse(subject, view, views, pre_filter(subject, views, cluster.labels), cluster.labels)


def node_views(cluster: SchedulingState, gates: FeatureGates) -> list[NodeInfo]:
    residents: dict[str, list[Resident]] = {}
    nominated: dict[str, list[Resident]] = {}
    for pod in cluster.pods:
        if pod.spec.node_name:
            residents.setdefault(pod.spec.node_name, []).append(Resident.of(pod, gates=gates))
        elif pod.status.nominated_node_name:
            nominated.setdefault(pod.status.nominated_node_name, []).append(Resident.of(pod, gates=gates, placed=False))
    return [
        NodeInfo.of(node, residents.get(name, ()), tuple(nominated.get(name, ())))
        for node in cluster.nodes
        for name in (node.metadata.name,)
    ]


def claim_lookup(cluster: SchedulingState) -> ClaimLookup:
    claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in cluster.claims}
    classes = {class_.metadata.name: class_ for class_ in cluster.classes}
    volumes = {volume.metadata.name: volume for volume in cluster.volumes or ()}
    return ClaimLookup(
        lambda namespace, name: claims.get((namespace, name)),
        classes.get,
        volumes.get,
        volumes.values,
        knows_volumes=cluster.volumes is not None,
    )

"""Gathers what the autoscaler looks at: nodes, pods and what controls them, from informers; recommendations of VPAs and
headroom, which not every cluster has, by asking once a minute."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import Job
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import ResourceList
from podfit.api.meta.owners import controller_of, identity_of
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.api.storage.v1.types import StorageClass
from podfit.autoscaler.buffers import Buffers
from podfit.autoscaler.provider import Provided
from podfit.client.controlling import Controlling
from podfit.client.election import is_renewed
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.client.vpa_kinds import VerticalAutoscalers
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.core.randomness import fraction
from podfit.decide.autoscaling.patches import recommended_resources
from podfit.decide.autoscaling.policies import OFF, update_mode
from podfit.decide.capacity.drain import is_daemon_set_pod
from podfit.decide.capacity.expanders import Priorities
from podfit.decide.capacity.look import Look
from podfit.decide.capacity.node_groups import believed
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, DefaultSpread, default_spread, owner_of, selects
from podfit.decide.placement.volumes import ClaimLookup
from podfit.decide.workload.kinds import selection

KINDS: tuple[type[Any], ...] = (ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)
ROOM_LEASE, NAMESPACE = "podfit-room", "kube-system"
"""Who shrinks neighbours says so there (`controllers.room_notice`)."""


class Gathering:
    """`informers` are run by their maker."""

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self.nodes, self.pods = informers.of(Node), informers.of(Pod)
        self._budgets, self._services = informers.of(PodDisruptionBudget), informers.of(Service)
        self._limit_ranges, self._namespaces = informers.of(LimitRange), informers.of(Namespace)
        self._controllers: dict[str, Informer[Any]] = {kind.__name__: informers.of(kind) for kind in KINDS}
        self._claims, self._volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
        self._classes = informers.of(StorageClass)
        self._vpas, self._targets = VerticalAutoscalers(client, clock), Targets(client, clock)
        self._buffers, self._has_vpas = Buffers(client, clock), asyncio.Event()
        self._followed: list[Informer[Any]] = [self.nodes, self.pods, self._budgets, self._services, self._limit_ranges]
        self._followed += [self._namespaces, self._claims, self._volumes, self._classes, *self._controllers.values()]

    async def run(self) -> None:
        """Until cancelled. What VPAs name is followed from the first VPA on."""
        await self._has_vpas.wait()
        async with asyncio.TaskGroup() as group:
            for informer in self._targets.informers:
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Returns when all of it has been read once."""
        for informer in self._followed:
            await informer.synced.wait()

    async def look(self, provided: Provided | None, problem: str, priorities: Priorities) -> Look:
        """A look with what the provider tells; None where it does not, for which `problem` has the reason."""
        told = believed(provided.groups if provided is not None else ())
        pods = tuple(pod for pod in self.pods.list() if not has_ended(pod))
        buffers, recommended, makes_room = await asyncio.gather(
            self._buffers.pods(), self._recommended(pods), self._makes_room()
        )
        return Look(
            nodes=tuple(sorted(self.nodes.list(), key=lambda node: node.metadata.name)),
            pods=pods,
            groups=told.groups,
            members=provided.members if provided is not None else {},
            budgets=tuple(self._budgets.list()),
            controllers=self._known_controllers(),
            templates=self._templates(pods),
            daemon_sets=tuple(self._controllers["DaemonSet"].list()),
            recommended=recommended,
            buffers=buffers,
            priorities=priorities,
            namespaces={one.metadata.name: one.metadata.labels for one in self._namespaces.list()},
            claims=self._lookup(),
            default_spread=self._default_spread,
            makes_room=makes_room,
            draw=fraction(self._client.random),
            problem=problem,
            refused=told.refused,
        )

    # ------------------------------------------------------------------ controllers

    def _known_controllers(self) -> dict[tuple[str, str, str], int | None]:
        return {
            (kind, controller.metadata.namespace, controller.metadata.name): getattr(controller.spec, "replicas", None)
            for kind, informer in self._controllers.items()
            for controller in informer.list()
        }

    def _templates(self, pods: Iterable[Pod]) -> dict[tuple[str, str], PodSpec]:
        """What a pod's controller makes its successor of, by namespace and name of the pod."""
        made: dict[tuple[str, str], PodSpec] = {}
        for pod in pods:
            owner = controller_of(pod.metadata)
            informer = self._controllers.get(owner.kind) if owner is not None else None
            if owner is None or informer is None:
                continue
            controller = informer.get(owner.name, pod.metadata.namespace)
            if controller is not None and controller.metadata.uid == owner.uid:
                made[pod.metadata.namespace, pod.metadata.name] = controller.spec.template.spec
        return made

    def _lookup(self) -> ClaimLookup:
        return ClaimLookup(
            lambda namespace, name: self._claims.get(name, namespace),
            self._classes.get,
            self._volumes.get,
            self._volumes.list,
            knows_volumes=True,
        )

    def _default_spread(self, pod: Pod) -> DefaultSpread | None:
        namespace, owner = pod.metadata.namespace, owner_of(pod)
        selecting = [
            service.spec.selector for service in self._services.list(namespace) if selects(service.spec.selector, pod)
        ]
        controlling: tuple[Any, ...] = ()
        named = controller_of(pod.metadata)
        informer = self._controllers.get(named.kind) if named is not None else None
        if named is not None and informer is not None and named.kind not in ("DaemonSet", "Job"):
            controller = informer.get(named.name, namespace)
            if controller is not None and identity_of(controller) == owner:
                controlling = selection(controller.spec.selector) or ()
        return default_spread(pod, SYSTEM_DEFAULTING, selecting, controlling)

    # ------------------------------------------------------------------ what not every cluster has

    async def _recommended(self, pods: Iterable[Pod]) -> dict[str, Mapping[str, ResourceList]]:
        """What VPAs will give pods, by UID and container; nothing of those that only tell."""
        sizes: dict[str, Mapping[str, ResourceList]] = {}
        by_namespace: dict[str, list[Pod]] = {}
        for pod in pods:
            if not is_daemon_set_pod(pod) and controller_of(pod.metadata) is not None:
                by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        for namespace, own in by_namespace.items():
            vpas = [vpa for vpa in await self._vpas.of(namespace) if update_mode(vpa) != OFF]
            if not vpas:
                continue
            self._has_vpas.set()
            if not all(informer.synced.is_set() for informer in self._targets.informers):
                continue
            controlling, ranges = Controlling(self._targets, vpas), self._limit_ranges.list(namespace)
            for number, pod in enumerate(own, 1):
                if number % OBJECTS == 0:
                    await asyncio.sleep(0)
                vpa = await controlling.vpa_of(pod)
                if vpa is not None:
                    wanted = recommended_resources(pod, vpa, ranges)
                    sizes[pod.metadata.uid] = {name: resources.requests for name, resources in wanted.items()}
        return sizes

    async def _makes_room(self) -> bool:
        try:
            lease = await self._client.get(Lease, ROOM_LEASE, NAMESPACE)
        except (ApiError, ConnectionError):
            return False
        return is_renewed(lease, self._clock.now())

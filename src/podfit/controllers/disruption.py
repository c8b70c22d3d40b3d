"""The disruption controller: the status of PodDisruptionBudgets, from which evictions take.

And pods that were marked as going and did not go: the mark is taken back.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.owners import ObjectIdentity, controller_of, identity_of
from podfit.api.meta.selectors import requirements
from podfit.api.policy.v1.types import PodDisruptionBudget, PodDisruptionBudgetStatus
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import BY_NAMESPACE, Controller, Key, by_namespace, key_of
from podfit.controllers.owners import owner_in
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING
from podfit.controllers.scales import Unscalable, scale_of
from podfit.controllers.selecting import Selecting
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.budgets import expected, failed, healthy, managers, needs_scale, noted, status_of, unmanaged
from podfit.decide.workload.disruption import covered
from podfit.decide.workload.kinds import WORKLOADS, replicas
from podfit.decide.workload.stale_disruptions import stale_in, unmarked
from podfit.net.loop_turns import beside

COMPONENT = "controllermanager"
UNKNOWN_AGAIN = 20.0
"""Seconds until it is asked again how many pods are meant to be."""
SCALED: dict[tuple[str, str], type[Any]] = {
    (workload.group, workload.kind): workload.type
    for workload in WORKLOADS
    if workload.type in (ReplicaSet, StatefulSet, ReplicationController)
}
"""Kinds that say themselves how many pods are meant to be; others are asked for their scale."""


class NoScale(Exception):
    """How many pods are meant to be is not known; the message says of which."""


class Marked(msgspec.Struct, frozen=True):
    """A pod that says that it is to be disrupted."""

    namespace: str
    name: str


class DisruptionController(Controller[Key | Marked]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._budgets, self._pods = informers.of(PodDisruptionBudget), informers.of(Pod)
        self._covering = Selecting(self._budgets, lambda budget: requirements(budget.spec.selector))
        self._scaled: dict[tuple[str, str], Informer[Any]] = {what: informers.of(kind) for what, kind in SCALED.items()}
        self._deployments = informers.of(Deployment)
        self._pods.add_index(BY_NAMESPACE, by_namespace)
        super().__init__(clock, self._budgets, self._pods, self._deployments, *self._scaled.values())
        self._budgets.add_handler(
            add=lambda new: self.queue.add(key_of(new)), update=lambda _, new: self.queue.add(key_of(new))
        )
        self._pods.add_handler(add=self._about, update=self._changed, delete=self._about)

    def _about(self, pod: Pod) -> None:
        if stale_in(pod, self._clock.now()) is not None:
            self.queue.add(Marked(pod.metadata.namespace, pod.metadata.name))
        for key in self._covering.keys(pod.metadata):
            self.queue.add(key)

    def _changed(self, old: Pod, new: Pod) -> None:
        self._about(new)
        if old.metadata.labels != new.metadata.labels:
            self._about(old)

    async def reconcile(self, key: Key | Marked) -> float | None:
        if isinstance(key, Marked):
            return await self._unmark(key)
        namespace, name = key
        budget = self._budgets.get(name, namespace)
        if budget is None or budget.metadata.deletion_timestamp:
            return None
        there = self._pods.by_index(BY_NAMESPACE, namespace)
        pods = await beside(len(there), covered, budget, there)
        if not pods:
            self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        now, stamp = self._clock.now(), format_time(self._clock.now())
        try:
            meant, desired = expected(budget, pods, await self._scale(budget, pods) if needs_scale(budget) else 0)
        except NoScale as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", text)
            await self._write(budget, failed(budget, str(error), stamp))
            return UNKNOWN_AGAIN
        evicted = await beside(len(pods), noted, budget, pods, now)
        for pod in evicted.late:
            text = f"Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't"
            self._recorder.event(pod, WARNING, "NotDeleted", text)
        status = status_of(
            budget,
            meant=meant,
            desired=desired,
            current=await beside(len(pods), healthy, pods, evicted.pods),
            disrupted=evicted.pods,
            stamp=stamp,
        )
        await self._write(budget, status)
        self.rest(key, len(there))
        return evicted.again

    async def _unmark(self, key: Marked) -> float | None:
        pod, now = self._pods.get(key.name, key.namespace), self._clock.now()
        left = stale_in(pod, now) if pod is not None else None
        if pod is None or left is None or left > 0:
            return left
        try:
            await self._client.update_status(unmarked(pod, now))
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
        return None

    async def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> None:
        if status != budget.status:
            await self._client.update_status(replace(budget, status=status))

    async def _scale(self, budget: PodDisruptionBudget, pods: list[Pod]) -> int:
        """What the managers of the pods want together; pods without one are said, and do not count."""
        if any(controller_of(pod.metadata) is None for pod in pods):
            self._recorder.event(budget, WARNING, "UnmanagedPods", unmanaged(budget))
        wanted: dict[ObjectIdentity, int] = {}
        for owner, pod in managers(pods).items():
            manager, number = await self._manager(owner, pod)
            wanted[manager] = number
        return sum(wanted.values())

    async def _manager(self, owner: ObjectIdentity, pod: Pod) -> tuple[ObjectIdentity, int]:
        """Who says how many there are: of the pods of a deployment that is not their replica set."""
        unknown = NoScale(f'found no controllers for pod "{pod.metadata.name}"')
        informer = self._scaled.get((owner.group, owner.kind))
        if informer is None:
            reference = controller_of(pod.metadata)
            assert reference is not None, "`owner` is what the reference names"
            try:
                return owner, await scale_of(self._client, reference, owner.namespace)
            except Unscalable as error:
                raise NoScale(str(error)) from error
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
                raise unknown from error
        found = owner_in(informer, pod)
        if found is None:
            raise unknown
        deployment = owner_in(self._deployments, found) if isinstance(found, ReplicaSet) else None
        if deployment is not None:
            return identity_of(deployment), replicas(deployment.spec.replicas)
        return owner, replicas(found.spec.replicas)

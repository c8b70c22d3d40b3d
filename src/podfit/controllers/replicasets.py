"""The controllers of replica sets and replication controllers.

    pod or set changes ─▶ claim the pods ─▶ too few: make some, too many: end some ─▶ status

The status tells of the pods as they were when they were counted; what was made or ended since comes by the watch.
"""

import asyncio
from typing import Any

from msgspec.structs import replace

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.core.v1.pods.phase import is_active, is_terminating
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.owners import controller_named, controller_of, identity_of, is_controlled_by
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.expectations import Expectations
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import PodControl, namespace_ends
from podfit.controllers.selecting import Selecting
from podfit.controllers.slow_start import slow_start
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload import rejected
from podfit.decide.workload.deletion_order import first_to_go
from podfit.decide.workload.pods import from_template, next_available
from podfit.decide.workload.replicas import (
    BURST,
    Create,
    Remove,
    Replicated,
    Status,
    selector_of,
    status_of,
    step,
    template_of,
    wanted_replicas,
)
from podfit.net.loop_turns import beside

WORKERS = 5
COMPONENTS = {ReplicaSet: "replicaset-controller", ReplicationController: "replication-controller"}


class ReplicaSetController(Controller[Key]):
    """The controller of one of the two kinds."""

    def __init__(
        self,
        client: Client,
        *,
        kind: type[ReplicaSet] | type[ReplicationController],
        informers: Informers,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client, self._clock, self._kind = client, clock, kind
        self._sets: Informer[Any] = informers.of(kind)
        self._pods = informers.of(Pod)
        self._owned = Owned(client, Pod, self._pods)
        self._selecting = Selecting(self._sets, selector_of)
        self._relatives = Owned(client, kind, self._sets)
        self._control = PodControl(client, recorder)
        self._expectations: Expectations[Key] = Expectations(clock)
        super().__init__(clock, self._sets, self._pods, workers=WORKERS)
        self._sets.add_handler(
            add=lambda new: self.queue.add(key_of(new)),
            update=lambda _, new: self.queue.add(key_of(new)),
            delete=self._set_gone,
        )
        self._pods.add_handler(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone)

    # ------------------------------------------------------------------ what happens

    def _set_gone(self, obj: Replicated) -> None:
        self._expectations.forget(key_of(obj))

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp:  # as after a start, when it is going already
            self._pod_gone(pod)
        elif (owner := self._owner(pod)) is not None:
            self._expectations.created(key_of(owner))
            self.queue.add(key_of(owner))
        elif controller_of(pod.metadata) is None:
            self._orphaned(pod)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.deletion_timestamp:
            self._pod_gone(new)
        if controller_of(old.metadata) != controller_of(new.metadata) and (before := self._owner(old)) is not None:
            self.queue.add(key_of(before))
        if (owner := self._owner(new)) is not None:
            self.queue.add(key_of(owner))
        elif controller_of(new.metadata) is None and (
            old.metadata.labels != new.metadata.labels or controller_of(old.metadata) is not None
        ):
            self._orphaned(new)

    def _pod_gone(self, pod: Pod) -> None:
        if (owner := self._owner(pod)) is not None:
            self._expectations.deleted(key_of(owner), pod.metadata.uid)
            self.queue.add(key_of(owner))

    def _orphaned(self, pod: Pod) -> None:
        for key in self._selecting.keys(pod.metadata):
            self.queue.add(key)

    def _owner(self, pod: Pod) -> Replicated | None:
        return owner_in(self._sets, pod)

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        obj: Replicated | None = self._sets.get(name, namespace)
        if obj is None:
            return None
        may_act = self._expectations.satisfied(key)
        pods = [*self._owned.of(obj), *self._owned.orphans(namespace)]
        active = await self._owned.claim(obj, selector_of(obj), filter(is_active, pods))
        identity = identity_of(obj)
        going = sum(is_terminating(pod) and is_controlled_by(pod.metadata, identity) for pod in pods)
        failure, said, paused = None, "", None
        if may_act and not obj.metadata.deletion_timestamp:
            paused = await self._pause(obj, pods, len(active))
            if not paused:
                failure, said = await self._act(key, obj, active)
        now = self._clock.now()
        status = await beside(len(active), status_of, obj, active, going, failure=said, now=now, stamp=format_time(now))
        await self._say(obj, status)
        self.rest(key, len(pods))
        if failure is not None:
            raise failure
        waits = paused, next_available(active, obj.spec.min_ready_seconds, now)
        return min(filter(None, waits), default=None)

    async def _pause(self, obj: Replicated, pods: list[Pod], active: int) -> float:
        """Seconds for which no more pods are made, since nodes reject them."""
        if not isinstance(step(obj, active), Create):
            return 0.0
        identity = identity_of(obj)
        mine = [pod for pod in pods if is_controlled_by(pod.metadata, identity)]
        return await beside(len(mine), rejected.pause, mine, min(wanted_replicas(obj), BURST), self._clock.now())

    async def _act(self, key: Key, obj: Replicated, active: list[Pod]) -> tuple[ApiError | None, str]:
        """The first refusal, and what the status says of it."""
        match step(obj, len(active)):
            case Create(count):
                failure = await self._create(key, obj, count)
                return failure, failure.message if failure is not None else ""
            case Remove(count):
                related = self._related(obj)
                victims = await beside(len(related), first_to_go, active, related, count, self._clock.now())
                failure = await self._remove(key, obj, victims)
                return failure, f"unable to delete pods: {failure.message}" if failure is not None else ""
        return None, ""

    async def _create(self, key: Key, obj: Replicated, count: int) -> ApiError | None:
        self._expectations.expect(key, creations=count)
        pod = from_template(template_of(obj), obj)

        async def make(_: int) -> None:
            try:
                await self._control.create(obj, pod)
            except ApiError as error:
                if not namespace_ends(error):
                    raise
                self._expectations.created(key)

        done, failure = await slow_start(count, make)
        self._expectations.created(key, count - done)  # what was refused or not begun will not come
        if failure is not None and not isinstance(failure, ApiError):
            raise failure
        return failure

    async def _remove(self, key: Key, obj: Replicated, victims: list[Pod]) -> ApiError | None:
        self._expectations.expect(key, deletions=[pod.metadata.uid for pod in victims])

        async def end(pod: Pod) -> None:
            try:
                gone = not await self._control.delete(obj, pod)
            except ApiError:
                self._expectations.deleted(key, pod.metadata.uid)  # it is not asked to go
                raise
            if gone:
                self._expectations.deleted(key, pod.metadata.uid)

        ended = await asyncio.gather(*map(end, victims), return_exceptions=True)
        for failure in ended:
            if isinstance(failure, BaseException) and not isinstance(failure, ApiError):
                raise failure
        return next((outcome for outcome in ended if isinstance(outcome, ApiError)), None)

    def _related(self, obj: Replicated) -> list[Pod]:
        """The pods of all sets of the same owner, or of this set when it has none."""
        above = controller_named(obj.metadata)
        relatives = [obj] if above is None else self._relatives.managed_by(above)
        return [pod for relative in relatives for pod in self._owned.of(relative)]

    async def _say(self, obj: Replicated, status: Status) -> None:
        if status != obj.status:
            await self._client.update_status(replace(obj, status=status))

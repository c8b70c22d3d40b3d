"""The daemon set controller: a pod on every matching node; the scheduler binds it by its node affinity.

set, nodes or pods change ─▶ claim the pods ─▶ which revisions there are ─▶ one on each node ─▶ rollout ─▶ status
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet, DaemonSetStatus
from podfit.api.apps.v1.defaults import TEMPLATE_GENERATION
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of
from podfit.api.meta.selectors import is_empty, requirements
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.expectations import Expectations
from podfit.controllers.in_place import InPlaceRollouts
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import PodControl, namespace_ends
from podfit.controllers.revisions import Revisions
from podfit.controllers.selecting import Selecting
from podfit.controllers.slow_start import slow_start
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.daemon import in_place
from podfit.decide.workload.daemon.failed_pods import NodeFailures, spared
from podfit.decide.workload.daemon.nodes import node_of, pod_for, questions, template_of
from podfit.decide.workload.daemon.status import status_of, wanted_on
from podfit.decide.workload.daemon.steps import DaemonStep, Version, by_node, manage, roll, why_ended
from podfit.decide.workload.hashes import content_hash
from podfit.decide.workload.history import HASH, data_of, named, next_number, superfluous_of_daemons, templates_in
from podfit.decide.workload.in_place.fates import PodSteps
from podfit.decide.workload.pods import next_available
from podfit.net.loop_turns import beside

COMPONENT = "daemonset-controller"
WORKERS = 2
_SELECTING_ALL = "This daemon set is selecting all pods. A non-empty selector is required."


class DaemonSetController(Controller[Key]):
    def __init__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock, in_place: bool = True
    ) -> None:
        """Without `in_place` rollouts are as upstream's."""
        self._client, self._recorder, self._clock = client, recorder, clock
        self._sets, self._pods = informers.of(DaemonSet), informers.of(Pod)
        self._nodes = informers.of(Node)
        self._owned = Owned(client, Pod, self._pods)
        self._selecting = Selecting(self._sets, lambda daemons: requirements(daemons.spec.selector))
        self._revisions: Revisions[DaemonSet] = Revisions(client, informers)
        self._control = PodControl(client, recorder)
        self._expectations: Expectations[Key] = Expectations(clock)
        self._in_place = InPlaceRollouts(client, informers=informers, recorder=recorder, clock=clock, off=not in_place)
        self._failures: dict[str, Mapping[str, NodeFailures]] = {}  # by the set's UID
        followed = self._sets, self._pods, self._nodes, self._revisions.informer, self._in_place.namespaces
        super().__init__(clock, *followed, workers=WORKERS)
        self._sets.add_handler(
            add=lambda new: self.queue.add(key_of(new)),
            update=lambda _, new: self.queue.add(key_of(new)),
            delete=self._set_gone,
        )
        self._pods.add_handler(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone)
        self._nodes.add_handler(add=self._node_changed, update=self._node_updated, delete=self._node_changed)

    # ------------------------------------------------------------------ what happens

    def _set_gone(self, daemons: DaemonSet) -> None:
        self._expectations.forget(key_of(daemons))
        self._failures.pop(daemons.metadata.uid, None)

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            self._pod_gone(pod)
        elif (owner := self._owner(pod)) is not None:
            self._expectations.created(owner)
            self.queue.add(owner)
        elif controller_of(pod.metadata) is None:
            self._orphaned(pod)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.deletion_timestamp:
            self._pod_gone(new)
            return
        if controller_of(old.metadata) != controller_of(new.metadata) and (before := self._owner(old)) is not None:
            self.queue.add(before)
        if (owner := self._owner(new)) is not None:
            self.queue.add(owner)
        elif controller_of(new.metadata) is None:
            self._orphaned(new)

    def _pod_gone(self, pod: Pod) -> None:
        if (owner := self._owner(pod)) is not None:
            self._expectations.deleted(owner, pod.metadata.uid)
            self.queue.add(owner)

    def _owner(self, pod: Pod) -> Key | None:
        owner = owner_in(self._sets, pod)
        return key_of(owner) if owner is not None else None

    def _orphaned(self, pod: Pod) -> None:
        for key in self._selecting.keys(pod.metadata):
            self.queue.add(key)

    def _node_changed(self, _: Node) -> None:
        """Whether a set wants the node is asked of all nodes at once, which may take its time."""
        for daemons in self._sets.list():
            self.queue.add(key_of(daemons))

    def _node_updated(self, old: Node, new: Node) -> None:
        if (old.metadata.labels, old.spec) == (new.metadata.labels, new.spec):
            return
        self._node_changed(new)

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        daemons = self._sets.get(name, namespace)
        if daemons is None or daemons.metadata.deletion_timestamp:
            return None
        if daemons.spec.selector is None or is_empty(daemons.spec.selector):
            self._recorder.event(daemons, "Warning", "SelectingAll", _SELECTING_ALL)
            return None
        current, old = await self._revised(daemons)
        digest = current.metadata.labels.get(HASH, "")
        version = Version(digest, daemons.metadata.annotations.get(TEMPLATE_GENERATION, ""))
        again: float | None = None
        pods = await self._claimed(daemons)
        observed = self._expectations.satisfied(key)
        try:
            if observed:
                again = await self._act(key, daemons, version, (*old, current))
                in_use = {label for pod in pods if (label := pod.metadata.labels.get(HASH))}
                limit = daemons.spec.revision_history_limit
                await self._revisions.delete(superfluous_of_daemons(old, limit, in_use))
        except (ApiError, ConnectionError):
            await self._tell(daemons, pods, version, observed=observed)
            raise
        now = await self._tell(daemons, pods, version, observed=observed)
        waits = [wait for wait in (again, next_available(pods, daemons.spec.min_ready_seconds, now)) if wait]
        return min(waits, default=None)

    async def _tell(self, daemons: DaemonSet, pods: list[Pod], version: Version, *, observed: bool) -> datetime:
        """In its status; the time of which that is."""
        now, nodes = self._clock.now(), self._nodes.list()
        size = questions(daemons, len(nodes)) + len(pods)
        status = await beside(size, status_of, daemons, nodes, by_node(pods), version, now, observed=observed)
        await self._say(daemons, status)
        return now

    async def _claimed(self, daemons: DaemonSet) -> list[Pod]:
        found = [*self._owned.of(daemons), *self._owned.orphans(daemons.metadata.namespace)]
        return await self._owned.claim(daemons, requirements(daemons.spec.selector), found)

    async def _say(self, daemons: DaemonSet, status: DaemonSetStatus) -> None:
        if status != daemons.status:
            await self._client.update_status(replace(daemons, status=status))

    async def _act(
        self, key: Key, daemons: DaemonSet, version: Version, revisions: Sequence[ControllerRevision]
    ) -> float | None:
        """Seconds after which a pod that failed may be ended, or one has waited for a resize for too long."""
        now, nodes = self._clock.now(), self._nodes.list()
        size, pods = questions(daemons, len(nodes)), by_node(await self._claimed(daemons))
        step = await beside(size, manage, daemons, nodes, pods, version, now)
        kept = spared(step, self._failures.get(daemons.metadata.uid, {}), self._clock.monotonic())
        self._failures[daemons.metadata.uid] = kept.failures
        for pod in kept.ended:
            self._recorder.event(daemons, *why_ended(pod, node_of(pod)))
        await self._sync(key, daemons, kept.step, version)
        if self._expectations.satisfied(key):
            claimed = await self._claimed(daemons)
            wanted = await beside(size, wanted_on, daemons, nodes)
            resized = await self._resized(daemons, version, revisions, claimed, wanted)
            step = roll(daemons, by_node(claimed), version, wanted, now, kept=resized.kept)
            await self._sync(key, daemons, step, version)
            await self._carry_out(daemons, resized, version)
            waits = kept.again, resized.again
            return min((seconds for seconds in waits if seconds is not None), default=None)
        return kept.again

    async def _resized(
        self,
        daemons: DaemonSet,
        version: Version,
        revisions: Sequence[ControllerRevision],
        pods: Sequence[Pod],
        wanted: int,
    ) -> PodSteps:
        """Which pods are resized instead of replaced, if that was asked for."""
        asked = self._in_place.asked(daemons)
        if asked is None or all(map(version.of, pods)):
            self._in_place.forget(key_of(daemons))
            return PodSteps()
        old = in_place.candidates(daemons, version, templates_in(revisions, HASH), pods)
        if not old:
            return PodSteps()
        template = template_of(daemons, version.generation, version.digest)
        made = pod_for(daemons, template, node_of(old[0]))
        fates = await self._in_place.fates(daemons, made, old, asked)
        return in_place.in_place(daemons, old, pods, fates, wanted, self._clock.now())

    async def _carry_out(self, daemons: DaemonSet, resized: PodSteps, version: Version) -> None:
        for pod in resized.finished:
            await self._in_place.give(daemons, pod, daemons, in_place.labels_of(version))
        if await self._in_place.resize(daemons, resized.resize):
            self.queue.add(key_of(daemons))

    async def _sync(self, key: Key, daemons: DaemonSet, step: DaemonStep, version: Version) -> None:
        """Make and end pods; raises the first refusal."""
        if not step.create and not step.delete:
            return
        going = [pod for pod in step.delete if not pod.metadata.deletion_timestamp]
        self._expectations.expect(key, creations=len(step.create), deletions=[pod.metadata.uid for pod in going])
        template = template_of(daemons, version.generation, version.digest)

        async def make(index: int) -> None:
            try:
                await self._control.create(daemons, pod_for(daemons, template, step.create[index]))
            except ApiError as error:
                if not namespace_ends(error):
                    raise
                self._expectations.created(key)

        async def end(pod: Pod) -> None:
            gone = True
            try:
                gone = not await self._control.delete(daemons, pod)
            finally:
                if gone:
                    self._expectations.deleted(key, pod.metadata.uid)

        done, failure = await slow_start(len(step.create), make)
        self._expectations.created(key, len(step.create) - done)
        ended = await asyncio.gather(*map(end, going), return_exceptions=True)
        for problem in (failure, *ended):
            if isinstance(problem, BaseException):
                raise problem

    async def _revised(self, daemons: DaemonSet) -> tuple[ControllerRevision, list[ControllerRevision]]:
        """The revision of the present template, and those of others."""
        known = await self._revisions.of(daemons)
        wanted = data_of(daemons.spec.template)
        current = [revision for revision in known if revision.data == wanted]
        old = [revision for revision in known if revision.data != wanted]
        number = next_number(old)
        if not current:
            return await self._snapshot(daemons, number), old
        found = current[-1]
        if HASH not in found.metadata.labels:
            found = await self._revisions.label(found, {HASH: found.metadata.name})
        return (await self._revisions.renumber(found, number) if found.revision < number else found), old

    async def _snapshot(self, daemons: DaemonSet, number: int) -> ControllerRevision:
        """Raises a conflict when its name was taken; the next one is another."""
        collisions = daemons.status.collision_count
        digest = content_hash(daemons.spec.template, collisions)
        made = await self._revisions.create(named(daemons, digest, number, {HASH: digest}))
        if made is None:
            await self._say(daemons, replace(daemons.status, collision_count=(collisions or 0) + 1))
            raise ApiError(409, "Conflict", f"another revision has the name {daemons.metadata.name}-{digest}")
        return made

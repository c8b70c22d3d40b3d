"""The burst rule beside the cgroups: four looks a second at the containers of pods that have a ceiling.

    counters ──▶ decide.autoscaling.burst.step ──▶ Move ──▶ does it fit? ──▶ record, durably ──▶ the pod anew

Nothing of the API is on that way. Each container has its files open while it runs; a node without a ceiling looks at
nothing. Moves of one pod are made one after the other, and none holds up another pod.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.decide.autoscaling.burst import NEW, Bounds, Size, step
from podfit.decide.autoscaling.burst_sizes import bounds_of, told, written_limits
from podfit.decide.pod.burst_ceiling import BurstRange, ranges_of, with_limits
from podfit.decide.pod.qos import held_class
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.bursts.record import BurstRecord, Limits
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups, Counting
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)
SECONDS = 0.25
"""From one look to the next."""
NO_ROOM_SECONDS = 10.0
"""A pod whose move the node had no room for, or could not write down, is not looked at for so long."""
NOWHERE = Bounds(limit=Size(), floor=Size(), ceiling=Size())
Emit = Callable[[Pod, str, str, str], None]


class Watched:
    """A container that runs, by the id of its instance. Its bounds are kept while pod and size are the same objects."""

    def __init__(self, instance: str, counters: Counting) -> None:
        self.instance, self.counters, self.state = instance, counters, NEW
        self._of: tuple[Pod, ResourceRequirements] | None = None
        self._bounds = NOWHERE

    def bounds(self, pod: Pod, own: ResourceRequirements, allowed: BurstRange, gates: FeatureGates) -> Bounds:
        if self._of is None or self._of[0] is not pod or self._of[1] is not own:
            self._bounds = bounds_of(own, allowed, guaranteed=held_class(pod, gates) == "Guaranteed")
            self._of = pod, own
        return self._bounds


class BurstRule:
    """`changed` has a pod of the API taken in anew. `run` until cancelled."""

    def __init__(
        self,
        record: BurstRecord,
        informer: Informer[Pod],
        known: KnownPods,
        allocation: AllocationManager,
        cgroups: Cgroups,
        *,
        clock: Clock,
        gates: FeatureGates,
        emit: Emit,
        changed: Callable[[Pod], None],
    ) -> None:
        self._record, self._known, self._allocation, self._cgroups = record, known, allocation, cgroups
        self._clock, self._gates, self._emit, self._changed = clock, gates, emit, changed
        self._pods: dict[str, Pod] = {}  # those with a ceiling, as the API has them
        self._some = asyncio.Event()
        self._watched: dict[tuple[str, str], Watched] = {}
        self._busy: dict[str, float] = {}  # until when, on the monotonic clock; a move under way has no end
        self.supervisor = Supervisor("bursts")
        informer.add_handler(add=self._seen, update=lambda _, pod: self._seen(pod), delete=self._gone)

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if self._record.is_over(pod):
            self.supervisor.begin(self._forget(uid), name=f"forget burst {pod.metadata.name}")
        if ranges_of(pod) and not is_mirror(pod):
            self._pods[uid] = pod
            self._some.set()
        elif uid in self._pods:
            self._drop(uid)

    def _gone(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._drop(uid)
        if uid in self._record.uids:
            self.supervisor.begin(self._forget(uid), name=f"forget burst {pod.metadata.name}")

    def _drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
        for key in [key for key in self._watched if key[0] == uid]:
            self._watched.pop(key).counters.close()
        if not self._pods:
            self._some.clear()

    async def _forget(self, uid: str) -> None:
        try:
            await self._record.forget((uid,))
        except CheckpointError as error:
            log.info("moved limits that are over are not forgotten yet uid=%s error=%s", uid, error)

    async def run(self) -> None:
        try:
            while True:
                await self._some.wait()
                self.look()
                await self._clock.sleep(SECONDS)
        finally:
            for watched in self._watched.values():
                watched.counters.close()
            self._watched.clear()
            await self.supervisor.stop()

    def look(self) -> None:
        """Once at every container; what follows is begun."""
        now = self._clock.monotonic()
        for uid, pod in list(self._pods.items()):
            if now < self._busy.get(uid, 0.0):
                continue
            moves = dict(self._moves(pod, now))
            if moves:
                self._busy[uid] = float("inf")
                self.supervisor.begin(self._move(pod, moves), name=f"burst {pod.metadata.name}")

    def _moves(self, pod: Pod, now: float) -> Iterator[tuple[str, tuple[Size, str]]]:
        """The moves by container."""
        uid = pod.metadata.uid
        live = self._known.live(uid)
        allocated = self._allocation.allocated(pod)
        ranges, running = ranges_of(pod), live.containers if live is not None else {}
        for container in allocated.spec.containers:
            found, instance = ranges.get(container.name), running.get(container.name)
            if found is None or instance is None:
                continue
            watched = self._watch(pod, container.name, instance)
            if watched is None:
                continue
            bounds = watched.bounds(pod, container.resources, found, self._gates)
            try:
                sample = watched.counters.read(bounds.limit.memory)
            except CgroupError:
                self._watched.pop((uid, container.name)).counters.close()
                continue
            watched.state, moves = step(watched.state, sample, bounds, now)
            for move in moves:
                yield container.name, (move.size, move.why)

    def _watch(self, pod: Pod, name: str, instance: str) -> Watched | None:
        """None while its cgroup cannot be read."""
        key = (pod.metadata.uid, name)
        watched = self._watched.get(key)
        if watched is not None and watched.instance == instance:
            return watched
        if watched is not None:
            self._watched.pop(key).counters.close()
        path = self._cgroups.layout.container(pod.metadata.uid, held_class(pod, self._gates), instance)
        try:
            self._watched[key] = Watched(instance, self._cgroups.counters(path))
        except CgroupError as error:
            log.debug("container is not counted pod=%s container=%s error=%s", pod.metadata.name, name, error)
            return None
        return self._watched[key]

    async def _move(self, pod: Pod, moves: Mapping[str, tuple[Size, str]]) -> None:
        """The record is durable before the pod is taken in anew, and with that allocated, and only then enforced."""
        uid, pause = pod.metadata.uid, 0.0
        limits: Limits = {name: written_limits(size) for name, (size, _) in moves.items()}
        allocated = self._allocation.allocated(pod)
        why = "; ".join(told(name, allocated, size, reason) for name, (size, reason) in moves.items())
        try:
            wanted = with_limits(self._record.desired(pod), limits, self._gates)
            if not self._allocation.has_room_for(wanted):
                pause = NO_ROOM_SECONDS
                self._emit(pod, "Warning", "BurstRefused", f"The node has no room for its limits to move: {why}")
                return
            await self._record.put(pod, limits, why)
            self._emit(pod, "Normal", "LimitsMoved", f"Limits moved inside the burst ceiling: {why}")
            newest = self._pods.get(uid)
            if newest is not None:
                self._changed(newest)
        except CheckpointError as error:
            pause = NO_ROOM_SECONDS
            log.warning("limits not moved, that cannot be written down pod=%s error=%s", pod.metadata.name, error)
        finally:
            self._busy[uid] = self._clock.monotonic() + pause
            if uid not in self._pods:
                self._busy.pop(uid, None)

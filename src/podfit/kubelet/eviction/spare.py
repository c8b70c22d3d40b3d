"""The lender: measures what of this node is requested and unused, has the node tell it, and takes memory back.

    runtime, machine ──▶ decide.node.spare.lent ────────▶ NodeAgent.lend        every 10 s
    free memory ───────▶ decide.node.spare.giving_way ──▶ the pod's worker: Failed, Evicted    every 2 s

CPU needs nobody here: borrowers are in a cgroup of the lowest weight.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.cgroup.container_resources import cpu, memory
from podfit.decide.lifecycle.facts import Failure
from podfit.decide.node import spare
from podfit.decide.node.eviction import EVICTED
from podfit.decide.node.pod_load import Load
from podfit.decide.node.pressure import Observation
from podfit.decide.node.spare import Held, Look, RequestAndUse
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.spare import is_spare
from podfit.kubelet.cgroup.protocol import CgroupError
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.node.agent import NodeAgent
from podfit.kubelet.node.machine import cpu_seconds
from podfit.kubelet.node.pressure import Observe
from podfit.kubelet.pods.known_pods import AllocatedPods, KnownPods
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerStats

log = logging.getLogger(__name__)

GRACE_SECONDS = 1
SIGNAL = "memory.available"
NANO_PER_MILLI = 1_000_000
LOOKS = round(spare.LOOK_SECONDS / spare.MEMORY_SECONDS)
"""At memory, for one at everything."""


class _Sample(msgspec.Struct, frozen=True):
    """Counters at one moment: of CPU by container (nanoseconds), and of the machine (seconds, None without one)."""

    at: float
    cpu: Mapping[str, int]
    machine: float | None


class Lender(msgspec.Struct):
    """`emit` records an event of a pod: pod, type, reason, message, field path. `count` adds one to the metric of
    evictions, by signal. A simulated node has what its containers leave of its capacity."""

    runtime: Runtime
    config: KubeletConfig
    agent: NodeAgent
    known: KnownPods
    pods: AllocatedPods
    observe: Observe
    clock: Clock
    emit: Callable[[Pod, str, str, str, str], None]
    count: Callable[[str], None]
    looks: tuple[Look, ...] = ()
    before: _Sample | None = None
    going: dict[str, int] = msgspec.field(default_factory=dict)
    """Bytes in use by pods that were told to go and are still ending, by UID."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._safely(self.estimate)
            for _ in range(LOOKS):
                await self.clock.sleep(spare.MEMORY_SECONDS)
                await self._safely(self.take_back)

    async def _safely(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except (CRIError, CgroupError, OSError) as error:
            log.warning("cannot see what of the node is unused error=%s", error)

    async def estimate(self) -> None:
        """One look, and what follows. Raises CRIError, OSError, CgroupError; then what was seen before counts on."""
        now = self.clock.monotonic()
        self.looks = spare.within_window(self.looks, now)
        try:
            found = await self._look(now)
            self.looks = (*self.looks, found) if found is not None else self.looks
        finally:
            told = spare.as_resources(spare.lent(self.looks))
            self.agent.lend(spare.told_anew(self.agent.lent, told))

    async def _look(self, now: float) -> Look | None:
        """None at the first: a rate of CPU takes two. Raises CRIError, OSError, CgroupError."""
        stats = await self.runtime.list_container_stats()
        before, machine = self.before, None if self.config.simulated else cpu_seconds()
        self.before = _Sample(now, {one.id: one.cpu_usage or 0 for one in stats}, machine)
        if before is None or now <= before.at:
            return None
        used = self._used(stats, before, now)
        pods = list(self.pods.active())
        borrowed = sum((used.get(pod.metadata.uid, Held()) for pod in pods if is_spare(pod)), start=Held())
        owners = [
            RequestAndUse(_requested(pod), used.get(pod.metadata.uid, Held())) for pod in pods if not is_spare(pod)
        ]
        return spare.look(now, owners, self._free(before, now, machine, sum(used.values(), start=Held()), borrowed))

    def _used(self, stats: tuple[ContainerStats, ...], before: _Sample, now: float) -> dict[str, Held]:
        """What is used, by pod; a container that was not there before has used its CPU since then."""
        used: dict[str, Held] = {}
        for one in stats:
            spent = max(0, (one.cpu_usage or 0) - before.cpu.get(one.id, 0))
            held = Held(round(spent / (now - before.at) / NANO_PER_MILLI), one.memory_working_set or 0)
            uid = one.labels.get(labels.POD_UID, "")
            used[uid] = used.get(uid, Held()) + held
        return used

    def _free(self, before: _Sample, now: float, machine: float | None, used: Held, borrowed: Held) -> Held:
        """What is free on the node, with what is lent already. Raises OSError, CgroupError."""
        busy = used.cpu
        if machine is not None and before.machine is not None:
            busy = round(1000 * (machine - before.machine) / (now - before.at))
        left = self._memory(used.memory)
        return Held(self.config.capacity["cpu"].milli() - busy + borrowed.cpu, left.available + borrowed.memory)

    def _memory(self, used: int) -> Observation:
        """What is left of the node's; `used` by all its containers. Raises OSError, CgroupError."""
        if not self.config.simulated:
            return self.observe()[SIGNAL]
        capacity = self.config.capacity["memory"].value()
        return Observation(max(0, capacity - used), capacity)

    async def take_back(self) -> None:
        """End borrowers if the node needs what they have. Raises CRIError, OSError, CgroupError."""
        borrowers = {pod.metadata.uid: pod for pod in self.pods.active() if is_spare(pod)}
        self.going = {uid: used for uid, used in self.going.items() if uid in borrowers}
        if not borrowers:
            return
        if not self.config.simulated and not self._is_short(self.observe()[SIGNAL]):
            return
        stats = await self.runtime.list_container_stats()
        left = self._memory(sum(one.memory_working_set or 0 for one in stats))
        if not self._is_short(left):
            return
        loads = [Load(pod, _memory_of(uid, stats)) for uid, pod in borrowers.items() if uid not in self.going]
        for load in spare.giving_way(loads, left.available, left.capacity, sum(self.going.values())):
            self._end(load, spare.message(left.available, left.capacity))

    def _is_short(self, left: Observation) -> bool:
        return left.available < spare.kept_free(left.capacity)

    def _end(self, load: Load, message: str) -> None:
        pod = load.pod
        log.warning("ending a pod on spare capacity pod=%s", labels.ref(pod))
        self.going[pod.metadata.uid] = sum(load.memory.values())
        self.count(SIGNAL)
        self.emit(pod, "Warning", EVICTED, message, "")
        self.known.fail(pod.metadata.uid, Failure(EVICTED, message, disruption=message, grace=GRACE_SECONDS))


def _requested(pod: Pod) -> Held:
    requests = pod_requests(pod)
    return Held(cpu(requests), memory(requests))


def _memory_of(uid: str, stats: tuple[ContainerStats, ...]) -> dict[str, int]:
    return {one.name: one.memory_working_set or 0 for one in stats if one.labels.get(labels.POD_UID) == uid}

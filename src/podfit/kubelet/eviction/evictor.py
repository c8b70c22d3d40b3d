"""The eviction manager: ends pods over their local storage limits, and pods of a node under pressure.

    StorageMeter ───────────▶ decide.node.storage_limits ──▶ the pod's worker: Failed, Evicted
    PressureMonitor.seen ───▶ decide.node.eviction ────────▶ the same, one pod at a time

Every ten seconds, with what the last look of the monitor saw. Before a pod has to go for a disk, unused images and
ended containers go. While a pod that was told to go is still ending, nobody else is told for a shortage: what it gives
back has not been seen yet.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import Failure
from podfit.decide.node.eviction import EVICTED, Shortage, eviction, is_split, reclaims, shortages
from podfit.decide.node.pod_load import Load, Used
from podfit.decide.node.storage_limits import exceeded, is_limited
from podfit.decide.pod.system_priority import is_critical
from podfit.kubelet.eviction.local_storage import StorageMeter
from podfit.kubelet.eviction.reclaim import Reclaimer
from podfit.kubelet.node.pressure import LOOK_SECONDS, PressureMonitor
from podfit.kubelet.pods.known_pods import AllocatedPods, KnownPods
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerStats

log = logging.getLogger(__name__)

GRACE_SECONDS = 1
THRESHOLD_MET = "EvictionThresholdMet"


class Evictor(msgspec.Struct):
    """`emit` records an event of a pod: pod, type, reason, message, field path; `tell` one of the node. `count` adds
    one to the metric of evictions, by signal.
    """

    runtime: Runtime
    pressure: PressureMonitor
    known: KnownPods
    pods: AllocatedPods
    meter: StorageMeter
    reclaimer: Reclaimer
    clock: Clock
    emit: Callable[[Pod, str, str, str, str], None]
    tell: Callable[[str, str, str], None]
    count: Callable[[str], None]
    going: set[str] = msgspec.field(default_factory=set)
    """UIDs of the pods that were told to go and are still ending."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.clock.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except (CRIError, OSError) as error:
                log.warning("cannot see which pods use what error=%s", error)

    async def _look(self) -> None:
        """Raises CRIError, OSError."""
        short = shortages(self.pressure.thresholds, self.pressure.seen)
        if not (short or self.going or self.meter.measures):  # nothing to look for in the pods
            return
        active = list(self.pods.active())
        self.going &= {pod.metadata.uid for pod in active}
        if await self._too_large(active) or self.going:
            return
        if short:
            self.tell("Warning", THRESHOLD_MET, f"Attempting to reclaim {short[0].resource}")
            short = await self._after_reclaim(short)
        if short:
            await self._relieve(short, active)

    async def _too_large(self, active: Iterable[Pod]) -> bool:
        """End all pods that exceed a limit of theirs; whether there is one. Raises CRIError, OSError."""
        if not self.meter.measures:
            return False
        limited = [
            pod for pod in active if pod.metadata.uid not in self.going and not is_critical(pod) and is_limited(pod)
        ]
        if not limited:
            return False
        split, found = is_split(self.pressure.seen), False
        for load in await self._loads(limited, stored=True):
            if (limit := exceeded(load, split=split)) is not None:
                self._evict(load.pod, limit.signal, limit.message, disruption="")
                found = True
        return found

    async def _after_reclaim(self, short: tuple[Shortage, ...]) -> tuple[Shortage, ...]:
        """What the node is still short of when what nobody needs is gone."""
        if not reclaims(short[0], split=is_split(self.pressure.seen)):
            return short
        await self.reclaimer.reclaim()
        self.pressure.look()
        return shortages(self.pressure.thresholds, self.pressure.seen)

    async def _relieve(self, short: tuple[Shortage, ...], active: list[Pod]) -> None:
        """Raises CRIError, OSError."""
        loads = await self._loads(active, stored=short[0].of_disk)
        found = eviction(short, loads, split=is_split(self.pressure.seen))
        if found is None:
            log.warning("the node is short and nobody may be evicted signal=%s", short[0].threshold.signal)
            return
        log.warning("evicting pod pod=%s signal=%s", labels.ref(found.pod), short[0].threshold.signal)
        self._evict(found.pod, short[0].threshold.signal, found.message, disruption=found.message)

    def _evict(self, pod: Pod, signal: str, message: str, *, disruption: str) -> None:
        self.going.add(pod.metadata.uid)
        self.count(signal)
        self.emit(pod, "Warning", EVICTED, message, "")
        self.known.fail(pod.metadata.uid, Failure(EVICTED, message, disruption=disruption, grace=GRACE_SECONDS))

    async def _loads(self, pods: list[Pod], *, stored: bool) -> list[Load]:
        """`stored`: with what they have on disks. Raises CRIError, OSError."""
        by_pod: dict[str, list[ContainerStats]] = {pod.metadata.uid: [] for pod in pods}
        for stats in await self.runtime.list_container_stats():
            if (of_pod := by_pod.get(stats.labels.get(labels.POD_UID, ""))) is not None:
                of_pod.append(stats)
        loads = []
        for pod in pods:
            found = by_pod[pod.metadata.uid]
            load = Load(pod, {stats.name: stats.memory_working_set or 0 for stats in found})
            if stored:
                load = msgspec.structs.replace(load, storage=await self.meter.storage(pod, _roots(found)))
            loads.append(load)
        return loads


def _roots(containers: Iterable[ContainerStats]) -> Mapping[str, Used]:
    """The writable layers of a pod's containers; several instances of one add up."""
    roots: dict[str, Used] = {}
    for stats in containers:
        layer = Used(stats.layer_bytes or 0, stats.layer_inodes or 0)
        roots[stats.name] = roots.get(stats.name, Used()) + layer
    return roots

"""Ends a pod when the node runs short of memory or process numbers: one at a time, until it does not any more.

    PressureMonitor.seen ──▶ decide.node.eviction ──▶ the pod's worker: Failed, Evicted

Every ten seconds, with what the last look of the monitor saw. While a pod that was told to go is still ending, nobody
else is told: what it gives back has not been seen yet.
"""

import logging
from collections.abc import Callable

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.node.eviction import EVICTED, Load, eviction, shortages
from podfit.kubelet.node.pressure import LOOK_SECONDS, PressureMonitor
from podfit.kubelet.pods.known import AllocatedPods, KnownPods
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.status.inputs import Failure

log = logging.getLogger(__name__)

GRACE_SECONDS = 1


class Evictor(msgspec.Struct):
    """`emit` records an event: pod, type, reason, message, field path."""

    runtime: Runtime
    pressure: PressureMonitor
    known: KnownPods
    pods: AllocatedPods
    clock: Clock
    emit: Callable[[Pod, str, str, str, str], None]
    going: str = ""
    """UID of the pod that was told to go last."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.clock.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        short = shortages(self.pressure.thresholds, self.pressure.seen)
        active = list(self.pods.active())
        if not short or any(pod.metadata.uid == self.going for pod in active):
            return
        try:
            found = eviction(short, await self._loads(active))
        except CRIError as error:
            log.warning("cannot see who uses what of a node that is short error=%s", error)
            return
        if found is None:
            log.warning("the node is short and nobody may be evicted signal=%s", short[0].threshold.signal)
            return
        self.going = found.pod.metadata.uid
        log.warning("evicting pod pod=%s signal=%s", labels.ref(found.pod), short[0].threshold.signal)
        self.emit(found.pod, "Warning", EVICTED, found.message, "")
        failure = Failure(EVICTED, found.message, disruption=found.message, grace=GRACE_SECONDS)
        self.known.fail(self.going, failure)

    async def _loads(self, pods: list[Pod]) -> list[Load]:
        used: dict[str, dict[str, int]] = {pod.metadata.uid: {} for pod in pods}
        for stats in await self.runtime.list_container_stats():
            of_pod = used.get(stats.labels.get(labels.POD_UID, ""))
            if of_pod is not None:
                of_pod[stats.name] = stats.memory_working_set or 0
        return [Load(pod, used[pod.metadata.uid]) for pod in pods]

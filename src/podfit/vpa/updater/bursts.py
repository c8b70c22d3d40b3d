"""Ceilings for bursts, and the spec after the node: beside the updater's passes, within a second of what happens.

    VPAs with podfit.dev/burst ─ pods ─▶ decide.autoscaling.ceilings.burst_write ─▶ pods/resize

Every write goes through `pods/resize` and is judged there, so what is refused stays as it is; a refusal is said in a
condition of the VPA, and tried again a minute later.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from podfit.client.controlling import Controlling
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.decide.autoscaling.ceilings import BurstWrite, burst_write, bursts, patch_of
from podfit.decide.autoscaling.view import concerned
from podfit.vpa.updater.burst_poller import Bursting

log = logging.getLogger(__name__)
CONFLICT = 409
SETTLE_SECONDS = 0.5
"""Changes that come together are looked at together."""
RETRY_SECONDS = 60.0


class BurstLoop:
    """`kept` are the VPAs that the updater looks at. With `polls` nobody judges ceilings: the pod has only a note of
    what it is to come back to, and the poller asks for the rest.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        vpas: Informer[VerticalPodAutoscaler],
        pods: Informer[Pod],
        targets: Targets,
        kept: Callable[[], Iterable[VerticalPodAutoscaler]],
    ) -> None:
        self._client, self._clock, self._pods, self._targets, self._kept = client, clock, pods, targets, kept
        self._changed = asyncio.Event()
        self._ceilings: set[str] = set()  # UIDs of pods that have one
        self._refused: dict[str, tuple[str, float, str]] = {}  # by UID: ceiling, when it is due, what was said
        self._controls: dict[str, VerticalPodAutoscaler] = {}  # by the UIDs of pods that may burst
        self.polls = False
        vpas.add_handler(
            add=lambda _vpa: self._changed.set(),
            update=lambda _old, _vpa: self._changed.set(),
            delete=lambda _vpa: self._changed.set(),
        )
        pods.add_handler(add=self._seen, update=lambda _, pod: self._seen(pod), delete=self._gone)

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if CEILING in pod.metadata.annotations:
            self._ceilings.add(uid)
        else:
            self._ceilings.discard(uid)
        self._changed.set()

    def _gone(self, pod: Pod) -> None:
        for known in (self._refused, self._controls):
            known.pop(pod.metadata.uid, None)
        self._ceilings.discard(pod.metadata.uid)

    def refusals(self, vpa: VerticalPodAutoscaler) -> tuple[str, ...]:
        """Why pods of the VPA have no ceiling, or not what the node has moved."""
        uid = vpa.metadata.uid
        own = {pod for pod, controls in self._controls.items() if controls.metadata.uid == uid}
        return tuple(sorted(said for pod, (_, _, said) in self._refused.items() if pod in own))

    def bursting(self) -> list[Bursting]:
        """The pods that may burst, as they are now."""
        return [
            Bursting(pod, self._controls[pod.metadata.uid])
            for pod in concerned(self._pods.list())
            if pod.metadata.uid in self._controls
        ]

    async def run(self) -> None:
        """After all informers are synced, until cancelled."""
        while True:
            await self._changed.wait()
            await self._clock.sleep(SETTLE_SECONDS)
            self._changed.clear()
            vpas = [vpa for vpa in self._kept() if bursts(vpa)]
            if vpas or self._ceilings:
                await self._look(vpas)

    async def _look(self, vpas: list[VerticalPodAutoscaler]) -> None:
        controlling = Controlling(self._targets, vpas)
        for number, pod in enumerate(concerned(self._pods.list()), 1):
            if number % OBJECTS == 0:
                await asyncio.sleep(0)
            vpa = await controlling.vpa_of(pod) if vpas else None
            if vpa is not None:
                self._controls[pod.metadata.uid] = vpa
            else:
                self._controls.pop(pod.metadata.uid, None)
                if pod.metadata.uid not in self._ceilings:
                    continue
            write = burst_write(pod, vpa)
            if write is None:
                self._refused.pop(pod.metadata.uid, None)
            else:
                await self._write(pod, write)

    async def _write(self, pod: Pod, write: BurstWrite) -> None:
        meta, now = pod.metadata, self._clock.monotonic()
        refused = self._refused.get(meta.uid)
        if refused is not None and refused[0] == (write.ceiling or "") and now < refused[1]:
            return
        try:
            await self._send(pod, write)
        except (ApiError, ConnectionError) as error:
            log.info("burst not written pod=%s/%s why=%s error=%s", meta.namespace, meta.name, write.why, error)
            if isinstance(error, ApiError) and error.code != CONFLICT:
                self._refused[meta.uid] = (write.ceiling or "", now + RETRY_SECONDS, f"{meta.name}: {error}")
            self._clock.call_later(RETRY_SECONDS, self._changed.set)
        else:
            self._refused.pop(meta.uid, None)

    async def _send(self, pod: Pod, write: BurstWrite) -> None:
        """Sends it as one write of `pods/resize`; where that drops annotations, as a resize and a patch of the pod."""
        meta, patch = pod.metadata, patch_of(pod, write)
        if not self.polls:
            await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="resize")
            return
        if write.limits:
            await self._client.patch(Pod, meta.name, meta.namespace, {"spec": patch["spec"]}, subresource="resize")
        await self._client.patch(
            Pod, meta.name, meta.namespace, {"metadata": {"annotations": {CEILING: write.ceiling}}}
        )

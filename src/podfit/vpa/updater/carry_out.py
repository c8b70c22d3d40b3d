"""Carries out the updater's actions through the API: resizes, evictions, events (V-087, V-090)."""

import logging
from collections.abc import Mapping

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.rest import JSON_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.autoscaling.actions import ActionOutcome, EvictPod, ResizePod, outcome_of
from podfit.decide.autoscaling.conditions import IN_PLACE_TEXT, with_conditions
from podfit.decide.autoscaling.in_place import restarts_nothing
from podfit.decide.autoscaling.patches import without_ceiling
from podfit.vpa.statuses import write_status

log = logging.getLogger(__name__)
NORMAL, WARNING = "Normal", "Warning"


class Writer:
    """Writes to the API. With `asks_first`, disruption budgets hold for resizes that may restart containers, too."""

    def __init__(self, client: Client, clock: Clock, recorder: EventRecorder, *, asks_first: bool) -> None:
        self._client, self._clock, self._recorder, self._asks_first = client, clock, recorder, asks_first

    async def evict(self, action: EvictPod, vpa: VerticalPodAutoscaler) -> ActionOutcome:
        """Through the eviction API, which keeps disruption budgets; only this very pod."""
        pod, meta = action.pod, action.pod.metadata
        try:
            await self._client.evict(pod)
        except (ApiError, ConnectionError) as error:
            log.info("pod not evicted pod=%s/%s error=%s", meta.namespace, meta.name, error)
            return ActionOutcome.REFUSED
        self._recorder.event(
            pod, NORMAL, "EvictedByVPA", "Evicted by the VPA's updater, to be made anew as recommended."
        )
        self._recorder.event(vpa, NORMAL, "EvictedPod", f"Pod {meta.name} was evicted, to be made anew as recommended.")
        return ActionOutcome.DONE

    async def _may_restart(self, pod: Pod) -> bool:
        """Whether the pod could be evicted now: then its containers may restart as well."""
        try:
            await self._client.evict(pod, dry_run=True)
        except (ApiError, ConnectionError) as error:
            text = "pod not resized, which would restart a container pod=%s/%s error=%s"
            log.info(text, pod.metadata.namespace, pod.metadata.name, error)
            return False
        return True

    async def resize(self, action: ResizePod) -> ActionOutcome:
        pod, meta = action.pod, action.pod.metadata
        if self._asks_first and not restarts_nothing(pod) and not await self._may_restart(pod):
            return ActionOutcome.UNKNOWN
        try:
            if action.guards:
                await self._client.patch(Pod, meta.name, meta.namespace, list(action.guards), content_type=JSON_PATCH)
        except (ApiError, ConnectionError) as error:
            log.info("pod not resized, since it was not marked pod=%s/%s error=%s", meta.namespace, meta.name, error)
            return ActionOutcome.UNKNOWN
        try:
            patch = [*action.resources, *without_ceiling(pod)]
            await self._client.patch(
                Pod, meta.name, meta.namespace, patch, content_type=JSON_PATCH, subresource="resize"
            )
        except (ApiError, ConnectionError) as error:
            log.info("pod not resized pod=%s/%s error=%s", meta.namespace, meta.name, error)
            return outcome_of(error)
        try:
            await self._client.patch(Pod, meta.name, meta.namespace, list(action.marks), content_type=JSON_PATCH)
        except (ApiError, ConnectionError) as error:
            log.warning("pod not marked as resized pod=%s/%s error=%s", meta.namespace, meta.name, error)
        self._recorder.event(pod, NORMAL, "InPlaceResizedByVPA", "Resized in place by the VPA's updater.")
        return ActionOutcome.DONE

    def skip(self, pod: Pod) -> None:
        text = "Not resized: the node can never give what is recommended; tried again when less is."
        self._recorder.event(pod, NORMAL, "InPlaceResizeSkipped", text)

    def announce_in_place(self, vpa: VerticalPodAutoscaler) -> None:
        self._recorder.event(vpa, NORMAL, "InPlaceByDefault", IN_PLACE_TEXT)

    async def say(self, vpa: VerticalPodAutoscaler, wanted: Mapping[str, str]) -> None:
        """In the conditions of a VPA, by type what there is to say."""
        now = format_time(self._clock.now())
        try:
            await write_status(self._client, vpa, lambda newest: with_conditions(newest.status, wanted, now))
        except (ApiError, ConnectionError) as error:
            text = "condition not written, the next pass tries again vpa=%s/%s error=%s"
            log.info(text, vpa.metadata.namespace, vpa.metadata.name, error)

"""Asks the recommender what a pod would get now, and does without when there is no quick answer.

What the VPA's status says is at most a minute old, and always there: so an answer is waited for 200 ms, and after one
that failed nobody asks for half a minute. Then one pod tries it for all.
"""

import asyncio
import logging

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.recommender.v1alpha1 import (
    GROUP_VERSION,
    RESOURCE,
    PodRecommendation,
    PodRecommendationSpec,
    PodRecommendationStatus,
)
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)
WAIT_SECONDS, AWAY_SECONDS = 0.2, 30.0
NOTHING = PodRecommendationStatus()


class FreshRecommendations:
    """`client` may create podrecommendations."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._not_before = clock.monotonic()
        self._away = False

    async def of(self, pod: Pod, namespace: str) -> PodRecommendationStatus:
        """What the recommender answers for this pod; nothing where it does not in time."""
        now = self._clock.monotonic()
        if now < self._not_before:
            return NOTHING
        if self._away:
            self._not_before = now + AWAY_SECONDS  # this one tries it, the others go on without
        try:
            answer = await self._ask(pod, namespace)
        except (ApiError, ConnectionError, TimeoutError, ValueError) as error:
            if not self._away:
                log.warning("the recommender does not answer, statuses of VPAs are used error=%r", error)
            self._away, self._not_before = True, self._clock.monotonic() + AWAY_SECONDS
            return NOTHING
        if self._away:
            log.info("the recommender answers again")
        self._away, self._not_before = False, now
        return answer.status

    async def _ask(self, pod: Pod, namespace: str) -> PodRecommendation:
        """Raises TimeoutError too."""
        loop, path = asyncio.get_running_loop(), f"/apis/{GROUP_VERSION}/namespaces/{namespace}/{RESOURCE}"
        body = codec.encode(PodRecommendation(spec=PodRecommendationSpec(pod=pod)))
        async with asyncio.timeout(None) as scope:
            timer = self._clock.call_later(WAIT_SECONDS, lambda: scope.reschedule(loop.time()))
            try:
                return codec.decode(await self._client.request("POST", path, body), PodRecommendation)
            finally:
                timer.cancel()

"""Asks the recommender what a pod would get now, and does without when there is no quick answer.

What the VPA's status says is at most a minute old, and always there: so an answer is waited for 200 ms, and after one
that failed no pod asks until the recommender has answered a question of nobody's, which it is asked every half minute.
"""

import asyncio
import logging

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod, PodSpec
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
NOBODYS, PROBED = Pod(spec=PodSpec(containers=(Container(name="nobody"),))), "kube-system"
"""A pod to ask about, and its namespace."""
_FAILURES = (ApiError, ConnectionError, TimeoutError, ValueError)


class FreshRecommendations:
    """`client` may create podrecommendations. `run` finds out when the recommender answers again."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._away = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._away.wait()
            await self._clock.sleep(AWAY_SECONDS)
            try:
                await self._ask(NOBODYS, PROBED)
            except _FAILURES:
                continue
            log.info("the recommender answers again")
            self._away.clear()

    async def of(self, pod: Pod, namespace: str) -> PodRecommendationStatus:
        """What the recommender answers for this pod; nothing where it does not in time."""
        if self._away.is_set():
            return NOTHING
        try:
            return (await self._ask(pod, namespace)).status
        except _FAILURES as error:
            if not self._away.is_set():
                log.warning("the recommender does not answer, statuses of VPAs are used error=%r", error)
            self._away.set()
            return NOTHING

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

"""The VPA's own kinds as a client asks for them: custom resources, which no table of kinds has."""

import asyncio

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from podfit.client.resource import known
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

GROUP = "autoscaling.k8s.io"
VPAS = known(VerticalPodAutoscaler, "verticalpodautoscalers", group=GROUP)
CHECKPOINTS = known(VerticalPodAutoscalerCheckpoint, "verticalpodautoscalercheckpoints", group=GROUP)
LASTING = 60.0
"""Seconds for which a list of all of them is good."""


class VerticalAutoscalers:
    """All VPAs, by namespace; none where the cluster has no such kind, or does not let them be read."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._read_at = float("-inf")
        self._found: dict[str, tuple[VerticalPodAutoscaler, ...]] = {}
        self._reading = asyncio.Lock()

    async def of(self, namespace: str, *, lasting: float = LASTING) -> tuple[VerticalPodAutoscaler, ...]:
        """The kinds as they were read at most `lasting` seconds ago."""
        async with self._reading:
            if self._read_at + lasting <= self._clock.monotonic():
                self._found = await self._read()
                self._read_at = self._clock.monotonic()
        return self._found.get(namespace, ())

    async def _read(self) -> dict[str, tuple[VerticalPodAutoscaler, ...]]:
        try:
            items = (await self._client.list(VPAS)).items
        except (ApiError, ConnectionError, ValueError):
            return {}
        found: dict[str, list[VerticalPodAutoscaler]] = {}
        for vpa in items:
            found.setdefault(vpa.metadata.namespace, []).append(vpa)
        return {namespace: tuple(vpas) for namespace, vpas in found.items()}

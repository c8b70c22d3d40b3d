"""Usage of pods from metrics.k8s.io, read once for all in a process who ask for it at about the same time."""

import asyncio
from collections.abc import Mapping

import msgspec

from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.horizontal.samples import PodUsage

GROUP = "metrics.k8s.io"
LASTING = 5.0
"""Seconds for which an answer is good for the next who asks."""
_PROBLEMS = (ApiError, ConnectionError, ValueError)
Usages = tuple[PodUsage, ...]


class _Items(msgspec.Struct, frozen=True):
    items: tuple[PodUsage, ...] | None = ()


class PodUsages:
    """The usage of pods of a namespace, or of all. A failure is an answer as well: it is not asked again for each who
    would like it."""

    def __init__(self, client: Client, clock: Clock, *, namespace: str = "", lasting: float = LASTING) -> None:
        self._client, self._clock, self._lasting = client, clock, lasting
        self._path = f"/apis/{GROUP}/v1beta1/{f'namespaces/{namespace}/' if namespace else ''}pods"
        self._until = float("-inf")
        self._read: Usages | Exception = ()
        self._by_namespace: dict[str, dict[str, PodUsage]] | None = None
        self._reading = asyncio.Lock()

    async def read(self) -> Usages:
        """Raises ApiError or ConnectionError where nobody tells, ValueError for what cannot be read."""
        async with self._reading:
            if self._until <= self._clock.monotonic():
                self._by_namespace = None
                try:
                    body = await self._client.request("GET", self._path)
                    self._read = codec.decode(body, _Items).items or ()
                except _PROBLEMS as error:
                    self._read = error
                self._until = self._clock.monotonic() + self._lasting
        if isinstance(self._read, Exception):
            raise self._read.with_traceback(None)
        return self._read

    async def of(self, namespace: str) -> Mapping[str, PodUsage]:
        """The usage by the names of its pods. Raises what `read` does."""
        pods = await self.read()
        if self._by_namespace is None:
            self._by_namespace = {}
            for pod in pods:
                self._by_namespace.setdefault(pod.metadata.namespace, {})[pod.metadata.name] = pod
        return self._by_namespace.get(namespace, {})

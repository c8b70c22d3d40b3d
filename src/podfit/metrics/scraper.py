"""Asks every kubelet for its metrics once in each interval.

A kubelet that does not answer in time has no readings in this round: of its pods and of itself nothing is told until it
was read again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.workqueue import WorkQueue
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.metrics.points import Batch, PodKey, Point, Points
from podfit.metrics.samples import read
from podfit.net.metrics import Metrics

log = logging.getLogger(__name__)

AT_ONCE = 64
ROUND, SOON = "round", 1.0
Ask = Callable[[Node], Awaitable[str]]
"""A kubelet's /metrics/resource; ConnectionError or ApiError when it does not tell, within bounded time."""


class ScrapeSettings(msgspec.Struct, frozen=True):
    """`interval` in seconds."""

    interval: float = 60.0


class Scraper:
    """`run` until cancelled. `last` is when the last round ended, by the clock that only goes forward."""

    def __init__(
        self,
        nodes: Informer[Node],
        pods: Informer[Pod],
        ask: Ask,
        points: Points,
        *,
        clock: Clock,
        settings: ScrapeSettings,
        metrics: Metrics,
    ) -> None:
        self._nodes, self._pods, self._ask, self._points = nodes, pods, ask, points
        self._clock, self._settings = clock, settings
        self.last: float | None = None
        self._rounds: WorkQueue[str] = WorkQueue(clock)
        self._asked = metrics.counter(
            "metrics_server_kubelet_request_total", "Number of requests sent to Kubelet API", ("success",)
        )
        self._stored = metrics.gauge("metrics_server_storage_points", "Number of metrics points stored.", ("type",))

    async def run(self) -> None:
        """Rounds at the interval, and soon after a node that is new: `kubectl top` need not wait for two of them."""
        await self._nodes.synced.wait()
        self._nodes.add_handler(add=lambda _: self._rounds.add_after(ROUND, SOON))
        self._rounds.add(ROUND)
        await self._rounds.run(self.round)

    async def round(self, _: str = ROUND) -> float:
        """Ask everybody once; seconds until the next round."""
        began, limit = self._clock.monotonic(), asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(self._one(node, limit) for node in self._nodes.list()))
        batch = together(found)
        new = any(self._points.is_new(name) for name in batch.nodes)
        self._points.store(batch)
        self._stored.labels("node").set(len(batch.nodes))
        self._stored.labels("container").set(sum(map(len, batch.pods.values())))
        self.last = self._clock.monotonic()
        return SOON if new else max(SOON, self._settings.interval - (self.last - began))

    async def _one(self, node: Node, limit: asyncio.Semaphore) -> Batch:
        name = node.metadata.name
        async with limit:
            try:
                body = await self._ask(node)
                batch = await read(name, body, self._clock.now().timestamp())
            except (ApiError, ConnectionError) as error:
                self._asked.labels("false").inc()
                log.warning("kubelet not read node=%s error=%s", name, error)
                return Batch()
        self._asked.labels("true").inc()
        return self._without_others(name, batch)

    def _without_others(self, node: str, batch: Batch) -> Batch:
        """A kubelet tells nothing of pods that are known to be on another node."""
        there = {key: points for key, points in batch.pods.items() if self._node_of(key) in ("", node)}
        return Batch(batch.nodes, there)

    def _node_of(self, key: PodKey) -> str:
        """Empty where the pod is not known."""
        pod = self._pods.get(key[1], key[0])
        return pod.spec.node_name if pod is not None else ""

    @property
    def alive(self) -> bool:
        """Whether rounds still end: none is later than one and a half intervals, as upstream's liveness has it."""
        return self.last is None or self._clock.monotonic() - self.last <= 1.5 * self._settings.interval


def together(batches: Iterable[Batch]) -> Batch:
    """Of a pod that two kubelets tell of, as when its name was used again elsewhere, the first counts."""
    nodes: dict[str, Point] = {}
    pods: dict[PodKey, dict[str, Point]] = {}
    for batch in batches:
        nodes |= batch.nodes
        for key, points in batch.pods.items():
            pods.setdefault(key, dict(points))
    return Batch(nodes, pods)

"""Asks every kubelet for its metrics once in each interval.

A kubelet that does not answer in time has no readings in this round: of its pods and of itself nothing is told until it
was read again. A container counts when its kubelet gives both its CPU and its memory.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from math import isfinite

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.client.informer import Informer
from podfit.client.workqueue import WorkQueue
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.metrics.points import Batch, PodKey, Point, Points
from podfit.metrics.running_pods import Pods
from podfit.net.exposition import Sample, pieces, samples
from podfit.net.metrics import Metrics

NODE_CPU, NODE_MEMORY = "node_cpu_usage_seconds_total", "node_memory_working_set_bytes"
CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
STARTED = "container_start_time_seconds"
WANTED = frozenset((NODE_CPU, NODE_MEMORY, CPU, MEMORY, STARTED))
NANO = 1_000_000_000
MOST_SAMPLES = 20_000
"""Of one kubelet; 500 pods of four containers tell 6,000."""
_LARGEST = 2.0**63
_LATEST = 253_402_300_799.0  # the last second of the year 9999


class TooManySamples(ConnectionError):
    """A kubelet tells more than a node of any size has."""


class _Reading(msgspec.Struct):
    """What was seen of one container or node so far."""

    started: float = 0.0
    time: float = 0.0
    cpu: float | None = None
    memory: float | None = None

    def see(self, sample: Sample, now: float) -> None:
        match sample.name:
            case "container_start_time_seconds":
                self.started = sample.value
            case "container_cpu_usage_seconds_total" | "node_cpu_usage_seconds_total":
                self.cpu, self.time = sample.value, sample.time / 1000 if sample.time else now
            case _:
                self.memory = sample.value

    def point(self) -> Point | None:
        """None without both, or where a number is none that a container or node can have."""
        if self.cpu is None or self.memory is None:
            return None
        if not (_is_below(self.cpu * NANO, _LARGEST) and _is_below(self.memory, _LARGEST)):
            return None
        if not (_is_below(self.started, _LATEST) and _is_below(self.time, _LATEST)):
            return None
        return Point(self.started, self.time, round(self.cpu * NANO), int(self.memory))


def _is_below(number: float, limit: float) -> bool:
    return isfinite(number) and 0 <= number < limit


async def read(node: str, body: str, now: float) -> Batch:
    """`now` (seconds since 1970) is the time of what tells none. A pod of which a container has no full reading is left
    out. Raises TooManySamples."""
    of_node = _Reading()
    pods: dict[PodKey, dict[str, _Reading]] = {}
    number = 0
    for piece in pieces(body):
        for sample in samples(piece, WANTED):
            number += 1
            if sample.name in (NODE_CPU, NODE_MEMORY):
                of_node.see(sample, now)
                continue
            labels = sample.labels
            key = labels.get("namespace", ""), labels.get("pod", "")
            pods.setdefault(key, {}).setdefault(labels.get("container", ""), _Reading()).see(sample, now)
        if number > MOST_SAMPLES:
            raise TooManySamples(f"it tells more than {MOST_SAMPLES} samples")
        await asyncio.sleep(0)  # others have their turn
    own = of_node.point()
    found = {key: _points(containers) for key, containers in pods.items()}
    return Batch({node: own} if own is not None else {}, {key: points for key, points in found.items() if points})


def _points(containers: dict[str, _Reading]) -> dict[str, Point]:
    points = {name: reading.point() for name, reading in containers.items()}
    whole = {name: point for name, point in points.items() if point is not None}
    return whole if len(whole) == len(points) else {}


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
        pods: Pods,
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
    """All pods; of one that two kubelets tell of, as when its name was used again elsewhere, the first counts."""
    nodes: dict[str, Point] = {}
    pods: dict[PodKey, dict[str, Point]] = {}
    for batch in batches:
        nodes |= batch.nodes
        for key, points in batch.pods.items():
            pods.setdefault(key, dict(points))
    return Batch(nodes, pods)

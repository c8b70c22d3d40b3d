"""Bursts on nodes of others: the same rule as beside the cgroup, over one poll a node, and a resize through the API.

    nodes ──/stats/summary──▶ decide.autoscaling.burst.step ──▶ Move ──▶ pods/resize

Nobody there knows a ceiling, so each raise is judged when it is asked for, as any resize, and the annotation is only a
note of the floor to give back to. Ceilings are worked out from the VPA alone, never read from the pod. It is seconds,
not a moment, until a limit has moved, and throttling is not counted: CPU near its limit stands for it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.burst import NEW, BurstState, Sample, step
from podfit.decide.autoscaling.burst_sizes import bounds_of, written_limits
from podfit.decide.autoscaling.ceilings import BurstWrite, patch_of, wanted_ranges
from podfit.decide.pod.qos import held_class
from podfit.decide.pod.resize_state import ResizeStage, ResizeState

log = logging.getLogger(__name__)
LARGEST = 16 << 20
"""Bytes of a summary: a node of 500 pods says about 1 MiB."""
AT_ONCE = 8
"""Nodes that are asked at a time."""
LIMIT_SECONDS = 5.0
"""How long an answer may take."""


class Bursting(NamedTuple):
    pod: Pod
    vpa: VerticalPodAutoscaler


class _Cpu(msgspec.Struct, frozen=True, rename="camel"):
    usage_core_nano_seconds: int | None = None


class _Memory(msgspec.Struct, frozen=True, rename="camel"):
    working_set_bytes: int | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    cpu: _Cpu | None = None
    memory: _Memory | None = None


class _Reference(msgspec.Struct, frozen=True):
    uid: str


class _Pod(msgspec.Struct, frozen=True, rename="camel"):
    pod_ref: _Reference
    containers: tuple[_Container, ...] = ()


class _Summary(msgspec.Struct, frozen=True):
    pods: tuple[_Pod, ...] = ()


def samples(body: bytes) -> Mapping[tuple[str, str], Sample]:
    """Samples by UID of the pod and name of the container. ValueError: it is no summary."""
    if len(body) > LARGEST:
        raise ValueError(f"a summary of more than {LARGEST} bytes")
    try:
        summary = msgspec.json.decode(body, type=_Summary)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    return {
        (pod.pod_ref.uid, container.name): _sample(container) for pod in summary.pods for container in pod.containers
    }


def _sample(container: _Container) -> Sample:
    used = container.cpu.usage_core_nano_seconds if container.cpu is not None else None
    memory = container.memory.working_set_bytes if container.memory is not None else None
    return Sample(cpu=None if used is None else used / 1e9, memory=memory)


class BurstPoller:
    """`bursting` are the pods that may burst now, with their VPAs; `every` in seconds."""

    def __init__(self, client: Client, clock: Clock, bursting: Callable[[], Iterable[Bursting]], every: float) -> None:
        self._client, self._clock, self._bursting, self._every = client, clock, bursting, every
        self._states: dict[tuple[str, str], BurstState] = {}
        self._asking = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._every)
            by_node: dict[str, list[Bursting]] = {}
            for bursting in self._bursting():
                by_node.setdefault(bursting.pod.spec.node_name, []).append(bursting)
            living = {bursting.pod.metadata.uid for pods in by_node.values() for bursting in pods}
            self._states = {key: state for key, state in self._states.items() if key[0] in living}
            await asyncio.gather(*(self._look(node, pods) for node, pods in by_node.items()))

    async def _look(self, node: str, pods: list[Bursting]) -> None:
        path = f"/api/v1/nodes/{node}/proxy/stats/summary"
        try:
            async with self._asking, asyncio.timeout(LIMIT_SECONDS):
                seen = samples(await self._client.request("GET", path))
        except (ApiError, ConnectionError, TimeoutError, ValueError) as error:
            log.info("node not polled for bursts node=%s error=%s", node, error)
            return
        now = self._clock.monotonic()
        for bursting in pods:
            await self._follow(bursting, seen, now)

    async def _follow(self, found: Bursting, seen: Mapping[tuple[str, str], Sample], now: float) -> None:
        pod, meta = found.pod, found.pod.metadata
        ranges = wanted_ranges(pod, found.vpa) if ResizeState.of(pod).stage is ResizeStage.NONE else {}
        guaranteed = held_class(pod) == "Guaranteed"
        limits, why = {}, []
        for container in pod.spec.containers:
            key = (meta.uid, container.name)
            if container.name not in ranges or key not in seen:
                continue
            bounds = bounds_of(container.resources, ranges[container.name], guaranteed=guaranteed)
            self._states[key], moves = step(self._states.get(key, NEW), seen[key], bounds, now)
            for move in moves:
                limits[container.name] = {**container.resources.limits, **written_limits(move.size)}
                why.append(f"{container.name}: {move.why}")
        if not limits:
            return
        patch = patch_of(pod, BurstWrite(limits, None, "; ".join(why)))
        del patch["metadata"]
        try:
            await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="resize")
            log.info("limits moved pod=%s/%s why=%s", meta.namespace, meta.name, "; ".join(why))
        except (ApiError, ConnectionError) as error:
            log.info("limits not moved pod=%s/%s error=%s", meta.namespace, meta.name, error)

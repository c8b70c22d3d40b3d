"""The facts of `recommend`, read from a cluster: pods with their workloads, VPAs, checkpoints, and
usage over a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.usage import UsageFacts, UsageReader
from podfit.answers.facts.workloads import WorkloadName, listed_controllers, topmost
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.client.vpa_kinds import CHECKPOINTS, VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.status import provided
from podfit.decide.autoscaling.tracked import PodKey
from podfit.vpa.history.replay import Blocks

T = TypeVar("T")
NOT_FOUND, FORBIDDEN = 404, 403


ReadBlocks: TypeAlias = Callable[[float, Collection[PodKey]], Awaitable[Blocks]]
"""What a history has at a time, in seconds since 1970, of these pods at least."""


class Reading(msgspec.Struct, frozen=True):
    """Usage at a time in seconds since 1970."""

    time: float
    usage: UsageFacts


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of pods that run. `now` in seconds since 1970; `unread` and `notes` are lines for people."""

    now: float
    pods: Mapping[WorkloadName, tuple[Pod, ...]]
    vpas: tuple[VerticalPodAutoscaler, ...] = ()
    checkpoints: tuple[VerticalPodAutoscalerCheckpoint, ...] = ()
    readings: tuple[Reading, ...] = ()
    history: Blocks | None = None
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class UsageWindow(msgspec.Struct, frozen=True):
    """For how long usage is watched, and how often it is read, in seconds. With 0 it is not."""

    seconds: float = 60.0
    interval: float = 15.0


class FactsReader:
    """Reads the facts of a namespace, or of all when it is empty; `labels` select pods, `wanted` a workload by kind and
    name. `tell` is told when it begins to watch, and how far it is."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        namespace: str,
        *,
        labels: str = "",
        wanted: tuple[str, str] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._labels, self._wanted = labels, wanted
        self._unread: list[str] = []
        self._notes: tuple[str, ...] = ()
        self._tell = tell

    async def read(self, watching: UsageWindow, history: ReadBlocks | None = None) -> Facts:
        """Raises ApiError, ConnectionError."""
        pods = await self._pods()
        vpas, checkpoints = await asyncio.gather(
            self._all("VPAs", self._list_vpas()), self._all("checkpoints", self._list_checkpoints())
        )
        now = self._clock.now().timestamp()
        living = {PodKey(pod.metadata.namespace, pod.metadata.name) for members in pods.values() for pod in members}
        past = await history(now, living) if history is not None else None
        known = [vpa for vpa in vpas if provided(vpa).container_recommendations]
        named = {
            f"{vpa.metadata.namespace}/{target.kind}/{target.name}" for vpa in known if (target := vpa.spec.target_ref)
        }
        new = [pod for workload, members in pods.items() if _text(workload) not in named for pod in members]
        readings = await self._watched(new, watching) if new and past is None else ()
        return Facts(
            now=self._clock.now().timestamp(),
            pods=pods,
            vpas=vpas,
            checkpoints=checkpoints,
            readings=readings,
            history=past,
            unread=tuple(self._unread),
            notes=self._notes,
        )

    async def _pods(self) -> dict[WorkloadName, tuple[Pod, ...]]:
        found = (await self._client.list(PODS, self._namespace, labels=self._labels)).items
        controllers = await listed_controllers(self._client, self._namespace, found, self._unread.append)
        by_workload: dict[WorkloadName, list[Pod]] = {}
        for pod in found:
            workload = topmost(pod, controllers)
            if pod.status.phase == "Running" and self._wanted in (None, (workload.kind, workload.name)):
                by_workload.setdefault(workload, []).append(pod)
        return {workload: tuple(pods) for workload, pods in sorted(by_workload.items())}

    async def _list_vpas(self) -> tuple[VerticalPodAutoscaler, ...]:
        return (await self._client.list(VPAS, self._namespace)).items

    async def _list_checkpoints(self) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
        return (await self._client.list(CHECKPOINTS, self._namespace)).items

    async def _all(self, what: str, listing: Awaitable[tuple[T, ...]]) -> tuple[T, ...]:
        """Nothing where there is no such kind, or no right to see it."""
        try:
            return await listing
        except ApiError as error:
            if error.code not in (NOT_FOUND, FORBIDDEN):
                raise
            if error.code == FORBIDDEN:
                self._unread.append(f"{what}: {error.message}")
            return ()

    async def _watched(self, pods: list[Pod], watching: UsageWindow) -> tuple[Reading, ...]:
        reader = UsageReader(self._client, self._clock)
        nodes = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in pods if pod.spec.node_name}
        began, found = self._clock.monotonic(), list[Reading]()
        if watching.seconds:
            self._say(f"usage is watched for {watching.seconds:.0f} s (--for) where no VPA recommends anything yet")
        for at in _moments(watching):
            await self._clock.sleep(max(began + at - self._clock.monotonic(), 0.0))
            usage = await reader.read(self._namespace, nodes)
            if not usage.source:
                self._notes = (*usage.notes, *((usage.fix,) if usage.fix else ()))
                break
            found.append(Reading(self._clock.now().timestamp(), usage))
            if at:
                self._say(f"usage: {at:.0f} of {watching.seconds:.0f} s")
        return tuple(found)

    def _say(self, text: str) -> None:
        if self._tell is not None:
            self._tell(text)


def _moments(watching: UsageWindow) -> Iterator[float]:
    """Seconds from the beginning at which usage is read; the last is the end."""
    if not watching.seconds:
        return
    at = 0.0
    while at < watching.seconds:
        yield at
        at += watching.interval
    yield watching.seconds


def _text(workload: WorkloadName) -> str:
    return f"{workload.namespace}/{workload.kind}/{workload.name}"

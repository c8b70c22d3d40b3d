"""The pod garbage collector (`decide.workload.lost_pods`), every 20 seconds as upstream's.

A node that is missing is looked for again after 40 seconds, at the server: its pods are failed before they go, so that
whoever owns them knows.
"""

from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import FAILED, has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.pod_control import NOT_FOUND
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.lost_pods import Lost, lost

COMPONENT = "pod-garbage-collector"
EVERY = 20.0
QUARANTINE = 40.0
"""Seconds for which a node has to be missing."""
ROUND = "round"


class PodGarbageCollector(Controller[str]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._pods, self._nodes = informers.of(Pod), informers.of(Node)
        self._missing: dict[str, float] = {}
        super().__init__(clock, self._pods, self._nodes)
        self.queue.add(ROUND)

    async def reconcile(self, key: str) -> float | None:
        pods, nodes = self._pods.list(), {node.metadata.name: node for node in self._nodes.list()}
        for candidate in lost(pods, nodes, await self._absent(pods, nodes)):
            await self._end(candidate)
        return EVERY

    async def _absent(self, pods: list[Pod], nodes: dict[str, Node]) -> list[str]:
        now = self._clock.monotonic()
        named = {pod.spec.node_name for pod in pods if pod.spec.node_name} - nodes.keys()
        self._missing = {name: self._missing.get(name, now) for name in named}
        due = [name for name, since in self._missing.items() if now - since >= QUARANTINE]
        return [name for name in due if await self._is_gone(name)]

    async def _is_gone(self, node: str) -> bool:
        try:
            await self._client.get(Node, node)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return True
            raise
        return False

    async def _end(self, candidate: Lost) -> None:
        meta = candidate.pod.metadata
        try:
            if not has_ended(candidate.pod):
                await self._fail(candidate)
            await self._client.delete(Pod, meta.name, meta.namespace, grace=0, uid=meta.uid)
        except ApiError as error:
            if error.code not in (NOT_FOUND, 409):
                raise

    async def _fail(self, candidate: Lost) -> None:
        meta = candidate.pod.metadata
        status: dict[str, Any] = {"phase": FAILED}
        if candidate.message:
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": candidate.message,
                "lastTransitionTime": format_time(self._clock.now()),
                "observedGeneration": meta.generation,
            }
            status["conditions"] = [condition]
        patch = {"metadata": {"uid": meta.uid}, "status": status}
        await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="status")

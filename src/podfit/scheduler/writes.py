"""The scheduler's writes: bindings, conditions of pods that wait, and evictions."""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.placement.preempt import PREEMPTED, Eviction
from podfit.scheduler.names import NAME

GONE = (404, 409)  # the pod left, or another took its name


class Writes:
    def __init__(self, client: Client, recorder: EventRecorder, clock: Clock, *, name: str = NAME) -> None:
        self._client, self._name = client, name
        self._recorder = recorder
        self._clock = clock

    async def bind(self, pod: Pod, node: str) -> None:
        """ApiError, ConnectionError: the pod is not bound, as far as we know."""
        namespace, name = pod.metadata.namespace, pod.metadata.name
        await self._client.bind(namespace, name, node, uid=pod.metadata.uid)
        text = f"Successfully assigned {namespace}/{name} to {node}"
        self._recorder.event(pod, "Normal", "Scheduled", text, action="Binding")

    async def explain(self, pod: Pod, message: str, *, nominated: str) -> None:
        """Tell why the pod waits and put it on the pod, unless it stands there already."""
        self._recorder.event(pod, "Warning", "FailedScheduling", message, action="Scheduling")
        if _said(pod, message) and pod.status.nominated_node_name == nominated:
            return
        status: dict[str, Any] = {
            "conditions": [self._condition(pod, "PodScheduled", "False", "Unschedulable", message)]
        }
        if pod.status.nominated_node_name != nominated:
            status["nominatedNodeName"] = nominated or None
        await self._patch_status(pod, status)

    async def withdraw(self, pods: Iterable[Pod]) -> None:
        """The room that these pods were nominated for went to a pod of higher priority."""
        for pod in pods:
            await self._patch_status(pod, {"nominatedNodeName": None})

    async def evict(self, subject: Pod, eviction: Eviction) -> None:
        """End every victim, after saying on it why."""
        text = f"{self._name}: preempting to accommodate a higher priority pod"
        for victim in (victim.pod for victim in eviction.victims):
            meta = victim.metadata
            if meta.deletion_timestamp is None:
                condition = self._condition(victim, "DisruptionTarget", "True", PREEMPTED, text)
                try:
                    await self._patch_status(victim, {"conditions": [condition]})
                    await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
                except ApiError as error:
                    if error.code not in GONE:
                        raise
                    continue
            told = f"Preempted by pod {subject.metadata.uid} on node {eviction.node}"
            self._recorder.event(victim, "Normal", "Preempted", told, action="Preempting")

    async def _patch_status(self, pod: Pod, status: dict[str, Any]) -> None:
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid}, "status": status}
        await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="status")

    def _condition(self, pod: Pod, type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
            "lastTransitionTime": format_time(self._clock.now()),
        }


def _said(pod: Pod, message: str) -> bool:
    generation = pod.metadata.generation
    return any(
        condition.type == "PodScheduled"
        and condition.message == message
        and condition.observed_generation == generation
        for condition in pod.status.conditions
    )

"""A node by its own machine, on a clock: what of resizes is granted, what waits, and what the API is told of it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from podfit.answers.node.virtual_time import VirtualNode
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.codec import convert
from podfit.core.features import DEFAULT_GATES
from podfit.decide.node import events as on
from podfit.decide.node.effects import Effect
from podfit.decide.node.machine import step
from podfit.decide.node.pending_resizes import RETRY_PERIOD
from podfit.decide.node.state import NodeState
from podfit.decide.resize import by_status


class NodeMachine(VirtualNode):
    """What it grants is actuated at once; `now` is asked for the times of conditions."""

    def __init__(self, node: Node, now: Callable[[], datetime]) -> None:
        super().__init__(NodeState(view=by_status.node_view(node, DEFAULT_GATES), sources_ready=True), None)
        self._now, self._tried = now, now()

    async def take(self, event: on.Event) -> tuple[Effect, ...]:
        self.state, effects = step(self.state, event, now=self._now())
        return effects

    def add(self, pod: Pod) -> None:
        """One that the scheduler has given to the node, and whose container runs."""
        self.happens(on.PodsAdded((pod,)))

    def ask(self, pod: Pod) -> None:
        self.happens(on.PodsUpdated((pod,)))

    def remove(self, uid: str) -> None:
        self.happens(on.PodsRemoved((uid,)))

    def retry(self) -> None:
        """What waits is tried again every three minutes, whatever happens."""
        if self.state.queue and (self._now() - self._tried).total_seconds() >= RETRY_PERIOD:
            self._tried = self._now()
            self.happens(on.Retry("periodic_retry"))

    def reported(self, pod: Pod) -> Pod:
        """With the sizes and the conditions of its resize that the node tells by now."""
        uid = pod.metadata.uid
        allocated = self.state.allocated_pod(self.state.pods[uid].pod)
        kinds = ("PodResizePending", "PodResizeInProgress")
        conditions = tuple(one for one in pod.status.conditions if one.type not in kinds)
        sizes = {container.name: container.resources for container in allocated.spec.containers}
        statuses = tuple(
            replace(status, resources=sizes[status.name], allocated_resources=sizes[status.name].requests)
            for status in pod.status.container_statuses
        )
        conditions = (*conditions, *self.state.conditions.of(uid))
        if statuses == pod.status.container_statuses and conditions == pod.status.conditions:
            return pod
        return replace(pod, status=replace(pod.status, conditions=conditions, container_statuses=statuses))


def running(pod: Pod, since: str, *, ready: bool) -> PodStatus:
    """Of a pod that has begun at its size, and is `ready` or not."""
    conditions: list[dict[str, Any]] = [{"type": "PodScheduled", "status": "True"}]
    conditions += [{"type": kind, "status": str(ready), "lastTransitionTime": since} for kind in _READY]
    made = convert({"phase": "Running", "startTime": since, "conditions": conditions}, PodStatus)
    return replace(made, container_statuses=tuple(_statuses(pod)), qos_class="Burstable")


def _statuses(pod: Pod) -> Iterable[Any]:
    for container in pod.spec.containers:
        told = {"name": container.name, "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        [status] = convert({"containerStatuses": [{**told, "state": {"running": {}}}]}, PodStatus).container_statuses
        yield replace(status, resources=container.resources, allocated_resources=container.resources.requests)


_READY = ("Ready", "ContainersReady")

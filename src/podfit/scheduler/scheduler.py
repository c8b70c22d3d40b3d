"""The scheduler: watches pods and nodes, asks `decide.place`, binds.

Informer handlers only update the cache and the queue; one loop takes pods from the queue in order. Bindings run beside
it, since the cache already counts the pod where it will go.
"""

import asyncio
import logging

from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.times import format_time
from podfit.decide.place import Placed, Unschedulable, place
from podfit.decide.requests import pod_requests
from podfit.decide.requeue import NodeChanged, PodGone, PodShrank, shrunk
from podfit.scheduler.cache import TERMINAL, ClusterCache, Key
from podfit.scheduler.queue import SchedulingQueue

log = logging.getLogger(__name__)
NAME = "default-scheduler"
SWEEP_EVERY = 30.0  # seconds


class Scheduler:
    def __init__(self, client: Client, *, recorder: EventRecorder, clock: Clock, gates: FeatureGates) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._gates = gates
        self._cache = ClusterCache(gates)
        self._queue = SchedulingQueue(clock)
        self._pods = Informer(client, Pod, clock=clock)
        self._nodes = Informer(client, Node, clock=clock)
        self._pods.add_handler(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)
        self._nodes.add_handler(add=self._node_set, update=self._node_updated, delete=self._node_gone)

    async def run(self) -> None:
        """Place pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._nodes.run())
            await asyncio.gather(self._pods.synced.wait(), self._nodes.synced.wait())
            group.create_task(self._sweep())
            await self._schedule(group)

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_EVERY)
            self._queue.sweep()

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        while True:
            key, pod = await self._queue.pop()
            verdict = place(pod, pod_requests(pod, gates=self._gates), self._cache.views())
            if isinstance(verdict, Placed):
                self._cache.count(pod, verdict.node)
                group.create_task(self._bind(key, pod, verdict.node))
            else:
                self._queue.park(key, verdict)
                group.create_task(self._explain(pod, verdict))

    async def _bind(self, key: Key, pod: Pod, node: str) -> None:
        namespace, name = key
        try:
            await self._client.bind(namespace, name, node, uid=pod.metadata.uid)
        except (ApiError, ConnectionError) as error:
            self._cache.forget(key)
            log.warning("binding failed pod=%s/%s node=%s error=%s", namespace, name, node, error)
            self._queue.retry_later(key)
            return
        self._recorder.event(pod, "Normal", "Scheduled", f"Successfully assigned {namespace}/{name} to {node}")

    async def _explain(self, pod: Pod, verdict: Unschedulable) -> None:
        """Put the reason on the pod, unless it stands there already."""
        self._recorder.event(pod, "Warning", "FailedScheduling", verdict.message)
        if _said(pod, verdict.message):
            return
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": verdict.message,
            "observedGeneration": pod.metadata.generation, "lastProbeTime": None,
            "lastTransitionTime": format_time(self._clock.now()),
        }  # fmt: skip
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="status")
        except (ApiError, ConnectionError) as error:
            log.info("reason not written pod=%s/%s error=%s", meta.namespace, meta.name, error)

    def _pod_added(self, pod: Pod) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        if pod.spec.node_name:
            self._assigned(key, pod)
        elif _ours(pod):
            self._queue.add(key, pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        key = (new.metadata.namespace, new.metadata.name)
        if new.spec.node_name:
            self._assigned(key, new)
        elif not _ours(new):
            self._queue.remove(key)
        elif new.spec != old.spec or new.metadata.uid != old.metadata.uid:
            self._queue.add(key, new)
        else:
            self._queue.refresh(key, new)

    def _assigned(self, key: Key, pod: Pod) -> None:
        self._queue.remove(key)
        if pod.status.phase in TERMINAL:
            self._leave(key)
            return
        counted = self._cache.counts(key)
        before, after = self._cache.count(pod, pod.spec.node_name)
        if counted and (less := shrunk(before, after)):
            self._queue.changed(PodShrank(less))

    def _leave(self, key: Key) -> None:
        if self._cache.counts(key):
            self._cache.forget(key)
            self._queue.changed(PodGone())

    def _pod_deleted(self, pod: Pod) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        self._queue.remove(key)
        self._leave(key)

    def _node_set(self, node: Node) -> None:
        self._cache.set_node(node)
        self._queue.changed(NodeChanged())

    def _node_updated(self, old: Node, new: Node) -> None:
        self._cache.set_node(new)
        if _matters(old) != _matters(new):
            self._queue.changed(NodeChanged())

    def _node_gone(self, node: Node) -> None:
        self._cache.remove_node(node.metadata.name)


def _ours(pod: Pod) -> bool:
    """A pod that waits for this scheduler to place it."""
    if pod.status.phase in TERMINAL or pod.metadata.deletion_timestamp or pod.spec.scheduling_gates:
        return False
    return pod.spec.scheduler_name in ("", NAME)


def _said(pod: Pod, message: str) -> bool:
    generation = pod.metadata.generation
    return any(
        each.type == "PodScheduled" and each.message == message and each.observed_generation == generation
        for each in pod.status.conditions
    )


def _matters(node: Node) -> tuple[object, ...]:
    """What of a node decides whether pods fit it."""
    return node.metadata.labels, node.spec, node.status.allocatable, node.status.declared_features

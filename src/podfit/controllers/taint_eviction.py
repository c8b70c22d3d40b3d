"""The taint eviction controller: deletes pods from nodes with NoExecute taints that they do not tolerate."""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import BY_NODE, Controller, Key, by_node, key_of
from podfit.controllers.pod_control import NORMAL, NOT_FOUND
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.nodes.toleration_time import until

COMPONENT = "taint-eviction-controller"
WORKERS = 8


class TaintEvictionController(Controller[Key]):
    """Keys are namespace and name of a pod."""

    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock
        self._nodes, self._pods = informers.of(Node), informers.of(Pod)
        self._pods.add_index(BY_NODE, by_node)
        self._waiting: set[Key] = set()  # pods that are to go later
        super().__init__(clock, self._nodes, self._pods, workers=WORKERS)
        self._nodes.add_handler(add=self._tainted, update=self._changed)
        self._pods.add_handler(add=self._placed, update=self._moved, delete=self._gone)

    def _gone(self, pod: Pod) -> None:
        self._waiting.discard(key_of(pod))

    def _changed(self, old: Node, new: Node) -> None:
        if old.spec.taints != new.spec.taints:
            self._tainted(new)
            for pod in self._pods.by_index(BY_NODE, new.metadata.name):
                if key_of(pod) in self._waiting:
                    self.queue.add(key_of(pod))

    def _tainted(self, node: Node) -> None:
        if node.spec.taints:
            for pod in self._pods.by_index(BY_NODE, node.metadata.name):
                self.queue.add(key_of(pod))

    def _moved(self, old: Pod, new: Pod) -> None:
        if (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations):
            self._placed(new)

    def _placed(self, pod: Pod) -> None:
        node = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        if node is not None and node.spec.taints:
            self.queue.add(key_of(pod))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        pod = self._pods.get(name, namespace)
        node = self._nodes.get(pod.spec.node_name) if pod is not None and pod.spec.node_name else None
        if pod is None or node is None or pod.metadata.deletion_timestamp:
            return None
        now = self._clock.now()
        when = until(pod, node.spec.taints, now)
        if when is not None and when > now:
            self._waiting.add(key)
            return (when - now).total_seconds()
        if when is None:
            if key in self._waiting:
                text = f"Cancelling deletion of Pod {namespace}/{name}"
                self._recorder.event(pod, NORMAL, "TaintManagerEviction", text)
            self._waiting.discard(key)
            return None
        self._waiting.discard(key)
        await self._evict(pod)
        return None

    async def _evict(self, pod: Pod) -> None:
        meta = pod.metadata
        self._recorder.event(
            pod, NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {meta.namespace}/{meta.name}"
        )
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": format_time(self._clock.now()),
            "observedGeneration": meta.generation,
        }
        patch = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod, meta.name, meta.namespace, patch, subresource="status")
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

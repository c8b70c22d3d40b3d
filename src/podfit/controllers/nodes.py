"""The node lifecycle controller: marks silent nodes unknown, and taints nodes by their conditions.

    Lease or status renewed ─▶ seen; nothing for 50 s ─▶ conditions Unknown ─▶ taints ─▶ its pods are not ready
                                                                       └─ NoExecute: one node in ten seconds

A sign of life is counted from when it came here, so nobody's clock of the day matters. Pods leave by another controller
(`taint_eviction`), which sees the taints.
"""

from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.references import ObjectReference
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import BY_NODE, Controller, by_node
from podfit.controllers.pod_control import NORMAL, NOT_FOUND
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.nodes import health

COMPONENT = "node-controller"
LEASES = "kube-node-lease"


class NodeLifecycleController(Controller[str]):
    """Keys are names of nodes."""

    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock
        self._nodes, self._pods = informers.of(Node), informers.of(Pod)
        self._leases = informers.of(Lease)
        self._heard: dict[str, float] = {}
        self._sent_away: dict[tuple[str, str], float] = {}  # by zone: when the last node's pods were
        self._began = clock.monotonic()
        self._pods.add_index(BY_NODE, by_node)
        super().__init__(clock, self._nodes, self._pods, self._leases)
        self._nodes.add_handler(add=self._added, update=self._changed, delete=self._gone)
        self._leases.add_handler(add=self._renewed, update=lambda _, new: self._renewed(new))

    def _added(self, node: Node) -> None:
        name = node.metadata.name
        self._tell(node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        self.queue.add(name)

    def _changed(self, old: Node, new: Node) -> None:
        beats = [[condition.last_heartbeat_time for condition in node.status.conditions] for node in (old, new)]
        if beats[0] != beats[1]:
            self._hear(new.metadata.name)
        if health.ready(old) == "True" and health.ready(new) != "True":
            self._tell(new, "NodeNotReady", f"Node {new.metadata.name} status is now: NodeNotReady")
        self.queue.add(new.metadata.name)

    def _gone(self, node: Node) -> None:
        name = node.metadata.name
        self._tell(node, "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
        self._heard.pop(name, None)

    def _tell(self, node: Node, reason: str, text: str) -> None:
        """About the node, whatever its version."""
        meta = node.metadata
        about = ObjectReference(kind=node.kind, api_version=node.api_version, name=meta.name, uid=meta.uid)
        self._recorder.event(about, NORMAL, reason, text)

    def _renewed(self, lease: Lease) -> None:
        if lease.metadata.namespace == LEASES:
            self._hear(lease.metadata.name)

    def _hear(self, name: str) -> None:
        self._heard[name] = self._clock.monotonic()

    async def reconcile(self, key: str) -> float | None:
        node = self._nodes.get(key)
        if node is None:
            return None
        left = self._left(node)
        try:
            if left <= 0 and health.ready(node) != "Unknown":
                node = await self._lose(node)
            waits = await self._taint(node)
            if health.ready(node) in ("False", "Unknown"):
                await self._unready_pods(node)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return None
        times = [wait for wait in (left, waits) if wait is not None and wait > 0]
        return min(times, default=None)

    def _left(self, node: Node) -> float:
        """Seconds until it counts as lost, from its last sign of life."""
        now, heard = self._clock.monotonic(), self._heard.get(node.metadata.name)
        if heard is None:
            heard = self._heard[node.metadata.name] = now + health.STARTUP_GRACE - health.GRACE
        return heard + health.GRACE - now

    async def _lose(self, node: Node) -> Node:
        conditions = health.lost(node, format_time(self._clock.now()))
        lost = replace(node, status=replace(node.status, conditions=conditions))
        return await self._client.update_status(lost)

    async def _taint(self, node: Node) -> float | None:
        """Seconds after which its pods may be sent away, where that has to wait."""
        zone, now = health.zone_of(node), self._clock.monotonic()
        last = self._sent_away.get(zone, self._began - health.GRACE)
        wanted = health.tainting(node, self._nodes.list(), last=last, now=now, stamp=format_time(self._clock.now()))
        if wanted.evicts:
            self._sent_away[zone] = now
        if wanted.taints != node.spec.taints:
            await self._client.update(replace(node, spec=replace(node.spec, taints=wanted.taints)))
        return wanted.again

    async def _unready_pods(self, node: Node) -> None:
        """Whoever routes to its pods must not go on."""
        for pod in self._pods.by_index(BY_NODE, node.metadata.name):
            changed = health.unready(pod, format_time(self._clock.now()))
            if changed is None:
                continue
            try:
                await self._client.update_status(changed)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
            self._recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

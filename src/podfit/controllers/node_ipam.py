"""The node IPAM controller: gives each node a range of addresses for its pods (`spec.podCIDR`)."""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.references import ObjectReference
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.pod_control import NORMAL, NOT_FOUND
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.nodes.ipam import NodeRanges

COMPONENT = "cidrAllocator"


class NodeIpamController(Controller[str]):
    """Keys are names of nodes."""

    def __init__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock, ranges: NodeRanges
    ) -> None:
        self._client, self._recorder, self._ranges = client, recorder, ranges
        self._nodes = informers.of(Node)
        self._given: dict[str, str] = {}  # by node, until its copy shows it
        super().__init__(clock, self._nodes)
        self._nodes.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._gone)

    def _seen(self, node: Node) -> None:
        if node.spec.pod_cidr:
            self._given.pop(node.metadata.name, None)
        else:
            self.queue.add(node.metadata.name)

    def _gone(self, node: Node) -> None:
        """Its range is free, also for those that had none left."""
        self._given.pop(node.metadata.name, None)
        for other in self._nodes.list():
            self._seen(other)

    async def reconcile(self, key: str) -> float | None:
        node = self._nodes.get(key)
        if node is None or node.spec.pod_cidr:
            return None
        known = (cidr for other in self._nodes.list() for cidr in (other.spec.pod_cidr, *other.spec.pod_cidrs) if cidr)
        others = (cidr for name, cidr in self._given.items() if name != key)
        free = self._given.get(key) or self._ranges.free((*known, *others))
        if not free:
            about = ObjectReference(kind=node.kind, api_version=node.api_version, name=key, uid=node.metadata.uid)
            self._recorder.event(about, NORMAL, "CIDRNotAvailable", f"Node {key} status is now: CIDRNotAvailable")
            return None
        self._given[key] = free
        try:
            await self._client.patch(Node, key, "", {"spec": {"podCIDR": free, "podCIDRs": [free]}})
        except ApiError as error:
            self._given.pop(key, None)
            if error.code != NOT_FOUND:
                raise
        return None

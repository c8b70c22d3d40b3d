"""The endpoint slice controller: a service's pod addresses, a hundred in each slice."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, EndpointSlice
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Key
from podfit.controllers.pod_control import NOT_FOUND, WARNING, namespace_ends
from podfit.controllers.service_keys import ServiceController
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.services.packing import MANAGED, MOST
from podfit.decide.workload.services.pods import with_trigger
from podfit.decide.workload.services.slices import MANAGER, changes
from podfit.net.loop_turns import beside

COMPONENT = "endpoint-slice-controller"
RETRY = 1.0
"""Seconds after a first failure, as upstream's."""
_BY_SERVICE = "service"


def _by_service(slice_: EndpointSlice) -> Iterable[str]:
    labels = slice_.metadata.labels
    if labels.get(MANAGED) != MANAGER or SERVICE_NAME_LABEL not in labels:
        return ()
    return (f"{slice_.metadata.namespace}/{labels[SERVICE_NAME_LABEL]}",)


class EndpointSliceController(ServiceController):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder = client, recorder
        self._slices, self._nodes = informers.of(EndpointSlice), informers.of(Node)
        self._slices.add_index(_BY_SERVICE, _by_service)
        super().__init__(informers, self._slices, self._nodes, clock=clock, retry=RETRY)
        self._slices.add_handler(update=lambda _, new: self._seen(new), delete=self._seen)
        self._nodes.add_handler(add=self._node_seen)

    def _seen(self, slice_: EndpointSlice) -> None:
        for where in _by_service(slice_):
            namespace, _, name = where.partition("/")
            self.queue.add((namespace, name))

    def _node_seen(self, node: Node) -> None:
        """Pods on a node that was not known are left out of slices."""
        for pod in self._pods.list():
            if pod.spec.node_name == node.metadata.name:
                self._pod_seen(pod)

    async def _write(self, service: Service, pods: list[Pod], when: str) -> None:
        if service.metadata.deletion_timestamp:
            return
        meta = service.metadata
        known = self._slices.by_index(_BY_SERVICE, f"{meta.namespace}/{meta.name}")
        names = {pod.spec.node_name for pod in pods}
        nodes = {name: node for name in names if (node := self._nodes.get(name)) is not None}
        known = sorted(known, key=lambda endpoint_slice: endpoint_slice.metadata.name)
        made = await beside(len(pods) + MOST * len(known), changes, service, pods, nodes, known)
        try:
            for endpoint_slice in made.create:
                await self._client.create(_stamped(endpoint_slice, when))
            for endpoint_slice in made.update:
                await self._client.update(_stamped(endpoint_slice, when))
            for endpoint_slice in made.delete:
                await self._delete(endpoint_slice)
        except ApiError as error:
            if namespace_ends(error):
                return
            if error.code != 409:
                where = f"{meta.namespace}/{meta.name}"
                text = f"Error updating Endpoint Slices for Service {where}: {error.message}"
                self._recorder.event(service, WARNING, "FailedToUpdateEndpointSlices", text)
            raise

    async def _delete(self, slice_: EndpointSlice) -> None:
        meta = slice_.metadata
        try:
            await self._client.delete(EndpointSlice, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

    async def _gone(self, key: Key) -> None:
        """The garbage collector takes its slices."""


def _stamped(slice_: EndpointSlice, when: str) -> EndpointSlice:
    meta = slice_.metadata
    return replace(slice_, metadata=replace(meta, annotations=with_trigger(meta.annotations, when)))

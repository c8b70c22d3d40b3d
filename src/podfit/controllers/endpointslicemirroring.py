"""The endpoint slice mirroring controller: slices of Endpoints that somebody wrote for a service without a selector.

Endpoints, their service or the slices change ─▶ decide.workload.services.mirrored ─▶ slices
"""

from collections.abc import Iterable

from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, EndpointSlice
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.pod_control import NOT_FOUND, WARNING, namespace_ends
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.services.mirrored import MANAGER, changes, is_mirrored, passed_over
from podfit.decide.workload.services.mirrored import MOST as MOST_ADDRESSES
from podfit.decide.workload.services.packing import MANAGED, MOST, Changes
from podfit.net.loop_turns import beside

COMPONENT = "endpoint-slice-mirroring-controller"
WORKERS = 5
RETRY = 1.0
"""Seconds after a first failure, as upstream's."""
_BY_ENDPOINTS = "mirrored"


def _by_endpoints(slice_: EndpointSlice) -> Iterable[str]:
    labels = slice_.metadata.labels
    if labels.get(MANAGED) != MANAGER or SERVICE_NAME_LABEL not in labels:
        return ()
    return (f"{slice_.metadata.namespace}/{labels[SERVICE_NAME_LABEL]}",)


class EndpointSliceMirroringController(Controller[Key]):
    """Keys are namespace and name of an Endpoints, which are its service's, too."""

    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder = client, recorder
        self._endpoints, self._services = informers.of(Endpoints), informers.of(Service)
        self._slices = informers.of(EndpointSlice)
        self._slices.add_index(_BY_ENDPOINTS, _by_endpoints)
        super().__init__(clock, self._endpoints, self._services, self._slices, workers=WORKERS, retry=RETRY)
        for informer in (self._endpoints, self._services):
            informer.add_handler(add=self._named, update=lambda _, new: self._named(new), delete=self._named)
        self._slices.add_handler(update=lambda _, new: self._seen(new), delete=self._seen)

    def _named(self, obj: Endpoints | Service) -> None:
        self.queue.add(key_of(obj))

    def _seen(self, slice_: EndpointSlice) -> None:
        for where in _by_endpoints(slice_):
            namespace, _, name = where.partition("/")
            self.queue.add((namespace, name))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        known = sorted(self._slices.by_index(_BY_ENDPOINTS, f"{namespace}/{name}"), key=key_of)
        endpoints = self._endpoints.get(name, namespace)
        if endpoints is not None and is_mirrored(self._services.get(name, namespace), endpoints):
            size = sum(len(subset.addresses) + len(subset.not_ready_addresses) for subset in endpoints.subsets)
            made = await beside(size + MOST * len(known), changes, endpoints, known)
            self._tell(endpoints)
        else:
            made = Changes(delete=known)
        try:
            for endpoint_slice in made.create:
                await self._client.create(endpoint_slice)
            for endpoint_slice in made.update:
                await self._client.update(endpoint_slice)
        except ApiError as error:
            if not namespace_ends(error):
                raise
        for endpoint_slice in made.delete:
            await self._delete(endpoint_slice)
        return None

    def _tell(self, endpoints: Endpoints) -> None:
        if skipped := passed_over(endpoints):
            text = (
                f"A max of {MOST_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped"
            )
            self._recorder.event(endpoints, WARNING, "TooManyAddressesToMirror", text)

    async def _delete(self, slice_: EndpointSlice) -> None:
        meta = slice_.metadata
        try:
            await self._client.delete(EndpointSlice, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

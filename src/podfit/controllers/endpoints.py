"""The endpoints controller: a service's pod addresses in one object of its name."""

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Key, key_of
from podfit.controllers.pod_control import NOT_FOUND, WARNING, namespace_ends
from podfit.controllers.service_keys import ServiceController
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.services.endpoints import MANAGED, MANAGER, wanted
from podfit.net.loop_turns import beside

COMPONENT = "endpoint-controller"


class EndpointsController(ServiceController):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder = client, recorder
        self._endpoints = informers.of(Endpoints)
        super().__init__(informers, self._endpoints, clock=clock)
        self._endpoints.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._seen)

    def _seen(self, endpoints: Endpoints) -> None:
        if endpoints.metadata.labels.get(MANAGED) == MANAGER:
            self.queue.add(key_of(endpoints))

    async def _write(self, service: Service, pods: list[Pod], when: str) -> None:
        known = self._endpoints.get(service.metadata.name, service.metadata.namespace)
        made = await beside(len(pods), wanted, service, pods, known, when)
        if made is None:
            return
        reason = "FailedToCreateEndpoint" if known is None else "FailedToUpdateEndpoint"
        try:
            await (self._client.create(made) if known is None else self._client.update(made))
        except ApiError as error:
            if namespace_ends(error):
                return
            if error.code != 409:
                where = f"{service.metadata.namespace}/{service.metadata.name}"
                verb = "create" if known is None else "update"
                text = f"Failed to {verb} endpoint {where}: {error.message}"
                self._recorder.event(service, WARNING, reason, text)
            raise

    async def _gone(self, key: Key) -> None:
        namespace, name = key
        known = self._endpoints.get(name, namespace)
        if known is None or known.metadata.labels.get(MANAGED) != MANAGER:
            return
        try:
            await self._client.delete(Endpoints, name, namespace, uid=known.metadata.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise

"""`ClusterNames`: the zone, kept by informers of Services, their endpoints and namespaces."""

import asyncio
import logging

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, EndpointSlice
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.dns.records import service_records, slice_records
from podfit.decide.dns.zone import Zone
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

Key = tuple[str, str]
BY_SERVICE = "service"
BUSY_SECONDS = 0.005
"""Then others of this process have their turn."""


class ClusterNames:
    """`run` until cancelled; `ready` is set when the zone has all that there was at first."""

    def __init__(self, client: Client, zone: Zone, clock: Clock) -> None:
        self.zone, self._clock = zone, clock
        self.services = Informer(client, Service, clock=clock)
        self.slices = Informer(client, EndpointSlice, clock=clock, indexes={BY_SERVICE: of_service})
        self.namespaces = Informer(client, Namespace, clock=clock)
        self.ready = asyncio.Event()
        self._news = asyncio.Event()
        self._changed: dict[tuple[Key, str], None] = {}
        self._follow()

    def _follow(self) -> None:
        def updated(old: Service, new: Service) -> None:
            if old.spec != new.spec:
                self._service(new)

        def of_another(old: EndpointSlice, new: EndpointSlice) -> None:
            self._slice(old)
            self._slice(new)

        self.services.add_handler(add=self._service, update=updated, delete=self._service)
        self.slices.add_handler(add=self._slice, update=of_another, delete=self._slice)
        self.namespaces.add_handler(
            add=lambda space: self.zone.set_namespace(space.metadata.name, there=True),
            delete=lambda space: self.zone.set_namespace(space.metadata.name, there=False),
        )

    def _service(self, service: Service) -> None:
        key = service.metadata.namespace, service.metadata.name
        self._touch(key, "")
        for part in self.slices.by_index(BY_SERVICE, key):
            self._touch(key, part.metadata.name)

    def _slice(self, part: EndpointSlice) -> None:
        for key in of_service(part):
            self._touch(key, part.metadata.name)

    def _touch(self, key: Key, part: str) -> None:
        self._changed[key, part] = None
        self._news.set()

    async def run(self) -> None:
        following = Supervisor("names")
        for informer in (self.services, self.slices, self.namespaces):
            following.run(informer.run())
        following.run(self._keep())
        try:
            await following.failure()
        finally:
            await following.stop()

    async def _keep(self) -> None:
        for informer in (self.services, self.slices, self.namespaces):
            await informer.synced.wait()
        while True:
            began = self._clock.monotonic()
            while self._changed:
                key, part = next(iter(self._changed))
                del self._changed[key, part]
                self._judge(key, part)
                if self._clock.monotonic() - began > BUSY_SECONDS:
                    await asyncio.sleep(0)
                    began = self._clock.monotonic()
            self.ready.set()
            await self._news.wait()
            self._news.clear()

    def _judge(self, key: Key, name: str) -> None:
        namespace, service_name = key
        service = self.services.get(service_name, namespace)
        if not name:
            records = service_records(service, self.zone.domain) if service is not None else ()
        else:
            part = self.slices.get(name, namespace)
            ours = part is not None and key in of_service(part)
            records = slice_records(service, part, self.zone.domain) if service is not None and part and ours else ()
        self.zone.put((*key, name), records)


def of_service(found: EndpointSlice) -> tuple[Key, ...]:
    name = found.metadata.labels.get(SERVICE_NAME_LABEL)
    return ((found.metadata.namespace, name),) if name else ()

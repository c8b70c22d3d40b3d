"""`OwnService`: the Service `kube-dns` leads to this server, as long as it is nobody else's."""

import asyncio
import logging

from podfit.api.discovery.v1.types import EndpointSlice
from podfit.client.rest import Client
from podfit.core.clock import Clock, Timer
from podfit.core.errors import ApiError
from podfit.decide.dns.own import NAME, NAMESPACE, DnsPlace, slice_name, wanted
from podfit.dns.names import ClusterNames

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


class OwnService:
    """`run` until cancelled. `settled` is set when what there is was looked at once; `others` then says whose Service
    it is, or why it cannot be made, and is empty when it is ours.
    """

    def __init__(self, client: Client, names: ClusterNames, place: DnsPlace, clock: Clock) -> None:
        self._client, self._names, self._place, self._clock = client, names, place, clock
        self.others = ""
        self.settled = asyncio.Event()
        self._news = asyncio.Event()
        names.services.add_handler(add=self._touch, update=lambda _, new: self._touch(new), delete=self._touch)
        names.slices.add_handler(add=self._touch, update=lambda _, new: self._touch(new), delete=self._touch)

    def _touch(self, _: object) -> None:
        self._news.set()

    async def run(self) -> None:
        await self._names.ready.wait()
        while True:
            self._news.clear()
            timer: Timer | None = None
            try:
                said = await self._keep()
            except (ApiError, ConnectionError) as error:
                said = f"Service {NAMESPACE}/{NAME} does not lead here: {error}"
                timer = self._clock.call_later(RETRY_SECONDS, self._news.set)
            if said and said != self.others:
                log.warning("%s", said)
            self.others = said
            self.settled.set()
            try:
                await self._news.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    async def _keep(self) -> str:
        """Raises ApiError, ConnectionError."""
        service = self._names.services.get(NAME, NAMESPACE)
        part = self._names.slices.get(slice_name(self._place), NAMESPACE)
        what = wanted(service, part, self._place)
        if what.delete is not None:
            await self._client.delete(EndpointSlice, what.delete.metadata.name, NAMESPACE)
        for obj in what.create:
            await self._client.create(obj)
        for obj in what.update:
            await self._client.update(obj)
        self._names.zone.set_server(service.spec.cluster_ip if service is not None else self._place.service)
        return what.others

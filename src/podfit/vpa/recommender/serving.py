"""The recommender's API beside any cluster: served over HTTPS, registered with the API server, which asks for others.

Its certificate is of an authority of its own, which goes into the APIService: the API server checks that it speaks to
this process, and this process that it is asked by the API server, or by somebody who may. What is missing for that (the
rights, an API server) keeps nobody from being recommended anything: it is tried again.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, TypeVar

import msgspec

from podfit.api.apiregistration.v1.types import APIService, APIServiceSpec, ServiceReference
from podfit.api.core.v1.services.types import Service, ServicePort, ServiceSpec
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.recommender.v1alpha1 import GROUP, VERSION
from podfit.client.authorized_api import AggregatedApi, AuthorizedApi, register
from podfit.client.delegated import DelegatedAccess
from podfit.client.front_proxy import FrontProxyAccess, believed
from podfit.client.rest import JSON_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.options import PORT, Bound, Option
from podfit.net.http_server import HttpsServer
from podfit.net.tls import server_context, show
from podfit.net.wire import Handler, Request
from podfit.vpa.certificates import LOOK_SECONDS, Certificates, Shown
from podfit.vpa.recommender.pod_recommendations import BODY_LIMIT

log = logging.getLogger(__name__)
T = TypeVar("T")
NAME, NAMESPACE = "vpa-recommender", "kube-system"
SERVICE_PORT = 443
API_SERVICE = f"{VERSION}.{GROUP}"
OFF = -1
AGAIN = 30.0
"""Seconds."""


class ApiOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`register_as` is the address by which the API server reaches this machine; empty in a cluster, where a service
    with a selector leads to it.
    """

    port: Annotated[
        int,
        Option(
            "Serve podrecommendations there, to the API server; 0 takes a free port.",
            flag="api-port",
            usual="not served",
            bound=Bound("-1, or a port", lambda value: value == OFF or PORT.holds(value)),
        ),
    ] = OFF
    address: Annotated[str, Option("Where that is served.", flag="api-bind-address")] = "127.0.0.1"
    register_as: Annotated[
        str,
        Option(
            "Make its APIService and service, leading to this address; as an administrator.",
            flag="register-api-as",
            usual="they are there",
        ),
    ] = ""

    @property
    def served(self) -> bool:
        return self.port != OFF


class RecommendationsServer:
    def __init__(
        self, api: Handler, client: Client, clock: Clock, options: ApiOptions, certificates: Certificates
    ) -> None:
        self._api, self._client, self._clock = api, client, clock
        self._options, self._certificates = options, certificates
        self.port = 0
        """Where it listens, once it does."""

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError for a port that is taken, and for certificates that cannot be used."""
        shown = await asyncio.to_thread(self._certificates)
        context = server_context(None)
        show(context, shown.certificate, shown.key)
        server = await self._tried_again(lambda: self._server(context))
        self.port = await server.listen(self._options.address, self._options.port)
        try:
            await self._tried_again(lambda: self._register(shown))
            log.info("podrecommendations are served port=%d", self.port)
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                shown = await self._renewed(context, shown)
        finally:
            await server.close()

    async def _tried_again(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except (ApiError, ConnectionError) as error:
                log.warning("podrecommendations are not served yet retry_seconds=%g error=%s", AGAIN, error)
                await self._clock.sleep(AGAIN)

    async def _server(self, context: ssl.SSLContext) -> HttpsServer:
        """Raises ApiError, ConnectionError."""
        told, delegated = await believed(self._client), DelegatedAccess(self._client, self._clock)
        who = FrontProxyAccess(told, delegated)
        api = AggregatedApi(group=GROUP, version=VERSION, serve=self._api)

        async def identify(request: Request) -> str:
            found = await who.identify(request)
            return found.user if found is not None else ""

        door = AuthorizedApi(api, who, delegated)
        return HttpsServer(door, context, clients=told.everybody, body_limit=BODY_LIMIT, identify=identify)

    async def _register(self, shown: Shown) -> None:
        """Raises ApiError, ConnectionError."""
        if self._options.register_as:
            for obj in objects(self._options.register_as, self.port):
                await register(self._client, obj)
        await _trust(self._client, shown.authorities)

    async def _renewed(self, context: ssl.SSLContext, before: Shown) -> Shown:
        """What is shown from now on."""
        try:
            shown = await asyncio.to_thread(self._certificates)
            if shown == before or not shown.whole:
                return before
            show(context, shown.certificate, shown.key)
            if shown.authorities != before.authorities:
                await _trust(self._client, shown.authorities)
        except (OSError, ApiError) as error:
            log.warning("certificates not taken over, those before stay error=%s", error)
            return before
        return shown


def objects(address: str, port: int) -> Iterator[Object]:
    """What leads the API server to this machine."""
    https = ServicePort(name="https", app_protocol="https", port=SERVICE_PORT, protocol="TCP", target_port=port)
    yield Service(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), spec=ServiceSpec(ports=(https,)))
    yield EndpointSlice(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels={SERVICE_NAME_LABEL: NAME}),
        address_type="IPv6" if ":" in address else "IPv4",
        endpoints=(Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True)),),
        ports=(EndpointPort(name="https", port=port, protocol="TCP"),),
    )
    service = ServiceReference(name=NAME, namespace=NAMESPACE, port=SERVICE_PORT)
    served = APIServiceSpec(
        group=GROUP, version=VERSION, group_priority_minimum=100, version_priority=100, service=service
    )
    yield APIService(metadata=ObjectMeta(name=API_SERVICE), spec=served)


async def _trust(client: Client, authorities: bytes) -> None:
    patch = [{"op": "add", "path": "/spec/caBundle", "value": authorities}]
    await client.patch(APIService, API_SERVICE, "", patch, content_type=JSON_PATCH)

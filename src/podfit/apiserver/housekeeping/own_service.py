"""The service `kubernetes` in `default`: how whoever runs in the cluster finds its API server.

Its address is the first of the services' range. Where it leads is known when the server listens; of several servers on
one store the last that started is the one that is named.
"""

import uuid
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from podfit.api.core.services import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from podfit.api.discovery import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointSlice
from podfit.api.discovery import EndpointPort as SlicePort
from podfit.api.meta import ObjectMeta
from podfit.api.registry import info_for
from podfit.api.validation.addresses import family
from podfit.apiserver.context import Context
from podfit.apiserver.stored import Changed, Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time

NAME, NAMESPACE, PORT = "kubernetes", "default", "https"
GLANCE = 0.02  # seconds between looks for what another server is about to write


async def publish(context: Context, address: str) -> None:
    """Service, Endpoints and EndpointSlice, as they have to be for a server that listens at this URL."""
    host, port = urlsplit(address).hostname or "", urlsplit(address).port or 443
    if await context.find(Service, NAME, NAMESPACE) is None:
        await _make_service(context, port)
    if family(host):
        await _put(context, _endpoints(host, port))
        await _put(context, _slice(host, port))


async def _make_service(context: Context, port: int) -> None:
    from podfit.apiserver.allocations import IN_FLIGHT

    patience = context.clock.monotonic() + 2 * IN_FLIGHT.total_seconds()
    while not await _create_service(context, port, last=context.clock.monotonic() > patience):
        await context.clock.sleep(GLANCE)
        if await context.find(Service, NAME, NAMESPACE) is not None:
            return


async def _create_service(context: Context, port: int, *, last: bool) -> bool:
    """Whether the service is there now. A server that starts at the same moment may have its address and not yet
    the service; if it died in between, the address is free again a while later. `last`: then someone else has it.
    """
    from podfit.apiserver.allocations import allocated

    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = ServiceSpec(
        cluster_ip=context.ranges.address(0), ip_family_policy="SingleStack",
        ports=(ServicePort(name=PORT, port=443, target_port=port),),
    )  # fmt: skip
    new = _completed(context, Service(metadata=_meta(labels), spec=spec))
    try:
        async with allocated(context, new, None, dry=False) as complete:
            await Stored[Service](context.store, info_for(Service)).create(complete)
    except ApiError as error:
        if error.reason == "Invalid" and not last:
            return False
        if error.reason != "AlreadyExists":  # another server was quicker
            raise
    return True


def _endpoints(host: str, port: int) -> Endpoints:
    ports = (EndpointPort(name=PORT, port=port, protocol="TCP"),)
    subset = EndpointSubset(addresses=(EndpointAddress(ip=host),), ports=ports)
    return Endpoints(metadata=_meta({"endpointslice.kubernetes.io/skip-mirror": "true"}), subsets=(subset,))


def _slice(host: str, port: int) -> EndpointSlice:
    ready = Endpoint(addresses=(host,), conditions=EndpointConditions(ready=True))
    return EndpointSlice(
        metadata=_meta({SERVICE_NAME_LABEL: NAME}), address_type=family(host), endpoints=(ready,),
        ports=(SlicePort(name=PORT, port=port, protocol="TCP"),),
    )  # fmt: skip


def _meta(labels: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels)


def _completed(context: Context, obj: Any) -> Any:
    from podfit.api.defaults import apply_defaults  # a service that is there already never needs these
    from podfit.apiserver.doors import prepare_create

    now = format_time(context.clock.now())
    meta = replace(obj.metadata, uid=str(uuid.uuid4()), creation_timestamp=now)
    return prepare_create(info_for(type(obj)), apply_defaults(replace(obj, metadata=meta)), context.gates)


async def _put(context: Context, obj: Any) -> None:
    """Create it, or make of the one that is there what this one says; what else people wrote on it stays."""
    stored = Stored[Any](context.store, info_for(type(obj)))
    old: Any = await context.find(type(obj), NAME, NAMESPACE)
    if old is None:
        try:
            await stored.create(_completed(context, obj))
            return
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        old = await stored.get(NAMESPACE, NAME)
    kept = replace(obj, metadata=replace(old.metadata, labels=old.metadata.labels | obj.metadata.labels))
    if kept == old:
        return
    try:
        await stored.update(kept, expected=int(old.metadata.resource_version))
    except Changed:  # another server starts as well, and one of them is named
        return

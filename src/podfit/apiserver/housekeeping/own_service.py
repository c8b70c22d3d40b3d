"""The service `kubernetes` in `default`, by which pods find the API server.

Its address is the first of the services' range. Where it leads is known when the server listens: to all servers on the
store that are alive (`server_leases`). Each slice has one list of ports and one family, so servers that
differ in these are in slices of their own; the first is called as the service is.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from podfit.api.core.v1.services.types import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from podfit.api.defaults import apply_defaults
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointSlice
from podfit.api.discovery.v1.types import EndpointPort as SlicePort
from podfit.api.meta.base import Object, ObjectT
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation.addresses import family
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.allocations import allocated
from podfit.apiserver.registry.pending_allocations import SECONDS
from podfit.apiserver.registry.stored import Changed, Stored
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.core.errors import ApiError
from podfit.core.times import format_time

NAME, NAMESPACE, PORT = "kubernetes", "default", "https"
GLANCE = 0.02  # seconds between looks for what another server is about to write


Places: TypeAlias = dict[tuple[str, int], list[str]]
"""Hosts by their family and port."""


async def publish(context: Context, port: int) -> None:
    """The service, for a server that listens at this port."""
    if await context.find(Service, NAME, NAMESPACE) is None:
        await _make_service(context, port)


async def lead_to(context: Context, servers: Sequence[str]) -> None:
    """Endpoints and EndpointSlices that name these servers (HOST:PORT), and no others."""
    places = _places(servers)
    if not places and await context.find(Endpoints, NAME, NAMESPACE) is None:
        return
    await _put(context, _endpoints(places))
    wanted = list(_slices(places))
    for endpoint_slice in wanted:
        await _put(context, endpoint_slice)
    names = {endpoint_slice.metadata.name for endpoint_slice in wanted}
    for old in await context.all(EndpointSlice, NAMESPACE):
        if _is_ours(old) and old.metadata.name not in names:
            await _remove(context, old)


def _places(servers: Sequence[str]) -> Places:
    """A host that is no address cannot be told."""
    found: Places = {}
    for host, port in sorted(split(server) for server in servers):
        if kind := family(host):
            found.setdefault((kind, port), []).append(host)
    return dict(sorted(found.items()))


def split(server: str) -> tuple[str, int]:
    """Host and port; an address of IPv6 is in brackets."""
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


async def _make_service(context: Context, port: int) -> None:
    patience = context.clock.monotonic() + 2 * SECONDS
    while not await _create_service(context, port, last=context.clock.monotonic() > patience):
        await context.clock.sleep(GLANCE)
        if await context.find(Service, NAME, NAMESPACE) is not None:
            return


async def _create_service(context: Context, port: int, *, last: bool) -> bool:
    """Whether the service is there now. A server that starts at the same moment may have its address and not yet
    the service; if it died in between, the address is free again a while later. `last`: then someone else has it.
    """

    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = ServiceSpec(
        cluster_ip=context.ranges.address(0),
        ip_family_policy="SingleStack",
        ports=(ServicePort(name=PORT, port=443, target_port=port),),
    )
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


def _endpoints(places: Places) -> Endpoints:
    subsets = tuple(
        EndpointSubset(
            addresses=tuple(EndpointAddress(ip=host) for host in hosts),
            ports=(EndpointPort(name=PORT, port=port, protocol="TCP"),),
        )
        for (_, port), hosts in places.items()
    )
    return Endpoints(metadata=_meta({"endpointslice.kubernetes.io/skip-mirror": "true"}), subsets=subsets)


def _slices(places: Places) -> Iterator[EndpointSlice]:
    for index, ((kind, port), hosts) in enumerate(places.items()):
        meta = _meta({SERVICE_NAME_LABEL: NAME})
        ready = EndpointConditions(ready=True)
        yield EndpointSlice(
            metadata=replace(meta, name=f"{NAME}-{kind.lower()}-{port}") if index else meta,
            address_type=kind,
            endpoints=tuple(Endpoint(addresses=(host,), conditions=ready) for host in hosts),
            ports=(SlicePort(name=PORT, port=port, protocol="TCP"),),
        )


def _is_ours(old: EndpointSlice) -> bool:
    name = old.metadata.name
    ours = name == NAME or name.startswith((f"{NAME}-ipv4-", f"{NAME}-ipv6-"))
    return ours and old.metadata.labels.get(SERVICE_NAME_LABEL) == NAME


def _meta(labels: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels)


def _completed(context: Context, obj: ObjectT) -> ObjectT:
    now = format_time(context.clock.now())
    meta = replace(obj.metadata, uid=context.random.uuid(), creation_timestamp=now)
    made = apply_defaults(replace(obj, metadata=meta))
    complete: ObjectT = strategy_of(type(obj)).prepare_create(info_for(type(obj)), made, context.gates)
    return complete


async def _put(context: Context, obj: Object) -> None:
    """Create it, or make of the one that is there what this one says; what else people wrote on it stays."""
    stored = Stored[Object](context.store, info_for(type(obj)))
    name = obj.metadata.name
    old = await context.find(type(obj), name, NAMESPACE)
    if old is None:
        try:
            await stored.create(_completed(context, obj))
            return
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        old = await stored.get(NAMESPACE, name)
    kept = replace(obj, metadata=replace(old.metadata, labels=old.metadata.labels | obj.metadata.labels))
    if kept == old:
        return
    try:
        await stored.update(kept, expected=int(old.metadata.resource_version), freeing=True)  # or no start could be
    except Changed:  # another server does the same
        return


async def _remove(context: Context, old: EndpointSlice) -> None:
    try:
        await Stored[EndpointSlice](context.store, info_for(EndpointSlice)).delete(
            NAMESPACE, old.metadata.name, expected=int(old.metadata.resource_version)
        )
    except Changed:  # another server does the same
        return

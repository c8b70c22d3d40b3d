"""Resolves a service to backend addresses: from endpoint slices, else endpoints, else pods.

A service's own address is for proxies on nodes, and there may be none. So, as upstream with aggregator routing, a port
of a service leads to the ready addresses behind it. Who maintains them is not this module's business: slices count
first, then Endpoints, and where neither names an address, the ready pods that the service selects.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service, ServicePort
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.decide.workload.services.pods import address_of, counts, families, is_served, number_of, selects

Address: TypeAlias = tuple[str, int]
FAMILIES = ("IPv4", "IPv6")


class Reached(msgspec.Struct, frozen=True):
    """At least one; host names where the service is an external name."""

    addresses: tuple[Address, ...]


class Unreached(msgspec.Struct, frozen=True):
    """`reason` and `message` are for the condition Available of an APIService, `error` for who wanted to connect."""

    reason: str
    message: str
    error: str


class Behind(msgspec.Struct, frozen=True):
    """What is known of the addresses behind one service; `pods` are those of its namespace."""

    slices: Sequence[EndpointSlice] = ()
    endpoints: Endpoints | None = None
    pods: Sequence[Pod] = ()


def absent(namespace: str, name: str) -> Unreached:
    message = f'service/{name} in "{namespace}" is not present'
    return Unreached("ServiceNotFound", message, f'service "{name}" not found')


def backends(service: Service, number: int, behind: Behind) -> Reached | Unreached:
    """Who answers at a port of the service."""
    if service.spec.type == "ExternalName":
        return Reached(((service.spec.external_name, number),))
    port = next((port for port in service.spec.ports if port.port == number), None)
    where = f'service/{service.metadata.name} in "{service.metadata.namespace}"'
    if port is None:
        error = f'no service port {number} found for service "{service.metadata.name}"'
        return Unreached("ServicePortError", f"{where} is not listening on port {number}", error)
    for source in (_of_slices, _of_endpoints, _of_pods):
        if addresses := tuple(dict.fromkeys(source(service, port, behind))):
            return Reached(addresses)
    return _nobody(service, port, where, behind)


def _nobody(service: Service, port: ServicePort, where: str, behind: Behind) -> Unreached:
    error = f'no endpoints available for service "{service.metadata.name}"'
    if not behind.slices and behind.endpoints is None:
        return Unreached("EndpointsNotFound", f"cannot find endpointslices for {where}", error)
    text = f'endpointslices for {where} have no addresses with port name "{port.name}"'
    return Unreached("MissingEndpoints", text, error)


def _of_slices(service: Service, port: ServicePort, behind: Behind) -> Iterable[Address]:
    for endpoint_slice in behind.slices:
        numbers = [
            one.port for one in (endpoint_slice.ports or ()) if (one.name or "") == port.name and one.port is not None
        ]
        if endpoint_slice.address_type not in FAMILIES or not numbers:
            continue
        for endpoint in endpoint_slice.endpoints or ():
            if endpoint.addresses and endpoint.conditions.ready is not False:
                yield endpoint.addresses[0], numbers[0]


def _of_endpoints(service: Service, port: ServicePort, behind: Behind) -> Iterable[Address]:
    for subset in behind.endpoints.subsets if behind.endpoints is not None else ():
        numbers = [one.port for one in subset.ports if one.name == port.name]
        for address in subset.addresses if numbers else ():
            yield address.ip, numbers[0]


def _of_pods(service: Service, port: ServicePort, behind: Behind) -> Iterable[Address]:
    for pod in behind.pods:
        if not selects(service, pod.metadata) or not counts(pod, terminating=False) or not is_served(service, pod):
            continue
        number, addresses = number_of(port, pod), [address_of(pod, family) for family in families(service)]
        if number and (address := next(filter(None, addresses), "")):
            yield address, number

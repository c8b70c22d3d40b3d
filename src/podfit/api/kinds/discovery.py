"""The kinds of discovery.k8s.io."""

from typing import Any

from podfit.api.core.v1.services.columns import shortened
from podfit.api.discovery.v1.types import EndpointPort, EndpointSlice
from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import Column, ResourceInfo

SLICE = (
    NAME,
    Column("AddressType", description="What kind of addresses it holds."),
    Column("Ports", description="The ports of each endpoint."),
    Column("Endpoints", description="The addresses."),
    AGE,
)


def slice_row(slice_: EndpointSlice, now: str) -> list[Any]:
    addresses = [text for endpoint in (slice_.endpoints or ()) for text in endpoint.addresses]
    return [
        slice_.metadata.name,
        slice_.address_type,
        shortened([_slice_port(port) for port in (slice_.ports or ())]) or "<unset>",
        shortened(addresses) or "<unset>",
        age(slice_, now),
    ]


def _slice_port(port: EndpointPort) -> str:
    if port.port is not None:
        return str(port.port)
    return "*" if port.name is None else port.name


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=EndpointSlice,
        group="discovery.k8s.io",
        resource="endpointslices",
        singular="endpointslice",
        columns=SLICE,
        row=slice_row,
        counted=lambda o: (o.address_type, o.endpoints, o.ports),
    ),
)

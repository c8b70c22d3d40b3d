"""discovery.k8s.io/v1: the addresses behind a service, in slices of a bounded size."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import SET_REPLACED, Object, Struct, always
from podfit.api.meta.v1.types import ObjectMeta

SERVICE_NAME_LABEL = "kubernetes.io/service-name"


class EndpointConditions(Struct):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForNode(Struct):
    name: str = always(default="")


class ForZone(Struct):
    name: str = always(default="")


class EndpointHints(Struct):
    for_nodes: tuple[ForNode, ...] = ()
    for_zones: tuple[ForZone, ...] = ()


class Endpoint(Struct):
    addresses: Annotated[tuple[str, ...], SET_REPLACED] = ()
    conditions: EndpointConditions = always(default=EndpointConditions())
    deprecated_topology: dict[str, str] = field(default_factory=dict)
    hints: EndpointHints | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None
    zone: str | None = None


class EndpointPort(Struct):
    name: str | None = None
    app_protocol: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(Object):
    kind: str = always(default="EndpointSlice")
    api_version: str = always(default="discovery.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    address_type: str = always(default="")
    endpoints: tuple[Endpoint, ...] | None = always(default=None)
    ports: tuple[EndpointPort, ...] | None = always(default=None)

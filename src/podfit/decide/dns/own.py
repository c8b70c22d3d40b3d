"""The Service `kube-dns` in kube-system: ours, or somebody else's.

There is none, or ours          it is made, and leads to this server; what people change of it comes back
it has a selector               somebody runs a server of his own (CoreDNS): it is left alone, and nothing leads here
it is not marked as ours        likewise
"""

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.services.types import Service, ServicePort, ServiceSpec
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from podfit.api.meta.v1.types import ObjectMeta

NAME, NAMESPACE = "kube-dns", "kube-system"
PORT = 53
NUMBER = 9
"""Of its address, of the addresses of the Services' range, whose first is the Service `kubernetes`: 10.96.0.10."""
MANAGED, US = "app.kubernetes.io/managed-by", "podfit"
SLICE_MANAGED = "endpointslice.kubernetes.io/managed-by"
LABELS = {"k8s-app": NAME, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "podfit-dns", MANAGED: US}
PORTS = (("dns", "UDP"), ("dns-tcp", "TCP"))


class DnsPlace(msgspec.Struct, frozen=True):
    """Where the Service leads: this server's `address` and `port`, on `node`. `service` is the Service's own."""

    service: str
    address: str
    port: int
    node: str


class Wanted(msgspec.Struct, frozen=True):
    """What there should be. `create`, `update`: objects; `delete`: our slice. `others` says why nothing leads here."""

    create: tuple[Service | EndpointSlice, ...] = ()
    update: tuple[Service | EndpointSlice, ...] = ()
    delete: EndpointSlice | None = None
    others: str = ""


def slice_name(place: DnsPlace) -> str:
    return f"{NAME}-{place.node}"


def wanted(service: Service | None, part: EndpointSlice | None, place: DnsPlace) -> Wanted:
    """`service` is the one of that name, `part` the slice of our name, as they are."""
    if part is not None and part.metadata.labels.get(SLICE_MANAGED) != US:
        return Wanted(others=f"EndpointSlice {NAMESPACE}/{part.metadata.name} is somebody else's")
    if service is not None and (others := _others(service)):
        return Wanted(delete=part, others=others)
    own, led = _service(place), _slice(place)
    create: list[Service | EndpointSlice] = []
    update: list[Service | EndpointSlice] = []
    if service is None:
        create.append(own)
    elif _ports(service) != _ports(own):
        update.append(replace(service, spec=replace(service.spec, ports=own.spec.ports)))
    if part is None:
        create.append(led)
    elif (part.endpoints, part.ports, part.metadata.labels.get(SERVICE_NAME_LABEL)) != (led.endpoints, led.ports, NAME):
        meta = replace(part.metadata, labels=part.metadata.labels | led.metadata.labels)
        update.append(replace(part, metadata=meta, endpoints=led.endpoints, ports=led.ports))
    return Wanted(tuple(create), tuple(update))


def _others(service: Service) -> str:
    name = f"Service {NAMESPACE}/{NAME}"
    if service.spec.selector:
        return f"{name} has a selector: its pods answer, not podfit"
    if service.metadata.labels.get(MANAGED) != US:
        return f"{name} is somebody else's: podfit leaves it alone"
    return ""


def _ports(service: Service) -> list[tuple[str, int, str]]:
    return [(port.name, port.port, port.protocol) for port in service.spec.ports]


def _service(place: DnsPlace) -> Service:
    ports = tuple(ServicePort(name=name, port=PORT, protocol=protocol, target_port=PORT) for name, protocol in PORTS)
    spec = ServiceSpec(type="ClusterIP", cluster_ip=place.service, ip_family_policy="SingleStack", ports=ports)
    return Service(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels=LABELS), spec=spec)


def _slice(place: DnsPlace) -> EndpointSlice:
    labels = {SERVICE_NAME_LABEL: NAME, SLICE_MANAGED: US}
    ready = EndpointConditions(ready=True, serving=True, terminating=False)
    return EndpointSlice(
        metadata=ObjectMeta(name=slice_name(place), namespace=NAMESPACE, labels=labels),
        address_type="IPv4",
        endpoints=(Endpoint(addresses=(place.address,), conditions=ready, node_name=place.node),),
        ports=tuple(EndpointPort(name=name, port=place.port, protocol=protocol) for name, protocol in PORTS),
    )

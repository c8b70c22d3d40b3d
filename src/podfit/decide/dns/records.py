"""The records of a Service, as the specification of Kubernetes' names, version 1.1, has them (2.3, 2.4, 2.5).

    with an address    SERVICE.NAMESPACE.svc.ZONE                  A, AAAA; PTR back
                       _PORT._PROTOCOL.SERVICE.NAMESPACE.svc.ZONE  SRV, for a port that has a name
    headless           the same names, with every endpoint that is ready
                       HOST.SERVICE.NAMESPACE.svc.ZONE             A, AAAA; PTR back
    ExternalName       SERVICE.NAMESPACE.svc.ZONE                  CNAME

An endpoint without a hostname is called by its address with dashes, as CoreDNS calls it.
"""

from collections.abc import Collection, Iterator
from enum import IntEnum
from ipaddress import IPv4Address, ip_address

import msgspec

from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import Endpoint, EndpointSlice

TTL = 5
"""Seconds; CoreDNS' own default."""
HEADLESS = "None"
MOST_LABEL, MOST_NAME = 63, 253
MOST_SRV = 10_000
"""Of one slice: as many as 100 endpoints have with 100 ports. Ports beyond have no names."""
WEIGHT = 100
"""Of every SRV record; the priority is 0."""


class RecordType(IntEnum):
    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    TXT = 16
    AAAA = 28
    SRV = 33


class Record(msgspec.Struct, frozen=True, order=True):
    """`name` is in small letters, without the last dot, and so are names in `value`: an address, a text, or a name (of
    a SOA two). `numbers` are the rest: of SRV priority, weight, port; of SOA serial, refresh, retry, expire, minimum.
    """

    name: str
    type: RecordType
    value: str
    numbers: tuple[int, ...] = ()
    ttl: int = TTL

    def __str__(self) -> str:
        """The record as in a zone file."""
        numbers = " ".join(map(str, self.numbers))
        match self.type:
            case RecordType.SOA:
                data = f"{'. '.join(self.value.split())}. {numbers}"
            case RecordType.SRV:
                data = f"{numbers} {self.value}."
            case RecordType.TXT:
                data = f'"{self.value}"'
            case RecordType.A | RecordType.AAAA:
                data = self.value
            case _:
                data = f"{self.value}."
        return f"{self.name}. {self.ttl} IN {self.type.name} {data}"


class Host(msgspec.Struct, frozen=True, order=True):
    """One address of an endpoint, with the endpoint's name below its Service's."""

    name: str
    address: str


def service_records(service: Service, domain: str) -> tuple[Record, ...]:
    """What a Service says by itself; `domain` is the cluster's. A headless one says nothing."""
    spec, name = service.spec, _name(service, domain)
    if spec.type == "ExternalName":
        target = spec.external_name.rstrip(".").lower()
        return (Record(name, RecordType.CNAME, target),) if is_name(target) else ()
    return () if _is_headless(service) else tuple(dict.fromkeys(_of_addresses(name, service)))


def slice_records(service: Service, part: EndpointSlice, domain: str) -> tuple[Record, ...]:
    """What a headless Service has by one of its own slices; any other has nothing by them."""
    if service.spec.type == "ExternalName" or not _is_headless(service) or part.address_type not in ("IPv4", "IPv6"):
        return ()
    return tuple(dict.fromkeys(_of_slice(_name(service, domain), service, part)))


def _is_headless(service: Service) -> bool:
    return HEADLESS in (service.spec.cluster_ip, *service.spec.cluster_ips)


def _name(service: Service, domain: str) -> str:
    return f"{service.metadata.name}.{service.metadata.namespace}.svc.{domain}".lower()


def _of_addresses(name: str, service: Service) -> Iterator[Record]:
    addresses = [address for address in service.spec.cluster_ips or (service.spec.cluster_ip,) if is_address(address)]
    for address in addresses:
        yield address_record(name, address)
        yield Record(reverse(address), RecordType.PTR, name)
    if addresses:
        for port in service.spec.ports:
            if port.name:
                yield _srv(name, port.name, port.protocol, port.port, name)


def _of_slice(name: str, service: Service, part: EndpointSlice) -> Iterator[Record]:
    ports = list(_ports(part, {port.name for port in service.spec.ports}))
    del ports[MOST_SRV // max(len(part.endpoints or ()), 1) :]
    for endpoint in part.endpoints or ():
        for host in _hosts(endpoint, unready=service.spec.publish_not_ready_addresses):
            full = f"{host.name}.{name}"
            yield address_record(name, host.address)
            yield address_record(full, host.address)
            yield Record(reverse(host.address), RecordType.PTR, full)
            yield from (_srv(name, port, protocol, number, full) for port, protocol, number in ports)


def _hosts(endpoint: Endpoint, *, unready: bool) -> list[Host]:
    if endpoint.conditions.ready is False and not unready:
        return []
    name = (endpoint.hostname or "").lower()
    return [Host(name or dashed(address), address) for address in endpoint.addresses if is_address(address)]


def _ports(part: EndpointSlice, named: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """Name, protocol and number of those that the Service has, too."""
    for port in part.ports or ():
        if port.name and port.name in named and port.port:
            yield port.name, port.protocol or "TCP", port.port


def _srv(name: str, port: str, protocol: str, number: int, target: str) -> Record:
    owner = f"_{port}._{protocol or 'TCP'}.{name}".lower()
    return Record(owner, RecordType.SRV, target, (0, WEIGHT, number))


def address_record(name: str, address: str) -> Record:
    found = ip_address(address)
    return Record(name, RecordType.A if found.version == 4 else RecordType.AAAA, str(found))


def reverse(address: str) -> str:
    """The name below in-addr.arpa or ip6.arpa."""
    return ip_address(address).reverse_pointer


def dashed(address: str) -> str:
    found = ip_address(address)
    return str(found).replace(".", "-") if isinstance(found, IPv4Address) else found.exploded.replace(":", "-")


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def is_name(text: str) -> bool:
    """Whether it is a name that packets can carry."""
    labels = text.split(".")
    return len(text) <= MOST_NAME and text.isascii() and all(0 < len(label) <= MOST_LABEL for label in labels)

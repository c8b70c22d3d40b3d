"""Warnings about addresses and networks, and in services, endpoints and network policies."""

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv6Address, ip_network
from typing import Any

from podfit.api.core.v1.services.address_validation import HEADLESS
from podfit.api.core.v1.services.defaults import CLUSTER_IP, EXTERNAL_NAME
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.base import Object
from podfit.api.meta.validation.addresses import parsed, without_zeros
from podfit.api.networking.v1.types import Ingress, IPBlock, NetworkPolicy

_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_KEPT_ENDPOINTS = ("endpoints.kubernetes.io/managed-by", ("endpoint-controller",))
_KEPT_SLICES = (
    "endpointslice.kubernetes.io/managed-by",
    ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"),
)
"""By which label, and with which values, the addresses are those of Kubernetes' own controllers."""


def of_address(text: str, path: str) -> Iterator[str]:
    """An address that readers may take for another one, or that others write in another way."""
    found, lenient = parsed(text), parsed(without_zeros(text))
    if lenient is None:
        return
    mapped = lenient.ipv4_mapped if isinstance(lenient, IPv6Address) else None
    if found is None or mapped is not None:
        why = "will be considered invalid in a future Kubernetes release"
        yield f'{path}: non-standard IP address "{text}" {why}: use "{mapped or lenient}"'
    elif isinstance(found, IPv6Address) and str(found) != text:
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{found}")'


def of_network(text: str, path: str) -> Iterator[str]:
    """A network of IPv6 that others write in another way; what else could be said is refused."""
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return
    if found.version == 6 and str(found) != text:
        yield f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{found}")'


def of_service(service: Service) -> Iterator[str]:  # noqa: C901  (upstream's list)
    spec = service.spec
    if _HINTS in service.metadata.annotations:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if spec.cluster_ip not in ("", HEADLESS):
        for index, text in enumerate(spec.cluster_ips):
            yield from of_address(text, f"spec.clusterIPs[{index}]")
    if spec.type == CLUSTER_IP and spec.cluster_ip == HEADLESS:
        yield from _of_headless(service)
    if spec.external_ips:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    for index, text in enumerate(spec.external_ips):
        yield from of_address(text, f"spec.externalIPs[{index}]")
    if spec.load_balancer_ip:
        yield from of_address(spec.load_balancer_ip, "spec.loadBalancerIP")
    for index, text in enumerate(spec.load_balancer_source_ranges):
        yield from of_network(text.strip(), f"spec.loadBalancerSourceRanges[{index}]")
    if spec.type == EXTERNAL_NAME and spec.external_ips:
        yield f'spec.externalIPs is ignored when spec.type is "{EXTERNAL_NAME}"'
    if spec.type != EXTERNAL_NAME and spec.external_name:
        yield f'spec.externalName is ignored when spec.type is not "{EXTERNAL_NAME}"'
    if spec.traffic_distribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _of_headless(service: Service) -> Iterator[str]:
    spec = service.spec
    if spec.load_balancer_ip:
        yield "spec.loadBalancerIP is ignored for headless services"
    if spec.external_ips:
        yield "spec.externalIPs is ignored for headless services"
    if spec.session_affinity != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def of_endpoints(endpoints: Endpoints) -> Iterator[str]:
    label, ours = _KEPT_ENDPOINTS
    if endpoints.metadata.labels.get(label) in ours:
        return
    for index, subset in enumerate(endpoints.subsets):
        for name, addresses in (("addresses", subset.addresses), ("notReadyAddresses", subset.not_ready_addresses)):
            for position, address in enumerate(addresses):
                yield from of_address(address.ip, f"subsets[{index}].{name}[{position}].ip")


def of_slice(slice_: EndpointSlice, *, new: bool) -> Iterator[str]:
    if new and slice_.address_type == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    label, ours = _KEPT_SLICES
    if slice_.metadata.labels.get(label) in ours:
        return
    for index, endpoint in enumerate(slice_.endpoints or ()):
        for position, text in enumerate(endpoint.addresses):
            yield from of_address(text, f"endpoints[{index}].addresses[{position}]")


def of_ingress(ingress: Ingress) -> Iterator[str]:
    if _INGRESS_CLASS in ingress.metadata.annotations and ingress.spec.ingress_class_name is None:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def of_policy(policy: NetworkPolicy) -> Iterator[str]:
    ways = [(f"spec.ingress[{index}].from", entry.from_) for index, entry in enumerate(policy.spec.ingress)]
    ways += [(f"spec.egress[{index}].to", way_out.to) for index, way_out in enumerate(policy.spec.egress)]
    for path, peers in ways:
        for index, peer in enumerate(peers):
            if peer.ip_block is not None:
                yield from _of_block(peer.ip_block, f"{path}[{index}].ipBlock")


def _of_block(block: IPBlock, path: str) -> Iterator[str]:
    yield from of_network(block.cidr, f"{path}.cidr")
    yield from of_networks(block.except_, f"{path}.except")


def of_networks(texts: Iterable[str], path: str) -> Iterator[str]:
    for index, text in enumerate(texts):
        yield from of_network(text, f"{path}[{index}]")


WARNINGS: dict[type[Object], Callable[[Any, Any], Iterator[str]]] = {
    EndpointSlice: lambda new, old: of_slice(new, new=old is None),
    Endpoints: lambda new, _: of_endpoints(new),
    Ingress: lambda new, old: of_ingress(new) if old is None else iter(()),
    NetworkPolicy: lambda new, _: of_policy(new),
    Service: lambda new, _: of_service(new),
}

"""Endpoints and EndpointSlices: addresses of the right kind, ports told apart by name."""

from collections.abc import Sequence

from podfit.api.core.v1.services.types import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from podfit.api.core.v1.services.validation import protocol
from podfit.api.discovery.v1.types import Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone
from podfit.api.discovery.v1.types import EndpointPort as SlicePort
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address, family, ordinary
from podfit.api.meta.validation.metadata import immutable, validate_labels
from podfit.api.meta.validation.rules import Rules
from podfit.core.fields import FieldError, duplicate, invalid, required, too_many, unsupported

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS, _ADDRESSES, _PORTS, _HINTS = 1000, 100, 20_000, 8


def validate_endpoints(endpoints: Endpoints) -> list[FieldError]:
    errors = []
    for index, subset in enumerate(endpoints.subsets):
        errors += _subset(subset, f"subsets[{index}]")
    return errors


def validate_endpoints_update(new: Endpoints, old: Endpoints) -> list[FieldError]:
    """What stays as it is may stay as wrong as it is."""
    return [] if new.subsets == old.subsets else validate_endpoints(new)


def _subset(subset: EndpointSubset, path: str) -> list[FieldError]:
    errors = []
    if not subset.addresses and not subset.not_ready_addresses:
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for name, addresses in (("addresses", subset.addresses), ("notReadyAddresses", subset.not_ready_addresses)):
        for index, endpoint in enumerate(addresses):
            errors += _address(endpoint, f"{path}.{name}[{index}]")
    for index, port in enumerate(subset.ports):
        errors += _port(port, f"{path}.ports[{index}]", named=len(subset.ports) > 1)
    return errors


def _address(endpoint_address: EndpointAddress, path: str) -> list[FieldError]:
    errors = address(endpoint_address.ip, f"{path}.ip")
    if endpoint_address.hostname:
        errors += [
            invalid(f"{path}.hostname", endpoint_address.hostname, text)
            for text in names.dns_label(endpoint_address.hostname)
        ]
    return errors + _node(endpoint_address.node_name, path) + ordinary(endpoint_address.ip, f"{path}.ip")


def _node(name: str | None, path: str) -> list[FieldError]:
    if name is None:
        return []
    return [invalid(f"{path}.nodeName", name, text) for text in names.dns_subdomain(name)]


def _port(port: EndpointPort, path: str, *, named: bool) -> list[FieldError]:
    errors = []
    if port.name:
        errors += [invalid(f"{path}.name", port.name, text) for text in names.dns_label(port.name)]
    elif named:
        errors.append(required(f"{path}.name"))
    errors += [invalid(f"{path}.port", port.port, text) for text in names.port_number(port.port)]
    return errors + protocol(port.protocol, f"{path}.protocol") + _application(port.app_protocol, path)


def _application(text: str | None, path: str) -> list[FieldError]:
    if text is None:
        return []
    return [invalid(f"{path}.appProtocol", text, problem) for problem in names.qualified(text)]


def validate_slice(slice_: EndpointSlice) -> list[FieldError]:
    kind = slice_.address_type
    errors = []
    if not kind:
        errors.append(required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        errors.append(unsupported("addressType", kind, _ADDRESS_TYPES))
    endpoints = slice_.endpoints or ()
    if len(endpoints) > _ENDPOINTS:
        return [*errors, too_many("endpoints", len(endpoints), _ENDPOINTS)]
    for index, endpoint in enumerate(endpoints):
        errors += _endpoint(endpoint, kind, f"endpoints[{index}]")
    return errors + _slice_ports(slice_.ports or ())


def _endpoint(endpoint: Endpoint, kind: str, path: str) -> list[FieldError]:
    errors = []
    found, where = endpoint.addresses, f"{path}.addresses"
    if not found:
        errors.append(required(where, "must contain at least 1 address"))
    elif len(found) > _ADDRESSES:
        errors.append(too_many(where, len(found), _ADDRESSES))
    for index, text in enumerate(found):
        errors += _reachable(text, kind, where, index)
    errors += _node(endpoint.node_name, path)
    errors += validate_labels(endpoint.deprecated_topology, f"{path}.deprecatedTopology")
    if endpoint.hostname is not None:
        errors += [invalid(f"{path}.hostname", endpoint.hostname, text) for text in names.dns_label(endpoint.hostname)]
    return errors + _hints(endpoint.hints, f"{path}.hints")


def _reachable(text: str, kind: str, path: str, index: int) -> list[FieldError]:
    where = f"{path}[{index}]"
    if kind == "FQDN":
        name = text.removesuffix(".")
        return [invalid(where, text, problem) for problem in names.dns_subdomain(name)]
    if kind not in _ADDRESS_TYPES:
        return []
    if wrong := address(text, where):
        return wrong
    errors = [] if family(text) == kind else [invalid(path, text, f"must be an {kind} address")]
    return errors + ordinary(text, where)


def _hints(hints: EndpointHints | None, path: str) -> list[FieldError]:
    if hints is None:
        return []
    return _hinted(hints.for_zones, f"{path}.forZones") + _hinted(hints.for_nodes, f"{path}.forNodes")


def _hinted(hints: Sequence[ForZone | ForNode], path: str) -> list[FieldError]:
    if len(hints) > _HINTS:
        return [too_many(path, len(hints), _HINTS)]
    errors = []
    for index, zone in enumerate(hints):
        where = f"{path}[{index}].name"
        if any(zone.name == other.name for other in hints[:index]):
            errors.append(duplicate(where, zone.name))
        errors += [invalid(where, zone.name, text) for text in names.label_value(zone.name)]
    return errors


def _slice_ports(ports: tuple[SlicePort, ...]) -> list[FieldError]:
    if len(ports) > _PORTS:
        return [too_many("ports", len(ports), _PORTS)]
    errors = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.name or ""
        if name:
            errors += [invalid(f"{path}.name", name, text) for text in names.dns_label(name)]
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        errors += protocol(port.protocol or "", f"{path}.protocol") + _application(port.app_protocol, path)
    return errors


def validate_slice_update(new: EndpointSlice, old: EndpointSlice) -> list[FieldError]:
    return validate_slice(new) + immutable(new.address_type, old.address_type, "addressType")


RULES: dict[type[Object], Rules] = {
    Endpoints: Rules(create=validate_endpoints, update=validate_endpoints_update, metadata="both"),
    EndpointSlice: Rules(create=validate_slice, update=validate_slice_update, metadata="new"),
}

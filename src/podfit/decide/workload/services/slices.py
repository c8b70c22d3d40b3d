"""Endpoint slices of a service: up to a hundred endpoints with the same ports in each.

Few writes matter more than full slices: endpoints stay where they are, new ones go into slices that change anyway, then
into one that has room for all of them, then into new slices. A service without endpoints has one empty slice.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.workload.claims import owned_by, reference_to
from podfit.decide.workload.pods import is_ready
from podfit.decide.workload.services.pods import (
    HEADLESS,
    address_of,
    counts,
    families,
    hostname_of,
    is_headless,
    ports_of,
    reference_of,
)

MANAGER = "endpointslice-controller.k8s.io"
MANAGED = "endpointslice.kubernetes.io/managed-by"
MOST = 100
_ZONE = "topology.kubernetes.io/zone"
_RESERVED = (HEADLESS, SERVICE_NAME_LABEL, MANAGED)
Ports = tuple[EndpointPort, ...]


class Changes(msgspec.Struct):
    create: list[EndpointSlice] = msgspec.field(default_factory=list)
    update: list[EndpointSlice] = msgspec.field(default_factory=list)
    delete: list[EndpointSlice] = msgspec.field(default_factory=list)


def changes(
    service: Service, pods: Sequence[Pod], nodes: Mapping[str, Node], known: Sequence[EndpointSlice]
) -> Changes:
    """`nodes` by name; `known` are the slices of this service that its controller made."""
    made = Changes()
    wanted = families(service)
    for family in wanted:
        _of_family(
            service,
            family,
            pods,
            nodes,
            [endpoint_slice for endpoint_slice in known if endpoint_slice.address_type == family],
            made,
        )
    made.delete += [endpoint_slice for endpoint_slice in known if endpoint_slice.address_type not in wanted]
    return _reusing(service, made)


def _of_family(
    service: Service,
    family: str,
    pods: Sequence[Pod],
    nodes: Mapping[str, Node],
    known: Sequence[EndpointSlice],
    made: Changes,
) -> None:
    desired: dict[Ports, dict[object, Endpoint]] = {}
    for pod in pods:
        if not counts(pod, terminating=True) or not address_of(pod, family):
            continue
        node = nodes.get(pod.spec.node_name)
        if node is None and not service.spec.publish_not_ready_addresses:
            continue  # it is on its way out, or not seen yet: its coming is looked at
        endpoint = _endpoint(service, pod, node, family)
        desired.setdefault(_ports(service, pod), {})[_identity(endpoint)] = endpoint
    ours = [endpoint_slice for endpoint_slice in known if owned_by(endpoint_slice.metadata, service.metadata)]
    by_ports: dict[Ports, list[EndpointSlice]] = {}
    for endpoint_slice in ours:
        by_ports.setdefault(_sorted(endpoint_slice.ports or ()), []).append(endpoint_slice)
    deleted = [endpoint_slice for endpoint_slice in known if endpoint_slice not in ours]
    created: list[EndpointSlice] = []
    for ports, endpoints in desired.items():
        made.update += _packed(
            service, family, ports, by_ports.get(ports, []), endpoints, created=created, deleted=deleted
        )
    for ports, slices in by_ports.items():
        deleted += slices if ports not in desired else []
    if len(deleted) == len(known) and not created:
        empty = _slice(service, family, None)
        if len(deleted) == 1 and _is_same(deleted[0], empty):
            deleted = []
        else:
            created.append(empty)
    made.create += created
    made.delete += deleted


def _packed(
    service: Service,
    family: str,
    ports: Ports,
    known: Sequence[EndpointSlice],
    desired: dict[object, Endpoint],
    *,
    created: list[EndpointSlice],
    deleted: list[EndpointSlice],
) -> list[EndpointSlice]:
    """The slices of these ports that change; `desired` is used up, others are added to `created` and `deleted`."""
    labels = _labels(service)
    changed: list[EndpointSlice] = []
    unchanged: list[EndpointSlice] = []
    for endpoint_slice in known:
        kept = [desired.pop(_identity(old), None) for old in endpoint_slice.endpoints or ()]
        endpoints = tuple(endpoint for endpoint in kept if endpoint is not None)
        if not endpoints and endpoint_slice.endpoints:
            deleted.append(endpoint_slice)
        elif endpoints != (endpoint_slice.endpoints or ()) or labels != endpoint_slice.metadata.labels:
            changed.append(
                replace(endpoint_slice, endpoints=endpoints, metadata=replace(endpoint_slice.metadata, labels=labels))
            )
        else:
            unchanged.append(endpoint_slice)
    left = list(desired.values())
    changed.sort(key=lambda candidate: -_size(candidate))
    for place, candidate in enumerate(changed):
        changed[place], left = _filled(candidate, left)
    room = [endpoint_slice for endpoint_slice in unchanged if _size(endpoint_slice) + len(left) <= MOST]
    if left and len(left) < MOST and room:
        fullest = max(room, key=_size)
        filled, left = _filled(fullest, left)
        changed.append(filled)
    while left:
        made, left = _filled(_slice(service, family, ports), left)
        created.append(made)
    return changed


def _filled(slice_: EndpointSlice, left: list[Endpoint]) -> tuple[EndpointSlice, list[Endpoint]]:
    room = MOST - _size(slice_)
    if room <= 0 or not left:
        return slice_, left
    return replace(slice_, endpoints=(*(slice_.endpoints or ()), *left[:room])), left[room:]


def _reusing(service: Service, made: Changes) -> Changes:
    """One that would be deleted becomes one that would be made."""
    for old in list(made.delete):
        if not made.create:
            break
        new = made.create[-1]
        if old.address_type == new.address_type and owned_by(old.metadata, service.metadata):
            made.create.pop()
            made.delete.remove(old)
            meta = replace(old.metadata, labels=new.metadata.labels)
            made.update.append(replace(old, endpoints=new.endpoints, ports=new.ports, metadata=meta))
    return made


def _size(slice_: EndpointSlice) -> int:
    return len(slice_.endpoints or ())


def _slice(service: Service, family: str, ports: Ports | None) -> EndpointSlice:
    """Without endpoints; without ports, too, where it only holds the place, which Go writes as null."""
    meta = ObjectMeta(
        generate_name=f"{service.metadata.name}-",
        namespace=service.metadata.namespace,
        labels=_labels(service),
        owner_references=(reference_to(service),),
    )
    return EndpointSlice(metadata=meta, address_type=family, endpoints=None, ports=ports)


def _is_same(old: EndpointSlice, new: EndpointSlice) -> bool:
    told = old.metadata.labels, old.metadata.owner_references, old.endpoints, old.ports
    return told == (new.metadata.labels, new.metadata.owner_references, new.endpoints, new.ports)


def _labels(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    labels |= {HEADLESS: ""} if is_headless(service) else {}
    return labels | {SERVICE_NAME_LABEL: service.metadata.name, MANAGED: MANAGER}


def _ports(service: Service, pod: Pod) -> Ports:
    return _sorted(
        tuple(
            EndpointPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
            for port in ports_of(service, pod)
        )
    )


def _sorted(ports: Ports) -> Ports:
    return tuple(sorted(ports, key=lambda port: (port.name or "", port.port or 0, port.protocol or "")))


def _endpoint(service: Service, pod: Pod, node: Node | None, family: str) -> Endpoint:
    serving, terminating = is_ready(pod), bool(pod.metadata.deletion_timestamp)
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    zone = node.metadata.labels.get(_ZONE) if node is not None else None
    return Endpoint(
        addresses=(address_of(pod, family),),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        target_ref=reference_of(pod),
        node_name=pod.spec.node_name or None,
        zone=zone or None,
        hostname=hostname_of(service, pod) or None,
    )


def _identity(endpoint: Endpoint) -> object:
    """What makes it the same endpoint as before."""
    target = endpoint.target_ref
    return endpoint.addresses, endpoint.node_name, endpoint.hostname, target.uid if target is not None else ""

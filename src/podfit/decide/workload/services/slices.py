"""Endpoint slices of a service: its pods, by the ports that they have, on nodes that are known."""

from collections.abc import Mapping, Sequence

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import (
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.workload.pods import is_ready
from podfit.decide.workload.services.packing import (
    MANAGED,
    Changes,
    Desired,
    Pattern,
    Ports,
    identity,
    in_order,
    pack,
    reusing,
)
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
_ZONE = "topology.kubernetes.io/zone"
_RESERVED = (HEADLESS, SERVICE_NAME_LABEL, MANAGED)


def changes(
    service: Service, pods: Sequence[Pod], nodes: Mapping[str, Node], known: Sequence[EndpointSlice]
) -> Changes:
    """`nodes` by name; `known` are the slices of this service that its controller made."""
    made, pattern = Changes(), _pattern(service)
    wanted = families(service)
    for family in wanted:
        pack(pattern, family, _desired(service, family, pods, nodes), known, made)
    made.delete += [endpoint_slice for endpoint_slice in known if endpoint_slice.address_type not in wanted]
    return reusing(pattern, made)


def _desired(service: Service, family: str, pods: Sequence[Pod], nodes: Mapping[str, Node]) -> Desired:
    desired: Desired = {}
    for pod in pods:
        if not counts(pod, terminating=True) or not address_of(pod, family):
            continue
        node = nodes.get(pod.spec.node_name)
        if node is None and not service.spec.publish_not_ready_addresses:
            continue  # it is on its way out, or not seen yet: its coming is looked at
        endpoint = _endpoint(service, pod, node, family)
        desired.setdefault(_ports(service, pod), {})[identity(endpoint)] = endpoint
    return desired


def _pattern(service: Service) -> Pattern:
    labels = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    labels |= {HEADLESS: ""} if is_headless(service) else {}
    labels |= {SERVICE_NAME_LABEL: service.metadata.name, MANAGED: MANAGER}
    meta = ObjectMeta(
        generate_name=f"{service.metadata.name}-",
        namespace=service.metadata.namespace,
        labels=labels,
        owner_references=(reference_to(service),),
    )
    return Pattern(meta)


def _ports(service: Service, pod: Pod) -> Ports:
    return in_order(
        EndpointPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port in ports_of(service, pod)
    )


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
        hints=_hints(service, pod, zone) if ready else None,
    )


def _hints(service: Service, pod: Pod, zone: str | None) -> EndpointHints | None:
    """For whom the endpoint is meant, of a service that says how it distributes: its zone, and its node as well."""
    if (wanted := service.spec.traffic_distribution) is None:
        return None
    zones = (ForZone(name=zone),) if zone else ()
    nodes = (ForNode(name=pod.spec.node_name),) if wanted == "PreferSameNode" and pod.spec.node_name else ()
    return EndpointHints(for_nodes=nodes, for_zones=zones) if zones or nodes else None
